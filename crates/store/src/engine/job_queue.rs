//! The job queue: accepts jobs and queries, and decides which thread runs them.
//!
//! Data on a disk has one thread for writing and several for reading, because both may block.
//! Waking a thread takes longer than the write itself, however. So a caller that admits a call and
//! finds the writer free writes the waiting jobs and its own call inline. The writer thread handles
//! concurrent calls, and outcomes that no later call picks up. Data in memory needs no thread.
//!
//! Invariant: a hanging disk blocks at most one caller; the others find the writer busy and wait
//! for the thread, each as long as it chooses.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use jiff::Timestamp;
use toolgate_audit::CallId;

use super::{
    Job, ReadFn, ReadJob,
    pending::PendingJobs,
    writer::{Closing, Writer},
};
use crate::{
    Backend,
    backend::BackendReader,
    permit::{Finish, OutcomeSink},
    sync::{
        Mutex,
        mpsc::{Receiver, Sender},
    },
};

/// Accepts jobs for the writer.
#[derive(Clone)]
pub(crate) struct JobQueue(Arc<dyn JobRunner>);

/// Accepts queries.
pub(super) enum ReadQueue {
    /// Answered by the reader threads, one for each [`ReadLane`].
    Thread(Vec<Sender<ReadJob>>),
    /// Answered at once on the caller's thread, after a retry of failed writes.
    Inline(Mutex<Box<dyn BackendReader>>, JobQueue),
}

/// The topic of a query. Each has its own reader, so that no topic waits for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadLane {
    /// The setup. A change takes effect only after this query is answered.
    Setup,
    /// The counters.
    Usage,
    /// The audit.
    Rows,
}

impl ReadLane {
    pub(super) const ALL: [ReadLane; 3] = [ReadLane::Setup, ReadLane::Usage, ReadLane::Rows];
}

/// Runs jobs.
pub(crate) trait JobRunner: OutcomeSink {
    /// Runs the job now or later, and sends its reply.
    fn work(&self, job: Job);
    /// Retries failed writes, if no thread does so on its own.
    fn retry_backlog(&self) {}
}

impl<W: JobRunner> OutcomeSink for W {
    fn finish(&self, finish: Finish) {
        self.work(Job::Finish(Box::new(finish)));
    }

    fn continue_as_task(&self, call: CallId, task: Box<str>, until: Timestamp) {
        self.work(Job::Continue(call, task, until));
    }
}

/// The writer; `None` once the store is closed.
pub(super) type WriterSlot<B> = Mutex<Option<Writer<B>>>;

/// Runs every job on the caller's thread.
pub(super) struct InlineRunner<B>(WriterSlot<B>);

/// Runs a job inline if possible, otherwise on the writer thread.
pub(super) struct ThreadedRunner<B: Backend> {
    writer: Arc<WriterSlot<B>>,
    queue: Arc<PendingJobs>,
}

// === impl JobQueue ===

impl JobQueue {
    pub(super) fn new(worker: impl JobRunner + 'static) -> Self {
        Self(Arc::new(worker))
    }

    /// Receives the outcomes of tickets.
    pub(super) fn outcomes(&self) -> Arc<dyn OutcomeSink> {
        Arc::clone(&self.0) as Arc<dyn OutcomeSink>
    }

    /// Adds a job. If the store is closed, the reply is dropped, which the caller receives as an
    /// error.
    pub(crate) fn put(&self, job: Job) {
        self.0.work(job);
    }
}

impl ReadQueue {
    /// Adds a query.
    pub(super) fn put(&self, lane: ReadLane, question: ReadFn) {
        match self {
            ReadQueue::Thread(readers) => {
                let found = ReadLane::ALL.iter().zip(readers).find(|(of, _)| **of == lane);
                if let Some((_, reader)) = found {
                    drop(reader.send(ReadJob::Answer(question)));
                }
            }
            ReadQueue::Inline(reader, jobs) => {
                jobs.0.retry_backlog();
                ask(question, &mut **reader.lock());
            }
        }
    }

    /// Rejects all later queries; drops `released` when the data is closed.
    pub(super) fn release(&self, released: Sender<()>) {
        match self {
            ReadQueue::Thread(readers) => {
                for reader in readers {
                    drop(reader.send(ReadJob::Release(released.clone())));
                }
            }
            ReadQueue::Inline(..) => drop(released),
        }
    }
}

// === impl InlineRunner ===

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
            // The data must be closed before the caller receives the reply.
            *writer = None;
            drop(reply.send(result));
        }
    }

    fn retry_backlog(&self) {
        if let Some(writer) = self.0.lock().as_mut().filter(|writer| writer.has_backlog()) {
            drop(writer.write(Vec::new()));
        }
    }
}

// === impl ThreadedRunner ===

impl<B: Backend> ThreadedRunner<B> {
    pub(super) fn new(writer: &Arc<WriterSlot<B>>, queue: &Arc<PendingJobs>) -> Self {
        Self { writer: Arc::clone(writer), queue: Arc::clone(queue) }
    }

    /// Runs the job now, after the jobs that wait; returns it if that is not possible.
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
        if writer.has_backlog() {
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

/// The writer thread. Ends when the store is closed or its last handle is dropped.
pub(super) fn write_all<B: Backend>(writer: &WriterSlot<B>, queue: &PendingJobs) {
    let mut owed = false;
    while queue.wait(owed) {
        let mut slot = writer.lock();
        let Some(open) = slot.as_mut() else { break };
        let jobs = queue.take();
        if (!jobs.is_empty() || open.has_backlog())
            && let Some(Closing { gone, reply, result }) = open.write(jobs)
        {
            // No value is ever sent; this returns when the readers have closed the data.
            let _gone = gone.recv();
            // The data must be closed before the caller receives the reply.
            *slot = None;
            drop(slot);
            queue.close();
            drop(reply.send(result));
            return;
        }
        owed = open.has_backlog();
    }
    if let Some(mut left) = writer.lock().take() {
        left.close();
    }
}

/// A reader thread. Ends when the store is closed or its last handle is dropped.
pub(super) fn answer_all(questions: &Receiver<ReadJob>, mut reader: Box<dyn BackendReader>) {
    for asked in questions {
        match asked {
            ReadJob::Answer(question) => ask(question, &mut *reader),
            ReadJob::Release(released) => {
                drop(reader);
                drop(released);
                return;
            }
        }
    }
}

/// A query that panics fails only its own caller.
fn ask(question: ReadFn, reader: &mut dyn BackendReader) {
    drop(catch_unwind(AssertUnwindSafe(|| question(reader))));
}
