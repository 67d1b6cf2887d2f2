//! Known servers and tools, for people.
//!
//! Invariant: nothing here sends a request to a server; only cached lists are used.

use toolgate_admission::list_kind::Kind;
use toolgate_audit::Hash;
use toolgate_policy::Class;
use toolgate_upstream::link::Server;
use toolgate_upstream::list_cache::ClientProfile;
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

    /// Every known tool, by server in their configured order.
    pub fn known_tools(&self) -> Vec<KnownTool> {
        let mut tools = Vec::new();
        for server in self.servers().iter() {
            let Some(advertised) = server.list_cache.of(&ClientProfile::default()) else {
                continue;
            };
            let list = advertised.list(Kind::Tools);
            tools.extend(list.entries().map(|(name, _)| KnownTool {
                server: server.name().to_owned(),
                name: name.to_owned(),
                class: server.class(name),
                fingerprint: list.fingerprint(&server.naming, name),
            }));
        }
        tools
    }

    /// How many agent sessions are open.
    pub fn agent_sessions(&self) -> usize {
        self.open_sessions()
    }
}
