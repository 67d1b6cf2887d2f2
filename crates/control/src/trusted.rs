//! Files that decide or open something (configuration, policies, tokens, keys, the data folder):
//! read only if no other user can have written them.
//!
//! A file is opened first, without waiting, and judged by its descriptor, so that what was judged is
//! what is read. It must be a regular file: a pipe could delay the reader, a device has no end. Its
//! owner must be this process's user or root, and others must not be able to write to it. A group
//! that can write to it is worth a warning. Links are followed one by one, and only those that this
//! user or root has created.
//!
//! Invariant: nothing is created or replaced through a link.
//! Invariant: a file is read whole or not at all; one above the limit is an error that names it.
//!
//! Start at [`read`].

use std::collections::HashSet;
use std::fs::{self, File, Metadata};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

use toolgate_os::files::{self, Links, Rights};

use crate::visible::visible;

/// The largest file that is read.
const MAX_READ: u64 = 8 * MIB;
const MIB: u64 = 1024 * 1024;
/// How many links may lead to a file, as the system has it.
const LINKS: usize = 40;

/// The content of a configuration, policy, secret or data file.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let (file, found) = open(path)?;
    if found.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !found.is_file() {
        return Err(refused(format!("{} is not a regular file; name one", shown(path))));
    }
    if found.len() > MAX_READ {
        return Err(too_large(path));
    }
    bounded(file, path)
}

/// The same as text.
pub fn read_text(path: &Path) -> io::Result<String> {
    text(read(path)?)
}

/// The text of a file that was named on the command line for one read: it may also be a pipe, such
/// as a shell's `<(command)`.
pub fn read_named(path: &Path) -> io::Result<String> {
    let (file, _) = open(path)?;
    // The writer of a pipe may take a while.
    files::wait_for_writers(&file)?;
    text(bounded(file, path)?)
}

fn bounded(file: File, path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = file.take(MAX_READ + 1).read_to_end(&mut bytes)?;
    // It may have grown since it was judged.
    let fits = u64::try_from(read).is_ok_and(|read| read <= MAX_READ);
    if fits { Ok(bytes) } else { Err(too_large(path)) }
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes)
        .map_err(|error| io::Error::other(toolgate_config::not_utf8(error.as_bytes())))
}

fn too_large(path: &Path) -> io::Error {
    let (shown, limit) = (shown(path), MAX_READ / MIB);
    let why = format!("{shown} is larger than {limit} MiB, the limit for such a file");
    io::Error::new(io::ErrorKind::FileTooLarge, why)
}

/// Whether a file or folder may be trusted, without opening it.
pub fn check(path: &Path) -> io::Result<()> {
    let path = follow(path)?;
    judge(&path, &fs::symlink_metadata(&path)?)
}

/// Opens a file to read it, without waiting for a writer, and judges it.
fn open(path: &Path) -> io::Result<(File, Metadata)> {
    let path = follow(path)?;
    let links = if is_the_systems(&path) { Links::Followed } else { Links::Refused };
    let file = files::open(&path, links)?;
    let found = file.metadata()?;
    judge(&path, &found)?;
    Ok((file, found))
}

/// Makes a file for its owner alone. There must be none of this name, and no link.
pub fn create(path: &Path) -> io::Result<File> {
    files::create(path)
}

/// Puts a file in the place of what is there, whole or not at all; a link there is replaced.
pub fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = PathBuf::from(new);
    // Left behind by a process that ended too early. A link is taken away, not its target.
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = create(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&new, path)
}

/// Opens a file to append to it, or makes it for its owner alone.
pub fn append(path: &Path) -> io::Result<File> {
    let path = match follow(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
        followed => followed?,
    };
    let file = files::append(&path)?;
    judge(&path, &file.metadata()?)?;
    Ok(file)
}

/// Where a path leads: links at its end are followed, if this user or root has made them.
pub fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        let before = fs::symlink_metadata(&path)?;
        if !before.is_symlink() || is_the_systems(&path) {
            return Ok(path);
        }
        let target = fs::read_link(&path)?;
        let after = fs::symlink_metadata(&path)?;
        let same = files::identity(&before) == files::identity(&after);
        if !same || !Rights::of(&before).is_own() || !Rights::of(&after).is_own() {
            let (shown, uid) = (shown(&path), Rights::of(&after).owner);
            let why = format!(
                "{shown} is a link that the user {uid} has made and can lead elsewhere; name the \
                 file itself, or make the link again"
            );
            return Err(refused(why));
        }
        path = match path.parent() {
            Some(folder) => folder.join(target),
            None => target,
        };
    }
    Err(files::too_many_links())
}

/// Descriptors of this process are links that lead to no path.
fn is_the_systems(path: &Path) -> bool {
    let streams = ["/proc", "/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr"];
    streams.iter().any(|stream| path.starts_with(stream))
}

fn judge(path: &Path, found: &Metadata) -> io::Result<()> {
    if files::is_device(found.file_type()) {
        // What is read there is not what somebody has written into a file.
        return Ok(());
    }
    let rights = Rights::of(found);
    let (shown, uid) = (shown(path), rights.owner);
    if !rights.is_own() {
        let own = toolgate_os::process::user();
        return Err(refused(format!(
            "{shown} belongs to the user {uid}, who can change it; make sure that its content is \
             right and type: chown {own} {}",
            quoted(path)
        )));
    }
    if rights.others_write() {
        return Err(refused(format!(
            "every user can write to {shown}; make sure that its content is right and type: \
             chmod o-w {}",
            quoted(path)
        )));
    }
    if rights.group_writes() {
        let whose = format!("the group {}", rights.group);
        warn_once(path, &format!("{whose} can write to {shown}"), "g-w");
    }
    // Others cannot put a file of ours there, only take ours away: that is worth a word.
    let around = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let around = around.unwrap_or(Path::new("."));
    if fs::metadata(around).is_ok_and(|found| Rights::of(&found).others_remove()) {
        let whose = format!("every user can move and remove files in `{}`", around.display());
        warn_once(around, &visible(&whose), "o-w");
    }
    Ok(())
}

/// Logged once for each file.
fn warn_once(path: &Path, what: &str, change: &str) {
    static LOGGED: LazyLock<Mutex<HashSet<PathBuf>>> = LazyLock::new(Mutex::default);
    if LOGGED.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned()) {
        tracing::warn!("{what}; to end that, type: chmod {change} {}", quoted(path));
    }
}

fn refused(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

fn shown(path: &Path) -> String {
    format!("`{}`", visible(&path.display().to_string()))
}

/// A path as a shell reads it back.
fn quoted(path: &Path) -> String {
    let text = visible(&path.display().to_string());
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests;
