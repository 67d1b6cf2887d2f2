//! What is known of servers and their tools, for people.
//!
//! Invariant: nothing here asks a server; what was never heard is not known.

use toolgate_audit::Hash;
use toolgate_policy::Class;

use crate::gateway::Gateway;
use crate::lists::Kind;
use crate::offers::Audience;
use crate::server::Server;

/// A tool as its server was last heard to describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownTool {
    /// The server.
    pub server: String,
    /// The server's own name of it.
    pub name: String,
    /// Its risk class.
    pub class: Class,
    /// SHA-256 over its canonical definition; none if that is no JSON to be compared.
    pub fingerprint: Option<Hash>,
}

/// A server as the gateway has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownServer {
    /// Its name.
    pub name: String,
    /// How many tools it was last heard to have; none if it was never heard.
    pub tools: Option<usize>,
}

impl Gateway {
    /// The servers, in their configured order.
    pub fn known_servers(&self) -> Vec<KnownServer> {
        let known = |server: &Server| KnownServer {
            name: server.name().to_owned(),
            tools: server
                .offers
                .of(&Audience::default())
                .map(|offer| offer.list(Kind::Tools).len()),
        };
        self.servers().iter().map(|server| known(server)).collect()
    }

    /// Every tool that was heard of, by server in their configured order.
    pub fn known_tools(&self) -> Vec<KnownTool> {
        let mut tools = Vec::new();
        for server in self.servers().iter() {
            let Some(offer) = server.offers.of(&Audience::default()) else { continue };
            tools.extend(offer.list(Kind::Tools).fingerprints().map(|(name, fingerprint)| {
                KnownTool {
                    server: server.name().to_owned(),
                    name: name.to_owned(),
                    class: server.class(name),
                    fingerprint,
                }
            }));
        }
        tools
    }

    /// How many agent sessions are open.
    pub fn agent_sessions(&self) -> usize {
        self.open_sessions()
    }
}
