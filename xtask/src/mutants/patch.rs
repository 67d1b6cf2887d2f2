//! The patches in `tests/mutants/`: a header of two lines, then a diff as git writes it.
//!
//! ```text
//! Breaks: A calendar limit of N admits N - 1.
//! Caught by: toolgate-policy decide::tests::the_engine_agrees_with_the_naive_interpreter
//! ```

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::root;

/// One mistake, ready to be planted.
#[derive(Debug)]
pub(super) struct Patch {
    /// Its folder and file, without the ending: `policy/limit-off-by-one`.
    pub(super) name: String,
    /// What goes wrong, in one sentence.
    pub(super) breaks: String,
    pub(super) caught_by: TestName,
    pub(super) file: PathBuf,
}

/// A unit test of a package.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TestName {
    pub(super) package: String,
    pub(super) path: String,
}

impl fmt::Display for TestName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.package, self.path)
    }
}

/// All patches, sorted by name.
pub(super) fn all() -> Result<Vec<Patch>> {
    let mut patches = Vec::new();
    for folder in entries(&root().join("tests/mutants"))? {
        for file in entries(&folder)? {
            let patch = read(file.clone());
            patches.push(patch.with_context(|| format!("cannot use `{}`", file.display()))?);
        }
    }
    ensure!(!patches.is_empty(), "`tests/mutants` has no patches");
    patches.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(patches)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let read = std::fs::read_dir(folder);
    let read = read.with_context(|| format!("cannot read `{}`", folder.display()))?;
    Ok(read.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?)
}

fn read(file: PathBuf) -> Result<Patch> {
    let text = std::fs::read_to_string(&file)?;
    let (breaks, caught_by) = header(&text)?;
    let folder = file.parent().and_then(Path::file_name).context("it is in no folder")?;
    ensure!(
        file.extension().is_some_and(|ending| ending == "patch"),
        "its name must end in `.patch`"
    );
    let name = Path::new(folder).join(file.file_stem().unwrap_or_default());
    let name = name.to_string_lossy().into_owned();
    Ok(Patch { name, breaks, caught_by, file })
}

/// The two lines above the diff.
pub(super) fn header(text: &str) -> Result<(String, TestName)> {
    let mut lines = text.lines();
    let mut line = |word: &str| {
        let line = lines.next().and_then(|line| line.strip_prefix(word));
        line.map(str::trim).with_context(|| format!("a line `{word} …` is missing above the diff"))
    };
    let breaks = line("Breaks:")?.to_owned();
    let caught_by = line("Caught by:")?;
    let (package, path) =
        caught_by.split_once(' ').context("`Caught by:` needs a package and the path of a test")?;
    Ok((breaks, TestName { package: package.to_owned(), path: path.to_owned() }))
}

/// `git apply` in `tree`, which does not search for a repository above it: git would skip the
/// files of a patch silently when the tree is a folder of another repository.
pub(super) fn git_apply(tree: &Path) -> Command {
    let mut command = Command::new("git");
    command.arg("apply").current_dir(tree);
    if let Some(above) = tree.parent() {
        command.env("GIT_CEILING_DIRECTORIES", above);
    }
    command
}
