//! The file of a client: read and written through links, with its mode.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use toolgate_clients::{NotEdited, text_of};
use toolgate_control::trusted;
use toolgate_os::files;

use crate::policy::replace;

const MAX_BACKUPS: usize = 1_000;

/// A file, and what it holds.
pub(super) struct ClientFile {
    path: PathBuf,
    text: String,
    exists: bool,
}

impl ClientFile {
    /// A missing file is empty.
    pub(super) fn open(path: PathBuf) -> anyhow::Result<Self> {
        let unusable = || format!("`{}` cannot be used", path.display());
        let bytes = match trusted::read(&path) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error).with_context(unusable),
        };
        if bytes.is_none() && fs::symlink_metadata(&path).is_ok() {
            let shown = path.display();
            bail!(
                "`{shown}` is a link to a file that does not exist; create that file, or remove the link"
            );
        }
        let exists = bytes.is_some();
        let text = text_of(bytes.unwrap_or_default()).with_context(unusable)?;
        Ok(Self { path, text, exists })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// What it held before earlier changes, the newest first.
    pub(super) fn backups(&self) -> impl Iterator<Item = String> {
        let names = (0..MAX_BACKUPS).map(|number| backup(&self.path, number));
        let existing: Vec<PathBuf> = names.take_while(|path| path.exists()).collect();
        existing.into_iter().rev().filter_map(|path| trusted::read_text(&path).ok())
    }

    pub(super) fn shown(&self) -> String {
        self.path.display().to_string()
    }

    pub(super) fn refused(&self, why: &NotEdited) -> anyhow::Error {
        anyhow!("`{}` is not changed: {why}", self.path.display())
    }

    /// Writes the file; the backup of what it held. A new file, and one with a secret in it, is for its
    /// owner alone.
    pub(super) fn write(&self, text: &str, is_secret: bool) -> anyhow::Result<Option<PathBuf>> {
        // Another program may have written it meanwhile.
        let now = match trusted::read(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            read => read.with_context(|| format!("cannot read `{}`", self.shown()))?,
        };
        if now != self.text.as_bytes() {
            bail!("`{}` was changed meanwhile; nothing was written, try again", self.shown());
        }
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot create `{}`", folder.display()))?;
        }
        if !self.exists {
            let what = || format!("cannot write `{}`", self.shown());
            trusted::put(&self.path, text.as_bytes()).with_context(what)?;
            return Ok(None);
        }
        let kept = keep(&self.path, self.text.as_bytes())?;
        if is_secret {
            self.make_private()?;
        }
        replace(&self.path, text)?;
        Ok(Some(kept))
    }

    /// Before the secret is in it.
    fn make_private(&self) -> anyhow::Result<()> {
        let what = || format!("cannot make `{}` private", self.shown());
        let target = trusted::follow(&self.path).with_context(what)?;
        files::make_private(&target).with_context(what)
    }
}

/// Keeps a copy beside the file, for its owner alone, under a name that is free.
pub(crate) fn keep(path: &Path, held: &[u8]) -> anyhow::Result<PathBuf> {
    for number in 0..MAX_BACKUPS {
        let copy = backup(path, number);
        match trusted::create(&copy) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            created => {
                let what = || format!("cannot keep a backup in `{}`", copy.display());
                created.and_then(|mut file| file.write_all(held)).with_context(what)?;
                return Ok(copy);
            }
        }
    }
    bail!("there are too many backups of `{}`", path.display())
}

fn backup(path: &Path, number: usize) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(if number == 0 { ".bak".to_owned() } else { format!(".bak{number}") });
    PathBuf::from(name)
}
