//! Instruction counts of the policy engine as a gate: they hardly depend on what else the machine
//! does, so unlike times they can fail.
//!
//! Counted by gungraun, which drives valgrind; its runner is installed under `target/`.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use super::policy::{FOLDER, cargo};
use super::table::say;
use crate::process::{output, run as run_command};

/// How many more instructions than the checked-in count are still the same. Two runs of one build
/// differ by less than 0.1 % (hash seeds, addresses); a patch release of the compiler or of a
/// dependency moves them more.
const TOLERANCE_PERCENT: u64 = 5;
const RUNNER: &str = "gungraun-runner";
const VERSION: &str = "0.20.0";

/// Instructions by benchmark.
type Counts = BTreeMap<String, u64>;

/// Fails if a count is more than [`TOLERANCE_PERCENT`] above the checked-in one.
pub(super) fn gate() -> Result<()> {
    let file = file();
    let text = fs::read_to_string(&file).with_context(|| {
        format!("{}: `cargo xtask bench policy --bless` makes it", file.display())
    })?;
    let (expected, counted) = (read(&text)?, count()?);
    let complaints = compare(&expected, &counted);
    ensure!(complaints.is_empty(), "{}", complaints.join("\n"));
    say(&format!("no count is more than {TOLERANCE_PERCENT} % above {}", file.display()));
    Ok(())
}

/// Stores the counts.
pub(super) fn bless() -> Result<()> {
    let counts = count()?;
    let lines = counts.iter().map(|(name, count)| format!("{name} {count}\n"));
    fs::write(file(), std::iter::once(HEAD.to_owned()).chain(lines).collect::<String>())?;
    say(&format!("written to {}", file().display()));
    Ok(())
}

const HEAD: &str = "# Instructions, written by `cargo xtask bench policy --bless`.\n";

fn file() -> PathBuf {
    crate::root().join(FOLDER).join("instructions.txt")
}

fn read(text: &str) -> Result<Counts> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let count = |line: &str| {
        let (name, count) =
            line.split_once(' ').with_context(|| format!("no count in `{line}`"))?;
        Ok((name.to_owned(), count.parse().with_context(|| format!("no count in `{line}`"))?))
    };
    lines.map(count).collect()
}

fn compare(expected: &Counts, counted: &Counts) -> Vec<String> {
    let mut complaints = Vec::new();
    for (name, count) in counted {
        let Some(expected) = expected.get(name) else {
            complaints.push(format!("`{name}` is new: run `cargo xtask bench policy --bless`"));
            continue;
        };
        say(&format!("{name:<24} {count:>12} instructions, {expected} expected"));
        if *count > expected.saturating_mul(100 + TOLERANCE_PERCENT) / 100 {
            complaints.push(format!(
                "`{name}` takes {count} instructions, more than {TOLERANCE_PERCENT} % above {expected}; \
                 find out why, or bless it: `cargo xtask bench policy --bless`"
            ));
        }
    }
    let gone = expected.keys().filter(|name| !counted.contains_key(*name));
    complaints.extend(gone.map(|name| format!("`{name}` is no longer counted")));
    complaints
}

/// Runs every benchmark once under valgrind.
fn count() -> Result<Counts> {
    output(Command::new("valgrind").arg("--version"))
        .context("instructions are counted by valgrind: `apt-get install valgrind`")?;
    let runner = runner()?;
    let mut command = cargo();
    command.args(["bench", "--quiet", "--bench", "instructions", "--", "--output-format=json"]);
    command.env("GUNGRAUN_RUNNER", runner);
    let printed = output(&mut command)?;
    let counts: Counts = printed.lines().map(summary).collect::<Result<_>>()?;
    ensure!(!counts.is_empty(), "gungraun counted nothing");
    Ok(counts)
}

/// The runner that belongs to the library, installed once.
fn runner() -> Result<PathBuf> {
    let tools = crate::target().join("tools");
    let runner = tools.join("bin").join(RUNNER);
    let is = output(Command::new(&runner).arg("--version")).unwrap_or_default();
    if !is.contains(VERSION) {
        let mut install = cargo();
        install.args(["install", "--locked", "--version", VERSION, "--root"]).arg(&tools);
        run_command(install.arg(RUNNER))?;
    }
    if !runner.is_file() {
        bail!("{} was not installed", runner.display());
    }
    Ok(runner)
}

/// Name and instructions of one benchmark in gungraun's JSON.
fn summary(line: &str) -> Result<(String, u64)> {
    let summary: Value = serde_json::from_str(line).context("gungraun printed no JSON")?;
    let word = |key: &str| summary.get(key).and_then(Value::as_str).unwrap_or_default();
    let name = format!("{}/{}", word("function_name"), word("id"));
    let count = summary.pointer("/profiles/0/data/total/metrics/Ir/values/new");
    let count = count.and_then(Value::as_u64);
    Ok((name.clone(), count.with_context(|| format!("gungraun reports no `Ir` for `{name}`"))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_more_is_worse() {
        let counts = |pairs: &[(&str, u64)]| -> Counts {
            pairs.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
        };
        let expected = read("# head\na 100\nb 1000\ngone 1\n").unwrap();
        assert_eq!(expected, counts(&[("a", 100), ("b", 1000), ("gone", 1)]));
        let complaints = compare(&expected, &counts(&[("a", 105), ("b", 1051), ("new", 1)]));
        assert_eq!(complaints.len(), 3, "{complaints:?}");
        for (complaint, word) in complaints.iter().zip(["`b` takes 1051", "`new`", "`gone`"]) {
            assert!(complaint.contains(word), "{complaint}");
        }
        assert!(compare(&expected, &counts(&[("a", 1), ("b", 1), ("gone", 1)])).is_empty());
        assert!(read("a").is_err() && read("a b").is_err());
    }

    #[test]
    fn the_new_count_is_taken() {
        let line = r#"{"function_name":"allow","id":"six","profiles":[{"data":{"total":{"metrics":
            {"Dr":{"values":{"new":1}},"Ir":{"values":{"new":22,"old":33}}}}}}]}"#;
        assert_eq!(summary(line).unwrap(), ("allow/six".to_owned(), 22));
        assert!(summary("{}").is_err() && summary("no").is_err());
    }
}
