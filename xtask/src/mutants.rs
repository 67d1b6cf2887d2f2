//! `cargo xtask mutants [all | NAME…]`: tests the tests with known mistakes.
//!
//! A mutant is a patch in `tests/mutants/` that plants one mistake. For each, this module applies
//! the patch to a copy of the sources and expects the test named in the patch to fail. Without
//! arguments it takes a tenth of the patches, another one each day.
//!
//! Invariant: the sources themselves are never patched, and a patch that does not apply, does not
//! compile or names no test is an error, not a caught mutant.
//! Start at [`run`].

mod patch;
mod scratch;

use std::collections::BTreeSet;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail, ensure};

use self::patch::{Patch, TestName};
use self::scratch::{Outcome, Scratch};
use crate::report::say;

/// After this many days every patch has been taken once.
const DAYS: u64 = 10;

pub(crate) fn run(words: &[&str]) -> Result<()> {
    let patches = patch::all()?;
    let chosen: Vec<&Patch> = match words {
        [] => tenth(&patches, today()?),
        ["all"] => patches.iter().collect(),
        names => named(&patches, names)?,
    };
    let names: Vec<&str> = chosen.iter().map(|patch| patch.name.as_str()).collect();
    say(&format!("{} of {} mutants: {}", chosen.len(), patches.len(), names.join(", ")));
    let scratch = Scratch::prepare()?;
    let tests: BTreeSet<&TestName> = chosen.iter().map(|patch| &patch.caught_by).collect();
    for test in tests {
        unpatched(&scratch, test)?;
    }
    let mut failed = Vec::new();
    for patch in chosen {
        if let Err(error) = catch(&scratch, patch) {
            say(&format!("FAILED  {error:#}"));
            failed.push(patch.name.as_str());
        }
    }
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

/// The patches of today, for the run of all tests.
pub(crate) fn todays() -> Result<()> {
    run(&[])
}

/// The patches whose turn it is on a day, counted from 1970.
fn tenth(patches: &[Patch], day: u64) -> Vec<&Patch> {
    (0..).zip(patches).filter(|(at, _)| at % DAYS == day % DAYS).map(|(_, patch)| patch).collect()
}

fn today() -> Result<u64> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() / (24 * 60 * 60))
}

fn named<'a>(patches: &'a [Patch], names: &[&str]) -> Result<Vec<&'a Patch>> {
    let find = |name: &&str| {
        let found = patches.iter().find(|patch| patch.name == *name);
        found.with_context(|| format!("unknown mutant `{name}`; docs/mutants.md lists them"))
    };
    names.iter().map(find).collect()
}

/// A test must pass before its failure means anything. This also compiles the dependencies.
fn unpatched(scratch: &Scratch, test: &TestName) -> Result<()> {
    let start = Instant::now();
    if let Outcome::Failed { why } = scratch.test(test)? {
        bail!("{test} fails without any mutant: {why}");
    }
    say(&format!("passes  {test} without a mutant, {}", seconds(start.elapsed())));
    Ok(())
}

fn catch(scratch: &Scratch, patch: &Patch) -> Result<()> {
    let start = Instant::now();
    let Patch { name, breaks, caught_by, .. } = patch;
    let outcome = scratch.patched(patch, || scratch.test(caught_by));
    match outcome.with_context(|| name.clone())? {
        Outcome::Failed { why } => {
            say(&format!("caught  {name} in {}: {why}", seconds(start.elapsed())));
            Ok(())
        }
        Outcome::Passed => bail!("{name} is not caught by {caught_by}: {breaks}"),
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests;
