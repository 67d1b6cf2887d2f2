//! Every test that docs/security-bars.md and docs/sessions-tests.md name exists, and no bar of those
//! that count is missing.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what the tests share belongs to tests")]

use std::collections::BTreeSet;
use std::path::Path;

/// Bars that must have a test.
const BARS: [&str; 14] = [
    "D-01", "D-03", "D-04", "D-05", "L-01", "L-02", "L-03", "L-04", "L-05", "L-06", "T-08", "T-09",
    "A-02", "A-11",
];

#[test]
fn every_bar_has_a_test_that_exists() {
    let text = page("docs/security-bars.md");
    let seen = promises(&text);
    let missing: Vec<_> = BARS.iter().filter(|bar| !seen.contains(**bar)).collect();
    assert_eq!(missing, [] as [&&str; 0]);
}

#[test]
fn every_promise_of_sessions_has_a_test_that_exists() {
    let text = page("docs/sessions-tests.md");
    assert!(promises(&text).contains("showcase"));
}

fn page(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Whose tests all exist: the first column of a page.
fn promises(text: &str) -> BTreeSet<&str> {
    let rows = text.lines().filter(|line| line.starts_with("| ")).skip(1);
    let mut seen = BTreeSet::new();
    for row in rows {
        let row: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [id, _, held_by] = row[..] else { panic!("three columns: {row:?}") };
        seen.insert(id);
        let quoted: Vec<&str> = held_by.split('`').filter(|part| !part.trim().is_empty()).collect();
        let [file, name] = quoted[..] else { panic!("a file and a test: {held_by}") };
        let source = std::fs::read_to_string(root().join(file));
        let source = source.unwrap_or_else(|error| panic!("{id}: `{file}`: {error}"));
        assert!(is_test(&source, name), "{id}: there is no test `{name}` in `{file}`");
    }
    seen
}

/// A function below `#[test]` or the like, a case of the store's suite, a trial by name, or a
/// scenario of a real client.
fn is_test(source: &str, name: &str) -> bool {
    let function = format!("fn {name}(");
    let mut marked = false;
    for line in source.lines().map(str::trim) {
        if line.starts_with("#[") {
            marked |= line.contains("test");
        } else if line.contains(&function) {
            return marked || line.contains("place: &dyn Place");
        } else if !line.starts_with("//") {
            marked = false;
        }
    }
    [format!("Trial::test(\"{name}\""), format!("  '{name}': ")]
        .iter()
        .any(|by| source.contains(by))
}

#[test]
fn what_is_no_test_does_not_count() {
    let source = "#[test]\nfn a() {}\nfn b() {}\n// fn c() {}\n";
    assert!(is_test(source, "a") && !is_test(source, "b") && !is_test(source, "c"));
}
