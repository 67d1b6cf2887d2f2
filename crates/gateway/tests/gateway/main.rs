//! The gateway from both ends: scripted servers below, agents above, and a clock that stands still
//! until everybody waits.
//!
//! `script.rs` plays servers, `bed.rs` sets up a gateway and agents as the edge would use them.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "test helpers fail by panicking"
)]

mod bed;
mod client;
mod dial_in_program;
mod gate;
mod office;
mod player;
mod script;

mod all;
mod answers;
mod attributed;
mod cancel;
mod cut_off;
mod detached;
mod dial_in_calls;
mod dial_in_changes;
mod ending;
mod faults;
mod faulty;
mod ids;
mod imitation;
mod life;
mod modern;
mod modern_listen;
mod modern_questions;
mod newer;
mod once;
mod opening;
mod owned_tasks;
mod panics;
mod pass;
mod passing;
mod policy;
mod questions;
mod reload;
mod shared;
mod side_doors;
mod storm;
mod tasks;
mod told;
