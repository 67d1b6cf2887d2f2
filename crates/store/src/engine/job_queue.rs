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

use super::{
    Job, ReadFn, ReadJob,
    pending::PendingJobs,
    writer::{Closing, Writer},
};
use crate::{
    Backend,
    backend::BackendReader,
    permit::{Finish, Outcomes},
    sync::{
        Mutex,
        mpsc::{Receiver, Sender},
    },
};

/// Where jobs are put.
#[derive(Clone)]
pub(crate) struct JobQueue(Arc<dyn JobRunner>);

/// Where questions are put.
pub(super) enum ReadQueue {
    /// The reader threads answer, one for each [`ReadLane`].
    Thread(Vec<Sender<ReadJob>>),
    /// They are answered at once, after what could not be written before.
    Here(Mutex<Box<dyn BackendReader>>, JobQueue),
}

/// What a question is about: each has a reader of its own, so that none waits for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadLane {
    /// What people set up. A change takes effect only when this was answered.
    Setup,
    /// What has been used.
    Usage,
    /// The audit.
    Rows,
}

impl ReadLane {
    pub(super) const ALL: [ReadLane; 3] = [ReadLane::Setup, ReadLane::Usage, ReadLane::Rows];
}

/// Takes jobs up.
pub(crate) trait JobRunner: Outcomes {
    /// Does it, or sees to it that it is done, and whoever asked answered.
    fn work(&self, job: Job);
    /// Writes what could not be written before, if no thread is there to try it by itself.
    fn try_again(&self) {}
}

impl<W: JobRunner> Outcomes for W {
    fn finish(&self, finish: Finish) {
        self.work(Job::Finish(Box::new(finish)));
    }
}

/// A writer; gone once the store is closed.
pub(super) type WriterSlot<B> = Mutex<Option<Writer<B>>>;

/// A writer that works wherever it is needed.
pub(super) struct InlineRunner<B>(WriterSlot<B>);

/// A writer with a thread for what cannot be done on the spot.
pub(super) struct ThreadedRunner<B: Backend> {
    writer: Arc<WriterSlot<B>>,
    queue: Arc<PendingJobs>,
}

// === impl Desk ===

impl JobQueue {
    pub(super) fn new(worker: impl JobRunner + 'static) -> Self {
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

impl ReadQueue {
    /// Puts a question there.
    pub(super) fn put(&self, way: ReadLane, question: ReadFn) {
        match self {
            ReadQueue::Thread(readers) => {
                let found = ReadLane::ALL.iter().zip(readers).find(|(of, _)| **of == way);
                if let Some((_, reader)) = found {
                    drop(reader.send(ReadJob::Answer(question)));
                }
            }
            ReadQueue::Here(reader, jobs) => {
                jobs.0.try_again();
                ask(question, &mut **reader.lock());
            }
        }
    }

    /// After this nothing is answered any more; `letting_go` is dropped when the data is free.
    pub(super) fn let_go(&self, letting_go: Sender<()>) {
        match self {
            ReadQueue::Thread(readers) => {
                for reader in readers {
                    drop(reader.send(ReadJob::LetGo(letting_go.clone())));
                }
            }
            ReadQueue::Here(..) => drop(letting_go),
        }
    }
}

// === impl OnTheSpot ===

impl<B: Backend> InlineRunner<B> {
    pub(super) fn new(writer: Writer<B>) -> Self {
        Self(Mutex::new(Some(writer)))
    }
}

impl<B: Backend> JobRunner for InlineRunner<B> {
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

impl<B: Backend> ThreadedRunner<B> {
    pub(super) fn new(writer: &Arc<WriterSlot<B>>, queue: &Arc<PendingJobs>) -> Self {
        Self { writer: Arc::clone(writer), queue: Arc::clone(queue) }
    }

    /// Does the job now, with what waits before it; gives it back if that cannot be.
    fn inline(&self, job: Job) -> Option<Job> {
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

impl<B: Backend> JobRunner for ThreadedRunner<B> {
    fn work(&self, job: Job) {
        if let Some(job) = self.inline(job) {
            self.queue.put(job);
        }
    }
}

impl<B: Backend> Drop for ThreadedRunner<B> {
    fn drop(&mut self) {
        self.queue.end();
    }
}

/// The writer thread: until the store is closed, or nobody is left who could ask.
pub(super) fn write_all<B: Backend>(writer: &WriterSlot<B>, queue: &PendingJobs) {
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
pub(super) fn answer_all(questions: &Receiver<ReadJob>, mut reader: Box<dyn BackendReader>) {
    for asked in questions {
        match asked {
            ReadJob::Answer(question) => ask(question, &mut *reader),
            ReadJob::LetGo(letting_go) => {
                drop(reader);
                drop(letting_go);
                return;
            }
        }
    }
}

/// A question that fails leaves its asker without an answer, and nobody else.
fn ask(question: ReadFn, reader: &mut dyn BackendReader) {
    drop(catch_unwind(AssertUnwindSafe(|| question(reader))));
}
