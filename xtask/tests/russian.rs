//! The Russian pages are in step with the English ones: the same headings, code, tables and lists.
//!
//! Every Russian page is found by its place: `NAME.ru.md` beside `NAME.md`, and `docs/ru/NAME.md` for
//! `docs/NAME.md`. There is no list of exceptions.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what the tests share belongs to tests")]

use std::fs;
use std::path::{Path, PathBuf};

/// Pages that must have a translation.
const TRANSLATED: [&str; 8] = [
    "README.md",
    "docs/quickstart.md",
    "docs/policy.md",
    "docs/approvals.md",
    "docs/sessions.md",
    "docs/onec.md",
    "docs/reference/error-codes.md",
    "skills/toolgate/SKILL.md",
];

#[test]
fn translations_follow_their_pages() {
    let mut differences = Vec::new();
    for (english, russian) in pairs() {
        let (page, translation) = (read(&english), read(&russian));
        let (expected, found) = (outline(&page), outline(&translation));
        if expected != found {
            let differs = expected.iter().zip(&found).position(|(one, other)| one != other);
            let at = differs.unwrap_or(expected.len().min(found.len()));
            differences.push(format!(
                "{} differs from {}: expected {:?}, found {:?}, after {:?}",
                russian.display(),
                english.display(),
                expected.get(at),
                found.get(at),
                expected.get(at.saturating_sub(2)..at),
            ));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn pages_for_everyone_are_translated() {
    let translated: Vec<PathBuf> = pairs().into_iter().map(|(english, _)| english).collect();
    for page in TRANSLATED {
        assert!(translated.contains(&page.into()), "{page} has no Russian page");
    }
    for folder in ["skills/toolgate", "skills/toolgate/reference"] {
        for page in pages(folder.as_ref()).into_iter().filter(|page| !is_russian(page)) {
            assert!(translated.contains(&page), "{} has no Russian page", page.display());
        }
    }
}

/// Readers find the other language in the first lines.
#[test]
fn pages_link_to_each_other() {
    for (english, russian) in pairs() {
        if english.starts_with("skills") {
            continue;
        }
        let head = |page: &Path| read(page).lines().take(5).collect::<String>();
        let name = english.file_name().unwrap().to_str().unwrap();
        assert!(head(&russian).contains(&format!("{name})")), "{} -> {name}", russian.display());
        let is_generated = head(&english).contains("<!-- Generated");
        assert!(is_generated || head(&english).contains("[По-русски]("), "{}", english.display());
    }
}

/// What a translation must have in common with its page: every line of code, a line for each table
/// row and list item, and the depth and the code of each heading.
fn outline(text: &str) -> Vec<String> {
    let (mut outline, mut is_code) = (Vec::new(), false);
    for line in text.lines() {
        if line.starts_with("```") {
            is_code = !is_code;
            outline.push(line.to_owned());
        } else if is_code {
            outline.push(line.to_owned());
        } else if line.starts_with('#') {
            let depth = line.split(' ').next().unwrap_or_default();
            let code: Vec<&str> = line.split('`').skip(1).step_by(2).collect();
            outline.push(format!("heading {depth} {}", code.join(" ")).trim_end().to_owned());
        } else if line.starts_with('|') {
            outline.push(format!("table row of {} columns", line.matches(" |").count()));
        } else if line.starts_with("* ") {
            outline.push("list item".to_owned());
        }
    }
    outline
}

/// Every Russian page of the repository, after the page that it translates.
fn pairs() -> Vec<(PathBuf, PathBuf)> {
    let folders =
        ["", "docs", "docs/reference", "docs/ru", "skills/toolgate", "skills/toolgate/reference"];
    let all = folders.iter().flat_map(|folder| pages(folder.as_ref()));
    all.filter(|page| is_russian(page)).map(|russian| (twin(&russian), russian)).collect()
}

fn is_russian(page: &Path) -> bool {
    page.starts_with("docs/ru") || page.to_str().unwrap().ends_with(".ru.md")
}

fn twin(russian: &Path) -> PathBuf {
    match russian.strip_prefix("docs/ru") {
        Ok(page) => Path::new("docs").join(page),
        Err(_) => russian.to_str().unwrap().replace(".ru.md", ".md").into(),
    }
}

/// The pages of a folder, as paths from the root.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).unwrap();
    let names = entries.map(|entry| folder.join(entry.unwrap().file_name()));
    let mut pages: Vec<PathBuf> =
        names.filter(|page| page.extension().is_some_and(|end| end == "md")).collect();
    pages.sort();
    pages
}

fn read(page: &Path) -> String {
    let text = fs::read_to_string(root().join(page));
    text.unwrap_or_else(|error| panic!("{}: {error}", page.display()))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The checks can fail.
#[test]
fn differences_are_found() {
    let page = "# `a` b\n```sh\n# c\nx # y\n```\n* i\n| p | q |\n";
    assert_eq!(outline(page), outline("# `a` г\n```sh\n# c\nx # y\n```\n* к\n| п | р |\n"));
    for other in ["# `e` b\n", "## `a` b\n", "```sh\n# г\n```\n", "* i\n* i\n", "| p |\n"] {
        assert_ne!(outline(page), outline(other), "{other}");
    }
}
