//! The file of a client: read and written through links, with its mode.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use toolgate_clients::{NotEdited, text_of};
use toolgate_control::trusted;
use toolgate_os::files;

use crate::policy::replace;

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
        let exists = bytes.is_some();
        let text = text_of(bytes.unwrap_or_default()).with_context(unusable)?;
        Ok(Self { path, text, exists })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn shown(&self) -> String {
        self.path.display().to_string()
    }

    pub(super) fn refused(&self, why: &NotEdited) -> anyhow::Error {
        anyhow!("`{}` is not changed: {why}", self.path.display())
    }

    /// Writes the file; the backup of what it held. With a secret in it, it is for its owner alone.
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
        let kept = if self.exists { Some(keep(&self.path, self.text.as_bytes())?) } else { None };
        if is_secret || !self.exists {
            self.make_private()?;
        }
        replace(&self.path, text)?;
        Ok(kept)
    }

    /// Before the secret is in it.
    fn make_private(&self) -> anyhow::Result<()> {
        let what = || format!("cannot make `{}` private", self.shown());
        if self.exists {
            let target = trusted::follow(&self.path).with_context(what)?;
            return files::make_private(&target).with_context(what);
        }
        trusted::create(&self.path).map(drop).with_context(what)
    }
}

/// Keeps a copy beside the file, for its owner alone, under a name that is free.
pub(crate) fn keep(path: &Path, held: &[u8]) -> anyhow::Result<PathBuf> {
    for number in 0..1_000 {
        let mut name = path.as_os_str().to_owned();
        name.push(if number == 0 { ".bak".to_owned() } else { format!(".bak{number}") });
        let copy = PathBuf::from(name);
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
