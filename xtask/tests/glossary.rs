//! docs/glossary.md and the public types of the workspace agree.
//!
//! The tables `## Words` and `## Words of one area` name types in backticks in their third column;
//! each must exist. The table
//! `## Names used twice` lists every public type name that occurs more than once, with the crates
//! and a reason. A row that is no longer true is an error too.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The crates of each public type, one entry for each definition.
type Types = BTreeMap<String, Vec<String>>;

#[test]
fn the_glossary_matches_the_public_types() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let page = fs::read_to_string(root.join("docs/glossary.md")).expect("docs/glossary.md");
    let complaints = compare(&page, &public_types(root));
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

fn compare(page: &str, types: &Types) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut words = BTreeSet::new();
    let tables = ["## Words", "## Words of one area"];
    for row in tables.into_iter().flat_map(|heading| table(page, heading)) {
        let [word, _, named] = row.as_slice() else { panic!("three columns: {row:?}") };
        for word in word.split(", ") {
            if !words.insert(word.to_owned()) {
                complaints.push(format!("`{word}` is defined twice"));
            }
        }
        let missing = quoted(named).into_iter().filter(|name| !types.contains_key(name));
        complaints.extend(missing.map(|name| format!("the type `{name}` of `{word}` is missing")));
    }
    let mut listed = BTreeSet::new();
    for row in table(page, "## Names used twice") {
        let [name, crates, reason] = row.as_slice() else { panic!("three columns: {row:?}") };
        let name = quoted(name).into_iter().next().expect("a name in backticks");
        let mut found = types.get(&name).cloned().unwrap_or_default();
        found.sort();
        if found.len() < 2 {
            complaints.push(format!("`{name}` is used once; remove its row"));
        } else if quoted(crates) != found {
            complaints.push(format!("`{name}` is used in {found:?}; correct its row"));
        }
        if reason.is_empty() {
            complaints.push(format!("`{name}` needs a reason"));
        }
        listed.insert(name);
    }
    let unlisted =
        types.iter().filter(|(name, crates)| crates.len() > 1 && !listed.contains(*name));
    complaints.extend(unlisted.map(|(name, crates)| {
        format!("`{name}` is used in {crates:?}; rename one, or list both with a reason")
    }));
    complaints
}

/// The rows of the table below a heading.
fn table(page: &str, heading: &str) -> Vec<Vec<String>> {
    let (_, section) = page.split_once(&format!("\n{heading}\n")).expect("the heading exists");
    let lines = section.lines().skip_while(|line| !line.starts_with('|'));
    let rows = lines.take_while(|line| line.starts_with('|')).skip(2);
    rows.map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect())
        .collect()
}

fn quoted(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Every public type of every crate, without tests.
fn public_types(root: &Path) -> Types {
    let mut types = Types::new();
    for folder in fs::read_dir(root.join("crates")).unwrap() {
        let folder = folder.unwrap().path();
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        for file in sources(&folder.join("src")) {
            let text = fs::read_to_string(&file).unwrap();
            for found in types_in(&text) {
                types.entry(found).or_default().push(name.clone());
            }
        }
    }
    types
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_test = path.file_stem().is_some_and(|stem| stem == "tests");
        if path.is_dir() && !is_test {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|end| end == "rs") && !is_test {
            files.push(path);
        }
    }
    files
}

/// The public types that a file defines, also by the macro `words!` of the audit.
fn types_in(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut in_words = false;
    for line in text.lines() {
        let line = line.trim_start();
        let declared = ["struct ", "enum ", "trait ", "type ", "union "]
            .iter()
            .find_map(|kind| line.strip_prefix("pub ")?.strip_prefix(kind));
        let made = line.strip_suffix(" {").filter(|name| in_words && is_type(name));
        in_words = line == "words! {" || in_words && made.is_none() && line != "}";
        if let Some(name) = declared.or(made) {
            let end = name.find(|c: char| !c.is_alphanumeric()).unwrap_or(name.len());
            found.extend(name.get(..end).filter(|name| is_type(name)).map(str::to_owned));
        }
    }
    found
}

fn is_type(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase()) && name.chars().all(char::is_alphanumeric)
}

/// The check can fail in each way.
#[test]
fn each_kind_of_difference_is_reported() {
    let page = "\n## Words\n\n| word | meaning | type |\n|---|---|---|\n| a | x | `One` |\n\
        \n## Words of one area\n\n| word | meaning | type |\n|---|---|---|\n| a | y | `Gone` |\n\n## Names used twice\n\n| name | crates | reason |\n|---|---|---|\n\
        | `Two` | `p`, `q` | because |\n| `One` | `p`, `q` | stale |\n| `Three` | `p`, `q` | moved |\n";
    let types = [("One", vec!["p"]), ("Two", vec!["q", "p"]), ("Three", vec!["p", "r"])];
    let more = [("New", vec!["p", "q"])];
    let types: Types = types
        .into_iter()
        .chain(more)
        .map(|(name, crates)| (name.to_owned(), crates.into_iter().map(str::to_owned).collect()))
        .collect();
    let complaints = compare(page, &types);
    for (complaint, expected) in complaints.iter().zip([
        "`a` is defined twice",
        "the type `Gone`",
        "`One` is used once",
        "`Three` is used in",
        "`New` is used in",
    ]) {
        assert!(complaint.starts_with(expected), "{complaint}");
    }
    assert_eq!(complaints.len(), 5, "{complaints:?}");
}

#[test]
fn types_are_found_in_sources() {
    let text = "pub struct A;\npub(crate) struct B;\n    pub enum C<T> {\npub type D = u8;\n\
        words! {\n    /// Doc.\n    E {\n        F = \"f\",\n    }\n}\npub enum $name {\npub fn g() {\n";
    assert_eq!(types_in(text), ["A", "C", "D", "E"]);
}
