//! The environment and the files of this process, for reading configurations.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use toolgate_config::Surroundings;
use toolgate_os::files::Rights;

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

    fn has_program(&self, program: &str, path: Option<&str>, folder: &Path) -> bool {
        if program.contains('/') {
            return is_program(&folder.join(program));
        }
        let inherited = || std::env::var_os("PATH").unwrap_or_default();
        let path = path.map_or_else(inherited, OsString::from);
        std::env::split_paths(&path).any(|place| is_program(&folder.join(place).join(program)))
    }
}

fn is_program(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|found| found.is_file() && Rights::of(&found).is_executable())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

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

    #[test]
    fn a_program_is_found_as_a_child_would_find_it() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("server");
        std::fs::write(&program, "").unwrap();
        let found =
            |name: &str, path: Option<&str>| ThisProcess.has_program(name, path, folder.path());
        assert!(!found("./server", None), "not executable");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
        assert!(found("./server", None) && found(program.to_str().unwrap(), None));
        assert!(found("server", Some(folder.path().to_str().unwrap())));
        assert!(found("sh", None) && !found("sh", Some("/nowhere")));
        assert!(!found("sh -c true", None) && !found("./other", None));
    }
}
