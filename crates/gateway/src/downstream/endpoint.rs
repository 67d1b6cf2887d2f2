//! Endpoints of agent sessions.

use std::fmt;
use std::sync::Arc;

use toolgate_admission::access::Grant;

/// An endpoint: one server, all servers, or sessions only.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// `/mcp/<server>`: one server, under its own names.
    Server(String),
    /// `/mcp`: every server, in one list.
    All,
    /// `/mcp/sessions`: sessions and built-ins alone.
    Sessions,
}

impl Endpoint {
    /// Whether it is one server.
    pub(crate) fn is_one(&self) -> bool {
        matches!(self, Self::Server(_))
    }
}

impl Endpoint {
    /// How requests of this grant arrive, for the audit: the path, unless they do not use HTTP.
    pub(crate) fn via(&self, grant: &Grant) -> Arc<str> {
        if let Some(via) = &grant.via {
            return Arc::clone(via);
        }
        match self {
            Self::All => "/mcp".into(),
            Self::Sessions => "/mcp/sessions".into(),
            Self::Server(server) => format!("/mcp/{server}").into(),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(name) => f.write_str(name),
            Self::All => f.write_str("all servers"),
            Self::Sessions => f.write_str("sessions"),
        }
    }
}
