//! docs/decisions: the index lists every record with its title and status, and every record follows
//! the template.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::path::{Path, PathBuf};

/// The headings of a record, in this order; `Rejected` may be missing.
const HEADINGS: [&str; 5] = ["Status", "Context", "Decision", "Rejected", "Consequences"];

#[test]
fn the_index_lists_every_record_with_title_and_status() {
    let index = std::fs::read_to_string(folder().join("README.md")).unwrap();
    let mut rows: Vec<String> = index
        .lines()
        .filter(|line| line.starts_with("| ["))
        .map(|line| line.rsplit_once(" | ").unwrap().0.to_owned())
        .collect();
    rows.sort();
    let expected: Vec<String> = records().iter().map(|path| row(path)).collect();
    assert_eq!(rows, expected, "docs/decisions/README.md and the files differ");
}

#[test]
fn every_record_follows_the_template() {
    for path in records().into_iter().chain([folder().join("template.md")]) {
        let text = std::fs::read_to_string(&path).unwrap();
        let found: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        let expected: Vec<&str> = HEADINGS
            .into_iter()
            .filter(|heading| *heading != "Rejected" || found.contains(heading))
            .collect();
        assert_eq!(found, expected, "{}", path.display());
    }
}

/// The beginning of the row that the index must have for a record: link and title.
fn row(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let file = path.file_name().unwrap().to_str().unwrap();
    let number = file.split('-').next().unwrap();
    let heading = text.lines().next().unwrap();
    let start = format!("# {}. ", number.trim_start_matches('0'));
    let Some(title) = heading.strip_prefix(&start) else {
        panic!("{file} begins with `{heading}` instead of `{start}`")
    };
    let status = text.split("## Status\n\n").nth(1).unwrap().split('.').next().unwrap();
    format!("| [{number}]({file}) | {title} | {}", status.to_lowercase())
}

fn records() -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let is_record = |path: &PathBuf| {
        path.file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .starts_with(|first: char| first.is_ascii_digit())
    };
    let mut records: Vec<PathBuf> = files.filter(is_record).collect();
    records.sort();
    assert!(!records.is_empty());
    records
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("docs/decisions")
}
