//! Every page of `docs` is in `docs/SUMMARY.md`, every entry exists, and every link leads somewhere.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Pages outside of `docs` whose links are checked too.
const OUTSIDE: [&str; 8] = [
    "README.md",
    "README.ru.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "skills/toolgate/SKILL.md",
    "skills/toolgate/SKILL.ru.md",
];

#[test]
fn the_summary_lists_every_page() {
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let targets = links(&summary);
    let entries: Vec<PathBuf> = targets.iter().map(|link| Path::new("docs").join(link)).collect();
    let listed: BTreeSet<PathBuf> = entries.iter().cloned().collect();
    assert_eq!(listed.len(), entries.len(), "docs/SUMMARY.md lists a page twice");
    let mut pages: BTreeSet<PathBuf> = pages().into_iter().collect();
    pages.remove(Path::new("docs/SUMMARY.md"));
    let missing: Vec<&PathBuf> = pages.difference(&listed).collect();
    assert!(missing.is_empty(), "add these pages to docs/SUMMARY.md: {missing:?}");
    let unknown: Vec<&PathBuf> = listed.difference(&pages).collect();
    assert!(unknown.is_empty(), "docs/SUMMARY.md lists pages that do not exist: {unknown:?}");
}

#[test]
fn every_link_leads_somewhere() {
    let outside = OUTSIDE.iter().map(PathBuf::from);
    let mut broken = Vec::new();
    for page in pages().into_iter().chain(outside) {
        let text = fs::read_to_string(root().join(&page)).unwrap();
        for link in links(&text) {
            if !is_outside(&link) && !resolves(&page, &link) {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "broken links:\n{}", broken.join("\n"));
}

fn is_outside(link: &str) -> bool {
    link.contains("://") || link.starts_with("mailto:")
}

/// The file exists, and so does the heading, if the link names one.
fn resolves(page: &Path, link: &str) -> bool {
    let (file, heading) = link.split_once('#').unwrap_or((link, ""));
    let target = match file {
        "" => page.to_owned(),
        file => normal(&page.parent().unwrap().join(file)),
    };
    let path = root().join(&target);
    if heading.is_empty() || target.extension().is_none_or(|end| end != "md") {
        return path.exists();
    }
    fs::read_to_string(path).is_ok_and(|text| headings(&text).contains(&heading.to_owned()))
}

fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                assert!(normal.pop(), "{} leaves the repository", path.display());
            }
            part => normal.push(part),
        }
    }
    normal
}

/// The targets of links outside of code.
fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in prose(text) {
        let parts = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        found.extend(parts.filter(|link| !link.contains(' ')).map(str::to_owned));
    }
    found
}

/// The anchors of headings, as GitHub makes them.
fn headings(text: &str) -> Vec<String> {
    let titles = prose(text).filter(|line| line.starts_with('#'));
    titles
        .map(|line| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = title.chars().filter(|c| c.is_alphanumeric() || "-_ ".contains(*c));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect()
}

/// The lines outside of code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// Every page below `docs`, as a path from the root.
fn pages() -> Vec<PathBuf> {
    let (mut pages, mut folders) = (Vec::new(), vec![PathBuf::from("docs")]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).unwrap().map(Result::unwrap) {
            let path = folder.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "md") {
                pages.push(path);
            }
        }
    }
    pages
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The checks can fail.
#[test]
fn broken_links_are_found() {
    assert_eq!(links("a [b](c.md#d) [e](f)\n```\n[g](h)\n```\n"), ["c.md#d", "f"]);
    assert_eq!(headings("# `A` b, c!\n```\n# d\n```\n## Кто\n"), ["a-b-c", "кто"]);
    assert!(resolves(Path::new("docs/README.md"), "../README.md#install"));
    for link in ["missing.md", "../README.md#missing", "#missing"] {
        assert!(!resolves(Path::new("docs/README.md"), link), "{link}");
    }
}
