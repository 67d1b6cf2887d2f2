//! Files and folders: made for their owner alone, opened without following links, and who may change
//! them.
//!
//! Invariant: a file is never created through a link.

use std::fs::{DirBuilder, File, FileType, Metadata, OpenOptions, Permissions, set_permissions};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _,
    PermissionsExt as _,
};
use std::path::Path;

use rustix::fs::{OFlags, fcntl_setfl, statvfs};
use rustix::io::Errno;

/// For the owner: read and write.
const PRIVATE: u32 = 0o600;
/// The same, and others may read.
const READABLE: u32 = 0o644;
/// A folder that only its owner may enter.
const FOLDER: u32 = 0o700;
/// The bit that lets others write.
const OTHERS_WRITE: u32 = 0o002;
/// The bits of everybody but the owner.
const NOT_OWNER: u32 = 0o077;
/// The bit of a folder that lets others remove only files of their own.
const STICKY: u32 = 0o1000;
/// The bit that lets the group write.
const GROUP_WRITES: u32 = 0o020;
const EXECUTABLE: u32 = 0o111;

/// What to do if the last part of a path is a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// Opening fails.
    Refused,
    /// The link is followed.
    Followed,
}

/// Makes a file for its owner alone, to write to it. Nothing of this name may exist, not even a link.
pub fn create(path: &Path) -> io::Result<File> {
    create_with(path, PRIVATE)
}

/// The same, but others may read it.
pub fn create_readable(path: &Path) -> io::Result<File> {
    create_with(path, READABLE)
}

fn create_with(path: &Path, mode: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(mode).custom_flags(flags(OFlags::NOFOLLOW));
    options.open(path)
}

/// Opens a file to append to it, or makes it for its owner alone. A link is refused.
pub fn append(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).mode(PRIVATE).custom_flags(flags(OFlags::NOFOLLOW));
    match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            options.create_new(true).open(path)
        }
        opened => opened,
    }
}

/// Opens a file to read and write it from the start, or makes it for its owner alone. What it holds
/// stays. A link is refused.
pub fn open_or_create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options.mode(PRIVATE).custom_flags(flags(OFlags::NOFOLLOW)).open(path)
}

/// Opens a file to read it, without waiting for the writer of a pipe. The standard library adds
/// `O_CLOEXEC`.
pub fn open(path: &Path, links: Links) -> io::Result<File> {
    let mut wanted = OFlags::NONBLOCK | OFlags::NOCTTY;
    wanted.set(OFlags::NOFOLLOW, links == Links::Refused);
    OpenOptions::new().read(true).custom_flags(flags(wanted)).open(path)
}

/// From now on, reading waits for the writer of a pipe.
pub fn wait_for_writers(file: &File) -> io::Result<()> {
    Ok(fcntl_setfl(file, OFlags::empty())?)
}

fn flags(flags: OFlags) -> i32 {
    flags.bits().cast_signed()
}

/// Makes one folder, which must not exist, for its owner alone.
pub fn create_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(FOLDER).create(path)
}

/// Makes a folder and those above it, as far as they are missing, for their owner alone.
pub fn create_folders(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER).create(path)
}

/// Takes the rights of a file from everybody but its owner.
pub fn make_private(path: &Path) -> io::Result<()> {
    set_permissions(path, Permissions::from_mode(PRIVATE))
}

/// Makes a symbolic link.
pub fn link(target: &Path, path: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, path)
}

/// Who may change a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rights {
    /// The user it belongs to.
    pub owner: u32,
    /// The group it belongs to.
    pub group: u32,
    mode: u32,
}

impl Rights {
    /// Of a file or folder.
    pub fn of(found: &Metadata) -> Self {
        Self { owner: found.uid(), group: found.gid(), mode: found.mode() }
    }

    /// Whether it belongs to the user of this process, or to root.
    pub fn is_own(self) -> bool {
        self.owner == 0 || self.owner == crate::process::user()
    }

    /// Whether every user can write to it.
    pub fn others_write(self) -> bool {
        self.mode & OTHERS_WRITE != 0
    }

    /// Whether its group can write to it.
    pub fn group_writes(self) -> bool {
        self.mode & GROUP_WRITES != 0
    }

    /// Whether anybody but its owner may do anything with it.
    pub fn is_shared(self) -> bool {
        self.mode & NOT_OWNER != 0
    }

    /// Whether every user can move and remove the files of this folder.
    pub fn others_remove(self) -> bool {
        self.mode & (OTHERS_WRITE | STICKY) == OTHERS_WRITE
    }

    /// Whether it may be executed.
    pub fn is_executable(self) -> bool {
        self.mode & EXECUTABLE != 0
    }
}

/// What stays the same while a file is renamed, and differs between files.
pub fn identity(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

/// Whether what is read there is not what was written into a file: a device or a socket.
pub fn is_device(kind: FileType) -> bool {
    kind.is_char_device() || kind.is_block_device() || kind.is_socket()
}

/// The error of a path with too many links.
pub fn too_many_links() -> io::Error {
    Errno::LOOP.into()
}

/// The bytes that this user can still write to the file system of a folder.
pub fn free_space(folder: &Path) -> io::Result<u64> {
    let found = statvfs(folder)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn new_files_are_for_their_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let mode = |name: &str| fs::metadata(at(name)).unwrap().mode() & 0o777;
        create(&at("new")).unwrap();
        create_readable(&at("public")).unwrap();
        append(&at("log")).unwrap();
        open_or_create(&at("lock")).unwrap();
        create_folders(&at("a/b")).unwrap();
        create_folder(&at("a/c")).unwrap();
        for (name, expected) in
            [("new", 0o600), ("log", 0o600), ("lock", 0o600), ("a", 0o700), ("a/b", 0o700)]
        {
            assert_eq!(mode(name), expected, "{name}");
        }
        assert_eq!(mode("public") & 0o600, 0o600);
        assert!(!Rights::of(&fs::metadata(at("new")).unwrap()).is_shared());
        make_private(&at("public")).unwrap();
        assert_eq!(mode("public"), 0o600);
        assert!(create(&at("new")).is_err() && create_folder(&at("a/c")).is_err(), "they exist");
    }

    #[test]
    fn nothing_is_opened_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (file, path) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "held").unwrap();
        link(&file, &path).unwrap();
        assert!(create(&path).is_err() && append(&path).is_err());
        assert!(open_or_create(&path).is_err() && open(&path, Links::Refused).is_err());
        assert!(open(&path, Links::Followed).is_ok());
        assert_eq!(fs::read_to_string(&file).unwrap(), "held");
    }

    #[test]
    fn rights_are_distinguished() {
        let of = |mode| Rights { owner: 0, group: 0, mode };
        assert!(of(0o602).others_write() && !of(0o620).others_write());
        assert!(of(0o620).group_writes() && !of(0o602).group_writes());
        assert!(of(0o604).is_shared() && of(0o640).is_shared() && !of(0o700).is_shared());
        assert!(of(0o777).others_remove() && !of(0o1777).others_remove());
        assert!(of(0o100).is_executable() && !of(0o600).is_executable());
        assert!(of(0).is_own(), "root");
    }
}
