//! The skill for agents and the code agree.
//!
//! * Every error code in the skill exists in the product, and those that an agent must know are there.
//! * The skill describes exactly the built-in tools.
//!
//! `russian.rs` compares the pages with their translations.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Codes that ask something of an agent.
const ESSENTIAL: [&str; 9] = [
    "no_live_session",
    "session_id_required",
    "approval_required",
    "approval_denied",
    "quarantined",
    "rate_limited",
    "policy_denied",
    "unknown_tool",
    "outcome_unknown",
];

#[test]
fn error_codes_of_the_skill_exist() {
    let source = product_source();
    for (page, heading) in [("SKILL.md", "## Error codes"), ("SKILL.ru.md", "## Коды ошибок")]
    {
        let codes = first_column(&read(&format!("skills/toolgate/{page}")), heading);
        for code in &codes {
            assert!(source.contains(&format!("\"{code}\"")), "{page}: `{code}` is not in the code");
        }
        for code in ESSENTIAL {
            assert!(codes.contains(code), "{page}: `{code}` is missing");
        }
    }
}

#[test]
fn built_in_tools_of_the_skill_exist() {
    let built_ins = built_ins();
    assert!(!built_ins.is_empty());
    for (page, heading) in
        [("SKILL.md", "## Built-in tools"), ("SKILL.ru.md", "## Встроенные инструменты")]
    {
        let page = read(&format!("skills/toolgate/{page}"));
        assert_eq!(first_column(&page, heading), built_ins);
    }
}

/// The names in backticks in the first column of the first table below a heading.
fn first_column(page: &str, heading: &str) -> BTreeSet<String> {
    let (_, section) = page.split_once(&format!("\n{heading}\n")).expect("the heading exists");
    let rows = section.lines().skip_while(|line| !line.starts_with('|'));
    let rows = rows.take_while(|line| line.starts_with('|')).skip(2);
    rows.map(|row| row.split('`').nth(1).expect("a name in backticks").to_owned()).collect()
}

/// The names in the definitions of the built-in tools.
fn built_ins() -> BTreeSet<String> {
    let folder = root().join("crates/gateway/src/aggregate/builtin");
    let mut names = BTreeSet::new();
    for file in sources(&folder) {
        let text = fs::read_to_string(file).unwrap();
        let definitions = text.split(r#"definition: r#"{"name":""#).skip(1);
        names.extend(definitions.map(|text| text.split('"').next().unwrap().to_owned()));
    }
    names
}

fn product_source() -> String {
    let crates = fs::read_dir(root().join("crates")).unwrap();
    let mut source = String::new();
    for folder in crates.map(|entry| entry.unwrap().path()) {
        for file in sources(&folder.join("src")) {
            source.push_str(&fs::read_to_string(file).unwrap());
        }
    }
    source
}

/// The files of a folder, without tests and simulators.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let is_test = ["tests", "sim"].contains(&stem);
        if path.is_dir() && !is_test {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|end| end == "rs") && !is_test {
            files.push(path);
        }
    }
    files
}

fn read(page: &str) -> String {
    fs::read_to_string(root().join(page)).expect(page)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The checks can fail.
#[test]
fn differences_are_found() {
    let page = "\n## T\n\n| a | b |\n|---|---|\n| `x` | `z` |\n| `y` | |\n\n| `w` |\n";
    assert_eq!(first_column(page, "## T"), BTreeSet::from(["x".to_owned(), "y".to_owned()]));
}
