//! The file that an import writes.
//!
//! Its first line has the hash of the rest, so that an edit of the file is noticed.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use toolgate_audit::Hash;
use toolgate_control::trusted;

use crate::client::file::keep;
use crate::policy::replace;

const MARK: &str = "# written by `toolgate import`, sha256 ";

/// A file that may be written.
#[derive(Debug)]
pub(super) struct Target {
    path: PathBuf,
    /// What the file holds, if it must be kept elsewhere.
    backup: Option<Vec<u8>>,
    /// Whether the file is an unedited one of this command.
    is_rewritten: bool,
}

impl Target {
    /// Fails if the file exists and is not an unedited one of this command, unless `force` is set.
    pub(super) fn open(path: &Path, force: bool) -> anyhow::Result<Self> {
        let path = path.to_owned();
        let held = match trusted::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            read => Some(read.with_context(|| format!("cannot write `{}`", path.display()))?),
        };
        let is_rewritten = held.as_deref().is_some_and(is_unedited);
        let backup = held.filter(|_| !is_rewritten);
        if backup.is_some() && !force {
            bail!(
                "`{}` exists, and `toolgate import` did not write it or it was edited since; name \
                 another file with `--write`, or replace it with `--force`, which keeps a backup",
                path.display()
            );
        }
        Ok(Self { path, backup, is_rewritten })
    }

    /// Whether it replaces an earlier import, with the secrets of that one.
    pub(super) fn is_rewritten(&self) -> bool {
        self.is_rewritten
    }

    /// Writes the file; returns a message for people.
    pub(super) fn write(self, text: &str) -> anyhow::Result<String> {
        let Self { path, backup, .. } = self;
        let mut message = String::new();
        if let Some(held) = backup {
            let kept = keep(&path, &held)?;
            message = format!("kept the previous file as {}\n", kept.display());
        }
        replace(&path, &format!("{MARK}{}\n{text}", Hash::of(text.as_bytes())))?;
        Ok(format!("{message}written to {}\n", path.display()))
    }
}

fn is_unedited(held: &[u8]) -> bool {
    let Some((first, rest)) = std::str::from_utf8(held).ok().and_then(|text| text.split_once('\n'))
    else {
        return false;
    };
    first.strip_prefix(MARK).is_some_and(|hash| hash == Hash::of(rest.as_bytes()).to_string())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_an_unedited_file_of_this_command_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("toolgate.yaml");
        let write = |text: &str, force| Target::open(&path, force)?.write(text);
        write("version: 1\n", false).unwrap();
        write("version: 1\nlocal: off\n", false).unwrap();
        assert!(fs::read_to_string(&path).unwrap().ends_with("\nversion: 1\nlocal: off\n"));
        let edited = format!("{}# mine\n", fs::read_to_string(&path).unwrap());
        for held in [edited.as_str(), "version: 1\n", ""] {
            fs::write(&path, held).unwrap();
            let refused = write("version: 1\n", false).unwrap_err().to_string();
            assert!(refused.contains("--force"), "{refused}");
            assert_eq!(fs::read_to_string(&path).unwrap(), held, "untouched");
        }
        fs::write(&path, "first").unwrap();
        assert!(write("version: 1\n", true).unwrap().contains("toolgate.yaml.bak\n"));
        fs::write(&path, "second").unwrap();
        assert!(write("version: 1\n", true).unwrap().contains("toolgate.yaml.bak1\n"));
        let backup = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(
            (backup("toolgate.yaml.bak"), backup("toolgate.yaml.bak1")),
            ("first".into(), "second".into())
        );
    }
}
