//! Every test that docs/security-bars.md and docs/sessions-tests.md name exists, no required bar is
//! missing, and docs/threat-model.md defines every id that docs/security-bars.md uses.

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
fn every_id_is_defined_in_the_threat_model() {
    let (bars, model) = (page("docs/security-bars.md"), page("docs/threat-model.md"));
    let (used, defined) = (ids(&bars), ids(&model));
    assert!(used.contains("D-01") && used.contains("G-L1"), "{used:?}");
    let undefined: Vec<_> = used.difference(&defined).collect();
    assert_eq!(undefined, [] as [&&str; 0], "define these ids in docs/threat-model.md");
    let unused: Vec<_> = defined.difference(&used).filter(|id| !id.starts_with("T-")).collect();
    assert_eq!(unused, [] as [&&str; 0], "no row of docs/security-bars.md has these ids");
}

#[test]
fn security_bars_is_one_table() {
    let text = page("docs/security-bars.md");
    let rows = text.lines().skip_while(|line| !line.starts_with('|'));
    let rest: Vec<&str> = rows.skip_while(|line| line.starts_with('|')).collect();
    assert_eq!(rest, [] as [&str; 0], "lines after the first table");
}

#[test]
fn every_attack_page_names_tests_that_exist() {
    let pages = root().join("docs/attacks").read_dir().unwrap();
    let names = pages.map(|page| page.unwrap().file_name().into_string().unwrap());
    let index = page("docs/attacks/README.md");
    for name in names.filter(|name| name != "README.md") {
        assert!(index.contains(&format!("]({name})")), "docs/attacks/README.md lacks `{name}`");
        let text = page(&format!("docs/attacks/{name}"));
        let proof = text.split("## Proven by").nth(1);
        let proof = proof.unwrap_or_else(|| panic!("{name}: no section `Proven by`"));
        let rows: Vec<&str> = proof.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
        assert!(!rows.is_empty(), "{name}: names no test");
        for row in rows {
            let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
            let [_, held_by] = cells[..] else { panic!("{name}: two columns: {row}") };
            check_test(&name, held_by);
        }
    }
}

/// The ids in the first column of all tables of a page.
fn ids(text: &str) -> BTreeSet<&str> {
    text.lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(" |").next())
        .filter(|cell| {
            let (kind, number) = cell.split_once('-').unwrap_or_default();
            matches!(kind, "A" | "D" | "G" | "L" | "N" | "T")
                && number.trim_start_matches('L').parse::<u16>().is_ok()
        })
        .collect()
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

/// Checks that all tests of a page exist; returns its first column.
fn promises(text: &str) -> BTreeSet<&str> {
    let rows = text.lines().filter(|line| line.starts_with("| ")).skip(1);
    let mut seen = BTreeSet::new();
    for row in rows {
        let row: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [id, _, held_by] = row[..] else { panic!("three columns: {row:?}") };
        seen.insert(id);
        check_test(id, held_by);
    }
    seen
}

/// Checks that a cell with a file and a test in backticks names a test that exists.
fn check_test(whose: &str, cell: &str) {
    let quoted: Vec<&str> = cell.split('`').filter(|part| !part.trim().is_empty()).collect();
    let [file, name] = quoted[..] else { panic!("{whose}: a file and a test: {cell}") };
    let source = std::fs::read_to_string(root().join(file));
    let source = source.unwrap_or_else(|error| panic!("{whose}: `{file}`: {error}"));
    assert!(is_test(&source, name), "{whose}: there is no test `{name}` in `{file}`");
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
            return marked || line.contains("fixture: &dyn StoreFixture");
        } else if !line.starts_with("//") {
            marked = false;
        }
    }
    [format!("Trial::test(\"{name}\""), format!("  '{name}': ")]
        .iter()
        .any(|by| source.contains(by))
}

#[test]
fn only_tests_are_accepted() {
    let source = "#[test]\nfn a() {}\nfn b() {}\n// fn c() {}\n";
    assert!(is_test(source, "a") && !is_test(source, "b") && !is_test(source, "c"));
}
