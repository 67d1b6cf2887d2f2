//! Texts that people see, kept as files and reviewed like code.

use std::fs;
use std::path::Path;

/// Compares with `tests/e2e/<name>`; with `UPDATE=1` the file is written instead.
#[track_caller]
pub(crate) fn check(name: &str, text: &str) {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e").join(name);
    if std::env::var_os("UPDATE").is_some() {
        fs::create_dir_all(golden.parent().unwrap()).unwrap();
        fs::write(&golden, text).unwrap();
    }
    let expected = fs::read_to_string(&golden).unwrap_or_default();
    assert_eq!(text, expected, "{name}; if this is meant, run again with UPDATE=1");
}
