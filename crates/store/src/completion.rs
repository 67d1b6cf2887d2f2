//! How an admitted call ended, and what the store adds to its outcome row.

use std::sync::Arc;

use jiff::Timestamp;
use toolgate_audit::{Effect, Outcome};
use toolgate_policy::{self as policy, Yielded};

/// How an admitted call ended. [`Outcome::InputRequired`] ends only a round: the call retains its
/// counters and waits up to ten minutes for its next round, in any process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// When it ended.
    pub time: Timestamp,
    /// How it ended.
    pub outcome: Outcome,
    /// Whether the tool may have run. Counters are refunded only for `NotStarted`.
    pub effect: Effect,
    /// A request of the call was written earlier, so its counters are never refunded.
    pub stays_counted: bool,
    /// The `error_code` sent to the agent.
    pub error_code: Option<Arc<str>>,
    /// A message for people.
    pub message: Option<Arc<str>>,
    /// Milliseconds the server took.
    pub upstream_ms: Option<u64>,
    /// Milliseconds from the agent's request to its answer.
    pub total_ms: Option<u64>,
    /// Ids that the result assigns to the grant, and ids that it ends.
    pub ownership: policy::Outcome,
}

/// What the store found while it recorded the outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Values that already belong to another grant and were not recorded.
    pub conflicts: Vec<Yielded>,
}

impl Completion {
    /// A completion without further details.
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
