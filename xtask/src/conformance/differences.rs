//! The known differences, each with its reason: `differences.json`.
//!
//! Invariant: a difference that is not in the list fails, and so does an entry that is no longer a
//! difference.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use super::checks::{Check, Checks, Statuses, shown};
use crate::root;

/// The list, as it is checked in.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Differences {
    /// Why something differs, by a short name.
    pub(super) reasons: BTreeMap<String, String>,
    pub(super) known: Vec<Known>,
}

/// Checks of a scenario that differ.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Known {
    /// In which runs.
    pub(super) runs: Vec<String>,
    /// `*` is any.
    pub(super) scenario: String,
    /// Which of its checks; `*` is any.
    pub(super) checks: Vec<String>,
    pub(super) reason: String,
    /// It may or may not differ, depending on timing.
    #[serde(default)]
    pub(super) sometimes: bool,
    /// It may only succeed more often than directly; any other difference is not covered.
    #[serde(default)]
    pub(super) repeated: bool,
}

impl Differences {
    pub(super) fn read() -> Result<Self> {
        let file = root().join("xtask/src/conformance/differences.json");
        Self::parse(&fs::read_to_string(file)?)
    }

    pub(super) fn parse(text: &str) -> Result<Self> {
        let all: Self =
            serde_json::from_str(text).context("`differences.json` is not as expected")?;
        for known in &all.known {
            let reason = &known.reason;
            ensure!(all.reasons.contains_key(reason), "there is no reason `{reason}`");
        }
        Ok(all)
    }

    /// Compares a run with the direct one.
    pub(super) fn judge(&self, run: &str, direct: &Checks, found: &Checks) -> Result<()> {
        let differing = direct.differing(found);
        let known: Vec<(&Known, &String)> = self.of(run).collect();
        let unknown = differing.iter().filter(|(check, (direct, found))| {
            !known.iter().any(|(entry, pattern)| {
                entry.covers(pattern, check) && (!entry.repeated || only_repeated(direct, found))
            })
        });
        let mut complaints: Vec<String> = unknown
            .map(|(check, (direct, found))| {
                format!("{check}: direct {}, here {}", shown(direct), shown(found))
            })
            .collect();
        let gone = known.iter().filter(|(entry, pattern)| {
            !entry.sometimes && !differing.keys().any(|check| entry.covers(pattern, check))
        });
        complaints.extend(gone.map(|(entry, pattern)| {
            let scenario = &entry.scenario;
            format!("{scenario} / {pattern}: as it is directly; take it out of differences.json")
        }));
        ensure!(
            complaints.is_empty(),
            "  {} checks are not as they should be:\n    {}",
            complaints.len(),
            complaints.join("\n    ")
        );
        Ok(())
    }

    /// The checks that are known to differ in a run.
    pub(super) fn of(&self, run: &str) -> impl Iterator<Item = (&Known, &String)> {
        let entries = self.known.iter().filter(move |known| known.runs.iter().any(|r| r == run));
        entries.flat_map(|known| known.checks.iter().map(move |check| (known, check)))
    }
}

impl Known {
    fn covers(&self, pattern: &str, check: &Check) -> bool {
        let fits = |pattern: &str, name: &str| pattern == "*" || pattern == name;
        fits(&self.scenario, &check.scenario) && fits(pattern, &check.check)
    }
}

/// Whether `found` has more successes than `direct` and nothing else changed.
fn only_repeated(direct: &Statuses, found: &Statuses) -> bool {
    let split = |statuses: &Statuses| {
        let mut rest = statuses.clone();
        (rest.remove("SUCCESS").unwrap_or_default(), rest)
    };
    let ((before, direct_rest), (after, found_rest)) = (split(direct), split(found));
    after > before && direct_rest == found_rest
}
