//! The processes of a conformance run: the suite, the fixture, and the front before toolgate.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::checks::Checks;
use crate::gate::{Gate, first_line};
use crate::peers::{copy_scripts, folder, node22};
use crate::process::{Group, run_logged, tail};
use crate::target;

/// The token of the grant that the suite's requests come with.
pub(super) const TOKEN: &str = "conformance-suite-of-the-tests";
/// How long a run of the suite may take.
const LIMIT: Duration = Duration::from_mins(5);

/// The suite, and where it writes.
pub(super) struct Suite {
    work: PathBuf,
}

/// The result of a run of the suite.
pub(super) struct Run {
    pub(super) checks: Checks,
    /// Whether the suite succeeded.
    pub(super) succeeded: Result<()>,
}

impl Suite {
    pub(super) fn find(work: &Path) -> Result<Self> {
        copy_scripts()?;
        Ok(Self { work: work.to_owned() })
    }

    /// All scenarios of a revision against a server.
    pub(super) fn run(&self, name: &str, revision: &str, url: &str) -> Result<Run> {
        let out = self.clean(name)?;
        let mut command = conformance()?;
        command.args(["server", "--url", url, "--requirements", revision, "-o"]).arg(&out);
        let log = self.work.join(name).with_extension("log");
        let succeeded = run_logged(&mut command, &log, LIMIT);
        let mut checks = Checks::default();
        checks.read(&out).with_context(|| tail(&log))?;
        Ok(Run { checks, succeeded })
    }

    /// One scenario for a client, whose script and words these are; adds what was found.
    pub(super) fn run_client(
        &self,
        name: &str,
        revision: &str,
        scenario: &str,
        words: &str,
        checks: &mut Checks,
    ) -> Result<()> {
        let out = self.clean(name)?;
        let mut command = conformance()?;
        command.args(["client", "--command", &format!("{} {words}", node22()?.display())]);
        command.args(["--scenario", scenario, "--spec-version", revision, "-o"]).arg(&out);
        let log = self.work.join(name).with_extension("log");
        let ended = run_logged(&mut command, &log, LIMIT);
        // The checks contain the result; the exit code matters only without any.
        checks.read(&out).with_context(|| format!("{ended:?}\n{}", tail(&log)))
    }

    /// An empty folder of this name.
    pub(super) fn clean(&self, name: &str) -> Result<PathBuf> {
        let folder = self.work.join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        Ok(folder)
    }
}

fn conformance() -> Result<Command> {
    let mut command = Command::new(node22()?);
    command.arg(folder("node22").join("node_modules/.bin/conformance"));
    Ok(command)
}

/// The fixture that listens.
pub(super) struct Fixture {
    _group: Group,
    pub(super) url: String,
}

/// The fixture's binary.
pub(super) fn fixture() -> PathBuf {
    target().join("debug/toolgate-conformance")
}

impl Fixture {
    pub(super) fn start(work: &Path, era: &str) -> Result<Self> {
        let mut command = Command::new(fixture());
        command.args(["http", "--era", era]).stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(File::create(work.join(format!("fixture-{era}.log")))?);
        let mut group = Group::start("the conformance fixture", &mut command)?;
        let url = url(&mut group)?;
        Ok(Self { _group: group, url })
    }
}

/// The proxy between the suite and toolgate that adds the token.
pub(super) struct Front {
    _group: Group,
    url: String,
}

impl Front {
    pub(super) fn start(work: &Path, gate: &Gate) -> Result<Self> {
        let mut command = Command::new(node22()?);
        command.arg(folder("node22").join("front.mjs")).args([&gate.origin(), TOKEN]);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(File::create(work.join("front.log"))?);
        let mut group = Group::start("the front", &mut command)?;
        let url = url(&mut group)?;
        Ok(Self { _group: group, url })
    }

    /// Where a server of toolgate is reached.
    pub(super) fn url(&self, server: &str) -> String {
        format!("{}/mcp/{server}", self.url)
    }
}

/// The `url` in the first line of a process.
fn url(group: &mut Group) -> Result<String> {
    let line = first_line(group)?;
    let said: Value =
        serde_json::from_str(&line).with_context(|| format!("its first line is `{line}`"))?;
    let url = said.get("url").and_then(Value::as_str).unwrap_or_default();
    ensure!(!url.is_empty(), "its first line is `{line}`, which has no `url`");
    Ok(url.to_owned())
}
