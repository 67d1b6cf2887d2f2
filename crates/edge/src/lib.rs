//! The edge: sockets, HTTP and processes; everything that touches the outside world.
//!
//! Downstream are the listeners ([`listen`], guarded by [`guard`], with [`tls`] if configured):
//! [`agents`] for MCP, [`admin_listener`] for health, metrics and the admin API, [`sessions`] for
//! programs that dial in. [`stdio_agent`] serves one agent over standard input and output. Upstream are the connectors of the gateway: [`child`] for processes,
//! [`remote`] for HTTP.
//!
//! Invariant: nothing is decided here; the edge only translates.

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
pub mod stdio_agent;
mod stdio_lines;
mod stdio_output;
pub mod stdio_relay;
pub mod tls;
pub mod webhook;

pub use body::ResponseBody;
