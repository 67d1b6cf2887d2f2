//! How an admitted call ended, and what the store adds to its outcome row.

use std::sync::Arc;

use jiff::Timestamp;
use toolgate_audit::{Effect, Outcome};
use toolgate_policy::{self as policy, Yielded};

/// How an admitted call ended. With [`Outcome::InputRequired`] only a leg has: the call keeps what
/// it took and waits up to ten minutes for its next round, in whichever process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// When.
    pub time: Timestamp,
    /// How.
    pub outcome: Outcome,
    /// Whether the tool may have run. Counters are given back only for `NotStarted`.
    pub effect: Effect,
    /// A request of the call was written before, so that its counters stay taken in any case.
    pub stays_counted: bool,
    /// The `error_code` the agent got.
    pub error_code: Option<Arc<str>>,
    /// Words for people.
    pub message: Option<Arc<str>>,
    /// Milliseconds the server took.
    pub upstream_ms: Option<u64>,
    /// Milliseconds from the agent's request to its answer.
    pub total_ms: Option<u64>,
    /// Ids that the result gives to the grant, and that it ends.
    pub ownership: policy::Outcome,
}

/// What the outcome row says beyond what was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Values that belong to another grant already; they were not recorded.
    pub conflicts: Vec<Yielded>,
}

impl Completion {
    /// An completion with nothing else to say.
    pub fn new(outcome: Outcome, effect: Effect, time: Timestamp) -> Self {
        Self {
            time,
            outcome,
            effect,
            stays_counted: false,
            error_code: None,
            message: None,
            upstream_ms: None,
            total_ms: None,
            ownership: policy::Outcome::default(),
        }
    }
}
