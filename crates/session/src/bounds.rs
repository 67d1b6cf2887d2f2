//! Limits the cost of checking arguments against a schema.
//!
//! A schema comes from a program that dials in. The cost to parse, compile and expand it is limited
//! here once, when the tool is parsed; the cost of a check with certain arguments is limited where
//! the check is made.
//!
//! Invariant: a schema within these limits refers to nothing outside itself.

use serde_json::{Map, Value};
use thiserror::Error;

/// The maximum length of a schema, in bytes.
const MAX_BYTES: usize = 256 * 1024;
/// The maximum nesting depth.
const MAX_DEPTH: usize = 64;
/// The maximum number of JSON values.
const MAX_VALUES: usize = 20_000;
/// The maximum number of schemas after every reference is expanded once per use.
const MAX_EXPANDED: u64 = 50_000;
/// The maximum length of a regular expression, and of all of them together, in bytes.
const MAX_PATTERN: usize = 1_024;
const MAX_PATTERNS: usize = 16 * 1024;

/// The limit that a schema exceeds. The text continues a sentence about the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum SchemaLimit {
    #[error("it has more than {limit} KiB", limit = MAX_BYTES / 1024)]
    Bytes,
    #[error("it has more than {MAX_VALUES} values")]
    Values,
    #[error("it is deeper than {MAX_DEPTH} levels")]
    Depth,
    #[error("a `{0}` refers to something outside of it")]
    Reference(&'static str),
    #[error("a nested schema has its own `$id`")]
    NestedId,
    #[error("its regular expressions are too long")]
    Patterns,
    #[error("its references expand to too many schemas")]
    Expanded,
}

/// Why arguments are not checked against this schema, if it exceeds a limit.
pub(crate) fn exceeded(raw: &str, schema: &Value) -> Option<SchemaLimit> {
    if raw.len() > MAX_BYTES {
        return Some(SchemaLimit::Bytes);
    }
    let mut walk = Walk { root: schema, values: 0, patterns: 0 };
    if let Err(limit) = walk.value(schema, 0) {
        return Some(limit);
    }
    let mut seen = Vec::new();
    let expanded = walk.expanded(schema, &mut seen, 0);
    (expanded > MAX_EXPANDED).then_some(SchemaLimit::Expanded)
}

/// The schema that a local reference points to.
pub fn referred<'s>(root: &'s Value, reference: &str) -> Option<&'s Value> {
    let fragment = reference.strip_prefix('#')?;
    if fragment.is_empty() {
        return Some(root);
    }
    if fragment.starts_with('/') {
        return root.pointer(&percent_decoded(fragment)?);
    }
    anchored(root, fragment, 0)
}

fn percent_decoded(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let hex = [rest.next()?, rest.next()?];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&hex).ok()?, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

fn anchored<'s>(value: &'s Value, name: &str, depth: usize) -> Option<&'s Value> {
    let inside = |value| if depth < MAX_DEPTH { anchored(value, name, depth + 1) } else { None };
    match value {
        Value::Object(members) => {
            let named = |key: &str| members.get(key).and_then(Value::as_str) == Some(name);
            if named("$anchor") || named("$dynamicAnchor") {
                return Some(value);
            }
            members.values().find_map(inside)
        }
        Value::Array(items) => items.iter().find_map(inside),
        _ => None,
    }
}

struct Walk<'s> {
    root: &'s Value,
    values: usize,
    patterns: usize,
}

/// Keywords that refer to another schema.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

impl<'s> Walk<'s> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), SchemaLimit> {
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(SchemaLimit::Values);
        }
        if depth > MAX_DEPTH {
            return Err(SchemaLimit::Depth);
        }
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| self.value(item, depth + 1)),
            Value::Object(members) => {
                self.keywords(members, depth)?;
                members.values().try_for_each(|value| self.value(value, depth + 1))
            }
            _ => Ok(()),
        }
    }

    fn keywords(&mut self, members: &Map<String, Value>, depth: usize) -> Result<(), SchemaLimit> {
        for key in REFERENCES {
            let reference = members.get(key).and_then(Value::as_str);
            if reference.is_some_and(|reference| referred(self.root, reference).is_none()) {
                return Err(SchemaLimit::Reference(key));
            }
        }
        // Below one of these keywords a reference would have another meaning.
        if depth > 0 && members.get("$id").is_some_and(Value::is_string) {
            return Err(SchemaLimit::NestedId);
        }
        let pattern = members.get("pattern").and_then(Value::as_str);
        let keys = members.get("patternProperties").and_then(Value::as_object);
        let keys = keys.into_iter().flat_map(|patterns| patterns.keys().map(String::as_str));
        for pattern in pattern.into_iter().chain(keys) {
            self.patterns += pattern.len();
            if pattern.len() > MAX_PATTERN || self.patterns > MAX_PATTERNS {
                return Err(SchemaLimit::Patterns);
            }
        }
        Ok(())
    }

    /// The number of schemas after references are expanded; a recursive reference is expanded once.
    fn expanded(&self, value: &'s Value, following: &mut Vec<&'s Value>, sum: u64) -> u64 {
        if sum > MAX_EXPANDED {
            return sum;
        }
        match value {
            Value::Array(items) => {
                items.iter().fold(sum, |sum, item| self.expanded(item, following, sum))
            }
            Value::Object(members) => {
                let mut sum = sum + 1;
                for key in REFERENCES {
                    let reference = members.get(key).and_then(Value::as_str);
                    let target = reference.and_then(|reference| referred(self.root, reference));
                    if let Some(target) = target
                        && !following.iter().any(|known| std::ptr::eq(*known, target))
                    {
                        following.push(target);
                        sum = self.expanded(target, following, sum);
                        following.pop();
                    }
                }
                let inside = members.iter().filter(|(key, _)| !DEFINITIONS.contains(&key.as_str()));
                inside.fold(sum, |sum, (_, value)| self.expanded(value, following, sum))
            }
            _ => sum,
        }
    }
}

/// Schemas that are only used through references.
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];

#[cfg(test)]
mod tests {
    use super::*;

    fn why(schema: &str) -> Option<String> {
        let limit = exceeded(schema, &serde_json::from_str(schema).unwrap());
        limit.map(|limit| limit.to_string())
    }

    #[test]
    fn real_world_schemas_are_within_bounds() {
        for schema in [
            "{}",
            r#"{"type":"object","properties":{"a":{"type":"string","pattern":"^[0-9]+$"}}}"#,
            r##"{"$defs":{"n":{"properties":{"next":{"$ref":"#/$defs/n"}}}},"$ref":"#/$defs/n"}"##,
            r##"{"$defs":{"a b":{"$anchor":"x"}},"properties":{"p":{"$ref":"#x"},"q":{"$ref":"#/$defs/a%20b"}}}"##,
            r#"{"$id":"https://example.com/s","properties":{"$ref":{"type":"string"}}}"#,
        ] {
            assert_eq!(why(schema), None, "{schema}");
        }
    }

    #[test]
    fn excessive_schemas_are_rejected() {
        let bomb = (0..40).map(|n| {
            let next = n + 1;
            format!(r##""d{n}":{{"anyOf":[{{"$ref":"#/$defs/d{next}"}},{{"$ref":"#/$defs/d{next}"}}]}}"##)
        });
        let bomb: Vec<String> = bomb.collect();
        let bomb =
            format!(r##"{{"$defs":{{{},"d40":{{}}}},"$ref":"#/$defs/d0"}}"##, bomb.join(","));
        let deep = format!("{}{{}}{}", r#"{"not":"#.repeat(70), "}".repeat(70));
        let long = format!(r#"{{"pattern":"{}"}}"#, "a".repeat(MAX_PATTERN + 1));
        let many = format!(r#"{{"enum":[{}0]}}"#, "0,".repeat(MAX_VALUES));
        for (schema, words) in [
            (bomb.as_str(), "expand"),
            (&deep, "deeper"),
            (&long, "regular expressions"),
            (&many, "values"),
            (r#"{"$ref":"https://example.com/s.json"}"#, "outside"),
            (r#"{"$ref":"file:///etc/passwd"}"#, "outside"),
            (r#"{"items":{"$dynamicRef":"other.json#x"}}"#, "outside"),
            (r##"{"$ref":"#/$defs/none"}"##, "outside"),
            (r#"{"properties":{"a":{"$id":"b"}}}"#, "$id"),
        ] {
            let why = why(schema).unwrap_or_default();
            assert!(why.contains(words), "{why}");
        }
    }
}
