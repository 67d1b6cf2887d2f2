//! The only door from this crate to the world: environment variables and files.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// What references of a configuration file are resolved with.
pub trait Surroundings {
    /// The value of an environment variable, if it is set and valid Unicode.
    fn env(&self, name: &str) -> Option<String>;
    /// The bytes of a file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
}

/// The process's own environment and file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct Process;

/// More than any file that this crate accepts, so that `/dev/zero` ends too.
const MAX_READ: u64 = 8 * 1024 * 1024;

impl Surroundings for Process {
    fn env(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(path)?.take(MAX_READ).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}
