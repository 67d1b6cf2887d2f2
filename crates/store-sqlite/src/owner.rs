//! Detects which processes are running.
//!
//! Each process that opens the folder holds a lock on its own file, `owners/ID.lock`; the operating
//! system releases it when the process ends, for any reason. If a process can take the lock of
//! another, the other one has exited.

use std::{
    fs::{self, File},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, flock};
use toolgate_store::StoreError;

use crate::error::file_error;

/// This process, as other processes identify it.
#[derive(Debug)]
pub(crate) struct Owner {
    /// Its id in the table `open`.
    pub(crate) id: i64,
    folder: PathBuf,
    path: PathBuf,
    /// Holds the lock.
    _lock: File,
}

impl Owner {
    /// Takes the lock of this process, and removes the files of exited ones.
    pub(crate) fn new(folder: &Path, id: u64) -> Result<Self, StoreError> {
        let folder = folder.join("owners");
        let id = id.cast_signed();
        let path = path(&folder, id);
        let lock = || {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
            loop {
                let mut options = File::options();
                options.create(true).truncate(false).write(true).mode(0o600);
                let no_link = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
                let file = options.custom_flags(no_link).open(&path)?;
                flock(&file, FlockOperation::LockExclusive)?;
                // A process that considered this one exited may have removed the file in between.
                let same = fs::metadata(&path)
                    .is_ok_and(|found| file.metadata().is_ok_and(|mine| mine.ino() == found.ino()));
                if same {
                    return Ok(file);
                }
            }
        };
        let lock = lock().map_err(|error: std::io::Error| file_error(&path, &error))?;
        let owner = Self { id, folder, path, _lock: lock };
        owner.clear();
        Ok(owner)
    }

    /// Whether another process has exited.
    pub(crate) fn is_dead(&self, other: i64) -> bool {
        other != self.id && is_free(&path(&self.folder, other))
    }

    fn clear(&self) {
        let Ok(files) = fs::read_dir(&self.folder) else { return };
        for file in files.flatten() {
            let path = file.path();
            if path != self.path && is_free(&path) {
                // If it cannot be removed, the next start tries again.
                drop(fs::remove_file(&path));
            }
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.path));
    }
}

/// A missing file, or one whose lock is free, belongs to no running process. If that cannot be
/// determined, the process is assumed to run.
fn is_free(path: &Path) -> bool {
    match File::open(path) {
        Ok(file) => flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

fn path(folder: &Path, id: i64) -> PathBuf {
    folder.join(format!("{:016x}.lock", id.cast_unsigned()))
}
