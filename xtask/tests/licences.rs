//! The licences of all dependencies are allowed, and no crate is used in two versions without a
//! reason. `deny.toml` contains the same lists for cargo-deny, which also checks advisories.
//!
//! Start at [`ALLOWED`] and [`DUPLICATES`].

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Licences that permit use under Apache-2.0 without conditions on the whole work.
const ALLOWED: [&str; 10] = [
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Zlib",
];

/// Crates that the binary needs in two versions, and why.
const DUPLICATES: [(&str, &str); 6] = [
    ("block-buffer", SHA1),
    ("cpufeatures", SHA1),
    ("crypto-common", SHA1),
    ("digest", SHA1),
    ("getrandom", "ahash (jsonschema) and rand 0.9 (tungstenite) are one version behind"),
    ("syn", "some derive macros are one version behind; compiled, but not in the binary"),
];
const SHA1: &str = "tungstenite has sha1 0.10; audit and policy have sha2 0.11";

#[test]
fn every_licence_is_allowed() {
    let words = ["--workspace", "--edges", "normal,build,dev", "--format", "{p}|{l}"];
    let mut seen = 0;
    for line in tree(&words) {
        let (package, licence) = line.split_once('|').unwrap();
        if package.contains("(/") {
            continue; // a crate of this workspace
        }
        seen += 1;
        assert!(
            is_allowed(licence),
            "{package} has the licence `{licence}`, which is not in the list ALLOWED"
        );
    }
    assert!(seen > 100, "only {seen} packages, so the output of cargo is not parsed");
}

#[test]
fn every_duplicate_has_a_reason() {
    let mut versions = BTreeMap::<String, BTreeSet<String>>::new();
    for line in tree(&["--package", "toolgate", "--edges", "normal,build", "--format", "{p}"]) {
        let mut words = line.split(' ');
        let (name, version) = (words.next().unwrap(), words.next().unwrap());
        versions.entry(name.to_owned()).or_default().insert(version.to_owned());
    }
    versions.retain(|_, versions| versions.len() > 1);
    let found: Vec<&str> = versions.keys().map(String::as_str).collect();
    let expected: Vec<&str> = DUPLICATES.iter().map(|(name, _)| *name).collect();
    assert_eq!(found, expected, "`cargo tree --duplicates` shows why; update DUPLICATES");
}

#[test]
fn deny_toml_has_the_same_lists() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../deny.toml");
    let text = std::fs::read_to_string(path).unwrap();
    let lists: Vec<String> = ALLOWED.iter().map(|licence| format!("    \"{licence}\",")).collect();
    let skipped = DUPLICATES.iter().map(|(name, _)| format!("    {{ crate = \"{name}\","));
    for entry in lists.into_iter().chain(skipped) {
        assert!(text.lines().any(|line| line.starts_with(&entry)), "deny.toml has no `{entry}`");
    }
}

#[test]
fn licence_expressions_are_evaluated() {
    for (expression, expected) in [
        ("MIT", true),
        ("MIT/Apache-2.0", true),
        ("Apache-2.0 / MIT", true),
        ("GPL-3.0 OR MIT", true),
        ("GPL-3.0 AND MIT", false),
        ("(MIT OR GPL-3.0) AND Unicode-3.0", true),
        ("ISC AND (GPL-3.0 OR MPL-2.0)", false),
        ("MIT OR ISC AND GPL-3.0", true),
        ("Apache-2.0 WITH LLVM-exception OR GPL-3.0", true),
        ("GPL-3.0 WITH Classpath-exception-2.0", false),
        ("", false),
    ] {
        assert_eq!(is_allowed(expression), expected, "`{expression}`");
    }
}

/// Whether an SPDX expression can be satisfied by allowed licences alone.
fn is_allowed(expression: &str) -> bool {
    let text = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words: Vec<&str> = text.split_whitespace().rev().collect();
    any_of(&mut words) && words.is_empty()
}

/// Terms with `OR` between them. The next token is the last of `words`.
fn any_of(words: &mut Vec<&str>) -> bool {
    let mut allowed = all_of(words);
    while words.pop_if(|word| *word == "OR").is_some() {
        allowed |= all_of(words);
    }
    allowed
}

/// Terms with `AND` between them.
fn all_of(words: &mut Vec<&str>) -> bool {
    let mut allowed = term(words);
    while words.pop_if(|word| *word == "AND").is_some() {
        allowed &= term(words);
    }
    allowed
}

/// One licence with its exception, or an expression in parentheses.
fn term(words: &mut Vec<&str>) -> bool {
    let Some(word) = words.pop() else { return false };
    if word == "(" {
        let allowed = any_of(words);
        assert_eq!(words.pop(), Some(")"), "an unclosed parenthesis");
        return allowed;
    }
    if words.pop_if(|word| *word == "WITH").is_some() {
        let exception = words.pop().unwrap_or_else(|| panic!("`WITH` without an exception"));
        return ALLOWED.contains(&format!("{word} WITH {exception}").as_str());
    }
    ALLOWED.contains(&word)
}

/// The lines of `cargo tree`, without indentation and marks.
fn tree(words: &[&str]) -> Vec<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--prefix", "none"])
        .args(words)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().filter(|line| !line.is_empty());
    lines.map(|line| line.trim_end_matches(" (*)").to_owned()).collect()
}
