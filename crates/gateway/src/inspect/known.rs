//! Known servers and tools, for people.
//!
//! Invariant: nothing here sends a request to a server; only cached lists are used.

use toolgate_admission::list_kind::Kind;
use toolgate_audit::Hash;
use toolgate_catalog::Labels;
use toolgate_policy::Class;
use toolgate_upstream::link::Server;
use toolgate_upstream::list_cache::ClientProfile;
use toolgate_upstream::pins::Reason;
use toolgate_upstream::status::ServerStatus;

use crate::gateway::Gateway;

/// A tool as its server last described it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownTool {
    /// The server.
    pub server: String,
    /// The server's own name of it.
    pub name: String,
    /// Its risk class.
    pub class: Class,
    /// SHA-256 over its canonical definition; `None` if it has no canonical form.
    pub fingerprint: Option<Hash>,
    /// Why it is quarantined, if it is.
    pub quarantine: Option<Reason>,
    /// What it can do with data.
    pub labels: Labels,
}

/// A server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownServer {
    /// Its name.
    pub name: String,
    /// The number of its tools at the last list; `None` if it was never listed.
    pub tools: Option<usize>,
    /// Its state, and why it is not available.
    pub status: ServerStatus,
}

impl Gateway {
    /// The servers, in their configured order.
    pub fn known_servers(&self) -> Vec<KnownServer> {
        let known = |server: &Server| KnownServer {
            name: server.name().to_owned(),
            tools: server
                .list_cache
                .of(&ClientProfile::default())
                .map(|advertised| advertised.list(Kind::Tools).len()),
            status: server.status(),
        };
        self.servers().iter().map(|server| known(server)).collect()
    }

    /// Every known tool, by server in their configured order, then quarantined tools of sessions.
    pub fn known_tools(&self) -> Vec<KnownTool> {
        let mut tools = Vec::new();
        for server in self.servers().iter() {
            let Some(advertised) = server.list_cache.of(&ClientProfile::default()) else {
                continue;
            };
            let list = advertised.list(Kind::Tools);
            let known = |name: &str| {
                let facts = server.pins().newest_of(name).or_else(|| list.facts(name).cloned());
                KnownTool {
                    server: server.name().to_owned(),
                    name: name.to_owned(),
                    class: server.class(name),
                    fingerprint: facts.as_ref().and_then(|facts| facts.fingerprint),
                    labels: facts.as_ref().map(|facts| facts.labels).unwrap_or_default(),
                    quarantine: facts.and_then(|facts| server.quarantine(name, &facts)),
                }
            };
            tools.extend(list.entries().map(|(name, _)| known(name)));
            // Met by an agent of this server alone.
            let unlisted = server.quarantined().into_keys().filter(|name| !list.has(name));
            tools.extend(unlisted.map(|name| known(&name)));
        }
        let of_sessions = self.quarantined_session_tools().into_iter().map(|known| KnownTool {
            fingerprint: known.facts.fingerprint,
            labels: known.facts.labels,
            server: known.server,
            name: known.name,
            class: known.class,
            quarantine: known.quarantine,
        });
        tools.extend(of_sessions);
        tools
    }

    /// The last lines that a server printed on stderr.
    pub fn server_log(&self, name: &str) -> Vec<String> {
        self.server(name).map(|server| server.log_tail()).unwrap_or_default()
    }

    /// How many agent sessions are open.
    pub fn agent_sessions(&self) -> usize {
        self.open_sessions()
    }
}
