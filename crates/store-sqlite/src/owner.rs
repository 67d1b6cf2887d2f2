//! Detects which processes are running.
//!
//! Each process that opens the folder holds a lock on its own file, `owners/ID.lock`; the operating
//! system releases it when the process ends, for any reason. If a process can take the lock of
//! another, the other one has exited.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use toolgate_os::{files, lock};
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
        let locked = || {
            files::create_folders(&folder)?;
            loop {
                let file = files::open_or_create(&path)?;
                lock::exclusive(&file)?;
                // A process that considered this one exited may have removed the file in between.
                let mine = files::identity(&file.metadata()?);
                if fs::metadata(&path).is_ok_and(|found| files::identity(&found) == mine) {
                    return Ok(file);
                }
            }
        };
        let locked = locked().map_err(|error: std::io::Error| file_error(&path, &error))?;
        let owner = Self { id, folder, path, _lock: locked };
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
        Ok(file) => lock::try_exclusive(&file).is_ok(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

fn path(folder: &Path, id: i64) -> PathBuf {
    folder.join(format!("{:016x}.lock", id.cast_unsigned()))
}
