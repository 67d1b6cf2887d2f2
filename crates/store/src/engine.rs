//! The engine: the execution order that all stores share.
//!
//! The thread that holds the writer takes all waiting jobs, runs them in one transaction, and
//! replies after the commit. No caller waits for a group to fill up: a single call is written at
//! once by its own thread, and concurrent calls share one commit of the writer thread. Changes of
//! the setup take precedence over waiting calls. Three reader threads answer queries about setup,
//! counters and audit, so that a long query delays no change.
//!
//! Invariant: replies are sent after the commit, never before.
//! Invariant: outcomes are never dropped. If one cannot be written, it is retried.
//! Start at [`Engine::start`], then `job_queue`, `writer`, and `group`, which is one transaction.

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
    AdmitOutcome, AdmitRequest, ApprovalQuery, Backend, Change, ChangeError, Completion, Document,
    DueNotice, HeldCall, NotAudited, NotReadable, PendingApprovals, PolicyVersion, ReadUsage,
    RowQuery, Snapshot, Store, StoreActivity, StoreError, StoreErrorKind, StoreStatus,
    StoredApproval,
    backend::{BackendReader, SyncLag},
    permit::{Finish, OutcomeSink},
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

/// Settings of an engine.
#[derive(Default)]
pub struct EngineSettings {
    /// Signs checkpoints; without a signer there are no checkpoints.
    pub signer: Option<Signer>,
    /// When checkpoints are signed.
    pub due: CheckpointSchedule,
    /// Receives every checkpoint after it is written, to store it elsewhere. Runs on the writer
    /// thread, so it must not block.
    pub on_checkpoint: Option<Box<OnCheckpoint>>,
}

/// When a checkpoint is signed: after this many rows or this much time, whichever limit is reached first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointSchedule {
    /// The number of rows.
    pub rows: u64,
    /// The time.
    pub every: SignedDuration,
}

impl Default for CheckpointSchedule {
    fn default() -> Self {
        Self { rows: 1_000, every: SignedDuration::from_secs(60) }
    }
}

/// Receives a checkpoint.
pub type OnCheckpoint = dyn Fn(&Checkpoint) + Send;

/// A [`Store`] over any [`Backend`].
pub struct Engine {
    jobs: JobQueue,
    reads: ReadQueue,
    shared: Arc<Shared>,
    sync_lag: Option<Box<SyncLag>>,
}

/// State shared by the engine and its threads.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// Committed transactions.
    writes: AtomicU64,
    /// Failed transactions.
    failed_writes: AtomicU64,
    /// The generation as of the last transaction.
    generation: AtomicU64,
    /// The version of the approvals as of the last transaction.
    approvals: AtomicU64,
    /// The number of waiting admissions and other writes.
    waiting: AtomicUsize,
}

/// Further jobs are rejected at once: a reply after minutes is useless.
const MAX_WAITING: usize = 10_000;
/// Extra capacity for changes, so that a freeze is accepted even when too many calls wait.
const MAX_CHANGES: usize = 1_000;

type ReadFn = Box<dyn FnOnce(&mut dyn BackendReader) + Send>;

/// A job of a reader thread.
pub(crate) enum ReadJob {
    Answer(ReadFn),
    /// Close the data, and drop the sender when that is done.
    Release(Sender<()>),
}

/// A job of the writer.
pub(crate) enum Job {
    Admit {
        request: Box<AdmitRequest>,
        outcomes: Arc<dyn OutcomeSink>,
        reply: reply::Sender<AdmitOutcome, NotAudited>,
    },
    Finish(Box<Finish>),
    Deny(Box<Draft>, reply::Sender<(), NotAudited>),
    Record(Box<Draft>, reply::Sender<u64, NotAudited>),
    Change(Box<(Change, Draft)>, reply::Sender<u64, ChangeError>),
    /// A call continues as a task until then.
    Continue(CallId, Box<str>, Timestamp),
    /// A task of a call of an earlier process has ended.
    EndTask(Box<(Box<str>, Completion)>),
    /// Documents that need no row.
    Keep(Box<Change>),
    Touch(Arc<str>, Timestamp),
    /// When the notice of an approval is sent next; `None` if it was delivered.
    Deliver(Arc<str>, Option<(u32, Timestamp)>),
    Tick(Timestamp),
    /// The receiver fails as soon as the readers have closed the data.
    Close(Timestamp, Receiver<()>, reply::Sender<(), NotAudited>),
}

impl Engine {
    /// Starts the threads. Before it returns, intents left open by an exited process have their
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
        let sync_lag = backend.sync_lag();
        let mut writer = Writer::new(backend, settings, Arc::clone(&shared), now);
        writer.recover()?;
        let (writer, queue) =
            (Arc::new(Mutex::new(Some(writer))), Arc::new(PendingJobs::default()));
        let jobs = JobQueue::new(job_queue::ThreadedRunner::new(&writer, &queue));
        spawn("store-writer", move || job_queue::write_all(&writer, &queue))?;
        for (questions, reader) in readers {
            spawn("store-reader", move || job_queue::answer_all(&questions, reader))?;
        }
        Ok(Self { jobs, reads: ReadQueue::Thread(reads), shared, sync_lag })
    }

    /// Runs every job on the caller's thread: for data that never waits for a disk.
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
        let reads = ReadQueue::Inline(reader, jobs.clone());
        Ok(Self { jobs, reads, shared, sync_lag: None })
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
            let fault =
                StoreError::new(StoreErrorKind::Busy, "too many calls are waiting; retry later");
            return Box::pin(std::future::ready(Err(refuse(fault))));
        }
        let (reply, answered) = oneshot::channel();
        self.jobs.put(job(reply));
        reply::receive(answered, refuse)
    }

    fn ask<T: Send + 'static>(
        &self,
        lane: ReadLane,
        question: impl FnOnce(&mut dyn BackendReader) -> Result<T, StoreError> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, NotReadable>> {
        let (reply, answered) = oneshot::channel();
        let question: ReadFn = Box::new(move |reader| {
            drop(reply.send(question(reader).map_err(NotReadable)));
        });
        self.reads.put(lane, question);
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

    fn end_task(&self, task: &str, ending: Completion) {
        self.jobs.put(Job::EndTask(Box::new((task.into(), ending))));
    }

    fn keep_documents(&self, space: &str, keep: Vec<(Arc<str>, Arc<str>)>, forget: Vec<Arc<str>>) {
        let change = Change::ReplaceDocuments { space: space.into(), keep, forget };
        if !change.is_setup() {
            self.jobs.put(Job::Keep(Box::new(change)));
        }
    }

    fn touch(&self, grant: Arc<str>, now: Timestamp) {
        self.jobs.put(Job::Touch(grant, now));
    }

    fn note_delivery(&self, approval: Arc<str>, next: Option<(u32, Timestamp)>) {
        self.jobs.put(Job::Deliver(approval, next));
    }

    fn approvals_version(&self) -> u64 {
        self.shared.approvals.load(Ordering::Acquire)
    }

    fn approval(
        &self,
        id: &str,
    ) -> BoxFuture<'static, Result<Option<StoredApproval>, NotReadable>> {
        let id = id.to_owned();
        self.ask(ReadLane::Setup, move |reader| reader.approval(&id))
    }

    fn approvals(
        &self,
        query: ApprovalQuery,
    ) -> BoxFuture<'static, Result<Vec<StoredApproval>, NotReadable>> {
        self.ask(ReadLane::Setup, move |reader| reader.approvals(&query))
    }

    fn last_consumed(
        &self,
        like: &HeldCall,
    ) -> BoxFuture<'static, Result<Option<StoredApproval>, NotReadable>> {
        let like = like.clone();
        self.ask(ReadLane::Setup, move |reader| reader.last_consumed(&like))
    }

    fn pending_approvals(&self) -> BoxFuture<'static, Result<PendingApprovals, NotReadable>> {
        self.ask(ReadLane::Setup, |reader| reader.pending_approvals())
    }

    fn due_deliveries(
        &self,
        now: Timestamp,
        limit: usize,
    ) -> BoxFuture<'static, Result<Vec<DueNotice>, NotReadable>> {
        self.ask(ReadLane::Setup, move |reader| reader.due_deliveries(now, limit))
    }

    fn generation(&self) -> u64 {
        self.shared.generation.load(Ordering::Acquire)
    }

    fn snapshot(&self) -> BoxFuture<'static, Result<Snapshot, NotReadable>> {
        self.ask(ReadLane::Setup, |reader| reader.snapshot())
    }

    fn policy_versions(
        &self,
        name: &str,
    ) -> BoxFuture<'static, Result<Vec<PolicyVersion>, NotReadable>> {
        let name = name.to_owned();
        self.ask(ReadLane::Setup, move |reader| reader.policy_versions(&name))
    }

    fn documents(&self, space: &str) -> BoxFuture<'static, Result<Vec<Document>, NotReadable>> {
        let space = space.to_owned();
        self.ask(ReadLane::Setup, move |reader| reader.documents(&space))
    }

    fn rows(&self, page: RowQuery) -> BoxFuture<'static, Result<Vec<Row>, NotReadable>> {
        self.ask(ReadLane::Rows, move |reader| reader.rows(&page))
    }

    fn count_rows(&self, query: RowQuery) -> BoxFuture<'static, Result<u64, NotReadable>> {
        self.ask(ReadLane::Rows, move |reader| reader.count_rows(&query))
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

    fn activity(&self) -> StoreActivity {
        StoreActivity {
            writes: self.shared.writes.load(Ordering::Relaxed),
            failed_writes: self.shared.failed_writes.load(Ordering::Relaxed),
            sync_lag: self.sync_lag.as_ref().map(|measure| measure()).unwrap_or_default(),
        }
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
        // The last connection to close checkpoints the database, and that should be the writer.
        let (released, gone) = channel();
        self.reads.release(released);
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
