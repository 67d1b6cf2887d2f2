//! Downstream: agents connected to endpoints, and the streams they read.
//!
//! Invariant: an agent session serves one server by itself; what serves all servers is passed to it
//! (`agent/aggregate.rs`).
//!
//! Start at [`agent::AgentSession::request`].

pub(crate) mod agent;
pub(crate) mod call;
pub(crate) mod change_tracking;
pub(crate) mod coarse_timer;
pub(crate) mod endpoint;
pub(crate) mod links;
pub(crate) mod size_limits;
pub(crate) mod streams;
