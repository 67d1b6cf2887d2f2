//! What changed between two versions of a definition, word by word, with hidden text drawn.
//!
//! Invariant: bounded. Fields with very long texts are shown as replaced; the diff of one field
//! takes at most [`CELLS`] steps.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use toolgate_json::walk::{Raw, Walk};
use toolgate_json::{Malformed, NotCanonical, quote};

use crate::hidden::draw;

/// One field that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldChange {
    /// The field: its keys and indexes, parted by `/`; in keys, `~1` is a slash and `~0` a tilde.
    pub field: String,
    /// Its text, in pieces.
    pub pieces: Vec<Piece>,
}

/// A piece of a changed text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "change", content = "text")]
pub enum Piece {
    /// In both versions.
    Same(String),
    /// Only in the old version.
    Removed(String),
    /// Only in the new version.
    Added(String),
}

/// The most comparisons of words for one field.
const CELLS: usize = 1 << 20;
const DEPTH: usize = 64;

/// The fields that differ, in the order of their names.
pub fn diff(old: &str, new: &str) -> Result<Vec<FieldChange>, NotCanonical> {
    let (old, new) = (leaves(old)?, leaves(new)?);
    let mut fields: Vec<&String> = old.keys().chain(new.keys()).collect();
    fields.sort();
    fields.dedup();
    let changed = |field: &&String| old.get(*field) != new.get(*field);
    let change = |field: &String| {
        let (old, new) = (old.get(field), new.get(field));
        let is_typed = old.zip(new).is_some_and(|(old, new)| old.text == new.text);
        let of = |leaf: Option<&Leaf>| leaf.map(|leaf| leaf.shown(is_typed)).unwrap_or_default();
        FieldChange { field: draw(field).into_owned(), pieces: words_diff(&of(old), &of(new)) }
    };
    Ok(fields.into_iter().filter(changed).map(change).collect())
}

/// A string, number or empty bracket.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Leaf {
    text: String,
    is_string: bool,
}

impl Leaf {
    /// `is_typed`: in quotes if it is a string, because the other version has the same text of another
    /// type.
    fn shown(&self, is_typed: bool) -> String {
        if is_typed && self.is_string { quote(&self.text) } else { self.text.clone() }
    }
}

/// Every string, number and empty bracket of a definition, by its path.
fn leaves(json: &str) -> Result<BTreeMap<String, Leaf>, NotCanonical> {
    let mut leaves = BTreeMap::new();
    collect(Raw::of(json)?, String::new(), DEPTH, &mut leaves)?;
    Ok(leaves)
}

fn collect(
    raw: Raw<'_>,
    path: String,
    depth: usize,
    leaves: &mut BTreeMap<String, Leaf>,
) -> Result<(), Malformed> {
    let depth = depth.checked_sub(1).ok_or(Malformed)?;
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}/{key}") };
    let mut is_empty = true;
    match raw.text.as_bytes().first() {
        Some(b'{') => {
            let mut walk = Walk::object(raw.text)?;
            while let Some(member) = walk.member()? {
                is_empty = false;
                collect(member.value, below(&key_of(&member.name()?)), depth, leaves)?;
            }
        }
        Some(b'[') => {
            let mut walk = Walk::list(raw.text)?;
            let mut index = 0_usize;
            while let Some(element) = walk.element()? {
                is_empty = false;
                collect(element, below(&index.to_string()), depth, leaves)?;
                index += 1;
            }
        }
        Some(b'"') => {
            leaves.insert(path, Leaf { text: raw.string()?.into_owned(), is_string: true });
            return Ok(());
        }
        _ => {}
    }
    // Nothing at all is what a first definition is compared with.
    if is_empty && !(path.is_empty() && raw.text == "{}") {
        leaves.insert(path, Leaf { text: raw.text.to_owned(), is_string: false });
    }
    Ok(())
}

/// A key must not take the place of another field: one with a slash, or a number like an index.
fn key_of(key: &str) -> String {
    let key = key.replace('~', "~0").replace('/', "~1");
    let is_index = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_digit());
    if is_index { quote(&key) } else { key }
}

/// The difference of two texts in words and the blanks between them.
fn words_diff(old: &str, new: &str) -> Vec<Piece> {
    let (old, new) = (pieces(old), pieces(new));
    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let limit = old.len().min(new.len()) - head;
    let tail =
        old.iter().rev().zip(new.iter().rev()).take(limit).take_while(|(a, b)| a == b).count();
    let middle = |all: &[&str]| all.get(head..all.len() - tail).unwrap_or_default().join("");
    let mut out = Vec::new();
    push(&mut out, Piece::Same, &old.get(..head).unwrap_or_default().join(""));
    let inner_old = old.get(head..old.len() - tail).unwrap_or_default();
    let inner_new = new.get(head..new.len() - tail).unwrap_or_default();
    if inner_old.len().saturating_mul(inner_new.len()) > CELLS {
        push(&mut out, Piece::Removed, &middle(&old));
        push(&mut out, Piece::Added, &middle(&new));
    } else {
        align(inner_old, inner_new, &mut out);
    }
    push(&mut out, Piece::Same, &old.get(old.len() - tail..).unwrap_or_default().join(""));
    out
}

/// Words, each with the blanks behind it.
fn pieces(text: &str) -> Vec<&str> {
    text.split_inclusive(char::is_whitespace).collect()
}

/// Aligns two lists by their longest common subsequence.
fn align(old: &[&str], new: &[&str], out: &mut Vec<Piece>) {
    let width = new.len() + 1;
    let mut lengths = vec![0_u32; (old.len() + 1) * width];
    let at = |i: usize, j: usize| i * width + j;
    let get = |lengths: &[u32], i, j| lengths.get(at(i, j)).copied().unwrap_or(0);
    for (i, a) in old.iter().enumerate().rev() {
        for (j, b) in new.iter().enumerate().rev() {
            let best = if a == b {
                get(&lengths, i + 1, j + 1) + 1
            } else {
                get(&lengths, i + 1, j).max(get(&lengths, i, j + 1))
            };
            if let Some(cell) = lengths.get_mut(at(i, j)) {
                *cell = best;
            }
        }
    }
    let (mut i, mut j) = (0, 0);
    loop {
        match (old.get(i), new.get(j)) {
            (Some(a), Some(b)) if a == b => {
                push(out, Piece::Same, a);
                (i, j) = (i + 1, j + 1);
            }
            (Some(a), b) if b.is_none() || get(&lengths, i + 1, j) >= get(&lengths, i, j + 1) => {
                push(out, Piece::Removed, a);
                i += 1;
            }
            (_, Some(b)) => {
                push(out, Piece::Added, b);
                j += 1;
            }
            _ => return,
        }
    }
}

/// Adds a piece, drawn, to the last one if it is of the same kind.
fn push(out: &mut Vec<Piece>, kind: fn(String) -> Piece, text: &str) {
    if text.is_empty() {
        return;
    }
    let drawn: Cow<'_, str> = draw(text);
    let piece = kind(drawn.into_owned());
    match (out.last_mut(), &piece) {
        (Some(Piece::Same(all)), Piece::Same(more))
        | (Some(Piece::Removed(all)), Piece::Removed(more))
        | (Some(Piece::Added(all)), Piece::Added(more)) => all.push_str(more),
        _ => out.push(piece),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(old: &str, new: &str) -> String {
        let piece = |piece: &Piece| match piece {
            Piece::Same(text) => text.clone(),
            Piece::Removed(text) => format!("[-{text}-]"),
            Piece::Added(text) => format!("{{+{text}+}}"),
        };
        let change = |change: FieldChange| {
            format!("{}: {}", change.field, change.pieces.iter().map(piece).collect::<String>())
        };
        diff(old, new).unwrap().into_iter().map(change).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn words_that_differ_are_marked() {
        for (old, new, expected) in [
            (r#"{"d":"Reads a file"}"#, r#"{"d":"Reads a file"}"#, ""),
            (r#"{"d":"Reads a file"}"#, r#"{"d":"Wipes a file"}"#, "d: [-Reads -]{+Wipes +}a file"),
            (r#"{"d":"a b c d"}"#, r#"{"d":"a x c y d"}"#, "d: a [-b -]{+x +}c {+y +}d"),
            (r#"{"d":"ab"}"#, r#"{"d":"a\u200bb"}"#, r"d: [-ab-]{+a\u{200B}b+}"),
            (r#"{"d":1}"#, r#"{"d":1.0}"#, "d: [-1-]{+1.0+}"),
            (r#"{"d":{"e":[1,2]}}"#, r#"{"d":{"e":[1]}}"#, "d/e/1: [-2-]"),
            ("{}", r#"{"x":{}}"#, "x: {+{}+}"),
            (r#"{"d":"1"}"#, r#"{"d":1}"#, r#"d: [-"1"-]{+1+}"#),
            // No key hides a change of another field.
            (r#"{"a":{"b":"x"}}"#, r#"{"a":{"b":"y"},"a/b":"x"}"#, "a/b: [-x-]{+y+}\na~1b: {+x+}"),
            (r#"{"a":["x"]}"#, r#"{"a":{"0":"x"}}"#, "a/\"0\": {+x+}\na/0: [-x-]"),
        ] {
            assert_eq!(shown(old, new), expected);
        }
    }

    #[test]
    fn long_texts_are_bounded() {
        let text = |word: &str| format!(r#"{{"d":"{}"}}"#, format!("{word} ").repeat(20_000));
        let found = diff(&text("a"), &text("b")).unwrap();
        assert_eq!(found[0].pieces.len(), 2);
    }
}
