//! Peers for tests and measurements: an MCP server, a yardstick proxy, a load generator, a fake 1C
//! client.
//!
//! Each is a library module (to run inside a test) and a binary of the same name (to run as a
//! process of its own under `cargo xtask bench`). Start at [`echo`] for a server to test against,
//! at [`load`] for a client that checks every answer.
//!
//! Invariant: development only; nothing that ships depends on this crate.
//! Invariant: no module uses toolgate's own wire code, so that a mistake there cannot hide itself.

pub mod echo;
pub mod load;
pub mod onec;
pub mod proxy;
