//! Endpoints: what an agent session was opened on.

use std::fmt;
use std::sync::Arc;

/// What an agent sees: one server under its own names, all of them, or none but sessions.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// `/mcp/<server>`: that server alone, as it is.
    Server(String),
    /// `/mcp`: every server, in one list.
    All,
    /// `/mcp/sessions`: sessions and built-ins alone.
    Sessions,
}

impl Endpoint {
    /// Whether it is one server, as it is.
    pub(crate) fn is_one(&self) -> bool {
        matches!(self, Self::Server(_))
    }
}

impl Endpoint {
    /// Its path, as the audit has it.
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
