//! Endpoints: what an agent session was opened on.

use std::fmt;

/// What an agent sees: one server under its own names, or all of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// `/mcp/<server>`: that server alone, as it is.
    Server(String),
    /// `/mcp`: every server, in one list.
    All,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(name) => f.write_str(name),
            Self::All => f.write_str("all servers"),
        }
    }
}
