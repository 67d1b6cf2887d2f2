//! What a database must implement to serve as a store.
//!
//! The engine calls it from one thread at a time and does everything else: ordering, grouping,
//! deciding, chaining, signing. Implementations store and find data; they decide nothing.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use toolgate_audit::{CallId, ChainHead, Checkpoint, Draft, Row};
use toolgate_policy::{Digest, Ended, Ownership, Reservation, Usage, Yielded};

use crate::{
    ApprovalQuery, Change, Document, DueNotice, HeldCall, PendingApprovals, PolicyVersion,
    RowQuery, Snapshot, StandingException, StoreError, StoreStatus, StoredApproval,
};

/// The writing side of a database.
pub trait Backend: Send + fmt::Debug + 'static {
    /// Runs the body in one transaction. If the body and the commit succeed, all of it has reached
    /// the operating system; otherwise it has no effect. No other process may write at the same
    /// time, and the body sees everything committed before.
    fn transact(&mut self, work: &mut TransactionBody<'_>) -> Result<(), StoreError>;

    /// Whether a transaction usually takes no longer than waking a thread for it.
    fn is_quick(&self) -> bool {
        true
    }

    /// Measures how long the oldest unsynced data has waited for the disk; `None` if nothing waits.
    fn sync_lag(&self) -> Option<Box<SyncLag>> {
        None
    }

    /// A reading side for another thread.
    fn reader(&self) -> Result<Box<dyn BackendReader>, StoreError>;
}

/// Measures how long data has waited for the disk.
pub type SyncLag = dyn Fn() -> Duration + Send + Sync;

/// The body of one transaction.
pub type TransactionBody<'a> = dyn FnMut(&mut dyn Transaction) -> Result<(), StoreError> + 'a;

/// The state at the start of a transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackendState {
    /// The head of the chain.
    pub head: ChainHead,
    /// The high-water mark of the clock.
    pub mark: Timestamp,
    /// Grows with every change.
    pub generation: u64,
    /// Sequence number and time of the last checkpoint.
    pub checkpoint: Option<(u64, Timestamp)>,
}

/// A call that its process will not end: the process has exited, or the next round never arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbandonedCall {
    /// The id of the call.
    pub call_id: CallId,
    /// Its intent row.
    pub intent: Draft,
}

/// One transaction. Its [`Usage`] includes what the transaction itself has taken.
pub trait Transaction: Usage {
    /// The state at its start. Called once, first.
    fn state(&mut self) -> Result<BackendState, StoreError>;
    /// Fails if committed data is not durable enough to admit more calls.
    fn may_admit(&self) -> Result<(), StoreError>;
    /// Whether rows are only numbered, not stored.
    fn forgets_rows(&self) -> bool {
        false
    }
    /// Stores a row.
    fn append(&mut self, row: &Row) -> Result<(), StoreError>;
    /// Stores the high-water mark of the clock.
    fn set_mark(&mut self, mark: Timestamp) -> Result<(), StoreError>;
    /// Stores a checkpoint.
    fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<(), StoreError>;
    /// Opens a call and takes its reservations, which all fit. `seq` is the sequence number of its
    /// intent row.
    fn open(
        &mut self,
        call: CallId,
        seq: u64,
        reservations: &[Reservation],
        now: Timestamp,
    ) -> Result<(), StoreError>;
    /// A round of the call has ended; the call waits for the next one. Its counters are never
    /// refunded.
    fn park(&mut self, call: CallId, now: Timestamp) -> Result<(), StoreError>;
    /// Starts the next round in this process. Returns the sequence number of the intent row, if the
    /// call was waiting.
    fn resume(&mut self, call: CallId) -> Result<Option<u64>, StoreError>;
    /// Calls that have waited since `then` or longer; at most 1,000.
    fn waiting_since(&mut self, then: Timestamp) -> Result<Vec<AbandonedCall>, StoreError>;
    /// Ends a call: it is no longer open or in flight.
    fn settle(&mut self, call: CallId, back: Refund) -> Result<(), StoreError>;
    /// Records that a grant owns a value.
    fn own(
        &mut self,
        yielded: &Yielded,
        grant: &str,
        identity: Option<&str>,
        now: Timestamp,
    ) -> Result<Ownership, StoreError>;
    /// Forgets a value that was ended.
    fn end(&mut self, ended: &Ended) -> Result<(), StoreError>;
    /// Makes a change, or returns why not; a change that is refused changes nothing. For
    /// [`Change::AcceptClock`], `now` is the effective time from then on.
    fn change(&mut self, change: &Change, now: Timestamp) -> Result<ChangeOutcome, StoreError>;
    /// A grant was used. The last use of a grant that is not stored is kept under its id.
    fn touch(&mut self, grant: &str, now: Timestamp) -> Result<(), StoreError>;
    /// The call continues as `task` at its server until then, and stays open if this process ends
    /// first. A store that does not outlive its process has nothing to keep.
    fn continue_as_task(
        &mut self,
        _call: CallId,
        _task: &str,
        _until: Timestamp,
    ) -> Result<(), StoreError> {
        Ok(())
    }
    /// Open calls that continue as `task` and whose process has ended; at most a thousand.
    fn left_as_task(&mut self, _task: &str) -> Result<Vec<AbandonedCall>, StoreError> {
        Ok(Vec::new())
    }
    /// The approval of this binding that is not over, or was denied and has not expired.
    fn live_approval(&mut self, binding: &Digest) -> Result<Option<StoredApproval>, StoreError>;
    /// The approval with this id.
    fn approval(&mut self, id: &str) -> Result<Option<StoredApproval>, StoreError>;
    /// Creates an approval, or replaces the one with this id. A new one is due for delivery at once;
    /// one that is over, unless it was denied, is no longer live.
    fn put_approval(&mut self, approval: &StoredApproval) -> Result<(), StoreError>;
    /// The approval, which was denied, is no longer live.
    fn forget_live(&mut self, id: &str) -> Result<(), StoreError>;
    /// Live approvals that expire at `now` or before; at most a thousand.
    fn due_approvals(&mut self, now: Timestamp) -> Result<Vec<StoredApproval>, StoreError>;
    /// Standing exceptions that expire at `now` or before; at most a thousand.
    fn due_exceptions(&mut self, now: Timestamp) -> Result<Vec<StandingException>, StoreError>;
    /// The number of pending approvals of a grant, and the bytes of their arguments.
    fn pending_of(&mut self, grant: &str) -> Result<(u64, u64), StoreError>;
    /// See [`crate::Store::note_delivery`].
    fn note_delivery(
        &mut self,
        approval: &str,
        next: Option<(u32, Timestamp)>,
    ) -> Result<(), StoreError>;
    /// An approval was answered or has expired: calls that wait for it, in any process, continue.
    fn approvals_changed(&mut self) -> Result<(), StoreError>;
    /// How often that happened.
    fn approvals_version(&self) -> u64;
    /// Open calls whose process has ended, except for those that wait for their next round or
    /// continue as a task whose time is not up; at most a thousand.
    fn abandoned(&mut self, now: Timestamp) -> Result<Vec<AbandonedCall>, StoreError>;
    /// Removes what no decision can depend on any more.
    fn prune(&mut self, now: Timestamp) -> Result<(), StoreError>;
    /// Time has passed: what is open for longer is kept where it is found soon.
    fn note(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Whether counters return to the window they were taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refund {
    /// The call was never sent.
    All,
    /// The call may have run.
    Nothing,
}

/// The result of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeOutcome {
    /// Applied; the generation has grown, if [`Change::is_setup`].
    Made,
    /// The name belongs to another object.
    NameTaken(String),
    /// The object does not exist.
    Unknown(String),
    /// The target is already frozen, by the freeze with this id.
    AlreadyFrozen(String),
}

/// The reading side. Each query reads one consistent snapshot that is not older than the query.
pub trait BackendReader: Usage + Send {
    /// See [`crate::Store::snapshot`].
    fn snapshot(&mut self) -> Result<Snapshot, StoreError>;
    /// See [`crate::Store::policy_versions`].
    fn policy_versions(&mut self, name: &str) -> Result<Vec<PolicyVersion>, StoreError>;
    /// See [`crate::Store::documents`].
    fn documents(&mut self, space: &str) -> Result<Vec<Document>, StoreError>;
    /// See [`crate::Store::rows`].
    fn rows(&mut self, page: &RowQuery) -> Result<Vec<Row>, StoreError>;
    /// See [`crate::Store::count_rows`].
    fn count_rows(&mut self, query: &RowQuery) -> Result<u64, StoreError>;
    /// See [`crate::Store::call_rows`].
    fn call_rows(&mut self, call: CallId) -> Result<Vec<Row>, StoreError>;
    /// See [`crate::Store::checkpoints`].
    fn checkpoints(&mut self) -> Result<Vec<Checkpoint>, StoreError>;
    /// See [`crate::Store::status`].
    fn status(&mut self) -> Result<StoreStatus, StoreError>;
    /// See [`crate::Store::approval`].
    fn approval(&mut self, id: &str) -> Result<Option<StoredApproval>, StoreError>;
    /// See [`crate::Store::approvals`].
    fn approvals(&mut self, query: &ApprovalQuery) -> Result<Vec<StoredApproval>, StoreError>;
    /// See [`crate::Store::last_consumed`].
    fn last_consumed(&mut self, like: &HeldCall) -> Result<Option<StoredApproval>, StoreError>;
    /// See [`crate::Store::pending_approvals`].
    fn pending_approvals(&mut self) -> Result<PendingApprovals, StoreError>;
    /// See [`crate::Store::due_deliveries`].
    fn due_deliveries(
        &mut self,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueNotice>, StoreError>;
    /// The high-water mark of the clock.
    fn mark(&mut self) -> Result<Timestamp, StoreError>;
    /// The counters, as a [`Usage`].
    fn usage(&self) -> &dyn Usage;
}
