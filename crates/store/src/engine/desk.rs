//! Desks: where jobs and questions are put, and who takes them up.
//!
//! Data on a disk has a thread for writing and one for reading, because they may wait. Waking a
//! thread and being woken by it takes longer than the writing itself, though. So whoever has a call
//! to admit and finds the writer free writes on the spot what waits, and the call; the thread is
//! for crowds, and for outcomes after which nothing comes. Data in memory needs no thread at all.
//!
//! Invariant: a disk that hangs holds up one caller at most; the others find the writer busy, and
//! wait for the thread, as long as they like.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use jiff::Timestamp;
use toolgate_audit::CallId;

use super::{
    Asked, Job, Question,
    queue::Queue,
    writer::{Closing, Writer},
};
use crate::{
    Backend,
    backend::Reader,
    permit::{Finish, Outcomes},
    sync::{
        Mutex,
        mpsc::{Receiver, Sender},
    },
};

/// Where jobs are put.
#[derive(Clone)]
pub(crate) struct Desk(Arc<dyn Worker>);

/// Where questions are put.
pub(super) enum Window {
    /// The reader threads answer, one for each [`Way`].
    Thread(Vec<Sender<Asked>>),
    /// They are answered at once, after what could not be written before.
    Here(Mutex<Box<dyn Reader>>, Desk),
}

/// What a question is about: each has a reader of its own, so that none waits for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// What people set up. A change takes effect only when this was answered.
    Setup,
    /// What has been used.
    Usage,
    /// The audit.
    Rows,
}

impl Way {
    pub(super) const ALL: [Way; 3] = [Way::Setup, Way::Usage, Way::Rows];
}

/// Takes jobs up.
pub(crate) trait Worker: Outcomes {
    /// Does it, or sees to it that it is done, and whoever asked answered.
    fn work(&self, job: Job);
    /// Writes what could not be written before, if no thread is there to try it by itself.
    fn try_again(&self) {}
}

impl<W: Worker> Outcomes for W {
    fn finish(&self, finish: Finish) {
        self.work(Job::Finish(Box::new(finish)));
    }

    fn continue_as_task(&self, call: CallId, task: Box<str>, until: Timestamp) {
        self.work(Job::Continue(call, task, until));
    }
}

/// A writer; gone once the store is closed.
pub(super) type Slot<B> = Mutex<Option<Writer<B>>>;

/// A writer that works wherever it is needed.
pub(super) struct OnTheSpot<B>(Slot<B>);

/// A writer with a thread for what cannot be done on the spot.
pub(super) struct Threaded<B: Backend> {
    writer: Arc<Slot<B>>,
    queue: Arc<Queue>,
}

// === impl Desk ===

impl Desk {
    pub(super) fn new(worker: impl Worker + 'static) -> Self {
        Self(Arc::new(worker))
    }

    /// Where tickets send outcomes.
    pub(super) fn outcomes(&self) -> Arc<dyn Outcomes> {
        Arc::clone(&self.0) as Arc<dyn Outcomes>
    }

    /// Puts a job there. If nobody is left to do it, its reply is dropped, which answers.
    pub(crate) fn put(&self, job: Job) {
        self.0.work(job);
    }
}

impl Window {
    /// Puts a question there.
    pub(super) fn put(&self, way: Way, question: Question) {
        match self {
            Window::Thread(readers) => {
                let found = Way::ALL.iter().zip(readers).find(|(of, _)| **of == way);
                if let Some((_, reader)) = found {
                    drop(reader.send(Asked::Answer(question)));
                }
            }
            Window::Here(reader, desk) => {
                desk.0.try_again();
                ask(question, &mut **reader.lock());
            }
        }
    }

    /// After this nothing is answered any more; `letting_go` is dropped when the data is free.
    pub(super) fn let_go(&self, letting_go: Sender<()>) {
        match self {
            Window::Thread(readers) => {
                for reader in readers {
                    drop(reader.send(Asked::LetGo(letting_go.clone())));
                }
            }
            Window::Here(..) => drop(letting_go),
        }
    }
}

// === impl OnTheSpot ===

impl<B: Backend> OnTheSpot<B> {
    pub(super) fn new(writer: Writer<B>) -> Self {
        Self(Mutex::new(Some(writer)))
    }
}

impl<B: Backend> Worker for OnTheSpot<B> {
    fn work(&self, job: Job) {
        let mut writer = self.0.lock();
        let closed = writer.as_mut().and_then(|writer| writer.write(vec![job]));
        if let Some(Closing { reply, result, .. }) = closed {
            // What was kept must be free before anybody hears that it is.
            *writer = None;
            drop(reply.send(result));
        }
    }

    fn try_again(&self) {
        if let Some(writer) = self.0.lock().as_mut().filter(|writer| writer.owes()) {
            drop(writer.write(Vec::new()));
        }
    }
}

// === impl Threaded ===

impl<B: Backend> Threaded<B> {
    pub(super) fn new(writer: &Arc<Slot<B>>, queue: &Arc<Queue>) -> Self {
        Self { writer: Arc::clone(writer), queue: Arc::clone(queue) }
    }

    /// Does the job now, with what waits before it; gives it back if that cannot be.
    fn on_the_spot(&self, job: Job) -> Option<Job> {
        if !matches!(job, Job::Admit { .. }) {
            return Some(job);
        }
        let Some(mut slot) = self.writer.try_lock() else { return Some(job) };
        let Some(writer) = slot.as_mut().filter(|writer| writer.is_quick()) else {
            return Some(job);
        };
        let Some(mut jobs) = self.queue.take_few() else { return Some(job) };
        jobs.push(job);
        drop(writer.write(jobs));
        if writer.owes() {
            self.queue.call();
        }
        None
    }
}

impl<B: Backend> Worker for Threaded<B> {
    fn work(&self, job: Job) {
        if let Some(job) = self.on_the_spot(job) {
            self.queue.put(job);
        }
    }
}

impl<B: Backend> Drop for Threaded<B> {
    fn drop(&mut self) {
        self.queue.end();
    }
}

/// The writer thread: until the store is closed, or nobody is left who could ask.
pub(super) fn write_all<B: Backend>(writer: &Slot<B>, queue: &Queue) {
    let mut owed = false;
    while queue.wait(owed) {
        let mut slot = writer.lock();
        let Some(open) = slot.as_mut() else { break };
        let jobs = queue.take();
        if (!jobs.is_empty() || open.owes())
            && let Some(Closing { gone, reply, result }) = open.write(jobs)
        {
            // Nothing is ever sent; this ends when the reader has let go.
            let _gone = gone.recv();
            // What was kept must be free before anybody hears that it is.
            *slot = None;
            drop(slot);
            queue.close();
            drop(reply.send(result));
            return;
        }
        owed = open.owes();
    }
    if let Some(mut left) = writer.lock().take() {
        left.close();
    }
}

/// Answers questions until nobody is left to ask, or the store is closed.
pub(super) fn answer_all(questions: &Receiver<Asked>, mut reader: Box<dyn Reader>) {
    for asked in questions {
        match asked {
            Asked::Answer(question) => ask(question, &mut *reader),
            Asked::LetGo(letting_go) => {
                drop(reader);
                drop(letting_go);
                return;
            }
        }
    }
}

/// A question that fails leaves its asker without an answer, and nobody else.
fn ask(question: Question, reader: &mut dyn Reader) {
    drop(catch_unwind(AssertUnwindSafe(|| question(reader))));
}
