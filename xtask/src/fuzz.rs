//! `cargo xtask fuzz [SECONDS]`: every target of `fuzz/`, each for a while.
//!
//! Needs a nightly toolchain; `cargo-fuzz` is installed when it is missing.

use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::process::{output, run as run_command};
use crate::report::say;
use crate::root;

const DEFAULT_SECONDS: u64 = 60;

pub(crate) fn run(words: &[&str]) -> Result<()> {
    let seconds = match words {
        [] => DEFAULT_SECONDS,
        [seconds] => seconds.parse().with_context(|| {
            format!("`{seconds}` is not a number of seconds (`fuzz [SECONDS]`)")
        })?,
        _ => bail!("too many words after `fuzz`: it takes a number of seconds or nothing"),
    };
    install()?;
    let targets = output(cargo().args(["fuzz", "list"]))?;
    if targets.trim().is_empty() {
        bail!("`fuzz/` has no targets");
    }
    let mut found = Vec::new();
    for target in targets.lines() {
        let time = format!("-max_total_time={seconds}");
        if let Err(error) = run_command(cargo().args(["fuzz", "run", target, "--", &time])) {
            say(&format!("{error:#}"));
            found.push(target);
        }
    }
    if !found.is_empty() {
        bail!("failing inputs for {}; they are in `fuzz/artifacts`", found.join(", "));
    }
    Ok(())
}

fn install() -> Result<()> {
    output(cargo().arg("--version"))
        .context("fuzzing needs a nightly toolchain: `rustup toolchain install nightly`")?;
    if output(cargo().args(["fuzz", "--version"])).is_err() {
        run_command(cargo().args(["install", "--locked", "cargo-fuzz"]))?;
    }
    Ok(())
}

/// `cargo +nightly` only means something to rustup's proxy, not to the cargo that runs us.
fn cargo() -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo"]).current_dir(root());
    command
}
