//! The zoo at the gate: servers that hang, drip, lie, crash or flood beside one that is healthy,
//! through the whole binary. Whatever they do, the healthy one's agents must not feel it.
//!
//! One trial for each animal alone and one for all together, with children of their own for each
//! agent and with shared ones. `zoo/visit.rs` is the trial, `zoo/door.rs` the endpoint through
//! which agents come, `zoo/process.rs` looks at processes from outside.
//!
//! This binary is its own animals: toolgate starts it as `zoo be-an-animal NAME`.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may panic, in their helpers too"
)]

#[path = "e2e/agent.rs"]
#[expect(dead_code, reason = "shared with e2e")]
mod agent;
#[path = "e2e/gate.rs"]
#[expect(dead_code, reason = "shared with e2e")]
mod gate;
#[path = "e2e/wire.rs"]
#[expect(dead_code, reason = "shared with e2e")]
mod wire;

#[path = "zoo/door.rs"]
mod door;
#[path = "zoo/process.rs"]
mod process;
#[path = "zoo/visit.rs"]
mod visit;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use toolgate_testkit::zoo::{Animal, main_if_asked};

use crate::door::DOORS;
use crate::visit::{INSTANCES, visit};

fn main() -> ExitCode {
    if let Some(code) = main_if_asked() {
        return code;
    }
    libtest_mimic::run(&Arguments::from_args(), trials()).exit_code()
}

fn trials() -> Vec<Trial> {
    let all: Vec<Animal> =
        Animal::all().iter().copied().filter(|animal| *animal != Animal::Healthy).collect();
    let mut groups: Vec<(String, Vec<Animal>)> =
        all.iter().map(|animal| (animal.name().replace('-', "_"), vec![*animal])).collect();
    groups.push(("all_together".to_owned(), all));
    let mut trials = Vec::new();
    for door in DOORS {
        for (name, animals) in &groups {
            for instances in INSTANCES {
                let name = format!("{}::{name}::{}", door.name, instances.replace('-', "_"));
                let animals = animals.clone();
                trials.push(Trial::test(name, move || {
                    visit(door, &animals, instances);
                    Ok(())
                }));
            }
        }
    }
    trials
}
