//! Writing a result to a file: whole or not at all.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use toolgate_control::trusted;

/// Replaces the file in one step; it keeps its permissions, and a link to it stays a link.
pub(crate) fn replace(path: &Path, text: &str) -> anyhow::Result<()> {
    put(path, text).with_context(|| format!("cannot write `{}`", path.display()))
}

fn put(path: &Path, text: &str) -> io::Result<()> {
    // A link of another user is not followed.
    let target = match trusted::follow(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
        followed => followed?,
    };
    let old = match fs::metadata(&target) {
        Ok(old) if !old.is_file() => {
            trusted::check(&target)?;
            // A pipe or a device cannot be replaced, only written to; a folder gives its own error.
            return fs::write(&target, text);
        }
        Ok(old) => Some(old),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let new = beside(&target);
    let written = fill(&new, text, old.as_ref()).and_then(|()| fs::rename(&new, &target));
    if written.is_err() && fs::remove_file(&new).is_err() {
        tracing::debug!("no temporary file to remove");
    }
    written
}

fn fill(new: &Path, text: &str, old: Option<&fs::Metadata>) -> io::Result<()> {
    let mut file = File::options().write(true).create_new(true).open(new)?;
    if let Some(old) = old {
        file.set_permissions(old.permissions())?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn beside(target: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(format!(".{}.new", std::process::id()));
    target.with_file_name(name)
}
