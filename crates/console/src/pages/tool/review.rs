//! The review of a quarantined definition: what changed, word by word, and the answer of a person.

use axum::http::Method;
use serde::Deserialize;
use serde_json::json;
use toolgate_catalog::{Class, Definition, Piece, classify, diff};

use crate::shell::Shell;
use crate::shown::foreign;
use crate::visit::{Outcome, Visit, part};

/// What the API knows of the review of a definition.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Reviewed {
    #[serde(default)]
    state: String,
    reason: Option<String>,
    source: Option<String>,
    approved_source: Option<String>,
    rejected: Option<Rejected>,
}

#[derive(Debug, Deserialize)]
struct Rejected {
    person: String,
}

/// A definition that waits for a person.
pub(crate) struct Review {
    pub(crate) reason: String,
    /// Each field that changed, in pieces; empty if there is nothing to compare with.
    pub(crate) changes: Vec<Change>,
    /// The definition that may be used is known.
    pub(crate) has_before: bool,
    /// The class before and now, in words, if they differ.
    pub(crate) classes: Option<[(String, String); 2]>,
    /// The person who rejected this definition.
    pub(crate) rejected: String,
}

/// A field that changed.
pub(crate) struct Change {
    pub(crate) field: String,
    pub(crate) pieces: Vec<Word>,
}

/// A piece of a changed text.
pub(crate) struct Word {
    /// `added`, `removed` or `same`.
    pub(crate) class: &'static str,
    /// Parts of it; a drawn character is one of its own.
    pub(crate) parts: Vec<Part>,
}

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) text: String,
    /// It is a drawing of a character that people do not see.
    pub(crate) is_drawn: bool,
}

/// Most characters of one piece.
const LONGEST: usize = 8_000;

impl Review {
    /// `None` if the definition may be used.
    pub(crate) fn of(s: &Shell, tool: &str, reviewed: &Reviewed, class: &str) -> Option<Self> {
        if reviewed.state != "quarantined" {
            return None;
        }
        let sources = reviewed.approved_source.as_deref().zip(reviewed.source.as_deref());
        let changes = sources.and_then(|(old, new)| diff(old, new).ok()).unwrap_or_default();
        let before = reviewed.approved_source.as_deref();
        let before = before.map(|source| class_of(tool, source).as_str());
        let named = |class: &str| (class.to_owned(), s.tr(&format!("class-{class}")));
        Some(Self {
            reason: reason(s, reviewed.reason.as_deref().unwrap_or_default()),
            has_before: before.is_some(),
            classes: before.filter(|old| *old != class).map(|old| [named(old), named(class)]),
            changes: changes
                .iter()
                .map(|change| Change {
                    field: foreign(&change.field, 200),
                    pieces: change.pieces.iter().map(Word::of).collect(),
                })
                .collect(),
            rejected: reviewed.rejected.as_ref().map(|it| it.person.clone()).unwrap_or_default(),
        })
    }
}

/// Why it is quarantined, in the language of the reader as far as it is known.
fn reason(s: &Shell, said: &str) -> String {
    let known = [
        ("its definition has changed", "quarantine-changed"),
        ("no person has approved", "quarantine-not-approved"),
        ("its definition has hidden text", "quarantine-hidden"),
        ("it is new", "quarantine-new"),
    ];
    let key = known.iter().find(|(start, _)| said.starts_with(start)).map(|(_, key)| *key);
    key.map_or_else(|| foreign(said, 500), |key| s.tr(key))
}

fn class_of(tool: &str, source: &str) -> Class {
    let definition = Definition::parse(source).unwrap_or_else(|_| Definition::named(tool));
    classify(&definition).class
}

impl Word {
    fn of(piece: &Piece) -> Self {
        let (class, text) = match piece {
            Piece::Same(text) => ("same", text),
            Piece::Removed(text) => ("removed", text),
            Piece::Added(text) => ("added", text),
        };
        Self { class, parts: parts(&foreign(text, LONGEST)) }
    }
}

/// Cuts drawn characters (`\\u{200B}`) out of a text.
pub(crate) fn parts(text: &str) -> Vec<Part> {
    let mut all = Vec::new();
    let mut push = |text: &str, is_drawn| {
        if !text.is_empty() {
            all.push(Part { text: text.to_owned(), is_drawn });
        }
    };
    let mut rest = text;
    while let Some((before, from)) = rest.split_once("\\u{") {
        let Some((code, after)) = from.split_once('}') else { break };
        if code.len() > 6 || !code.chars().all(|c| c.is_ascii_hexdigit()) {
            push(before, false);
            push("\\u{", false);
            rest = from;
            continue;
        }
        push(before, false);
        push(&format!("\\u{{{code}}}"), true);
        rest = after;
    }
    push(rest, false);
    all
}

/// Approves a quarantined definition.
pub(crate) async fn approve(visit: Visit) -> Outcome {
    answer(visit, "approve", "done-definition-approved").await
}

/// Rejects it: it stays quarantined.
pub(crate) async fn reject(visit: Visit) -> Outcome {
    answer(visit, "reject", "done-definition-rejected").await
}

async fn answer(visit: Visit, verb: &str, key: &str) -> Outcome {
    let path = format!("/tools/{}/{}", part(visit.param("server")), part(visit.param("tool")));
    let body = json!({ "fingerprint": visit.form.text("fingerprint") });
    let sent = visit.send(&Method::POST, &format!("/api/v1{path}/{verb}"), &body).await;
    visit.ended(sent, &path, visit.trv(key, visit.param("tool")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_characters_are_parts_of_their_own() {
        let shown = |text: &str| {
            let mark =
                |part: Part| if part.is_drawn { format!("[{}]", part.text) } else { part.text };
            parts(text).into_iter().map(mark).collect::<String>()
        };
        for (text, expected) in [
            ("plain", "plain"),
            ("a\\u{200B}b", "a[\\u{200B}]b"),
            ("\\u{202E}", "[\\u{202E}]"),
            ("a\\u{zz} b\\u{", "a\\u{zz} b\\u{"),
            ("\\u{1234567}", "\\u{1234567}"),
        ] {
            assert_eq!(shown(text), expected);
        }
    }
}
