//! Peers for tests and benchmarks: MCP servers, a baseline proxy, a load generator, a simulated 1C
//! client, a fleet of simulated sessions.
//!
//! Most are a library module (to run inside a test) and a binary of the same name (to run as a
//! process). Start at [`echo`] for a server to test against, at [`load`] for a client that checks
//! every answer, at [`faulty`] for servers that misbehave, at [`legacy`] for the transport of
//! 2024-11-05, at [`conformance`] for the server of the official suite.
//!
//! Invariant: development only; nothing that ships depends on this crate.
//! Invariant: no module uses toolgate's own wire code, so that a bug there cannot hide itself.

pub mod client;
pub mod conformance;
pub mod echo;
pub mod faulty;
pub mod fleet;
mod http1;
pub mod legacy;
pub mod load;
pub mod proxy;
mod reserved;

pub use reserved::reserved_address;
pub use toolgate_onec as onec;
