//! The Russian pages are in step with the English ones: the same headings, code, tables and lists.

#![expect(clippy::unwrap_used, reason = "what the tests share belongs to tests")]

use std::collections::BTreeSet;
use std::path::Path;

/// Pages and their translations.
const PAGES: [(&str, &str); 3] = [
    ("README.md", "README.ru.md"),
    ("docs/quickstart.md", "docs/ru/quickstart.md"),
    ("docs/sessions.md", "docs/sessions.ru.md"),
];

fn page(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)).unwrap()
}

/// What a translation must have in common with its page: a line for each heading, table row and list
/// item, and every line of code without its comment.
fn outline(text: &str) -> Vec<String> {
    let (mut outline, mut is_code) = (Vec::new(), false);
    for line in text.lines() {
        if line.starts_with("```") {
            is_code = !is_code;
            outline.push(line.to_owned());
        } else if is_code && line.trim_start().starts_with("# ") {
            outline.push("comment".to_owned());
        } else if is_code {
            outline.push(line.split(" # ").next().unwrap_or_default().trim_end().to_owned());
        } else if line.starts_with('#') {
            outline.push(line.split(' ').next().unwrap_or_default().to_owned());
        } else if line.starts_with('|') {
            outline.push(format!("table row of {} columns", line.matches(" |").count()));
        } else if line.starts_with("* ") {
            outline.push("list item".to_owned());
        }
    }
    outline
}

#[test]
fn translations_follow_their_pages() {
    for (english, russian) in PAGES {
        let (expected, found) = (outline(&page(english)), outline(&page(russian)));
        let differs = expected.iter().zip(&found).position(|(one, other)| one != other);
        let at = differs.unwrap_or(expected.len().min(found.len()));
        assert!(
            expected == found,
            "{russian} differs from {english} at its {at}th element: expected {:?}, found {:?}, after {:?}",
            expected.get(at),
            found.get(at),
            expected.get(at.saturating_sub(3)..at),
        );
    }
}

/// Every code of the English reference is explained, with what to do.
#[test]
fn every_error_code_is_explained_in_russian() {
    let (english, russian) =
        (page("docs/reference/error-codes.md"), page("docs/reference/error-codes.ru.md"));
    let codes = |text: &str, heading: &str| -> BTreeSet<String> {
        let sections = text.split(heading).skip(1);
        sections.map(|section| section.split('`').next().unwrap_or_default().to_owned()).collect()
    };
    let explained = codes(&russian, "\n### `");
    let missing: Vec<String> = codes(&english, "\n## `").difference(&explained).cloned().collect();
    assert!(missing.is_empty(), "explain these codes in error-codes.ru.md: {missing:?}");
    for section in russian.split("\n### `").skip(1) {
        assert!(section.contains("Что делать:"), "no advice: {section}");
    }
}
