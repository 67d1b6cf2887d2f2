//! The endpoint of the agents, and the names of tools there.

use crate::agent::{Agent, NEWEST};
use crate::gate::Gate;
use crate::wire::Reply;

/// A kind of endpoint.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) name: &'static str,
    /// The path of all servers at once, with tools named `<server>__<tool>`; `None` if every
    /// server has its own endpoint.
    pub(crate) all_at: Option<&'static str>,
}

/// The endpoints of every trial.
pub(crate) const ENDPOINTS: &[Endpoint] =
    &[Endpoint { name: "single", all_at: None }, Endpoint { name: "all", all_at: Some("/mcp") }];

/// An agent at an endpoint that uses one server.
pub(crate) struct Visitor {
    pub(crate) agent: Agent,
    prefix: String,
}

impl Endpoint {
    /// Opens an agent session for `server`; the response if that failed.
    pub(crate) fn enter(&self, gate: &Gate, server: &str) -> Result<Visitor, Reply> {
        let (path, prefix) = match self.all_at {
            Some(path) => (path.to_owned(), format!("{server}__")),
            None => (format!("/mcp/{server}"), String::new()),
        };
        Ok(Visitor { agent: Agent::open_at(gate, &path, NEWEST)?, prefix })
    }
}

impl Visitor {
    /// The name of a tool at this endpoint.
    pub(crate) fn tool(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }
}
