//! What a database must be able to do to be a store.
//!
//! The engine calls it one at a time and does everything else: order, grouping, deciding,
//! chaining, signing. Implementations only keep and find; they decide nothing.

use std::fmt;

use jiff::Timestamp;
use toolgate_audit::{CallId, Checkpoint, Draft, Head, Row};
use toolgate_policy::{Ended, Ownership, Reservation, Usage, Yielded};

use crate::{Change, Fault, Kept, Page, Snapshot, Status};

/// The writing side.
pub trait Backend: Send + fmt::Debug + 'static {
    /// Runs the work in one transaction: if it and the commit succeed, all of it is kept and has
    /// reached the operating system; else nothing is. No other process may write meanwhile, and
    /// the work sees everything that was committed before.
    fn transact(&mut self, work: &mut Work<'_>) -> Result<(), Fault>;

    /// Whether a transaction usually takes no longer than waking a thread for it.
    fn is_quick(&self) -> bool {
        true
    }

    /// A reading side, for another thread.
    fn reader(&self) -> Result<Box<dyn Reader>, Fault>;
}

/// The work of one transaction.
pub type Work<'a> = dyn FnMut(&mut dyn Transaction) -> Result<(), Fault> + 'a;

/// What a transaction begins with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The end of the chain.
    pub head: Head,
    /// The latest time that was counted with.
    pub mark: Timestamp,
    /// Grows with every change.
    pub generation: u64,
    /// Place and time of the last checkpoint.
    pub checkpoint: Option<(u64, Timestamp)>,
}

/// A call that nobody will end: its process is gone, or its next leg never came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abandoned {
    /// The call.
    pub call_id: CallId,
    /// Its intent row.
    pub intent: Draft,
}

/// One transaction. [`Usage`] answers with what this transaction has taken, too.
pub trait Transaction: Usage {
    /// What it begins with. Asked once, first.
    fn state(&mut self) -> Result<State, Fault>;
    /// Refuses if what was committed is not safe enough to admit more.
    fn may_admit(&self) -> Result<(), Fault>;
    /// Whether rows are only counted, never kept.
    fn forgets_rows(&self) -> bool {
        false
    }
    /// Keeps a row.
    fn append(&mut self, row: &Row) -> Result<(), Fault>;
    /// Keeps the latest time that was counted with.
    fn set_mark(&mut self, mark: Timestamp) -> Result<(), Fault>;
    /// Keeps a checkpoint.
    fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<(), Fault>;
    /// Opens a call and takes its reservations, which all fit. `seq` is its intent's place.
    fn open(
        &mut self,
        call: CallId,
        seq: u64,
        reservations: &[Reservation],
        now: Timestamp,
    ) -> Result<(), Fault>;
    /// A leg of the call has ended; it waits for the next one. Nothing it took is ever given back.
    fn park(&mut self, call: CallId, now: Timestamp) -> Result<(), Fault>;
    /// The next leg begins, in this process. Answers the place of the intent, if the call waited.
    fn resume(&mut self, call: CallId) -> Result<Option<u64>, Fault>;
    /// Calls that have waited since then or longer; at most a thousand.
    fn waiting_since(&mut self, then: Timestamp) -> Result<Vec<Abandoned>, Fault>;
    /// Ends a call: it is no longer open nor in flight.
    fn settle(&mut self, call: CallId, back: GiveBack) -> Result<(), Fault>;
    /// Records that a grant was given a value.
    fn own(
        &mut self,
        yielded: &Yielded,
        grant: &str,
        identity: Option<&str>,
        now: Timestamp,
    ) -> Result<Ownership, Fault>;
    /// Forgets a value that was ended.
    fn end(&mut self, ended: &Ended) -> Result<(), Fault>;
    /// Makes a change, or says why not; a change that is refused changes nothing. For
    /// [`Change::AcceptClock`], `now` is the time that counts from then on.
    fn change(&mut self, change: &Change, now: Timestamp) -> Result<Changed, Fault>;
    /// A grant was used.
    fn touch(&mut self, grant: &str, now: Timestamp) -> Result<(), Fault>;
    /// The call continues as `task` at its server until then, and stays open if this process ends
    /// first. A store that does not outlive its process has nothing to keep.
    fn continue_as_task(
        &mut self,
        _call: CallId,
        _task: &str,
        _until: Timestamp,
    ) -> Result<(), Fault> {
        Ok(())
    }
    /// Open calls that continue as `task` and whose process has ended; at most a thousand.
    fn left_as_task(&mut self, _task: &str) -> Result<Vec<Abandoned>, Fault> {
        Ok(Vec::new())
    }
    /// Open calls whose process has ended, but for those that wait for a leg or continue as a task
    /// whose time is not up; at most a thousand.
    fn abandoned(&mut self, now: Timestamp) -> Result<Vec<Abandoned>, Fault>;
    /// Forgets what can no longer count.
    fn prune(&mut self, now: Timestamp) -> Result<(), Fault>;
    /// Time has passed: what is open for longer is kept where it is found soon.
    fn note(&mut self) -> Result<(), Fault> {
        Ok(())
    }
}

/// Whether counters go back to the window they were taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GiveBack {
    /// The call was never sent.
    All,
    /// It may have run.
    Nothing,
}

/// What became of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    /// Made; the generation has grown, if [`Change::is_setup`].
    Made,
    /// The name belongs to another.
    NameTaken(String),
    /// There is nothing to change.
    Unknown(String),
}

/// The reading side. Each question is answered from one moment, not older than the question.
pub trait Reader: Usage + Send {
    /// See [`crate::Store::snapshot`].
    fn snapshot(&mut self) -> Result<Snapshot, Fault>;
    /// See [`crate::Store::kept`].
    fn kept(&mut self, space: &str) -> Result<Vec<Kept>, Fault>;
    /// See [`crate::Store::rows`].
    fn rows(&mut self, page: &Page) -> Result<Vec<Row>, Fault>;
    /// See [`crate::Store::story`].
    fn story(&mut self, call: CallId) -> Result<Vec<Row>, Fault>;
    /// See [`crate::Store::checkpoints`].
    fn checkpoints(&mut self) -> Result<Vec<Checkpoint>, Fault>;
    /// See [`crate::Store::status`].
    fn status(&mut self) -> Result<Status, Fault>;
    /// The latest time that was counted with.
    fn mark(&mut self) -> Result<Timestamp, Fault>;
    /// As a [`Usage`].
    fn usage(&self) -> &dyn Usage;
}
