//! Files that must be refused, with exactly this output, and files that must be accepted.

use std::fs;
use std::path::Path;

use toolgate_config::{Config, render};

use crate::support::{Fake, cases, differs, examples, none, problems};

/// The file is named without its folder, so that goldens do not depend on the machine.
fn rendered(file: &Path) -> (bool, String) {
    let bytes = fs::read(file).unwrap();
    let name = Path::new(file.file_name().unwrap());
    let surroundings = One { bytes };
    match Config::load(name, &surroundings) {
        Ok(loaded) => (true, render(&loaded.warnings)),
        Err(problems) => (false, render(&problems)),
    }
}

/// Fake surroundings in which the file under test can be read too.
struct One {
    bytes: Vec<u8>,
}

impl toolgate_config::Surroundings for One {
    fn env(&self, name: &str) -> Option<String> {
        Fake.env(name)
    }
    fn read(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        let is_missing = path.to_string_lossy().contains("missing-");
        if !is_missing && path.extension().is_some_and(|extension| extension == "yaml") {
            return Ok(self.bytes.clone());
        }
        Fake.read(path)
    }
    fn has_program(&self, program: &str, path: Option<&str>, folder: &Path) -> bool {
        Fake.has_program(program, path, folder)
    }
}

#[test]
fn invalid_files_are_refused_with_their_golden_output() {
    let mut failures = Vec::new();
    for file in cases("invalid") {
        let (valid, output) = rendered(&file);
        if valid {
            failures.push(format!("{}: accepted", file.display()));
        }
        failures.extend(differs(&file.with_extension("stderr"), &output));
    }
    none(&failures);
}

#[test]
fn valid_files_are_accepted_with_their_golden_warnings() {
    let mut failures = Vec::new();
    for file in cases("valid") {
        let (valid, output) = rendered(&file);
        if !valid {
            failures.push(format!("{}: refused\n{output}", file.display()));
            continue;
        }
        let golden = file.with_extension("stderr");
        if golden.exists() || !output.is_empty() {
            failures.extend(differs(&golden, &output));
        }
    }
    none(&failures);
}

#[test]
fn examples_are_accepted_without_a_warning() {
    let mut failures = Vec::new();
    for file in examples() {
        let (valid, output) = rendered(&file);
        if !valid || !output.is_empty() {
            failures.push(format!("{}: {output}", file.display()));
        }
    }
    none(&failures);
}

#[test]
fn ten_mistakes_are_ten_problems_of_one_run() {
    let text = fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/invalid/ten-mistakes.yaml"),
    )
    .unwrap();
    let found = problems(&text);
    let mut codes: Vec<_> = found.iter().map(|problem| problem.code).collect();
    assert_eq!(codes.len(), 10, "{}", render(&found));
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), 10, "of different kinds: {codes:?}");
}
