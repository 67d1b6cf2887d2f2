//! Limits of this process.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit of open files, before and after it was raised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Raised {
    /// The soft limit before; `None` if there was none.
    pub from: Option<u64>,
    /// The hard limit.
    pub to: Option<u64>,
}

/// Raises the soft limit of open files to the hard one; `None` if it is there already.
pub fn raise_open_files() -> io::Result<Option<Raised>> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return Ok(None);
    }
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?;
    Ok(Some(Raised { from: limit.current, to: limit.maximum }))
}

/// No file with the memory of this process is written. A child inherits the soft limit, and may raise
/// it again.
pub fn no_core_dumps() -> io::Result<()> {
    let maximum = getrlimit(Resource::Core).maximum;
    Ok(setrlimit(Resource::Core, Rlimit { current: Some(0), maximum })?)
}

/// No other process of this user may read the memory of this one, and a program that handles core
/// dumps, which ignores the limit, gets none. Children are not affected: `exec` resets it.
pub fn hide_memory() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
    Ok(())
}
