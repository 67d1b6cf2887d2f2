//! No top-level module of a crate depends on itself through others.
//!
//! An edge is a path `crate::module`, or `crate::Name` where the crate's root re-exports `Name` of a
//! module. Test modules are left out.

#![expect(
    clippy::unwrap_used,
    clippy::string_slice,
    clippy::indexing_slicing,
    reason = "helpers of tests"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// For each module: the modules that it uses, and the files that do so.
type Edges = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

#[test]
fn no_crate_has_a_cycle_between_its_modules() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut crates: Vec<PathBuf> = std::fs::read_dir(root.join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    crates.push(root.join("xtask"));
    let mut complaints = Vec::new();
    for folder in crates.iter().filter(|folder| folder.join("src").is_dir()) {
        let name = folder.file_name().unwrap().to_str().unwrap();
        let edges = edges(&sources(&folder.join("src")));
        complaints.extend(cycles(&edges).iter().map(|cycle| described(name, cycle, &edges)));
    }
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

/// Advice about a cycle, with each of its edges and their files.
fn described(name: &str, cycle: &BTreeSet<String>, edges: &Edges) -> String {
    let mut text = format!(
        "`{name}`: {} modules depend on each other; move what they share below them:",
        cycle.len()
    );
    for from in cycle {
        for (to, files) in edges[from].iter().filter(|(to, _)| cycle.contains(*to)) {
            let files: Vec<&str> = files.iter().map(String::as_str).collect();
            write!(text, "\n    {from} -> {to} in {}", files.join(", ")).unwrap();
        }
    }
    text
}

/// The files of a crate, by their path below `src`, without those of tests.
fn sources(src: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![src.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let below = path.strip_prefix(src).unwrap().to_str().unwrap().to_owned();
                found.insert(below, std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    found.retain(|path, _| {
        !path.split('/').any(|part| matches!(part, "tests" | "tests.rs" | "bin"))
    });
    found
}

/// The edges between the top-level modules of the files.
fn edges(files: &BTreeMap<String, String>) -> Edges {
    let is_root = |path: &str| matches!(path, "lib.rs" | "main.rs");
    let module = |path: &str| path.split('/').next().unwrap().trim_end_matches(".rs").to_owned();
    let modules: BTreeSet<String> =
        files.keys().filter(|path| !is_root(path)).map(|path| module(path)).collect();
    let roots = files.iter().filter(|(path, _)| is_root(path));
    let exports: BTreeMap<String, String> =
        roots.flat_map(|(_, text)| exports(&code(text), &modules)).collect();
    let mut edges: Edges = modules.iter().map(|name| (name.clone(), BTreeMap::new())).collect();
    for (path, text) in files.iter().filter(|(path, _)| !is_root(path)) {
        let from = module(path);
        for name in names_after(&code(text), "crate::") {
            let to = if modules.contains(&name) { Some(&name) } else { exports.get(&name) };
            if let Some(to) = to.filter(|to| **to != from) {
                let used = edges.entry(from.clone()).or_default().entry(to.clone()).or_default();
                used.insert(path.clone());
            }
        }
    }
    edges
}

/// The text without comments and without everything after its first test module.
fn code(text: &str) -> String {
    let is_tests = |(at, _): &(usize, &str)| {
        let rest = text[*at..].trim_start_matches("#[cfg(test)]").trim_start();
        rest.starts_with("mod ")
            && rest.find(['{', ';']).is_some_and(|at| rest[at..].starts_with('{'))
    };
    let end = text.match_indices("#[cfg(test)]").find(is_tests).map_or(text.len(), |(at, _)| at);
    let lines = text[..end].lines().map(|line| line.split("//").next().unwrap());
    lines.collect::<Vec<_>>().join("\n")
}

/// The names that the root re-exports, each with its module.
fn exports(root: &str, modules: &BTreeSet<String>) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (at, _) in root.match_indices(" use ") {
        let path = root[at + 5..].split(';').next().unwrap();
        let path = path.trim_start_matches("crate::").trim_start_matches("self::");
        let Some((module, rest)) = path.split_once("::") else { continue };
        if !modules.contains(module) {
            continue;
        }
        let words = rest.split(|c: char| !c.is_alphanumeric() && c != '_');
        let words = words.filter(|word| !word.is_empty() && !modules.contains(*word));
        found.extend(words.map(|word| (word.to_owned(), module.to_owned())));
    }
    found
}

/// The names that follow `prefix`: one, or the first of each path in braces.
fn names_after(text: &str, prefix: &str) -> Vec<String> {
    let word = |text: &str| -> String {
        text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let mut found = Vec::new();
    for (at, _) in text.match_indices(prefix) {
        let rest = &text[at + prefix.len()..];
        let Some(group) = rest.strip_prefix('{') else {
            found.push(word(rest));
            continue;
        };
        let mut depth = 0;
        let mut is_first = true;
        for (at, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => is_first = true,
                c if is_first && !c.is_whitespace() => {
                    found.push(word(&group[at..]));
                    is_first = false;
                }
                _ => {}
            }
        }
    }
    found
}

/// The sets of modules of which each reaches each other.
fn cycles(edges: &Edges) -> BTreeSet<BTreeSet<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        edges.keys().map(|from| (from, reached(from, edges))).collect();
    let mut found = BTreeSet::new();
    for (from, all) in &reached {
        let both = all.iter().filter(|to| reached[**to].contains(from));
        let cycle: BTreeSet<String> = both.map(|&to| to.clone()).collect();
        if cycle.len() > 1 {
            found.insert(cycle);
        }
    }
    found
}

/// Every module that can be reached from `from`, over one edge at least.
fn reached<'a>(from: &str, edges: &'a Edges) -> BTreeSet<&'a String> {
    let mut found = BTreeSet::new();
    let mut next: Vec<&String> = edges[from].keys().collect();
    while let Some(name) = next.pop() {
        if found.insert(name) {
            next.extend(edges[name].keys());
        }
    }
    found
}

/// The check itself finds each kind of edge, and nothing in comments and tests.
#[test]
fn each_kind_of_edge_is_found() {
    let files = [
        ("lib.rs", "mod a;\nmod b;\npub use b::{Thing, deep::Other};\npub(crate) use d::Last;\n"),
        ("a.rs", "use crate::{b::X, e};\n// crate::c\n#[cfg(test)]\nmod tests { use crate::c; }\n"),
        ("b/inner.rs", "fn f() { crate::c::g(crate::Last) }\n"),
        ("c.rs", "#[cfg(test)]\nmod tests;\nuse crate::Thing;\n"),
        ("d.rs", ""),
        ("e.rs", "use crate::Unknown;\n"),
    ];
    let files = files.map(|(path, text)| (path.to_owned(), text.to_owned())).into();
    let edges = edges(&files);
    let list: Vec<String> = edges
        .iter()
        .flat_map(|(from, to)| to.keys().map(move |to| format!("{from} {to}")))
        .collect();
    assert_eq!(list, ["a b", "a e", "b c", "b d", "c b"]);
    let found = cycles(&edges);
    let cycle: BTreeSet<String> = ["b".to_owned(), "c".to_owned()].into();
    assert_eq!(found, BTreeSet::from([cycle.clone()]));
    let text = described("x", &cycle, &edges);
    assert!(text.contains("b -> c in b/inner.rs") && text.contains("c -> b in c.rs"), "{text}");
}
