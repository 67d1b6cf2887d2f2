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
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;

use crate::policy::visible;

/// The largest file that is read.
const MAX_READ: u64 = 8 * MIB;
const MIB: u64 = 1024 * 1024;
/// How many links may lead to a file, as the system has it.
const LINKS: usize = 40;
/// The bit that lets others write.
const OTHERS: u32 = 0o002;
/// The bit of a folder that lets others remove only files of their own.
const STICKY: u32 = 0o1000;
/// The bit that lets the group write.
const GROUP: u32 = 0o020;

/// The content of a configuration, policy, secret or data file.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
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
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    text(read(path)?)
}

/// The text of a file that was named on the command line for one read: it may also be a pipe, such
/// as a shell's `<(command)`.
pub(crate) fn read_named(path: &Path) -> io::Result<String> {
    let (file, _) = open(path)?;
    // The writer of a pipe may take a while.
    fcntl_setfl(&file, OFlags::empty())?;
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
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8"))
}

fn too_large(path: &Path) -> io::Error {
    let (shown, limit) = (shown(path), MAX_READ / MIB);
    let why = format!("{shown} is larger than {limit} MiB, the limit for such a file");
    io::Error::new(io::ErrorKind::FileTooLarge, why)
}

/// Whether a file or folder may be trusted, without opening it.
pub(crate) fn check(path: &Path) -> io::Result<()> {
    let path = follow(path)?;
    judge(&path, &fs::symlink_metadata(&path)?)
}

/// Opens a file to read it, without waiting for a writer, and judges it. The standard library adds
/// `O_CLOEXEC`.
fn open(path: &Path) -> io::Result<(File, Metadata)> {
    let path = follow(path)?;
    let mut flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    flags.set(OFlags::NOFOLLOW, !is_the_systems(&path));
    let file =
        OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(&path)?;
    let found = file.metadata()?;
    judge(&path, &found)?;
    Ok((file, found))
}

/// Makes a file for its owner alone. There must be none of this name, and no link.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    OpenOptions::new().write(true).create_new(true).mode(0o600).custom_flags(flags).open(path)
}

/// Puts a file in the place of what is there, whole or not at all; a link there is replaced.
pub(crate) fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
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
pub(crate) fn append(path: &Path) -> io::Result<File> {
    let path = match follow(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
        followed => followed?,
    };
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    let mut options = OpenOptions::new();
    options.append(true).mode(0o600).custom_flags(flags);
    let file = match options.open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            options.create_new(true).open(&path)?
        }
        opened => opened?,
    };
    judge(&path, &file.metadata()?)?;
    Ok(file)
}

/// Where a path leads: links at its end are followed, if this user or root has made them.
pub(crate) fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        let before = fs::symlink_metadata(&path)?;
        if !before.is_symlink() || is_the_systems(&path) {
            return Ok(path);
        }
        let target = fs::read_link(&path)?;
        let after = fs::symlink_metadata(&path)?;
        let same = (before.dev(), before.ino()) == (after.dev(), after.ino());
        if !same || !is_own(&before) || !is_own(&after) {
            let (shown, uid) = (shown(&path), after.uid());
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
    Err(Errno::LOOP.into())
}

/// Descriptors of this process are links that lead to no path.
fn is_the_systems(path: &Path) -> bool {
    let streams = ["/proc", "/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr"];
    streams.iter().any(|stream| path.starts_with(stream))
}

fn is_own(found: &Metadata) -> bool {
    found.uid() == 0 || found.uid() == rustix::process::geteuid().as_raw()
}

fn judge(path: &Path, found: &Metadata) -> io::Result<()> {
    let kind = found.file_type();
    if kind.is_char_device() || kind.is_block_device() || kind.is_socket() {
        // What is read there is not what somebody has written into a file.
        return Ok(());
    }
    let (shown, uid) = (shown(path), found.uid());
    if !is_own(found) {
        let own = rustix::process::geteuid().as_raw();
        return Err(refused(format!(
            "{shown} belongs to the user {uid}, who can change it; make sure that its content is \
             right and type: chown {own} {}",
            quoted(path)
        )));
    }
    if found.mode() & OTHERS != 0 {
        return Err(refused(format!(
            "every user can write to {shown}; make sure that its content is right and type: \
             chmod o-w {}",
            quoted(path)
        )));
    }
    if found.mode() & GROUP != 0 {
        let whose = format!("the group {}", found.gid());
        warn_once(path, &format!("{whose} can write to {shown}"), "g-w");
    }
    // Others cannot put a file of ours there, only take ours away: that is worth a word.
    let around = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let around = around.unwrap_or(Path::new("."));
    if fs::metadata(around).is_ok_and(|found| found.mode() & (OTHERS | STICKY) == OTHERS) {
        let whose = format!("every user can move and remove files in `{}`", around.display());
        warn_once(around, &visible(&whose), "o-w");
    }
    Ok(())
}

/// The log is told once of each file.
fn warn_once(path: &Path, what: &str, change: &str) {
    static TOLD: LazyLock<Mutex<HashSet<PathBuf>>> = LazyLock::new(Mutex::default);
    if TOLD.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned()) {
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
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn who_can_write_decides() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("it's.yaml");
        fs::write(&file, "text").unwrap();
        for (bits, fine) in
            [(0o600, true), (0o644, true), (0o664, true), (0o666, false), (0o602, false)]
        {
            mode(&file, bits);
            assert_eq!(read(&file).is_ok(), fine, "{bits:o}");
            assert_eq!(check(&file).is_ok(), fine, "{bits:o}");
            assert_eq!(append(&file).is_ok(), fine, "{bits:o}");
        }
        let why = read(&file).unwrap_err().to_string();
        assert!(
            why.ends_with(&format!("chmod o-w '{}/it'\\''s.yaml'", temp.path().display())),
            "{why}"
        );
        mode(&file, 0o600);
        let link = temp.path().join("link");
        symlink("it's.yaml", &link).unwrap();
        assert_eq!(read(&link).unwrap(), b"text");
        mode(&file, 0o666);
        assert!(read(&link).is_err(), "the target is judged");
        mode(temp.path(), 0o777);
        assert!(check(temp.path()).is_err());
        mode(temp.path(), 0o1777);
        assert!(check(temp.path()).is_err(), "others can plant files there");
    }

    #[test]
    fn nothing_is_made_through_a_link() {
        let temp = tempfile::tempdir().unwrap();
        let at = |name: &str| temp.path().join(name);
        fs::write(at("theirs"), "theirs").unwrap();
        for name in ["made", "put", "put.new"] {
            symlink("theirs", at(name)).unwrap();
        }
        symlink("nowhere", at("dangling")).unwrap();
        assert!(create(&at("made")).is_err());
        assert!(create(&at("dangling")).is_err());
        put(&at("put"), b"ours").unwrap();
        assert!(append(&at("dangling")).is_err());
        assert_eq!(fs::read_to_string(at("theirs")).unwrap(), "theirs");
        assert_eq!(fs::read_to_string(at("put")).unwrap(), "ours");
        assert!(!fs::symlink_metadata(at("put")).unwrap().is_symlink());
        assert!(!at("nowhere").exists());
        let mode = fs::metadata(at("put")).unwrap().mode() & 0o777;
        assert_eq!(mode, 0o600);
    }

    #[test]
    fn only_regular_files_within_the_limit_are_read() {
        let temp = tempfile::tempdir().unwrap();
        let at = |name: &str| temp.path().join(name);
        let pipe = at("pipe");
        let own = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, own, 0).unwrap();
        symlink("/dev/zero", at("endless")).unwrap();
        for path in [pipe, at("endless"), "/dev/null".into()] {
            let why = read(&path).unwrap_err().to_string();
            assert!(why.ends_with("is not a regular file; name one"), "{why}");
        }
        assert_eq!(read_named(Path::new("/dev/null")).unwrap(), "");
        assert_eq!(read(temp.path()).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        for (size, fits) in [(MAX_READ, true), (MAX_READ + 1, false)] {
            File::create(at("large")).unwrap().set_len(size).unwrap();
            match read(&at("large")) {
                Ok(bytes) => assert!(fits && u64::try_from(bytes.len()).unwrap() == size),
                Err(why) => assert!(!fits && why.to_string().contains("larger than 8 MiB")),
            }
        }
        let why = read_named(&at("endless")).unwrap_err().to_string();
        assert!(why.contains("larger than 8 MiB"), "{why}");
        let endless = temp_loop();
        assert_eq!(read(&endless.path().join("a")).unwrap_err().raw_os_error(), Some(40));
    }

    fn temp_loop() -> tempfile::TempDir {
        let temp = tempfile::tempdir().unwrap();
        symlink("b", temp.path().join("a")).unwrap();
        symlink("a", temp.path().join("b")).unwrap();
        temp
    }
}
