//! Metrics of servers and agent sessions.
//!
//! Invariant: label values come from the configuration or from fixed lists, never from an agent.
//! Invariant: the series of a server exist at zero as soon as the server does.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Metrics of servers and agent sessions; created once and registered by the service of `/metrics`.
#[derive(Debug, Clone)]
pub struct Metrics {
    /// Open agent sessions.
    pub agent_sessions: Gauge,
    /// Agent sessions that were rejected because a limit was reached.
    pub refused_sessions: Counter,
    reloads: Family<ResultLabel, Counter>,
    requests: Family<ServerResult, Counter>,
    starts: Family<ServerResult, Counter>,
    children: Family<ServerLabel, Gauge>,
    dropped: Family<ServerLabel, Counter>,
}

/// The metrics of one server, looked up once.
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
    children: Gauge,
}

/// A child process that is counted as running until this is dropped.
#[derive(Debug)]
pub struct RunningChild(Gauge);

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ResultLabel {
    result: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ServerLabel {
    server: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ServerResult {
    server: String,
    result: &'static str,
}

/// The results of a reload.
const RELOADED: &str = "ok";
const REJECTED: &str = "rejected";

impl Default for Metrics {
    fn default() -> Self {
        let reloads = Family::<ResultLabel, Counter>::default();
        for result in [RELOADED, REJECTED] {
            drop(reloads.get_or_create(&ResultLabel { result }));
        }
        Self {
            agent_sessions: Gauge::default(),
            refused_sessions: Counter::default(),
            reloads,
            requests: Family::default(),
            starts: Family::default(),
            children: Family::default(),
            dropped: Family::default(),
        }
    }
}

impl Metrics {
    /// Registers everything.
    pub fn register(&self, registry: &mut Registry) {
        registry.register("agent_sessions", "Open agent sessions", self.agent_sessions.clone());
        registry.register(
            "agent_sessions_rejected",
            "Agent sessions rejected because a limit was reached",
            self.refused_sessions.clone(),
        );
        registry.register(
            "reloads",
            "Reloads of the configuration or of a policy file, by result",
            self.reloads.clone(),
        );
        registry.register(
            "upstream_requests",
            "Requests forwarded to servers, by result",
            self.requests.clone(),
        );
        registry.register(
            "server_starts",
            "Starts of servers (child processes started, HTTP sessions opened), by result",
            self.starts.clone(),
        );
        registry.register("children", "Running child processes", self.children.clone());
        registry.register(
            "dropped_messages",
            "Server messages that matched no pending request",
            self.dropped.clone(),
        );
    }

    /// Counts a reload of the configuration or a policy, and whether it was applied.
    pub fn reloaded(&self, used: bool) {
        let result = if used { RELOADED } else { REJECTED };
        self.reloads.get_or_create(&ResultLabel { result }).inc();
    }

    /// The metrics of the server called `name`.
    pub fn of_server(&self, name: &str) -> ServerMetrics {
        let labels = |result| ServerResult { server: name.to_owned(), result };
        let request = |result| self.requests.get_or_create(&labels(result)).clone();
        let start = |result| self.starts.get_or_create(&labels(result)).clone();
        let server = ServerLabel { server: name.to_owned() };
        ServerMetrics {
            answered: request("answered"),
            unavailable: request("unavailable"),
            timeout: request("timeout"),
            lost: request("unknown"),
            cancelled: request("cancelled"),
            starts: start("ok"),
            failed_starts: start("failed"),
            dropped: self.dropped.get_or_create(&server).clone(),
            children: self.children.get_or_create(&server).clone(),
        }
    }
}

impl ServerMetrics {
    /// Counts a child process as running.
    pub fn child_started(&self) -> RunningChild {
        self.children.inc();
        RunningChild(self.children.clone())
    }
}

impl Drop for RunningChild {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[test]
    fn series_exist_at_zero_and_children_are_counted_while_they_run() {
        let metrics = Metrics::default();
        let server = metrics.of_server("files");
        let text = || {
            let mut registry = Registry::with_prefix("toolgate");
            metrics.register(&mut registry);
            let mut text = String::new();
            encode(&mut text, &registry).unwrap();
            text
        };
        for line in [
            r#"toolgate_reloads_total{result="ok"} 0"#,
            r#"toolgate_reloads_total{result="rejected"} 0"#,
            r#"toolgate_upstream_requests_total{server="files",result="timeout"} 0"#,
            r#"toolgate_server_starts_total{server="files",result="failed"} 0"#,
            r#"toolgate_children{server="files"} 0"#,
            "toolgate_agent_sessions 0",
        ] {
            assert!(text().lines().any(|other| other == line), "{line}");
        }
        let children = [server.child_started(), server.child_started()];
        assert!(text().contains(r#"toolgate_children{server="files"} 2"#));
        drop(children);
        assert!(text().contains(r#"toolgate_children{server="files"} 0"#));
    }
}
