//! The engine: every store's order of things.
//!
//! Whoever holds the writer takes whatever waits, does it in one transaction, and answers after the
//! commit. Nobody who wants an answer waits for more to come: a call alone is written alone, on the
//! spot, a crowd shares one commit of the writer thread. Changes of what people set up come before
//! calls that wait. Reader threads answer questions from their own view of the data: one what is
//! set up, one what has been used, one the audit, so that a long search holds up no change.
//!
//! Invariant: answers leave after the commit, never before.
//! Invariant: outcomes are never dropped. What cannot be written now is tried again.
//! Start at [`Engine::start`], then `desk`, `writer`, and `group`, which is one transaction.

mod group;
mod job_queue;
mod pending;
#[cfg(test)]
mod tests;
mod writer;

use std::{fmt, sync::Arc};

use futures_channel::oneshot;
use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use toolgate_audit::{CallId, Checkpoint, Draft, Row, Signer};

use crate::{
    AdmitOutcome, AdmitRequest, Backend, Change, ChangeError, Document, NotAudited, NotReadable,
    ReadUsage, RowQuery, Snapshot, Store, StoreError, StoreErrorKind, StoreStatus,
    backend::BackendReader,
    permit::{Finish, Outcomes},
    reply,
    sync::{
        Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc::{Receiver, Sender, channel},
        thread,
    },
};
use job_queue::{InlineRunner, JobQueue, ReadLane, ReadQueue};
use pending::PendingJobs;
use writer::Writer;

/// What a store is started with.
#[derive(Default)]
pub struct EngineSettings {
    /// Signs checkpoints; without it there are none.
    pub signer: Option<Signer>,
    /// When checkpoints are signed.
    pub due: CheckpointSchedule,
    /// Gets every checkpoint after it is written, to keep it elsewhere. Runs on the writer thread,
    /// so it must not wait.
    pub on_checkpoint: Option<Box<OnCheckpoint>>,
}

/// When a checkpoint is signed: after so many rows or so much time, whichever comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointSchedule {
    /// So many rows.
    pub rows: u64,
    /// So much time.
    pub every: SignedDuration,
}

impl Default for CheckpointSchedule {
    fn default() -> Self {
        Self { rows: 1_000, every: SignedDuration::from_secs(60) }
    }
}

/// Is told of a checkpoint.
pub type OnCheckpoint = dyn Fn(&Checkpoint) + Send;

/// A [`Store`] over any [`Backend`].
pub struct Engine {
    jobs: JobQueue,
    reads: ReadQueue,
    shared: Arc<Shared>,
}

/// What the threads and the engine both look at.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// As of the last transaction.
    generation: AtomicU64,
    /// Admissions and other writes that wait.
    waiting: AtomicUsize,
}

/// More than this are refused at once: an answer that takes minutes helps nobody.
const MAX_WAITING: usize = 10_000;
/// Changes have places of their own: a freeze is taken also when too many calls wait.
const MAX_CHANGES: usize = 1_000;

type ReadFn = Box<dyn FnOnce(&mut dyn BackendReader) + Send>;

/// What the reader is asked to do.
pub(crate) enum ReadJob {
    Answer(ReadFn),
    /// Let go of the data; dropped when that is done.
    LetGo(Sender<()>),
}

/// What the writer is asked to do.
pub(crate) enum Job {
    Admit {
        request: Box<AdmitRequest>,
        outcomes: Arc<dyn Outcomes>,
        reply: reply::Sender<AdmitOutcome, NotAudited>,
    },
    Finish(Box<Finish>),
    Deny(Box<Draft>, reply::Sender<(), NotAudited>),
    Record(Box<Draft>, reply::Sender<u64, NotAudited>),
    Change(Box<(Change, Draft)>, reply::Sender<u64, ChangeError>),
    Touch(Arc<str>, Timestamp),
    Tick(Timestamp),
    /// The receiver fails as soon as the reader has let go of the data.
    Close(Timestamp, Receiver<()>, reply::Sender<(), NotAudited>),
}

impl Engine {
    /// Starts the threads. Before it returns, intents that a dead process left open have their
    /// `unknown` row.
    pub fn start(
        backend: impl Backend,
        settings: EngineSettings,
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let shared = Arc::new(Shared::default());
        let (mut reads, mut readers) = (Vec::new(), Vec::new());
        for _ in ReadLane::ALL {
            let (put, questions) = channel();
            reads.push(put);
            readers.push((questions, backend.reader()?));
        }
        let mut writer = Writer::new(backend, settings, Arc::clone(&shared), now);
        writer.recover()?;
        let (writer, queue) =
            (Arc::new(Mutex::new(Some(writer))), Arc::new(PendingJobs::default()));
        let jobs = JobQueue::new(job_queue::ThreadedRunner::new(&writer, &queue));
        spawn("store-writer", move || job_queue::write_all(&writer, &queue))?;
        for (questions, reader) in readers {
            spawn("store-reader", move || job_queue::answer_all(&questions, reader))?;
        }
        Ok(Self { jobs, reads: ReadQueue::Thread(reads), shared })
    }

    /// Does everything on the spot, without threads: for data that never waits for a disk.
    pub fn inline(
        backend: impl Backend,
        settings: EngineSettings,
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let shared = Arc::new(Shared::default());
        let reader = Mutex::new(backend.reader()?);
        let mut writer = Writer::new(backend, settings, Arc::clone(&shared), now);
        writer.recover()?;
        let jobs = JobQueue::new(InlineRunner::new(writer));
        let reads = ReadQueue::Here(reader, jobs.clone());
        Ok(Self { jobs, reads, shared })
    }

    fn write<T: Send + 'static, E: Send + 'static>(
        &self,
        refuse: fn(StoreError) -> E,
        job: impl FnOnce(reply::Sender<T, E>) -> Job,
    ) -> BoxFuture<'static, Result<T, E>> {
        self.put(MAX_WAITING, refuse, job)
    }

    fn put<T: Send + 'static, E: Send + 'static>(
        &self,
        most: usize,
        refuse: fn(StoreError) -> E,
        job: impl FnOnce(reply::Sender<T, E>) -> Job,
    ) -> BoxFuture<'static, Result<T, E>> {
        if self.shared.waiting.fetch_add(1, Ordering::Relaxed) >= most {
            self.shared.waiting.fetch_sub(1, Ordering::Relaxed);
            let fault = StoreError::new(StoreErrorKind::Busy, "too many calls wait; retry later");
            return Box::pin(std::future::ready(Err(refuse(fault))));
        }
        let (reply, answered) = oneshot::channel();
        self.jobs.put(job(reply));
        reply::receive(answered, refuse)
    }

    fn ask<T: Send + 'static>(
        &self,
        way: ReadLane,
        question: impl FnOnce(&mut dyn BackendReader) -> Result<T, StoreError> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, NotReadable>> {
        let (reply, answered) = oneshot::channel();
        let question: ReadFn = Box::new(move |reader| {
            drop(reply.send(question(reader).map_err(NotReadable)));
        });
        self.reads.put(way, question);
        reply::receive(answered, NotReadable)
    }
}

impl Store for Engine {
    fn admit(
        &self,
        mut request: AdmitRequest,
    ) -> BoxFuture<'static, Result<AdmitOutcome, NotAudited>> {
        request.draft = request.draft.truncate();
        let (request, outcomes) = (Box::new(request), self.jobs.outcomes());
        self.write(NotAudited, |reply| Job::Admit { request, outcomes, reply })
    }

    fn deny(&self, denial: Draft) -> BoxFuture<'static, Result<(), NotAudited>> {
        let denial = Box::new(denial.truncate().truncate_arguments());
        self.write(NotAudited, |reply| Job::Deny(denial, reply))
    }

    fn record(&self, row: Draft) -> BoxFuture<'static, Result<u64, NotAudited>> {
        let row = Box::new(row.truncate());
        self.write(NotAudited, |reply| Job::Record(row, reply))
    }

    fn change(&self, change: Change, row: Draft) -> BoxFuture<'static, Result<u64, ChangeError>> {
        let refuse = |fault| ChangeError::NotAudited(NotAudited(fault));
        let change = Box::new((change, row.truncate()));
        self.put(MAX_WAITING + MAX_CHANGES, refuse, |reply| Job::Change(change, reply))
    }

    fn touch(&self, grant: Arc<str>, now: Timestamp) {
        self.jobs.put(Job::Touch(grant, now));
    }

    fn generation(&self) -> u64 {
        self.shared.generation.load(Ordering::Acquire)
    }

    fn snapshot(&self) -> BoxFuture<'static, Result<Snapshot, NotReadable>> {
        self.ask(ReadLane::Setup, |reader| reader.snapshot())
    }

    fn documents(&self, space: &str) -> BoxFuture<'static, Result<Vec<Document>, NotReadable>> {
        let space = space.to_owned();
        self.ask(ReadLane::Setup, move |reader| reader.documents(&space))
    }

    fn rows(&self, page: RowQuery) -> BoxFuture<'static, Result<Vec<Row>, NotReadable>> {
        self.ask(ReadLane::Rows, move |reader| reader.rows(&page))
    }

    fn call_rows(&self, call: CallId) -> BoxFuture<'static, Result<Vec<Row>, NotReadable>> {
        self.ask(ReadLane::Rows, move |reader| reader.call_rows(call))
    }

    fn checkpoints(&self) -> BoxFuture<'static, Result<Vec<Checkpoint>, NotReadable>> {
        self.ask(ReadLane::Rows, |reader| reader.checkpoints())
    }

    fn status(&self) -> BoxFuture<'static, Result<StoreStatus, NotReadable>> {
        self.ask(ReadLane::Setup, |reader| reader.status())
    }

    fn read_usage(
        &self,
        now: Timestamp,
        read: Box<ReadUsage>,
    ) -> BoxFuture<'static, Result<(), NotReadable>> {
        self.ask(ReadLane::Usage, move |reader| {
            let now = now.max(reader.mark()?);
            read(reader.usage(), now);
            Ok(())
        })
    }

    fn tick(&self, now: Timestamp) {
        self.jobs.put(Job::Tick(now));
    }

    fn close(&self, now: Timestamp) -> BoxFuture<'static, Result<(), NotAudited>> {
        let (reply, answered) = oneshot::channel();
        // Whoever closes a database last tidies it up, and that should be the writer.
        let (letting_go, gone) = channel();
        self.reads.let_go(letting_go);
        self.jobs.put(Job::Close(now, gone, reply));
        reply::receive(answered, NotAudited)
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("shared", &self.shared).finish_non_exhaustive()
    }
}

impl fmt::Debug for EngineSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineSettings").field("signer", &self.signer).finish_non_exhaustive()
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), StoreError> {
    let spawned = thread::Builder::new().name(name.to_owned()).spawn(work);
    spawned.map(drop).map_err(|error| StoreError::new(StoreErrorKind::Internal, error.to_string()))
}
