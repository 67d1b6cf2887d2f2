//! What is asked of a store and what it answers.

use std::fmt;

use jiff::Timestamp;
use toolgate_audit::{ChainHead, Checkpoint, Decision, Draft};
use toolgate_policy::{Usage, Verdict};

use crate::Admitted;

/// A call that wants to be sent.
pub struct AdmitRequest {
    /// Everything known before the decision: who, what, which arguments, `call_id`, `time`. Kind,
    /// decision, rule, counters and the like are filled in by the store.
    pub draft: Draft,
    /// Whether it is a new call, or goes on with one that asked for more.
    pub round: Round,
    /// The generation under which grant, policy and freezes were looked up; if they have changed
    /// since, nothing happens and the answer is [`AdmitOutcome::Stale`]. `None` does not care.
    pub generation: Option<u64>,
    /// Decides. Called inside the transaction, with what has been used and the time that counts;
    /// perhaps more than once, of which only the last counts. Must be quick and must not wait.
    pub decide: Box<Decide>,
}

/// Which request of a call it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Round {
    /// A new call.
    #[default]
    First,
    /// The next request of a call that ended a leg with `input_required`. It is decided again, but
    /// nothing is counted, held or taken for a repeat a second time, and a refusal leaves the call
    /// waiting. `draft.call_id` names the call.
    Next,
}

/// Makes a verdict of what has been used, at a time.
pub type Decide = dyn Fn(&dyn Usage, Timestamp) -> Verdict + Send;

/// Looks at what has been used, at a time.
pub type ReadUsage = dyn FnOnce(&dyn Usage, Timestamp) + Send;

/// What became of a call that wanted to be sent.
#[derive(Debug)]
pub enum AdmitOutcome {
    /// Its counters are taken and its intent is written.
    Admitted(Admitted),
    /// Refused, and the refusal is written.
    Refused(Box<Verdict>),
    /// It must wait for a person; nothing is taken and nothing written.
    Held(Box<Verdict>),
    /// No call of this id waits for its next round: it went on already, has ended, or never was.
    NotWaiting,
    /// Grants, policies or freezes have changed; look them up again and ask again.
    Stale,
}

/// Which rows to show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowQuery {
    /// Only rows after this place.
    pub after: u64,
    /// At most so many; 1,000 at most.
    pub limit: usize,
    /// Only rows of this grant (label).
    pub grant: Option<String>,
    /// Only rows of this tool.
    pub tool: Option<String>,
    /// Only rows with this decision.
    pub decision: Option<Decision>,
}

/// Where the store stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreStatus {
    /// The end of the chain.
    pub head: ChainHead,
    /// The last checkpoint.
    pub checkpoint: Option<Checkpoint>,
    /// The latest time that was ever counted with. A clock far behind it refills nothing.
    pub mark: Timestamp,
    /// Calls that were admitted and have not ended.
    pub open: u64,
}

impl fmt::Debug for AdmitRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdmitRequest").field("draft", &self.draft).finish_non_exhaustive()
    }
}
