//! `cargo xtask bench policy`: the speed of the policy engine, alone and beside others.
//!
//! The measuring programs are in `benches/policy`, a separate workspace, so that the compared
//! engines stay out of the product's lock file. Instruction counts are in [`instructions`].
//!
//! Invariant: a missed aim is shown and fails nothing.

use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::table::{self, Verdict};
use super::{instructions, machine};
use crate::process::output;

const USAGE: &str = "\
usage: cargo xtask bench policy [--quick | --gate | --bless]

  --quick   fewer rounds; docs/benchmarks.md is left as it is
  --gate    count instructions and fail if there are more than `benches/policy/instructions.txt` says
  --bless   count instructions and write them there";

pub(super) const FOLDER: &str = "benches/policy";
const BEGIN: &str = "<!-- policy figures: written by `cargo xtask bench policy`, do not edit -->\n";
const END: &str = "<!-- end of policy figures -->";

/// The output of the program `alone`.
#[derive(Debug, Deserialize)]
struct Alone {
    sizes: Sizes,
    load_ms: Loads,
}

/// Nanoseconds a decision on the same six conditions.
#[derive(Debug, Deserialize)]
struct Engines {
    ours: f64,
    cel_json: f64,
    cel_ready: f64,
    cedar_json: f64,
    cedar_ready: f64,
}

/// Nanoseconds a decision with 10 and with 10,000 tools: one tool, and all in turn.
#[derive(Debug, Deserialize)]
struct Sizes {
    few: f64,
    many: f64,
    few_all: f64,
    many_all: f64,
}

/// Milliseconds to read, check and compile.
#[derive(Debug, Deserialize)]
struct Loads {
    tools: f64,
    tools_with_rules: f64,
    rules: f64,
}

type Row = [String; 4];

pub(super) fn run(words: &[&str]) -> Result<()> {
    let quick = match words {
        [] => false,
        ["--quick"] => true,
        ["--gate"] => return instructions::gate(),
        ["--bless"] => return instructions::bless(),
        _ => bail!("`bench policy` does not take `{}`\n\n{USAGE}", words.join(" ")),
    };
    let machine = machine::describe();
    // Separate, so that features enabled by the others do not change this measurement.
    let alone: Alone = take(&["--bin", "alone"], quick)?;
    let engines: Engines = take(&["--bin", "beside", "--features", "rivals"], quick)?;
    let text = table::padded(&HEADS.map(str::to_owned), &rows(&engines, &alone));
    table::say(&format!("\n{machine}\n\n{text}"));
    if !quick {
        let page = crate::root().join("docs/benchmarks.md");
        table::write_between(&page, BEGIN, END, &format!("\n{machine}\n\n{text}\n"))?;
        table::say("written to docs/benchmarks.md");
    }
    Ok(())
}

/// Builds and runs one of the programs.
fn take<T: DeserializeOwned>(which: &[&str], quick: bool) -> Result<T> {
    let mut command = cargo();
    command.args(["run", "--release", "--quiet"]).args(which);
    if quick {
        command.args(["--", "--quick"]);
    }
    let printed = output(&mut command)?;
    serde_json::from_str(&printed).context("the benchmark printed something else")
}

/// The cargo that runs us, in the benchmark's own workspace.
pub(super) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(crate::root().join(FOLDER)).env_remove("CARGO_TARGET_DIR");
    command
}

const HEADS: [&str; 4] = ["measurement", "aim", "result", "verdict"];

fn rows(engines: &Engines, Alone { sizes, load_ms }: &Alone) -> Vec<Row> {
    let nanos = |taken: f64| format!("{taken:.0} ns");
    let times = |ratio: f64| format!("{ratio:.2}×");
    let row = |what: &str, aim: &str, result: String, met: Option<bool>| {
        let verdict = met.map_or(Verdict::NoAim, Verdict::of).text();
        [what.to_owned(), aim.to_owned(), result, verdict]
    };
    let most = |what: &str, aim: f64, unit: &str, value: f64, shown: String| {
        row(what, &format!("≤ {aim} {unit}"), shown, Some(value <= aim))
    };
    let faster = |what: &str, other: f64| {
        let ratio = other / engines.ours;
        row(what, "≥ 4× ours", format!("{} ({})", times(ratio), nanos(other)), Some(ratio >= 4.0))
    };
    let growth = |what: &str, small: f64, large: f64, aim: Option<f64>| {
        let ratio = large / small;
        let shown = format!("{} ({} → {})", times(ratio), nanos(small), nanos(large));
        let met = aim.map(|aim| ratio <= aim);
        row(what, &aim.map(|aim| format!("≤ {aim}×")).unwrap_or_default(), shown, met)
    };
    let millis = |what: &str, aim: Option<f64>, taken: f64| {
        let shown = format!("{taken:.1} ms");
        row(
            what,
            &aim.map(|aim| format!("≤ {aim} ms")).unwrap_or_default(),
            shown,
            aim.map(|a| taken <= a),
        )
    };
    vec![
        most(
            "six conditions, p50, from raw JSON",
            1_000.0,
            "ns",
            engines.ours,
            nanos(engines.ours),
        ),
        faster("the same with `cel`, from raw JSON", engines.cel_json),
        faster("the same with `cel`, arguments in its own form", engines.cel_ready),
        faster("the same with `cedar-policy`, from raw JSON", engines.cedar_json),
        faster("the same with `cedar-policy`, request in its own form", engines.cedar_ready),
        growth("10,000 tools instead of 10, one tool called", sizes.few, sizes.many, Some(1.2)),
        growth(
            "10,000 tools instead of 10, all called in turn",
            sizes.few_all,
            sizes.many_all,
            None,
        ),
        millis("compile 10,000 tools with a limit each", Some(100.0), load_ms.tools),
        millis(
            "compile 10,000 tools with a predicate and a limit each",
            None,
            load_ms.tools_with_rules,
        ),
        millis("check 1,000 rules", Some(100.0), load_ms.rules),
    ]
}
