//! Fake surroundings, and files on disk.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use toolgate_config::{Config, Loaded, Problem, Surroundings};

/// Has every variable and file that is not called missing; values say where they came from.
pub(crate) struct Fake;

impl Surroundings for Fake {
    fn env(&self, name: &str) -> Option<String> {
        match name {
            "EMPTY" => Some(String::new()),
            "SHORT" => Some("short".to_owned()),
            "SPACED" => Some("two words are no token".to_owned()),
            "SLASHED" => Some("0123456789/0123456789".to_owned()),
            _ if name.starts_with("MISSING") => None,
            _ => Some(format!("secret-of-{name}-0123456789abcdef")),
        }
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.contains("missing") {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(format!("secret-in-{name}-0123456789abcdef\n").into_bytes())
    }

    fn has_program(&self, program: &str, _: Option<&str>, _: &Path) -> bool {
        !program.contains(' ') && !program.contains("missing")
    }
}

pub(crate) fn parse(text: &str) -> Result<Loaded, Vec<Problem>> {
    Config::parse(text, Path::new("conf/toolgate.yaml"), &Fake)
}

/// The configuration of a text that must be valid.
pub(crate) fn config(text: &str) -> Config {
    match parse(text) {
        Ok(loaded) => loaded.config,
        Err(problems) => panic!("{}\n{text}", toolgate_config::render(&problems)),
    }
}

/// The problems of a text that must be invalid.
pub(crate) fn problems(text: &str) -> Vec<Problem> {
    match parse(text) {
        Ok(_) => panic!("valid, though it should not be:\n{text}"),
        Err(problems) => problems,
    }
}

/// The root of the repository.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// The `.yaml` files of a folder below `tests/`, in order; never none.
pub(crate) fn cases(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        files.filter(|file| file.extension().is_some_and(|e| e == "yaml")).collect();
    files.sort();
    assert!(!files.is_empty(), "no cases in {}", folder.display());
    files
}

/// Every `examples/*/toolgate.yaml`; never none.
pub(crate) fn examples() -> Vec<PathBuf> {
    let entries = fs::read_dir(repository().join("examples")).unwrap();
    let files = entries.map(|entry| entry.unwrap().path().join("toolgate.yaml"));
    let mut files: Vec<_> = files.filter(|file| file.exists()).collect();
    files.sort();
    assert!(!files.is_empty(), "no examples");
    files
}

/// Compares with a golden file, or rewrites it; the difference as text, if any.
pub(crate) fn differs(golden: &Path, actual: &str) -> Option<String> {
    if std::env::var_os("UPDATE").is_some() {
        fs::write(golden, actual).unwrap();
        return None;
    }
    let expected = fs::read_to_string(golden).unwrap_or_default();
    (expected != actual)
        .then(|| format!("{}:\n--- expected\n{expected}\n--- actual\n{actual}", golden.display()))
}

/// Fails with everything that was found, not only the first.
pub(crate) fn none(failures: &[String]) {
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n\n"));
}
