//! The environment and the files of this process, for reading configurations.

use std::io;
use std::path::Path;

use toolgate_config::Surroundings;

use crate::trusted;

/// Environment variables and trusted files of this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThisProcess;

impl Surroundings for ThisProcess {
    fn env(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        trusted::read(path)
    }
}

#[cfg(test)]
mod tests {
    use toolgate_config::Config;

    use super::*;

    #[test]
    fn a_configuration_is_read_from_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("toolgate.yaml");
        std::fs::write(&file, "version: 1\n").unwrap();
        let loaded = Config::load(&file, &ThisProcess).unwrap();
        assert_eq!((loaded.config, loaded.warnings.len()), (Config::default(), 0));
        assert_eq!(ThisProcess.env("TOOLGATE_TEST_NOT_SET"), None);
    }
}
