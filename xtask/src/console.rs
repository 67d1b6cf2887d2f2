//! The console in a real browser: scenarios, and screenshots of every page.
//!
//! The scenarios are in `tests/peers/browser/console.mjs`; each runs in its own process and starts the
//! toolgate it needs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::json;

use crate::gate::{binary, debug_binary};
use crate::peers::{copy_scripts, folder, sources};
use crate::process::run_logged;
use crate::report::each;
use crate::root;

/// How long one scenario may take.
const LIMIT: Duration = Duration::from_mins(5);
/// The start of the scenario table.
const TABLE: &str = "const scenarios = {";

/// Every scenario, with the release binary.
pub(crate) fn all() -> Result<()> {
    run(&[])
}

/// `[--debug] [NAME…]`.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    let (toolgate, names) = match words {
        ["--debug", names @ ..] => (debug_binary(), names),
        names => (binary(), names),
    };
    let known = scenarios()?;
    if let Some(unknown) = names.iter().find(|name| !known.iter().any(|it| it == *name)) {
        bail!("unknown scenario `{unknown}`; the scenarios are {}", known.join(", "));
    }
    let wanted =
        known.into_iter().filter(|name| names.is_empty() || names.contains(&name.as_str()));
    let (work, job) = prepare(&toolgate)?;
    each(wanted.collect(), Clone::clone, |name| {
        let mut command = script("console.mjs");
        command.arg(name).arg(&job);
        run_logged(&mut command, &work.join(name).with_extension("log"), LIMIT)
    })
}

/// Every page in both themes and languages, with the debug binary.
pub(crate) fn screenshots() -> Result<()> {
    let (work, job) = prepare(&debug_binary())?;
    let mut command = script("screenshots.mjs");
    command.arg(&job).arg(root().join("docs/screenshots"));
    run_logged(&mut command, &work.join("screenshots.log"), LIMIT)
}

/// The folder of the run, and the file that tells scripts what to use.
fn prepare(toolgate: &Path) -> Result<(PathBuf, PathBuf)> {
    copy_scripts()?;
    let work = folder("runs").join("console");
    // Files of an earlier run would affect this one.
    if work.exists() {
        fs::remove_dir_all(&work)?;
    }
    fs::create_dir_all(&work)?;
    let job = work.join("job.json");
    fs::write(&job, format!("{:#}\n", json!({"toolgate": toolgate, "folder": work})))?;
    Ok((work, job))
}

fn script(name: &str) -> Command {
    let mut command = Command::new("node");
    command.arg(folder("browser").join(name));
    command
}

/// The names in the script's table, so that there is one list of them.
fn scenarios() -> Result<Vec<String>> {
    let text = fs::read_to_string(sources().join("browser/console.mjs"))?;
    let rest = text.split_once(TABLE).with_context(|| format!("no `{TABLE}`"))?.1;
    let lines = rest.lines().take_while(|line| !line.starts_with('}'));
    Ok(lines.filter_map(|line| Some(line.split('\'').nth(1)?.to_owned())).collect())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_scenarios_are_found() {
        let names = super::scenarios().unwrap();
        assert!(names.contains(&"console-axe".to_owned()), "{names:?}");
    }
}
