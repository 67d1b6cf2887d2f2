//! One row of the audit.

use std::sync::Arc;

use jiff::Timestamp;
use toolgate_policy::Amount;

use crate::{CallId, Decision, Effect, Hash, Outcome, RowKind};

/// Everything of a row but its place in the chain. What does not apply is absent.
///
/// Times are kept in whole microseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// When it happened, by the wall clock. Order is told by `seq`, never by this.
    pub time: Timestamp,
    /// What the row tells of.
    pub kind: RowKind,
    /// The call it belongs to.
    pub call_id: Option<CallId>,
    /// The MCP method, if it is not `tools/call`.
    pub method: Option<Arc<str>>,
    /// Label of the grant.
    pub grant: Option<Arc<str>>,
    /// Whom the grant stands for.
    pub identity: Option<Arc<str>>,
    /// The person who acted.
    pub person: Option<Arc<str>>,
    /// The agent session the call came by.
    pub agent_session: Option<Arc<str>>,
    /// What the client calls itself.
    pub client: Option<Arc<str>>,
    /// The endpoint it came by.
    pub via: Option<Arc<str>>,
    /// The server word: a configured server, `sessions` or `toolgate`.
    pub server: Option<Arc<str>>,
    /// The session called, for session tools.
    pub session_id: Option<Arc<str>>,
    /// The tool's own name.
    pub tool: Option<Arc<str>>,
    /// Fingerprint of the definition.
    pub fingerprint: Option<Hash>,
    /// Risk class.
    pub risk: Option<Arc<str>>,
    /// What the policy said.
    pub decision: Option<Decision>,
    /// The `error_code` the agent got.
    pub error_code: Option<Arc<str>>,
    /// The rule that decided.
    pub rule: Option<Arc<str>>,
    /// Name of the policy.
    pub policy: Option<Arc<str>>,
    /// Its version in the store.
    pub policy_version: Option<u64>,
    /// Hash of its meaning.
    pub policy_hash: Option<Hash>,
    /// The names of the arguments, as a JSON list.
    pub argument_keys: Option<Arc<str>>,
    /// What of their values is written, as JSON; see [`crate::ArgumentMode`].
    pub arguments: Option<Arc<str>>,
    /// What the call took.
    pub counters: Vec<CounterChange>,
    /// The approval that let it pass.
    pub approval_id: Option<Arc<str>>,
    /// How the call ended.
    pub outcome: Option<Outcome>,
    /// Whether the tool may have run.
    pub effect: Option<Effect>,
    /// Milliseconds the server took.
    pub upstream_ms: Option<u64>,
    /// Milliseconds from the agent's request to its answer.
    pub total_ms: Option<u64>,
    /// Words for people.
    pub message: Option<Arc<str>>,
    /// How many alike this row stands for.
    pub count: Option<u64>,
}

/// A counter before and after a call took its share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterChange {
    /// The counter's name for people.
    pub counter: Arc<str>,
    /// What was used before.
    pub before: Amount,
    /// What is used now.
    pub after: Amount,
}

/// A draft in its place in the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its place: from 1, without gaps.
    pub seq: u64,
    /// What it tells.
    pub draft: Draft,
    /// SHA-256 over the hash of the row before and this row's canonical form.
    pub hash: Hash,
}

impl Draft {
    /// A row of a kind at a time; everything else is absent and can be set.
    pub fn new(kind: RowKind, time: Timestamp) -> Self {
        Self {
            time,
            kind,
            call_id: None,
            method: None,
            grant: None,
            identity: None,
            person: None,
            agent_session: None,
            client: None,
            via: None,
            server: None,
            session_id: None,
            tool: None,
            fingerprint: None,
            risk: None,
            decision: None,
            error_code: None,
            rule: None,
            policy: None,
            policy_version: None,
            policy_hash: None,
            argument_keys: None,
            arguments: None,
            counters: Vec::new(),
            approval_id: None,
            outcome: None,
            effect: None,
            upstream_ms: None,
            total_ms: None,
            message: None,
            count: None,
        }
    }
}
