//! The results of a run of the suite: how often each check of each scenario had which status.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

/// A check of a scenario.
#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Check {
    pub(super) scenario: String,
    pub(super) check: String,
}

/// How often a check had each status.
pub(super) type Statuses = BTreeMap<String, usize>;

/// All checks of a run. Those of status INFO are omitted: they only describe messages.
#[derive(Clone, Debug, Default)]
pub(super) struct Checks {
    found: BTreeMap<Check, Statuses>,
    scenarios: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Entry {
    id: String,
    status: String,
}

impl Checks {
    /// Adds the output of the suite: a folder with a `checks.json` for each scenario.
    pub(super) fn read(&mut self, folder: &Path) -> Result<()> {
        let mut empty = true;
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let Some(scenario) = scenario(name) else { continue };
            let text = fs::read_to_string(path.join("checks.json"))
                .with_context(|| format!("no checks of `{scenario}`"))?;
            self.add(scenario, &text)?;
            empty = false;
        }
        ensure!(!empty, "the suite left nothing in `{}`", folder.display());
        Ok(())
    }

    /// Adds the checks of one scenario, as the suite writes them.
    pub(super) fn add(&mut self, scenario: &str, text: &str) -> Result<()> {
        let entries: Vec<Entry> = serde_json::from_str(text)
            .with_context(|| format!("the checks of `{scenario}` are not as expected"))?;
        self.scenarios.insert(scenario.to_owned());
        for entry in entries.into_iter().filter(|entry| entry.status != "INFO") {
            let check = Check { scenario: scenario.to_owned(), check: entry.id };
            *self.found.entry(check).or_default().entry(entry.status).or_default() += 1;
        }
        Ok(())
    }

    /// The checks with different statuses in the two runs.
    pub(super) fn differing<'a>(
        &'a self,
        other: &'a Self,
    ) -> BTreeMap<&'a Check, (Statuses, Statuses)> {
        let all: BTreeSet<&Check> = self.found.keys().chain(other.found.keys()).collect();
        let of = |checks: &Self, check| checks.found.get(check).cloned().unwrap_or_default();
        all.into_iter()
            .map(|check| (check, (of(self, check), of(other, check))))
            .filter(|(_, (here, there))| here != there)
            .collect()
    }

    /// The checks that failed, or only warn.
    pub(super) fn failed(&self) -> Vec<String> {
        let bad = |status: &String| status == "FAILURE" || status == "WARNING";
        let failed = self.found.iter().filter(|(_, statuses)| statuses.keys().any(bad));
        failed.map(|(check, statuses)| format!("{check}: {}", shown(statuses))).collect()
    }

    /// How many scenarios there were, and checks of each status.
    pub(super) fn summary(&self) -> String {
        let mut total = Statuses::new();
        for (status, count) in self.found.values().flatten() {
            *total.entry(status.clone()).or_default() += count;
        }
        format!("{} scenarios, {}", self.scenarios.len(), shown(&total))
    }
}

impl std::fmt::Display for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} / {}", self.scenario, self.check)
    }
}

/// Statuses as people read them.
pub(super) fn shown(statuses: &Statuses) -> String {
    if statuses.is_empty() {
        return "not there".to_owned();
    }
    let each = statuses.iter().map(|(status, count)| format!("{count} {status}"));
    each.collect::<Vec<_>>().join(", ")
}

/// How the suite ends the names of its folders; `0` is any digit.
const TIME: &str = "-0000-00-00T00-00-00-000Z";

/// The scenario of a folder that the suite made, `SCENARIO-TIME` or `server-SCENARIO-TIME`.
pub(super) fn scenario(folder: &str) -> Option<&str> {
    let rest = folder.strip_prefix("server-").unwrap_or(folder);
    let (name, time) = rest.split_at_checked(rest.len().checked_sub(TIME.len())?)?;
    let fits = |(form, found): (char, char)| {
        if form == '0' { found.is_ascii_digit() } else { found == form }
    };
    TIME.chars().zip(time.chars()).all(fits).then_some(name)
}
