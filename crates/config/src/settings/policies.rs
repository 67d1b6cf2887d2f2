//! `policies`: where each policy document is. The document itself is not parsed here.

use std::borrow::Cow;
use std::path::PathBuf;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::finding::Span;
use crate::problem::code;
use crate::reader::{KeyRule, Read, Reader, entries};
use crate::source::not_utf8;
use crate::syntax::{Key, Node, Value};
use crate::value::{Text, unreadable, why};

/// A named policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyConfig {
    /// Its name.
    pub name: String,
    /// Where its document is.
    pub source: PolicySource,
}

/// Where a policy's document is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicySource {
    /// In a file of its own; the path is already resolved.
    File(PathBuf),
    /// In the configuration file. The text is a YAML document padded with line breaks and spaces,
    /// so that its lines and columns are those of the configuration file.
    Inline(String),
}

/// Policy names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PolicyName;

impl KeyRule for PolicyName {
    const PATTERN: &'static str = "^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$";

    fn check(key: &Key, reader: &mut Reader<'_>) {
        let good = key.text.len() <= 64
            && key.text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && key.text.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c));
        if !good {
            let message = format!("`{}` cannot be the name of a policy", key.text);
            let hint = "up to 64 letters, digits, `-`, `_` and `.`, the first a letter or digit";
            reader.error_hint(code::INVALID_NAME, key.span, message, hint);
        }
    }
}

/// `{ file: PATH }`, or the document.
#[derive(Debug)]
pub(crate) struct RawPolicy(pub(crate) PolicySource);

impl Read for RawPolicy {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        if let Value::Text(path) = node.value() {
            let hint = format!("write `{{ file: {path} }}`, or the policy document itself");
            reader.wrong_type(node, "a mapping", Some(hint));
            return None;
        }
        let entries = entries(node, reader)?;
        let Some(file) = entries.iter().find(|entry| entry.key.text == "file") else {
            return Some(Self(PolicySource::Inline(padded(node.span, reader.text)?)));
        };
        for other in entries.iter().filter(|entry| entry.key.text != "file") {
            let message = format!("`{}` beside `file`", other.key.text);
            let hint = "a policy is either `{ file: PATH }` or the document itself";
            reader.error_hint(code::CONFLICT, other.key.span, message, hint);
        }
        let Text(path) = Text::read(&file.value, reader)?;
        let at = reader.path(&path);
        match reader.surroundings.read(&at) {
            Ok(bytes) if std::str::from_utf8(&bytes).is_err() => {
                unreadable(&path, not_utf8(&bytes), file.value.span, reader)
            }
            Ok(_) => Some(Self(PolicySource::File(at))),
            Err(error) => unreadable(&path, &why(&error), file.value.span, reader),
        }
    }
}

/// The source of a node, at the same line and column as in the whole file.
fn padded(span: Span, text: &str) -> Option<String> {
    let (lines, columns) = (span.line.saturating_sub(1), span.column.saturating_sub(1));
    let written = text.get(span.start..span.end)?;
    Some(format!("{}{}{written}\n", "\n".repeat(lines), " ".repeat(columns)))
}

impl JsonSchema for RawPolicy {
    fn schema_name() -> Cow<'static, str> {
        "PolicyEntry".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "`{ file: PATH }`, reloaded when it changes; or the policy document itself.",
            "type": "object",
            "properties": {
                "file": { "type": "string", "minLength": 1, "description": "The file of the policy document." },
            },
            "if": { "required": ["file"] },
            "then": { "maxProperties": 1 },
        })
    }
}
