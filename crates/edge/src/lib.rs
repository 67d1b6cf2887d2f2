//! The edge: sockets, HTTP and processes; everything that touches the outside world.
//!
//! Downstream are the listeners ([`listen`], guarded by [`guard`], under [`tls`] if there is a certificate): [`agents`] for MCP, [`admin_listener`]
//! for health and metrics, [`sessions`] for programs that dial in. Upstream are the connectors that the gateway opens channels with:
//! [`child`] for processes, [`remote`] for HTTP.
//!
//! Invariant: nothing is decided here; the edge translates and obeys.

pub mod admin_listener;
pub mod agents;
mod body;
pub mod child;
pub mod guard;
mod linger;
pub mod listen;
mod memory_budget;
pub mod remote;
mod repoll;
pub mod sessions;
pub mod tls;

pub use body::ResponseBody;
