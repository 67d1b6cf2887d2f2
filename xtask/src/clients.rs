//! Scenarios of real clients with toolgate: cut connections, restarts, two clients at once.
//!
//! The scenarios are in `tests/peers/node/scenarios.mjs` and `tests/peers/python/scenarios.py`;
//! each is a process of its own that starts the toolgate it needs.

use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::json;

use crate::gate::binary;
use crate::peers::{copy_scripts, folder, python, sources};
use crate::process::run_logged;
use crate::real::servers::{script, start_everything};
use crate::report::each;

/// How long one scenario may take.
const LIMIT: Duration = Duration::from_mins(3);

/// The scripts, below `tests/peers`; the first also where the packages are that it imports.
const NODE: &str = "node/scenarios.mjs";
const PYTHON: &str = "python/scenarios.py";

pub(crate) fn run() -> Result<()> {
    copy_scripts()?;
    let work = folder("runs").join("clients");
    fs::create_dir_all(&work)?;
    let (_group, url) = start_everything(&work)?.listens()?;
    let job = json!({
        "toolgate": binary(),
        "folder": work,
        "everything": {"command": "node", "args": [script("everything"), "stdio"]},
        "everythingHttp": {"url": url},
    });
    let job_file = work.join("job.json");
    fs::write(&job_file, format!("{job:#}\n"))?;
    each(scenarios()?, String::clone, |scenario| {
        let mut command = if scenario.starts_with("py-") {
            let mut command = Command::new(python("client", "python"));
            command.arg(sources().join(PYTHON)).env("PYTHONDONTWRITEBYTECODE", "1");
            command
        } else {
            let mut command = Command::new("node");
            command.arg(folder(NODE));
            command
        };
        command.arg(scenario).arg(&job_file);
        run_logged(&mut command, &work.join(scenario).with_extension("log"), LIMIT)
    })
}

/// The names in the scripts' tables, so that there is one list of them.
fn scenarios() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for (script, table) in [(NODE, "const scenarios = {"), (PYTHON, "SCENARIOS = {")] {
        let text = fs::read_to_string(sources().join(script))?;
        let rest = text.split_once(table).with_context(|| format!("no `{table}` in `{script}`"))?.1;
        let lines = rest.lines().take_while(|line| !line.starts_with('}'));
        names.extend(lines.filter_map(|line| Some(line.split('\'').nth(1)?.to_owned())));
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_scenarios_are_found() {
        let names = super::scenarios().unwrap();
        for known in ["restart", "py-resume"] {
            assert!(names.iter().any(|name| name == known), "{names:?}");
        }
    }
}
