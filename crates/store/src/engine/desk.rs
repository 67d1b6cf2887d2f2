//! Desks: where jobs and questions are put, and who takes them up.
//!
//! Data on a disk has a thread for writing and one for reading, because they wait. Data in memory
//! needs neither: whoever puts a job there does it on the spot, one at a time.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::Ordering,
        mpsc::{Receiver, Sender},
    },
};

use parking_lot::Mutex;

use super::{Job, Question, Shared, writer::Writer};
use crate::{Backend, backend::Reader};

/// Where jobs are put.
#[derive(Clone)]
pub(crate) enum Desk {
    /// The writer thread takes them up.
    Thread(Sender<Job>),
    /// They are done at once.
    Here(Arc<dyn Worker>),
}

/// Where questions are put.
pub(super) enum Window {
    /// The reader thread answers.
    Thread(Sender<Question>),
    /// They are answered at once, after what could not be written before.
    Here(Mutex<Box<dyn Reader>>, Arc<dyn Worker>),
}

/// Does a job on the spot.
pub(crate) trait Worker: Send + Sync {
    /// Does it, and answers whoever asked.
    fn work(&self, job: Job);
    /// Writes what could not be written before; no thread is there to try it by itself.
    fn try_again(&self);
}

/// A writer that works wherever it is needed; gone once the store is closed.
pub(super) struct OnTheSpot<B>(Mutex<Option<Writer<B>>>, Arc<Shared>);

impl Desk {
    /// Puts a job there. If nobody is left to do it, its reply is dropped, which answers.
    pub(crate) fn put(&self, job: Job) {
        match self {
            Desk::Thread(writer) => drop(writer.send(job)),
            Desk::Here(worker) => worker.work(job),
        }
    }
}

impl Window {
    /// Puts a question there.
    pub(super) fn put(&self, question: Question) {
        match self {
            Window::Thread(reader) => drop(reader.send(question)),
            Window::Here(reader, worker) => {
                worker.try_again();
                ask(question, &mut **reader.lock());
            }
        }
    }
}

impl<B: Backend> OnTheSpot<B> {
    pub(super) fn new(writer: Writer<B>, shared: Arc<Shared>) -> Self {
        Self(Mutex::new(Some(writer)), shared)
    }
}

impl<B: Backend> Worker for OnTheSpot<B> {
    fn work(&self, job: Job) {
        if job.waits() {
            self.1.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        let mut writer = self.0.lock();
        let closed = writer.as_mut().and_then(|writer| writer.write(vec![job]));
        if let Some((reply, result)) = closed {
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

/// Answers questions until nobody is left to ask.
pub(super) fn answer_all(questions: Receiver<Question>, mut reader: Box<dyn Reader>) {
    for question in questions {
        ask(question, &mut *reader);
    }
}

/// A question that fails leaves its asker without an answer, and nobody else.
fn ask(question: Question, reader: &mut dyn Reader) {
    drop(catch_unwind(AssertUnwindSafe(|| question(reader))));
}
