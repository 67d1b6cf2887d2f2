//! The dependencies between the crates match the table in ARCHITECTURE.md.
//!
//! The table follows the heading `## Arrows`: crate, its dependencies, additional ones in tests;
//! folder names in backticks, `–` for none. A listed arrow that does not exist is a failure too.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// For each crate: its dependencies, and those of its tests only.
type Arrows = BTreeMap<String, [BTreeSet<String>; 2]>;

#[test]
fn the_arrows_are_those_of_architecture_md() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let text = std::fs::read_to_string(root.join("ARCHITECTURE.md"))
        .expect("ARCHITECTURE.md is missing; its table `## Arrows` lists the allowed dependencies");
    let complaints = compare(&drawn(&text), &found(root));
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

/// The arrows of the table.
fn drawn(text: &str) -> Arrows {
    let (_, section) =
        text.split_once("\n## Arrows\n").expect("ARCHITECTURE.md has no heading `## Arrows`");
    let lines = section.lines().map(str::trim).skip_while(|line| !line.starts_with('|'));
    let rows = lines.take_while(|line| line.starts_with('|')).skip(2);
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').collect();
        let [name, normal, dev] = cells.as_slice() else {
            panic!("`{line}`: a row has three cells (crate | may depend on | in tests also)")
        };
        let names = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        let name: BTreeSet<String> = names(name);
        (
            name.into_iter().next().expect("the crate's name is in backticks"),
            [names(normal), names(dev)],
        )
    };
    rows.map(row).collect()
}

/// The arrows of the manifests.
fn found(root: &Path) -> Arrows {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .current_dir(root)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let folder = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let mut arrows = Arrows::new();
    for package in metadata["packages"].as_array().unwrap() {
        let manifest = Path::new(package["manifest_path"].as_str().unwrap());
        let [normal, dev] = arrows.entry(folder(manifest.parent().unwrap())).or_default();
        for dependency in package["dependencies"].as_array().unwrap() {
            let Some(path) = dependency["path"].as_str() else { continue };
            let kind = if dependency["kind"] == "dev" { &mut *dev } else { &mut *normal };
            kind.insert(folder(Path::new(path)));
        }
        // Normal dependencies are not repeated for tests.
        dev.retain(|name| !normal.contains(name));
    }
    arrows
}

fn compare(drawn: &Arrows, found: &Arrows) -> Vec<String> {
    let mut complaints = Vec::new();
    let names: BTreeSet<&String> = drawn.keys().chain(found.keys()).collect();
    for name in names {
        let (Some(drawn), Some(found)) = (drawn.get(name), found.get(name)) else {
            let side = if drawn.contains_key(name) {
                "drawn but no crate"
            } else {
                "a crate without a row"
            };
            complaints
                .push(format!("`{name}` is {side} in the table `## Arrows` of ARCHITECTURE.md"));
            continue;
        };
        for (kind, (drawn, found)) in ["", " in tests"].iter().zip(drawn.iter().zip(found)) {
            let new = found.difference(drawn);
            complaints.extend(new.map(|to| {
                format!("`{name}` → `{to}`{kind} is not drawn in ARCHITECTURE.md: remove the dependency, or add it with a reason")
            }));
            let gone = drawn.difference(found);
            complaints.extend(gone.map(|to| {
                format!("`{name}` → `{to}`{kind} is drawn in ARCHITECTURE.md but does not exist: remove it from the table")
            }));
        }
    }
    complaints
}

/// The check can fail, and names the wrong arrow.
#[test]
fn each_kind_of_difference_is_named() {
    let text = "\n## Arrows\n\nWords.\n\n| crate | may depend on | in tests also |\n|---|---|---|\n\
        | `cli` | `edge`, `mcp` | – |\n| `mcp` | – | `testkit` |\n| `gone` | – | – |\n\nMore.\n| `not` | a | row |\n";
    let drawn = drawn(text);
    assert_eq!(drawn.keys().collect::<Vec<_>>(), ["cli", "gone", "mcp"]);
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let found = Arrows::from([
        ("cli".to_owned(), [set(&["edge", "store"]), set(&[])]),
        ("mcp".to_owned(), [set(&[]), set(&["cli"])]),
        ("new".to_owned(), [set(&[]), set(&[])]),
    ]);
    let complaints = compare(&drawn, &found);
    for (complaint, expected) in complaints.iter().zip([
        "`cli` → `store` is not drawn",
        "`cli` → `mcp` is drawn",
        "`gone` is drawn but no crate",
        "`mcp` → `cli` in tests is not drawn",
        "`mcp` → `testkit` in tests is drawn",
        "`new` is a crate without a row",
    ]) {
        assert!(complaint.starts_with(expected), "{complaint}");
    }
    assert_eq!(complaints.len(), 6, "{complaints:?}");
    assert_eq!(compare(&found, &found), Vec::<String>::new());
}
