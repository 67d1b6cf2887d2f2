//! One row of the audit.

use std::sync::Arc;

use jiff::Timestamp;
use toolgate_policy::Amount;

use crate::{CallId, Decision, Effect, Hash, Outcome, RowKind};

/// All fields of a row except its position in the chain. Fields that do not apply are absent.
///
/// Times have a resolution of one microsecond.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// When it happened, by the wall clock. `seq` defines the order, never this field.
    pub time: Timestamp,
    /// The kind of event.
    pub kind: RowKind,
    /// The call it belongs to.
    pub call_id: Option<CallId>,
    /// The MCP method, if it is not `tools/call`.
    pub method: Option<Arc<str>>,
    /// Label of the grant.
    pub grant: Option<Arc<str>>,
    /// The identity that the grant represents.
    pub identity: Option<Arc<str>>,
    /// The person who acted.
    pub person: Option<Arc<str>>,
    /// The agent session of the call.
    pub agent_session: Option<Arc<str>>,
    /// The name that the client gave itself.
    pub client: Option<Arc<str>>,
    /// The endpoint of the request.
    pub via: Option<Arc<str>>,
    /// The server: a configured server, `sessions` or `toolgate`.
    pub server: Option<Arc<str>>,
    /// The session called, for session tools.
    pub session_id: Option<Arc<str>>,
    /// The tool's own name.
    pub tool: Option<Arc<str>>,
    /// Fingerprint of the definition.
    pub fingerprint: Option<Hash>,
    /// Risk class.
    pub risk: Option<Arc<str>>,
    /// The decision of the policy.
    pub decision: Option<Decision>,
    /// The `error_code` sent to the agent.
    pub error_code: Option<Arc<str>>,
    /// The rule that decided.
    pub rule: Option<Arc<str>>,
    /// Name of the policy.
    pub policy: Option<Arc<str>>,
    /// Its version in the store.
    pub policy_version: Option<u64>,
    /// Hash of its normalised content.
    pub policy_hash: Option<Hash>,
    /// The names of the arguments, as a JSON list.
    pub argument_keys: Option<Arc<str>>,
    /// The recorded part of their values, as JSON; see [`crate::ArgumentMode`].
    pub arguments: Option<Arc<str>>,
    /// The counters that the call changed.
    pub counters: Vec<CounterChange>,
    /// The approval that allowed it.
    pub approval_id: Option<Arc<str>>,
    /// How the call ended.
    pub outcome: Option<Outcome>,
    /// Whether the tool may have run.
    pub effect: Option<Effect>,
    /// Milliseconds the server took.
    pub upstream_ms: Option<u64>,
    /// Milliseconds from the agent's request to its answer.
    pub total_ms: Option<u64>,
    /// A message for people.
    pub message: Option<Arc<str>>,
    /// How many identical events this row represents.
    pub count: Option<u64>,
}

/// A counter before and after a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterChange {
    /// The display name of the counter.
    pub counter: Arc<str>,
    /// The amount used before.
    pub before: Amount,
    /// The amount used after.
    pub after: Amount,
}

/// All fields of a row by their names in its JSON, in the order of an export.
pub const ROW_FIELDS: &[&str] = &[
    "seq",
    "time",
    "kind",
    "call_id",
    "method",
    "grant",
    "identity",
    "person",
    "agent_session",
    "client",
    "via",
    "server",
    "session_id",
    "tool",
    "fingerprint",
    "risk",
    "decision",
    "error_code",
    "rule",
    "policy",
    "policy_version",
    "policy_hash",
    "argument_keys",
    "arguments",
    "counters",
    "approval_id",
    "outcome",
    "effect",
    "upstream_ms",
    "total_ms",
    "message",
    "count",
    "hash",
];

/// A draft with its position in the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its sequence number: from 1, without gaps.
    pub seq: u64,
    /// Its fields.
    pub draft: Draft,
    /// SHA-256 over the previous hash and the canonical form of this row.
    pub hash: Hash,
}

impl Draft {
    /// A row of this kind and time; all other fields are absent.
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
