//! `cargo xtask soak [FUZZ_SECONDS]`: the counts that are too heavy for every run.
//!
//! The storm of agents against shared servers with a million answers, the same through the whole
//! binary, random policies in millions against the naive interpreter, and every fuzz target for a
//! long while.

use anyhow::Result;

use crate::fuzz;
use crate::process::run as run_command;
use crate::report::say;
use crate::root;

const FUZZ_SECONDS: &str = "900";
/// Answers at the right one of a thousand clients.
const ANSWERS: &str = "2000000";
/// Random worlds of policy and call.
const WORLDS: &str = "2000000";

pub(crate) fn run(words: &[&str]) -> Result<()> {
    say("a storm of 1,000 agents that all count from nought");
    run_command(cargo_test("toolgate-gateway", "storm").env("TOOLGATE_SOAK", "1"))?;
    say("a thousand clients of the whole binary, every answer at the right one");
    let mut misroute = cargo_test("toolgate", "not_one_answer");
    run_command(misroute.args(["--test", "misroute"]).env("TOOLGATE_MISROUTE", ANSWERS))?;
    say("random policies against the naive interpreter");
    run_command(cargo_test("toolgate-policy", "").env("TOOLGATE_POLICY_WORLDS", WORLDS))?;
    say("fuzzing");
    fuzz::run(if words.is_empty() { &[FUZZ_SECONDS] } else { words })
}

fn cargo_test(package: &str, filter: &str) -> std::process::Command {
    let mut command = std::process::Command::new("cargo");
    command.args(["test", "--release", "--package", package, filter]).current_dir(root());
    command
}
