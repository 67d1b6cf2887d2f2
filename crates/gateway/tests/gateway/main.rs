//! The gateway from both ends: scripted servers below, agents above, and a virtual clock.
//!
//! `script.rs` has scripted servers, `harness.rs` a gateway and agents that use it like the edge.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "test helpers fail by panicking"
)]

mod auto_server;
mod client;
mod dial_in_program;
mod gate;
mod harness;
mod reply;
mod script;
mod test_admission;

mod aggregate;
mod aggregate_lists;
mod answers;
mod attributed;
mod cancel;
mod closed_list;
mod cursors;
mod cut_off;
mod detached;
mod dial_in_calls;
mod dial_in_changes;
mod ending;
mod explain;
mod faults;
mod faulty;
mod ids;
mod imitation;
mod list_changed;
mod opening;
mod owned_tasks;
mod panics;
mod pins;
mod policy;
mod policy_limits;
mod reconnect;
mod relay;
mod reload;
mod server_requests;
mod sessionless;
mod sessionless_input;
mod sessionless_listen;
mod sessionless_servers;
mod shared;
mod starting;
mod storm;
mod tasks;
mod unchanged_bytes;
mod written_once;
