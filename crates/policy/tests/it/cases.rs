//! Cases as data: every sentence of the language has rows under `tests/cases`. A failing run lists
//! every failing case.

mod condition;
mod world;

use std::{
    fs,
    path::{Path, PathBuf},
};

use condition::run_condition;
use world::{File, run_case};

#[test]
fn every_case_holds() {
    let mut failures = Vec::new();
    let mut count = 0;
    for path in files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases")) {
        let text = fs::read_to_string(&path).unwrap();
        let file: File = serde_saphyr::from_str(&text)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        for case in &file.cases {
            count += 1;
            if let Err(why) = run_case(&file, case) {
                failures.push(format!("{name}: {}: {why}", case.name));
            }
        }
        for (index, row) in file.conditions.iter().enumerate() {
            count += 1;
            if let Err(why) = run_condition(row) {
                failures.push(format!("{name}: conditions[{index}] {row:?}: {why}"));
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {count} cases fail:\n{}",
        failures.len(),
        failures.join("\n")
    );
    assert!(count >= 400, "only {count} cases");
}

pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() {
            found.extend(files(&entry));
        } else if entry.extension().is_some_and(|e| e == "yaml") {
            found.push(entry);
        }
    }
    found
}
