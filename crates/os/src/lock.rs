//! Locks of open files. The system releases them when the process ends, for any reason.

use std::fs::File;
use std::io;

use rustix::fs::{FlockOperation, flock};

/// Waits until no other process has a lock of this file, and takes it alone.
pub fn exclusive(file: &File) -> io::Result<()> {
    Ok(flock(file, FlockOperation::LockExclusive)?)
}

/// Takes the file alone, if no other process has a lock of it.
pub fn try_exclusive(file: &File) -> io::Result<()> {
    Ok(flock(file, FlockOperation::NonBlockingLockExclusive)?)
}

/// Takes the file together with others, if no process has it alone.
pub fn try_shared(file: &File) -> io::Result<()> {
    Ok(flock(file, FlockOperation::NonBlockingLockShared)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exclusive_lock_keeps_others_out() {
        let folder = tempfile::tempdir().unwrap();
        let open = || crate::files::open_or_create(&folder.path().join("lock")).unwrap();
        let (first, second) = (open(), open());
        exclusive(&first).unwrap();
        assert!(try_exclusive(&second).is_err() && try_shared(&second).is_err());
        drop(first);
        try_shared(&second).unwrap();
        try_shared(&open()).unwrap();
        assert!(try_exclusive(&open()).is_err());
    }
}
