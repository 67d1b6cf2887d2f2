//! Metrics of the gateway.
//!
//! Invariant: label values come from the configuration or from fixed lists, never from an agent.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// All metrics of the gateway; created once and registered by the service of `/metrics`.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    /// Agent sessions that are open.
    pub agent_sessions: Gauge,
    /// Agent sessions that were refused because there were too many.
    pub refused_sessions: Counter,
    reloads: Family<Reload, Counter>,
    requests: Family<Outcome, Counter>,
    starts: Family<Start, Counter>,
    dropped: Family<OfServer, Counter>,
}

/// The counters of one server, looked up once.
#[derive(Debug, Clone)]
pub struct ServerMetrics {
    /// Requests that the server answered.
    pub answered: Counter,
    /// Requests that could not be sent.
    pub unavailable: Counter,
    /// Requests without an answer in time.
    pub timeout: Counter,
    /// Requests whose connection ended before the answer.
    pub lost: Counter,
    /// Requests that the agent cancelled.
    pub cancelled: Counter,
    pub(crate) starts: Counter,
    pub(crate) failed_starts: Counter,
    pub(crate) dropped: Counter,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Reload {
    result: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfServer {
    server: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Outcome {
    server: String,
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Start {
    server: String,
    result: &'static str,
}

impl Metrics {
    /// Puts everything into `registry`.
    pub fn register(&self, registry: &mut Registry) {
        registry.register("agent_sessions", "Open agent sessions", self.agent_sessions.clone());
        registry.register(
            "agent_sessions_refused",
            "Agent sessions rejected because a limit was reached",
            self.refused_sessions.clone(),
        );
        registry.register(
            "reloads",
            "Reloads of the configuration or a policy, by result",
            self.reloads.clone(),
        );
        registry.register(
            "requests",
            "Requests forwarded to servers, by outcome",
            self.requests.clone(),
        );
        registry.register(
            "server_starts",
            "Connections to servers (children started, HTTP sessions opened), by result",
            self.starts.clone(),
        );
        registry.register(
            "dropped_messages",
            "Server messages that matched no pending request",
            self.dropped.clone(),
        );
    }

    /// Counts a reload of the configuration or a policy, and whether it was applied.
    pub fn reloaded(&self, used: bool) {
        let result = if used { "ok" } else { "refused" };
        self.reloads.get_or_create(&Reload { result }).inc();
    }

    /// The counters of the server called `name`.
    pub fn of_server(&self, name: &str) -> ServerMetrics {
        let outcome = |outcome| {
            let labels = Outcome { server: name.to_owned(), outcome };
            self.requests.get_or_create(&labels).clone()
        };
        let start =
            |result| self.starts.get_or_create(&Start { server: name.to_owned(), result }).clone();
        ServerMetrics {
            answered: outcome("answered"),
            unavailable: outcome("unavailable"),
            timeout: outcome("timeout"),
            lost: outcome("unknown"),
            cancelled: outcome("cancelled"),
            starts: start("ok"),
            failed_starts: start("failed"),
            dropped: self.dropped.get_or_create(&OfServer { server: name.to_owned() }).clone(),
        }
    }
}
