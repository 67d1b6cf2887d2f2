//! Metrics of calls: how many, how they were decided and ended, and how long they took.
//!
//! Invariant: label values are names of configured servers and words of fixed lists, never anything
//! that an agent sends.
//! Invariant: counting a call neither allocates nor locks. The series of a server are created when
//! the server is, at zero.
//!
//! Start at [`CallMetrics`].

mod latency;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::{Registry, Unit};
use toolgate_audit::{Decision, Outcome};

use crate::ended::Ended;
use crate::refused::Refused;
use crate::reserved::{SESSIONS, TOOLGATE};
use latency::Latency;

/// The code of a call that succeeded.
const OK: &str = "ok";
/// How a call that was sent ended without success.
const FAILED: [&str; 6] = [
    "tool_error",
    "protocol_error",
    "cancelled",
    "upstream_unavailable",
    "upstream_timeout",
    "outcome_unknown",
];
/// Why a call was denied.
const DENIED: [&str; 7] = [
    "policy_denied",
    "rate_limited",
    "unknown_tool",
    "invalid_arguments",
    "quarantined",
    "frozen",
    "not_audited",
];
/// Why a call to a session was denied.
const DENIED_BY_SESSIONS: [&str; 6] = [
    "no_live_session",
    "session_id_required",
    "unknown_session",
    "session_mismatch",
    "session_gone",
    "session_busy",
];

/// The metrics of all calls.
#[derive(Debug)]
pub struct CallMetrics {
    calls: Family<CallLabels, Counter>,
    total: Family<ServerLabel, Latency>,
    upstream: Family<ServerLabel, Latency>,
    admission: Family<ServerLabel, Latency>,
    servers: ArcSwap<HashMap<Arc<str>, Arc<ServerCalls>>>,
    /// For calls to no server.
    own: Arc<ServerCalls>,
}

/// The metrics of the calls to one server.
#[derive(Debug)]
pub(crate) struct ServerCalls {
    server: Arc<str>,
    /// The usual ways of a call; the first is the most frequent.
    usual: Vec<(Decision, &'static str, Counter)>,
    all: Family<CallLabels, Counter>,
    total: Latency,
    upstream: Latency,
    admission: Latency,
}

/// An admitted call that is counted when it ends; dropped before, as one of unknown outcome.
#[derive(Debug)]
pub(crate) struct OpenCall {
    server: Arc<ServerCalls>,
    decision: Decision,
    code: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct CallLabels {
    server: String,
    decision: &'static str,
    code: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ServerLabel {
    server: String,
}

impl CallMetrics {
    pub(crate) fn new() -> Self {
        let (calls, total) = (Family::default(), Family::default());
        let (upstream, admission) = (Family::default(), Family::default());
        let own = Arc::new(ServerCalls::new(TOOLGATE, &calls, [&total, &upstream, &admission]));
        let servers = HashMap::from([(Arc::clone(&own.server), Arc::clone(&own))]);
        let servers = ArcSwap::from_pointee(servers);
        let metrics = Self { calls, total, upstream, admission, servers, own };
        metrics.add_server(SESSIONS);
        metrics
    }

    /// Registers everything.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "calls",
            "Calls that need permission, by decision and by error code (ok if there is none)",
            self.calls.clone(),
        );
        let durations = [
            ("call_duration", "Time from the arrival of an admitted call to its end", &self.total),
            (
                "upstream_duration",
                "Time from the admission of a call to its end at the server",
                &self.upstream,
            ),
            (
                "admission_duration",
                "Time to decide, count and record a call before it is sent",
                &self.admission,
            ),
        ];
        for (name, help, family) in durations {
            registry.register_with_unit(name, help, Unit::Seconds, family.clone());
        }
    }

    /// Creates the series of a server at zero.
    pub fn add_server(&self, name: &str) {
        if self.servers.load().contains_key(name) {
            return;
        }
        let families = [&self.total, &self.upstream, &self.admission];
        let server = Arc::new(ServerCalls::new(name, &self.calls, families));
        self.servers.rcu(|servers| {
            let mut servers = HashMap::clone(servers);
            servers.insert(Arc::clone(&server.server), Arc::clone(&server));
            servers
        });
    }

    /// The metrics of the calls to a server. Calls to anything else are toolgate's own.
    pub(crate) fn of(&self, server: &str) -> Arc<ServerCalls> {
        Arc::clone(self.servers.load().get(server).unwrap_or(&self.own))
    }
}

impl ServerCalls {
    fn new(
        name: &str,
        calls: &Family<CallLabels, Counter>,
        [total, upstream, admission]: [&Family<ServerLabel, Latency>; 3],
    ) -> Self {
        let allowed = |code: &&'static str| (Decision::Allow, *code);
        let denied = |code: &&'static str| (Decision::Deny, *code);
        let of_sessions = DENIED_BY_SESSIONS.iter().filter(|_| name == SESSIONS);
        let ways = std::iter::once((Decision::Allow, OK))
            .chain(FAILED.iter().map(allowed))
            .chain(DENIED.iter().map(denied))
            .chain(of_sessions.map(denied))
            .chain([
                (Decision::Hide, "policy_denied"),
                (Decision::Hold, "approval_required"),
                (Decision::Hold, "approval_denied"),
                (Decision::ShadowDeny, OK),
                (Decision::ShadowHold, OK),
            ]);
        let counter = |(decision, code): (Decision, &'static str)| {
            let labels = CallLabels { server: name.to_owned(), decision: decision.as_str(), code };
            (decision, code, calls.get_or_create(&labels).clone())
        };
        let of_server = |family: &Family<ServerLabel, Latency>| {
            family.get_or_create(&ServerLabel { server: name.to_owned() }).clone()
        };
        Self {
            server: name.into(),
            usual: ways.map(counter).collect(),
            all: calls.clone(),
            total: of_server(total),
            upstream: of_server(upstream),
            admission: of_server(admission),
        }
    }

    /// Counts a call.
    fn count(&self, decision: Decision, code: &'static str) {
        let is_it = |way: &&(Decision, &'static str, Counter)| way.0 == decision && way.1 == code;
        if let Some((_, _, counter)) = self.usual.iter().find(is_it) {
            counter.inc();
            return;
        }
        let server = self.server.to_string();
        self.all.get_or_create(&CallLabels { server, decision: decision.as_str(), code }).inc();
    }

    /// Counts a call that was not admitted.
    pub(crate) fn refused(&self, refused: &Refused) {
        self.count(refused.decision().unwrap_or(Decision::Deny), refused.code());
    }

    /// The decision took this long, whatever it was.
    pub(crate) fn decided(&self, took: Duration) {
        self.admission.observe(took);
    }

    /// Begins a call that was admitted.
    pub(crate) fn admitted(self: Arc<Self>, decision: Decision) -> OpenCall {
        OpenCall { server: self, decision, code: "outcome_unknown" }
    }
}

impl OpenCall {
    /// The call has ended like this; `upstream` is the time at its peer, if it has one.
    pub(crate) fn ended(mut self, ended: &Ended, total: Duration, upstream: Option<Duration>) {
        self.code = ended.code.unwrap_or(match ended.outcome {
            Outcome::Ok | Outcome::InputRequired => OK,
            Outcome::ToolError => "tool_error",
            Outcome::ProtocolError => "protocol_error",
            Outcome::Timeout => "upstream_timeout",
            Outcome::Cancelled => "cancelled",
            Outcome::Unavailable => "upstream_unavailable",
            Outcome::Unknown => "outcome_unknown",
        });
        self.server.total.observe(total);
        if let Some(upstream) = upstream {
            self.server.upstream.observe(upstream);
        }
    }

    /// The call was abandoned between two rounds.
    pub(crate) fn abandoned(mut self) {
        self.code = "cancelled";
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        self.server.count(self.decision, self.code);
    }
}

#[cfg(test)]
mod tests;
