//! A JSON value that preserves its spelling: the order of members, repeated members, the digits of
//! numbers, the escapes of strings.
//!
//! Invariant: two trees are equal only if their texts differ in nothing but white space.

use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The longest text of a scalar that a difference shows on each side.
const SHOWN: usize = 160;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Tree {
    Object(Vec<(String, Tree)>),
    Array(Vec<Tree>),
    /// A scalar as it was written.
    Leaf(String),
}

impl Tree {
    /// A JSON-RPC message without its id, its members sorted by name: their order is up to the
    /// sender.
    pub(super) fn message(raw: &str) -> Self {
        match Self::parse(raw) {
            Self::Object(mut members) => {
                members.retain(|(name, _)| name != "id");
                members.sort_by(|(a, _), (b, _)| a.cmp(b));
                Self::Object(members)
            }
            other => other,
        }
    }

    fn parse(raw: &str) -> Self {
        let nested = |value: Box<RawValue>| Self::parse(value.get());
        if let Ok(Members(members)) = serde_json::from_str(raw) {
            let members = members.into_iter().map(|(name, value)| (name, nested(value)));
            return Self::Object(members.collect());
        }
        match serde_json::from_str::<Vec<Box<RawValue>>>(raw) {
            Ok(items) => Self::Array(items.into_iter().map(nested).collect()),
            Err(_) => Self::Leaf(raw.trim().to_owned()),
        }
    }

    /// The leaves at a path whose segments are member names, indices or `*`.
    pub(super) fn leaves_at<'a>(&'a mut self, path: &[String], to: &mut Vec<&'a mut String>) {
        match (self, path) {
            (Self::Leaf(text), []) => to.push(text),
            (Self::Object(members), [first, rest @ ..]) => {
                for (name, value) in members {
                    if first == "*" || first == name {
                        value.leaves_at(rest, to);
                    }
                }
            }
            (Self::Array(items), [first, rest @ ..]) => {
                for (index, item) in items.iter_mut().enumerate() {
                    if first == "*" || *first == index.to_string() {
                        item.leaves_at(rest, to);
                    }
                }
            }
            _ => {}
        }
    }

    /// What differs, one text for each place.
    pub(super) fn differences(&self, other: &Self) -> Vec<String> {
        let mut found = Vec::new();
        self.differ(other, "", &mut found);
        found
    }

    fn differ(&self, other: &Self, path: &str, found: &mut Vec<String>) {
        match (self, other) {
            (Self::Object(left), Self::Object(right)) => {
                members_differ(left, right, path, found);
            }
            (Self::Array(left), Self::Array(right)) => {
                if left.len() != right.len() {
                    let counts = format!("{} items direct, {} through", left.len(), right.len());
                    found.push(format!("{path}: {counts}"));
                }
                for (index, (left, right)) in left.iter().zip(right).enumerate() {
                    left.differ(right, &format!("{path}/{index}"), found);
                }
            }
            (left, right) if left != right => found.push(format!(
                "{path}\n      direct:  {}\n      through: {}",
                left.shown(right),
                right.shown(left)
            )),
            _ => {}
        }
    }

    /// The text around the first character that differs.
    fn shown(&self, other: &Self) -> String {
        let (text, other) = (self.to_string(), other.to_string());
        let same = text.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
        let skipped = same.saturating_sub(SHOWN / 2);
        let cut: String = text.chars().skip(skipped).take(SHOWN).collect();
        let before = if skipped > 0 { "…" } else { "" };
        let after = if text.chars().count() > skipped + SHOWN { "…" } else { "" };
        format!("{before}{cut}{after}")
    }
}

fn members_differ(
    left: &[(String, Tree)],
    right: &[(String, Tree)],
    path: &str,
    found: &mut Vec<String>,
) {
    let names = |side: &[(String, Tree)]| -> Vec<String> {
        side.iter().map(|(name, _)| name.clone()).collect()
    };
    let (left_names, right_names) = (names(left), names(right));
    if left_names != right_names {
        found.push(format!(
            "{path}: members {} direct, {} through",
            left_names.join(", "),
            right_names.join(", ")
        ));
    }
    for (name, value) in left {
        if let Some((_, other)) = right.iter().find(|(other, _)| other == name) {
            value.differ(other, &format!("{path}/{name}"), found);
        }
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Leaf(text) => f.write_str(text),
            Self::Array(items) => {
                f.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if index > 0 { "," } else { "" })?;
                }
                f.write_str("]")
            }
            Self::Object(members) => {
                f.write_str("{")?;
                for (index, (name, value)) in members.iter().enumerate() {
                    write!(f, "{}{name:?}:{value}", if index > 0 { "," } else { "" })?;
                }
                f.write_str("}")
            }
        }
    }
}

/// The members of an object in their order, repeated ones too.
struct Members(Vec<(String, Box<RawValue>)>);

impl<'de> serde::Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}
