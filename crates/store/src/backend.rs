//! What a database must be able to do to be a store.
//!
//! The engine calls it one at a time and does everything else: order, grouping, deciding,
//! chaining, signing. Implementations only keep and find; they decide nothing.

use std::fmt;

use jiff::Timestamp;
use toolgate_audit::{CallId, ChainHead, Checkpoint, Draft, Row};
use toolgate_policy::{Ended, Ownership, Reservation, Usage, Yielded};

use crate::{Change, Document, RowQuery, Snapshot, StoreError, StoreStatus};

/// The writing side.
pub trait Backend: Send + fmt::Debug + 'static {
    /// Runs the work in one transaction: if it and the commit succeed, all of it is kept and has
    /// reached the operating system; else nothing is. No other process may write meanwhile, and
    /// the work sees everything that was committed before.
    fn transact(&mut self, work: &mut TransactionBody<'_>) -> Result<(), StoreError>;

    /// Whether a transaction usually takes no longer than waking a thread for it.
    fn is_quick(&self) -> bool {
        true
    }

    /// A reading side, for another thread.
    fn reader(&self) -> Result<Box<dyn BackendReader>, StoreError>;
}

/// The work of one transaction.
pub type TransactionBody<'a> = dyn FnMut(&mut dyn Transaction) -> Result<(), StoreError> + 'a;

/// What a transaction begins with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackendState {
    /// The end of the chain.
    pub head: ChainHead,
    /// The latest time that was counted with.
    pub mark: Timestamp,
    /// Grows with every change.
    pub generation: u64,
    /// Place and time of the last checkpoint.
    pub checkpoint: Option<(u64, Timestamp)>,
}

/// A call that nobody will end: its process is gone, or its next leg never came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbandonedCall {
    /// The call.
    pub call_id: CallId,
    /// Its intent row.
    pub intent: Draft,
}

/// One transaction. [`Usage`] answers with what this transaction has taken, too.
pub trait Transaction: Usage {
    /// What it begins with. Asked once, first.
    fn state(&mut self) -> Result<BackendState, StoreError>;
    /// Refuses if what was committed is not safe enough to admit more.
    fn may_admit(&self) -> Result<(), StoreError>;
    /// Whether rows are only counted, never kept.
    fn forgets_rows(&self) -> bool {
        false
    }
    /// Keeps a row.
    fn append(&mut self, row: &Row) -> Result<(), StoreError>;
    /// Keeps the latest time that was counted with.
    fn set_mark(&mut self, mark: Timestamp) -> Result<(), StoreError>;
    /// Keeps a checkpoint.
    fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<(), StoreError>;
    /// Opens a call and takes its reservations, which all fit. `seq` is its intent's place.
    fn open(
        &mut self,
        call: CallId,
        seq: u64,
        reservations: &[Reservation],
        now: Timestamp,
    ) -> Result<(), StoreError>;
    /// A leg of the call has ended; it waits for the next one. Nothing it took is ever given back.
    fn park(&mut self, call: CallId, now: Timestamp) -> Result<(), StoreError>;
    /// The next leg begins, in this process. Answers the place of the intent, if the call waited.
    fn resume(&mut self, call: CallId) -> Result<Option<u64>, StoreError>;
    /// Calls that have waited since then or longer; at most a thousand.
    fn waiting_since(&mut self, then: Timestamp) -> Result<Vec<AbandonedCall>, StoreError>;
    /// Ends a call: it is no longer open nor in flight.
    fn settle(&mut self, call: CallId, back: Refund) -> Result<(), StoreError>;
    /// Records that a grant was given a value.
    fn own(
        &mut self,
        yielded: &Yielded,
        grant: &str,
        identity: Option<&str>,
        now: Timestamp,
    ) -> Result<Ownership, StoreError>;
    /// Forgets a value that was ended.
    fn end(&mut self, ended: &Ended) -> Result<(), StoreError>;
    /// Makes a change, or says why not; a change that is refused changes nothing. For
    /// [`Change::AcceptClock`], `now` is the time that counts from then on.
    fn change(&mut self, change: &Change, now: Timestamp) -> Result<ChangeOutcome, StoreError>;
    /// A grant was used.
    fn touch(&mut self, grant: &str, now: Timestamp) -> Result<(), StoreError>;
    /// Open calls, but for those that wait for a round, whose process has ended; at most a thousand.
    fn abandoned(&mut self) -> Result<Vec<AbandonedCall>, StoreError>;
    /// Forgets what can no longer count.
    fn prune(&mut self, now: Timestamp) -> Result<(), StoreError>;
    /// Time has passed: what is open for longer is kept where it is found soon.
    fn note(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Whether counters go back to the window they were taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refund {
    /// The call was never sent.
    All,
    /// It may have run.
    Nothing,
}

/// What became of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeOutcome {
    /// Made; the generation has grown, if [`Change::is_setup`].
    Made,
    /// The name belongs to another.
    NameTaken(String),
    /// There is nothing to change.
    Unknown(String),
}

/// The reading side. Each question is answered from one moment, not older than the question.
pub trait BackendReader: Usage + Send {
    /// See [`crate::Store::snapshot`].
    fn snapshot(&mut self) -> Result<Snapshot, StoreError>;
    /// See [`crate::Store::documents`].
    fn documents(&mut self, space: &str) -> Result<Vec<Document>, StoreError>;
    /// See [`crate::Store::rows`].
    fn rows(&mut self, page: &RowQuery) -> Result<Vec<Row>, StoreError>;
    /// See [`crate::Store::call_rows`].
    fn call_rows(&mut self, call: CallId) -> Result<Vec<Row>, StoreError>;
    /// See [`crate::Store::checkpoints`].
    fn checkpoints(&mut self) -> Result<Vec<Checkpoint>, StoreError>;
    /// See [`crate::Store::status`].
    fn status(&mut self) -> Result<StoreStatus, StoreError>;
    /// The latest time that was counted with.
    fn mark(&mut self) -> Result<Timestamp, StoreError>;
    /// As a [`Usage`].
    fn usage(&self) -> &dyn Usage;
}
