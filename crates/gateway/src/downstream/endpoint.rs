//! Endpoints of agent sessions.

use std::fmt;
use std::sync::Arc;

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
    /// Its path, for the audit.
    pub(crate) fn via(&self) -> Arc<str> {
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
