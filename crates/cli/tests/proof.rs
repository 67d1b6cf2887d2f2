//! What toolgate is sold on, proved from outside: a limit of N admits N, and every call that ever
//! reached a tool is in the audit, also after kill -9.
//!
//! Real processes, real HTTP. Executions are counted where they happen, at the server
//! (`upstream.rs`), never at the gateway. `kill.rs` kills, `exact.rs` hammers limits,
//! `reload.rs` changes policies under load, `closing.rs` is the four closing tools by a set clock,
//! `approvals.rs` redeems approvals at once and across kills.
//!
//! `TOOLGATE_KILLS`, `TOOLGATE_TRIALS`, `TOOLGATE_RELOADS`, `TOOLGATE_REDEMPTIONS` and
//! `TOOLGATE_APPROVAL_KILLS` set the counts (200, 100, 60, 10, 24);
//! `TOOLGATE_SEED` repeats a run whose seed was printed, as far as chance is ours.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests may panic, in their helpers too, and tell what they saw"
)]

#[path = "e2e/gate.rs"]
#[expect(dead_code, reason = "shared with e2e")]
mod gate;

#[path = "proof/agent.rs"]
mod agent;
#[path = "proof/approvals.rs"]
mod approvals;
#[path = "proof/audited.rs"]
mod audited;
#[path = "proof/closing.rs"]
mod closing;
#[path = "proof/exact.rs"]
mod exact;
#[path = "proof/kill.rs"]
mod kill;
#[path = "proof/phases.rs"]
mod phases;
#[path = "proof/reload.rs"]
mod reload;
#[path = "proof/upstream.rs"]
mod upstream;

use std::hash::{BuildHasher as _, RandomState};

use toolgate_dice::Dice;

/// A number from the environment.
fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

/// Chance, and how to have it again.
fn dice(test: &str) -> Dice {
    let seed = number("TOOLGATE_SEED").unwrap_or_else(|| RandomState::new().hash_one(0));
    println!("TOOLGATE_SEED={seed} cargo test -p toolgate --test proof {test}");
    Dice::new(seed)
}
