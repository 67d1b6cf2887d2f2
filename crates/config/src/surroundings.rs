//! The only access of this crate to environment variables and files.

use std::io;
use std::path::Path;

/// Resolves the references of a configuration file.
pub trait Surroundings {
    /// The value of an environment variable, if it is set and valid Unicode.
    fn env(&self, name: &str) -> Option<String>;
    /// The bytes of a file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
    /// Whether a child process in `folder` would find this program: at its path, or under its name
    /// in `path`, a list of folders as in `PATH` (`None`: that of this process).
    fn has_program(&self, _program: &str, _path: Option<&str>, _folder: &Path) -> bool {
        true
    }
    /// Whether the contents of a certificate file and a key file can be used together.
    fn check_tls(&self, _cert: &[u8], _key: &[u8]) -> Result<(), TlsFault> {
        Ok(())
    }
}

/// What is wrong with a certificate and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TlsFault {
    /// The file of the certificate, and why.
    Cert(String),
    /// The file of the key, and why.
    Key(String),
}
