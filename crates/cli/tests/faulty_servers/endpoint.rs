//! Through which endpoint agents reach the servers, and what tools are called there.

use crate::agent::{Agent, NEWEST};
use crate::gate::Gate;
use crate::wire::Reply;

/// A kind of endpoint.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) name: &'static str,
    /// The path at which all servers are reached at once, their tools called `<server>__<tool>`;
    /// none if every server has an endpoint of its own.
    pub(crate) all_at: Option<&'static str>,
}

/// The endpoints that every trial is made at.
pub(crate) const ENDPOINTS: &[Endpoint] =
    &[Endpoint { name: "single", all_at: None }, Endpoint { name: "all", all_at: Some("/mcp") }];

/// An agent at an endpoint, who uses one server.
pub(crate) struct Visitor {
    pub(crate) agent: Agent,
    prefix: String,
}

impl Endpoint {
    /// Opens an agent session for `server`; the answer if none was opened.
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
