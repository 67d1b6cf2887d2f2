//! A copy of the sources in which patches are applied and tests are run.
//!
//! Invariant: after [`Scratch::patched`] the copy equals the sources again. If a run is killed,
//! the next one restores the copy before it begins.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::patch::{Patch, TestName, git_apply};
use crate::cargo::cargo;
use crate::process::{output, run_logged};
use crate::{root, target};

/// How long one test may take, including compiling its dependencies from nothing.
const LIMIT: Duration = Duration::from_mins(20);

/// The copy, in the target folder.
pub(super) struct Scratch {
    tree: PathBuf,
    log: PathBuf,
}

/// The result of a test that compiled and ran.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Passed,
    Failed {
        /// The first line of its message.
        why: String,
    },
}

impl Scratch {
    /// Makes the copy, or brings that of an earlier run up to date. Files that are equal keep
    /// their time, so that cargo compiles only what has changed.
    pub(super) fn prepare() -> Result<Self> {
        let folder = target().join("mutants");
        let scratch = Self { tree: folder.join("tree"), log: folder.join("test.log") };
        let wanted = sources()?;
        for file in &wanted {
            scratch.restore(file)?;
        }
        remove_others(&scratch.tree, &scratch.tree, &wanted)?;
        Ok(scratch)
    }

    fn restore(&self, file: &Path) -> Result<()> {
        let (from, to) = (root().join(file), self.tree.join(file));
        let text =
            std::fs::read(&from).with_context(|| format!("cannot read `{}`", from.display()))?;
        if std::fs::read(&to).is_ok_and(|copy| copy == text) {
            return Ok(());
        }
        if let Some(folder) = to.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(&to, text).with_context(|| format!("cannot write `{}`", to.display()))
    }

    /// Runs `then` while a patch is applied.
    pub(super) fn patched<T>(&self, patch: &Patch, then: impl FnOnce() -> Result<T>) -> Result<T> {
        let touched = output(git_apply(&self.tree).args(["--numstat"]).arg(&patch.file))?;
        output(git_apply(&self.tree).arg(&patch.file))?;
        let result = then();
        // `added<tab>removed<tab>path`
        for file in touched.lines().filter_map(|line| line.rsplit('\t').next()) {
            self.restore(Path::new(file))?;
        }
        result
    }

    /// Compiles and runs one test. An error if it does not compile or does not exist.
    pub(super) fn test(&self, test: &TestName) -> Result<Outcome> {
        let TestName { package, path } = test;
        let mut command = cargo();
        command.current_dir(&self.tree).env("CARGO_TARGET_DIR", target());
        command.args(["test", "--locked", "--package", package, "--lib"]);
        // Most mutants are found in the first seeds: compiling costs more than running.
        for quick in ["opt-level=0", "debug=false"] {
            command.args(["--config", &format!("profile.test.package.{package}.{quick}")]);
        }
        command.args(["--", "--exact", path]);
        let ended = run_logged(&mut command, &self.log, LIMIT);
        let log = std::fs::read_to_string(&self.log)?;
        match (log.contains("test result: ok. 1 passed"), &ended) {
            (true, Ok(())) => Ok(Outcome::Passed),
            (false, Err(_)) if log.contains("test result: FAILED. 0 passed; 1 failed") => {
                Ok(Outcome::Failed { why: reason(&log).to_owned() })
            }
            (_, Ok(())) => bail!("test {test} does not exist"),
            (_, Err(why)) => bail!("{test} neither passed nor failed: {why:#}"),
        }
    }
}

/// The line after `thread … panicked at …`.
fn reason(log: &str) -> &str {
    let mut lines = log.lines().skip_while(|line| !line.contains("panicked at "));
    lines.nth(1).unwrap_or("no message")
}

/// The files of the sources, tracked and new ones, relative to the workspace.
fn sources() -> Result<BTreeSet<PathBuf>> {
    let mut list = Command::new("git");
    list.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let list = output(list.current_dir(root()).stdin(Stdio::null()))?;
    let files = list.split('\0').filter(|file| !file.is_empty()).map(PathBuf::from);
    // What was deleted is listed until it is committed.
    Ok(files.filter(|file| root().join(file).is_file()).collect())
}

/// Removes the files of the copy that the sources no longer have.
fn remove_others(folder: &Path, tree: &Path, wanted: &BTreeSet<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(&path, tree, wanted)?;
        } else if !wanted.contains(path.strip_prefix(tree)?) {
            std::fs::remove_file(&path)?;
        }
    }
    Ok(())
}
