//! Scenarios of real clients with toolgate: interrupted connections, restarts, two clients at once.
//!
//! The scenarios are in the scripts of [`SCRIPTS`]; each runs in its own process and starts the
//! toolgate it needs.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::json;

use crate::gate::binary;
use crate::peers::{copy_scripts, folder, node22, python, sources};
use crate::process::run_logged;
use crate::real::servers::{script, start_everything};
use crate::report::each;

/// How long one scenario may take.
const LIMIT: Duration = Duration::from_mins(3);

/// A script with scenarios.
struct Script {
    /// Below `tests/peers`; a copy of a Node script is beside the packages that it imports.
    file: &'static str,
    /// The start of its scenario table.
    table: &'static str,
    runtime: Runtime,
}

/// What runs a script.
enum Runtime {
    Node,
    Node22,
    Python(&'static str),
}

const SCRIPTS: &[Script] = &[
    Script { file: "node/scenarios.mjs", table: "const scenarios = {", runtime: Runtime::Node },
    Script { file: "node22/eras.mjs", table: "const scenarios = {", runtime: Runtime::Node22 },
    Script {
        file: "python/scenarios.py",
        table: "SCENARIOS = {",
        runtime: Runtime::Python("client"),
    },
    Script { file: "python/eras.py", table: "SCENARIOS = {", runtime: Runtime::Python("client2") },
];

pub(crate) fn run() -> Result<()> {
    copy_scripts()?;
    let work = folder("runs").join("clients");
    // Files of an earlier run would affect this one.
    if work.exists() {
        fs::remove_dir_all(&work)?;
    }
    fs::create_dir_all(&work)?;
    let (_group, url) = start_everything(&work)?.listens()?;
    // This server has more tools for clients that can be asked; they would be quarantined as new.
    let job = json!({
        "toolgate": binary(),
        "folder": work,
        "everything": {"command": "node", "args": [script("everything"), "stdio"], "pin": "off"},
        "everythingHttp": {"url": url, "pin": "off"},
    });
    let job_file = work.join("job.json");
    fs::write(&job_file, format!("{job:#}\n"))?;
    each(
        scenarios()?,
        |(_, name)| name.clone(),
        |(script, name)| {
            let mut command = script.command()?;
            command.arg(name).arg(&job_file);
            run_logged(&mut command, &work.join(name).with_extension("log"), LIMIT)
        },
    )
}

impl Script {
    fn command(&self) -> Result<Command> {
        Ok(match self.runtime {
            Runtime::Node => with_file("node", folder(self.file)),
            Runtime::Node22 => with_file(node22()?, folder(self.file)),
            Runtime::Python(venv) => {
                let mut command = with_file(python(venv, "python"), sources().join(self.file));
                command.env("PYTHONDONTWRITEBYTECODE", "1");
                command
            }
        })
    }

    /// The names in the script's table, so that there is one list of them.
    fn scenarios(&self) -> Result<Vec<String>> {
        let Self { file, table, .. } = self;
        let text = fs::read_to_string(sources().join(file))?;
        let rest = text.split_once(table).with_context(|| format!("no `{table}` in `{file}`"))?.1;
        let lines = rest.lines().take_while(|line| !line.starts_with('}'));
        Ok(lines.filter_map(|line| Some(line.split('\'').nth(1)?.to_owned())).collect())
    }
}

fn with_file(program: impl AsRef<OsStr>, file: PathBuf) -> Command {
    let mut command = Command::new(program);
    command.arg(file);
    command
}

fn scenarios() -> Result<Vec<(&'static Script, String)>> {
    let mut all = Vec::new();
    for script in SCRIPTS {
        all.extend(script.scenarios()?.into_iter().map(|name| (script, name)));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_scenarios_are_found() {
        let names = super::scenarios().unwrap();
        for known in
            ["restart", "py-resume", "ts2-auto", "claude-code", "py2-legacy", "py2-approvals"]
        {
            assert!(names.iter().any(|(_, name)| name == known), "`{known}` is not found");
        }
    }
}
