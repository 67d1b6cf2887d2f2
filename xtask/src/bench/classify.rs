//! `cargo xtask bench classify`: definitions that one core classifies per second.
//!
//! The measuring program is `crates/catalog/examples/classify_speed.rs`.
//!
//! Invariant: a missed aim is shown and fails nothing.

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use super::{machine, table};
use crate::cargo::cargo;
use crate::process::output;

const AIM: u64 = 200_000;

/// What the program prints.
#[derive(Debug, Deserialize)]
struct Speed {
    definitions: usize,
    alone: u64,
    with_parsing: u64,
}

pub(super) fn run(words: &[&str]) -> Result<()> {
    if !words.is_empty() {
        bail!("`bench classify` takes nothing, not `{}`", words.join(" "));
    }
    let mut command = cargo();
    command.args(["run", "--quiet", "--release", "-p", "toolgate-catalog"]);
    let text = output(command.args(["--example", "classify_speed"]))?;
    let speed: Speed = serde_json::from_str(text.trim()).context("the program's figures")?;
    let verdict = if speed.alone >= AIM { "met" } else { "missed" };
    table::say(&format!(
        "\n{}\n\n{} definitions, one core: {} classified per second (aim {AIM}, {verdict}), {} with \
         parsing",
        machine::describe(),
        speed.definitions,
        speed.alone,
        speed.with_parsing
    ));
    Ok(())
}
