//! Requests to a store and their results.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use toolgate_audit::{ChainHead, Checkpoint, Draft};
use toolgate_policy::{Approval, Usage, Verdict};

use crate::{Admitted, HoldRequest, StoredApproval};

/// A request to admit one call.
pub struct AdmitRequest {
    /// Everything known before the decision: caller, tool, arguments, `call_id`, `time`. The store
    /// fills in kind, decision, rule and counters.
    pub draft: Draft,
    /// Whether this is a new call or the next round of one that required input.
    pub round: RoundKind,
    /// The generation under which grant, policy and freezes were looked up. If they have changed
    /// since, the call is not decided and the result is [`AdmitOutcome::Stale`]. `None` skips the
    /// check.
    pub generation: Option<u64>,
    /// Makes the decision. Called inside the transaction, with the counters and the effective time.
    /// It may be called more than once; only the last result is used. It must be quick and must not
    /// block.
    pub decide: Box<Decide>,
    /// How the call is held, if the verdict is a hold. Without it such a call is not admitted and
    /// leaves no trace.
    pub hold: Option<Box<HoldRequest>>,
}

/// Which request of a call this is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RoundKind {
    /// A new call.
    #[default]
    First,
    /// The next request of a call whose last round ended with `input_required`. The call is decided
    /// again, but it is not counted, held or checked for repeats again; a refusal leaves the call
    /// waiting. `draft.call_id` identifies the call.
    Next,
}

/// Makes a verdict from the counters and the answer of people at a point in time.
pub type Decide = dyn Fn(&dyn Usage, Approval, Timestamp) -> Verdict + Send;

/// Reads the counters at a point in time.
pub type ReadUsage = dyn FnOnce(&dyn Usage, Timestamp) + Send;

/// The result of a request to admit a call.
#[derive(Debug)]
pub enum AdmitOutcome {
    /// The counters are taken and the intent row is written.
    Admitted(Admitted),
    /// The call is refused, and the refusal is recorded.
    Refused(Box<Verdict>),
    /// The call must wait for a person; nothing was taken. If a new approval was created, it is
    /// recorded.
    Held(Box<Verdict>, Option<Box<StoredApproval>>),
    /// A person has denied this very call. The refusal is recorded.
    AnsweredNo(Box<StoredApproval>),
    /// No call with this id is waiting for its next round: it has already continued, has ended, or
    /// never existed.
    NotWaiting,
    /// Grants, policies or freezes have changed; look them up again and retry.
    Stale,
}

/// The state of the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreStatus {
    /// The head of the chain.
    pub head: ChainHead,
    /// The last checkpoint.
    pub checkpoint: Option<Checkpoint>,
    /// The high-water mark of the clock: the latest time used for counting. A clock that is behind
    /// it refills no counter.
    pub mark: Timestamp,
    /// Calls that were admitted and have not ended.
    pub open: u64,
}

/// How busy the store is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreActivity {
    /// Transactions that were committed; concurrent calls share one.
    pub writes: u64,
    /// Transactions that failed.
    pub failed_writes: u64,
    /// How long the oldest unsynced data has waited for the disk.
    pub sync_lag: Duration,
}

impl fmt::Debug for AdmitRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdmitRequest").field("draft", &self.draft).finish_non_exhaustive()
    }
}
