//! Peers for tests and measurements: MCP servers, a yardstick proxy, a load generator, a fake 1C
//! client, a crowd of programs that dial in.
//!
//! Most are a library module (to run inside a test) and a binary of the same name (to run as a
//! process of its own). Start at [`echo`] for a server to test against, at [`load`] for a client
//! that checks every answer, at [`zoo`] for servers that misbehave, at [`legacy`] for one that
//! speaks the transport of 2024-11-05, at [`conformance`] for the one that the official suite tries.
//!
//! Invariant: development only; nothing that ships depends on this crate.
//! Invariant: no module uses toolgate's own wire code, so that a mistake there cannot hide itself.

pub mod conformance;
pub mod dice;
pub mod echo;
pub mod faulty;
pub mod fleet;
mod http1;
pub mod legacy;
pub mod load;
pub mod proxy;

pub use toolgate_onec as onec;
