//! Channels to servers, against real processes and scripted HTTP servers.

#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers fail by panicking")]

mod child;
mod legacy;
mod recorder;
mod remote;
mod script;
mod session;
mod stream;
