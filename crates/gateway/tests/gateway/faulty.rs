//! Test doubles that fail at one step of a call, and only for calls of the tool `bad`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use parking_lot::{Condvar, Mutex};
use tokio::runtime::Handle;
use toolgate_audit::{CallId, Checkpoint, Draft, Row};
use toolgate_gateway::Ids;
use toolgate_gateway::channel::{BoxFuture, Channel, Connector, Inbox, Outbound, SendError};
use toolgate_store::backend::{BackendReader, TransactionBody};
use toolgate_store::{
    AdmitOutcome, AdmitRequest, ApprovalQuery, Backend, Change, ChangeError, Completion, Document,
    DueNotice, HeldCall, MemoryBackend, NotAudited, NotReadable, PendingApprovals, PolicyVersion,
    ReadUsage, RowQuery, Snapshot, Store, StoreError, StoreErrorKind, StoreStatus, StoredApproval,
};

use crate::script::Script;

/// What goes wrong, in the order of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    NoId,
    IdPanics,
    /// The driver of sessions, or a read_usage at what was used, panics.
    CalleePanics,
    DecisionPanics,
    NotWritten,
    StorePanics,
    StorePanicsLater,
    StoreHangs,
    /// It is written, and the answer that says so is lost.
    AnswerLost,
    NoConnection,
    ConnectPanics,
    ConnectHangs,
    NotSent,
    Lost,
    SendPanics,
    SendHangs,
    /// It is sent and answered, and its outcome cannot be written for a while.
    NotRecorded,
    /// The same, because writing it panics.
    RecordPanics,
    /// The same, because the disk does not answer.
    RecordHangs,
}

/// Who fails, and how; cloned into every double.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan(Arc<Planned>);

#[derive(Debug, Default)]
struct Planned {
    fault: Mutex<Option<Fault>>,
    changed: Condvar,
    /// The call is on its way, so that what is written next is its outcome.
    sent: AtomicBool,
}

impl Plan {
    pub(crate) fn set(&self, fault: Option<Fault>) {
        *self.0.fault.lock() = fault;
        self.0.changed.notify_all();
    }

    fn fault(&self) -> Option<Fault> {
        *self.0.fault.lock()
    }

    pub(crate) fn is(&self, fault: Fault) -> bool {
        self.fault() == Some(fault)
    }
}

/// Data in memory whose next transaction after the call was sent fails.
#[derive(Debug)]
pub(crate) struct FaultyBackend(pub(crate) MemoryBackend, pub(crate) Plan);

impl Backend for FaultyBackend {
    fn transact(&mut self, work: &mut TransactionBody<'_>) -> Result<(), StoreError> {
        let plan = &self.1;
        if plan.0.sent.swap(false, Ordering::SeqCst) {
            assert!(!plan.is(Fault::RecordPanics), "on purpose");
            let mut fault = plan.0.fault.lock();
            while *fault == Some(Fault::RecordHangs) {
                plan.0.changed.wait(&mut fault);
            }
        }
        self.0.transact(work)
    }

    fn reader(&self) -> Result<Box<dyn BackendReader>, StoreError> {
        self.0.reader()
    }
}

/// Ids that run out.
pub(crate) struct FaultyIds(pub(crate) Arc<dyn Ids>, pub(crate) Plan);

impl Ids for FaultyIds {
    fn agent_session(&self) -> Option<String> {
        self.0.agent_session()
    }

    fn call(&self) -> Option<[u8; 10]> {
        assert!(!self.1.is(Fault::IdPanics), "on purpose");
        if self.1.is(Fault::NoId) { None } else { self.0.call() }
    }
}

/// A store that fails.
#[derive(Clone)]
pub(crate) struct FaultyStore(pub(crate) Arc<dyn Store>, pub(crate) Plan);

impl std::fmt::Debug for FaultyStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FaultyStore")
    }
}

fn not_audited() -> NotAudited {
    NotAudited(StoreError::new(StoreErrorKind::Io, "told to fail"))
}

/// The clock of the test stands still until the store, which may use a thread, has answered.
fn still<T: Send + 'static>(answer: BoxFuture<'static, T>) -> BoxFuture<'static, T> {
    Box::pin(async {
        let runtime = Handle::current();
        tokio::task::spawn_blocking(move || runtime.block_on(answer)).await.unwrap()
    })
}

impl Store for FaultyStore {
    fn admit(
        &self,
        mut asking: AdmitRequest,
    ) -> BoxFuture<'static, Result<AdmitOutcome, NotAudited>> {
        if asking.draft.tool.as_deref() != Some("bad") {
            return still(self.0.admit(asking));
        }
        match self.1.fault() {
            Some(Fault::DecisionPanics) => {
                asking.decide = Box::new(|_, _, _| panic!("on purpose"));
                self.0.admit(asking)
            }
            Some(Fault::NotWritten) => Box::pin(std::future::ready(Err(not_audited()))),
            Some(Fault::StorePanics) => panic!("on purpose"),
            Some(Fault::StorePanicsLater) => Box::pin(async { panic!("on purpose") }),
            Some(Fault::StoreHangs) => {
                // It is done in the end, when nobody waits for it any more.
                let (plan, store) = (self.1.clone(), Arc::clone(&self.0));
                Box::pin(async move {
                    while plan.is(Fault::StoreHangs) {
                        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
                    }
                    store.admit(asking).await
                })
            }
            Some(Fault::AnswerLost) => {
                let admitted = self.0.admit(asking);
                Box::pin(async move {
                    drop(admitted.await);
                    Err(not_audited())
                })
            }
            _ => still(self.0.admit(asking)),
        }
    }

    fn deny(&self, denial: Draft) -> BoxFuture<'static, Result<(), NotAudited>> {
        self.0.deny(denial)
    }
    fn record(&self, row: Draft) -> BoxFuture<'static, Result<u64, NotAudited>> {
        self.0.record(row)
    }
    fn change(&self, change: Change, row: Draft) -> BoxFuture<'static, Result<u64, ChangeError>> {
        self.0.change(change, row)
    }
    fn end_task(&self, task: &str, ending: Completion) {
        self.0.end_task(task, ending);
    }
    fn keep_documents(&self, space: &str, keep: Vec<(Arc<str>, Arc<str>)>, forget: Vec<Arc<str>>) {
        self.0.keep_documents(space, keep, forget);
    }
    fn touch(&self, grant: Arc<str>, now: Timestamp) {
        self.0.touch(grant, now);
    }
    fn note_delivery(&self, approval: Arc<str>, next: Option<(u32, Timestamp)>) {
        self.0.note_delivery(approval, next);
    }
    fn approvals_version(&self) -> u64 {
        self.0.approvals_version()
    }
    fn approval(
        &self,
        id: &str,
    ) -> BoxFuture<'static, Result<Option<StoredApproval>, NotReadable>> {
        self.0.approval(id)
    }
    fn approvals(
        &self,
        query: ApprovalQuery,
    ) -> BoxFuture<'static, Result<Vec<StoredApproval>, NotReadable>> {
        self.0.approvals(query)
    }
    fn last_consumed(
        &self,
        like: &HeldCall,
    ) -> BoxFuture<'static, Result<Option<StoredApproval>, NotReadable>> {
        self.0.last_consumed(like)
    }
    fn pending_approvals(&self) -> BoxFuture<'static, Result<PendingApprovals, NotReadable>> {
        self.0.pending_approvals()
    }
    fn due_deliveries(
        &self,
        now: Timestamp,
        limit: usize,
    ) -> BoxFuture<'static, Result<Vec<DueNotice>, NotReadable>> {
        self.0.due_deliveries(now, limit)
    }
    fn generation(&self) -> u64 {
        self.0.generation()
    }
    fn snapshot(&self) -> BoxFuture<'static, Result<Snapshot, NotReadable>> {
        self.0.snapshot()
    }
    fn policy_versions(
        &self,
        name: &str,
    ) -> BoxFuture<'static, Result<Vec<PolicyVersion>, NotReadable>> {
        self.0.policy_versions(name)
    }
    fn documents(&self, space: &str) -> BoxFuture<'static, Result<Vec<Document>, NotReadable>> {
        self.0.documents(space)
    }
    fn count_rows(&self, query: RowQuery) -> BoxFuture<'static, Result<u64, NotReadable>> {
        self.0.count_rows(query)
    }
    fn rows(&self, page: RowQuery) -> BoxFuture<'static, Result<Vec<Row>, NotReadable>> {
        self.0.rows(page)
    }
    fn call_rows(&self, call: CallId) -> BoxFuture<'static, Result<Vec<Row>, NotReadable>> {
        self.0.call_rows(call)
    }
    fn checkpoints(&self) -> BoxFuture<'static, Result<Vec<Checkpoint>, NotReadable>> {
        self.0.checkpoints()
    }
    fn status(&self) -> BoxFuture<'static, Result<StoreStatus, NotReadable>> {
        self.0.status()
    }
    fn read_usage(
        &self,
        now: Timestamp,
        read_usage: Box<ReadUsage>,
    ) -> BoxFuture<'static, Result<(), NotReadable>> {
        assert!(!self.1.is(Fault::CalleePanics), "on purpose");
        self.0.read_usage(now, read_usage)
    }
    fn tick(&self, now: Timestamp) {
        self.0.tick(now);
    }
    fn close(&self, now: Timestamp) -> BoxFuture<'static, Result<(), NotAudited>> {
        self.0.close(now)
    }
}

/// A way to a server that fails.
pub(crate) struct FaultyConnector {
    pub(crate) inner: Arc<Script>,
    pub(crate) plan: Plan,
    pub(crate) memory: MemoryBackend,
}

impl Connector for FaultyConnector {
    fn connect(&self, inbox: Arc<dyn Inbox>) -> BoxFuture<'_, Result<Arc<dyn Channel>, SendError>> {
        Box::pin(async move {
            match self.plan.fault() {
                Some(Fault::NoConnection) => {
                    return Err(SendError::NotSent("told to fail".to_owned()));
                }
                Some(Fault::ConnectPanics) => panic!("on purpose"),
                Some(Fault::ConnectHangs) => return std::future::pending().await,
                _ => {}
            }
            let inner = self.inner.connect(inbox).await?;
            let (plan, memory) = (self.plan.clone(), self.memory.clone());
            Ok(Arc::new(FaultyChannel { inner, plan, memory }) as Arc<dyn Channel>)
        })
    }
}

struct FaultyChannel {
    inner: Arc<dyn Channel>,
    plan: Plan,
    memory: MemoryBackend,
}

impl Channel for FaultyChannel {
    fn send(
        &self,
        message: Outbound,
        exchange: Arc<dyn Inbox>,
    ) -> BoxFuture<'_, Result<(), SendError>> {
        if !message.body().windows(5).any(|part| part == b"\"bad\"") {
            return self.inner.send(message, exchange);
        }
        self.plan.0.sent.store(true, Ordering::SeqCst);
        match self.plan.fault() {
            Some(Fault::NotSent) => {
                Box::pin(async { Err(SendError::NotSent("told to fail".to_owned())) })
            }
            Some(Fault::Lost) => Box::pin(async move {
                self.inner.send(message, exchange).await?;
                Err(SendError::Lost("told to fail".to_owned()))
            }),
            Some(Fault::SendPanics) => panic!("on purpose"),
            Some(Fault::SendHangs) => Box::pin(std::future::pending()),
            Some(Fault::NotRecorded) => {
                self.memory.set_broken(true);
                self.inner.send(message, exchange)
            }
            _ => self.inner.send(message, exchange),
        }
    }

    fn established(&self, version: &str) {
        self.inner.established(version);
    }

    fn listen(&self) -> BoxFuture<'_, ()> {
        self.inner.listen()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.inner.close()
    }
}
