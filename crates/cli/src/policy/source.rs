//! The text of a policy, from a file or from stdin, within the size limit.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context as _, anyhow, bail};
use toolgate_clients::{Encoding, NotUtf8, text_of};
use toolgate_policy::{Known, Loaded, MAX_BYTES, Policy};

/// A document that was read.
#[derive(Debug)]
pub(crate) struct Source {
    /// As given on the command line.
    pub(crate) file: String,
    pub(crate) text: String,
}

impl Source {
    /// Reads a file; `-` is stdin.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let file = path.display().to_string();
        let bytes = if is_stdin(path) {
            bounded(io::stdin().lock()).context("cannot read from stdin")?
        } else {
            open(path)
                .and_then(bounded)
                .map_err(|error| anyhow!("cannot read `{file}`: {}", plainly(&error)))?
        };
        Ok(Self { text: text(bytes).with_context(|| format!("cannot read `{file}`"))?, file })
    }

    /// The name to show; `<stdin>` for `-`.
    pub(crate) fn shown(&self) -> &str {
        if self.file == STDIN { "<stdin>" } else { &self.file }
    }

    /// Loads the document with the known servers and tools.
    pub(crate) fn load(&self, known: &Known) -> Loaded {
        Policy::load(self.shown(), &self.text, known)
    }
}

const STDIN: &str = "-";

pub(super) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == STDIN
}

fn open(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    Ok(file)
}

/// Common reasons as text, without the system's error numbers.
fn plainly(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::IsADirectory => "it is a directory, name the file".to_owned(),
        _ => error.to_string(),
    }
}

/// Reads a little more than the limit, to detect that it is too large.
fn bounded(from: impl Read) -> io::Result<Vec<u8>> {
    let most = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX).saturating_add(4);
    let mut bytes = Vec::new();
    from.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn text(bytes: Vec<u8>) -> anyhow::Result<String> {
    let error = match String::from_utf8(bytes) {
        Ok(text) => return Ok(text),
        Err(error) => error,
    };
    let at = error.utf8_error().valid_up_to();
    let mut bytes = error.into_bytes();
    if at > MAX_BYTES {
        // Cut in the middle of a character; the size is reported instead.
        bytes.truncate(at);
        return Ok(String::from_utf8(bytes)?);
    }
    let line = bytes.iter().take(at).filter(|byte| **byte == b'\n').count() + 1;
    match text_of(bytes) {
        Err(NotUtf8(Encoding::Unknown)) | Ok(_) => {
            bail!("line {line} is not UTF-8; save the file as UTF-8")
        }
        Err(named) => Err(named.into()),
    }
}
