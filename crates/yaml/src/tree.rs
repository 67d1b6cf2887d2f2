//! The tree: nodes, keys and positions.

use crate::number;

/// A position: bytes for slicing, line and column (in characters, from 1) for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    /// Line of the first byte, from 1.
    pub line: usize,
    /// Column of the first byte, from 1.
    pub column: usize,
}

/// A value of the document.
#[derive(Debug, Clone)]
pub struct Node {
    /// What it is.
    pub kind: Kind,
    /// Where it is.
    pub span: Span,
}

/// The kind of a value, as far as YAML's syntax defines it.
#[derive(Debug, Clone)]
pub enum Kind {
    /// Nothing, `~` or `null`.
    Null,
    /// Anything else that is neither a list nor a mapping.
    Scalar(Scalar),
    /// A list.
    List(Vec<Node>),
    /// A mapping.
    Map {
        /// Its members, in the order of the source.
        entries: Vec<Entry>,
        /// Members that were reported and are not part of the mapping: duplicates, unless the rules
        /// keep them, and keys that are not text.
        dropped: Vec<Entry>,
    },
}

/// A scalar as written.
#[derive(Debug, Clone)]
pub struct Scalar {
    /// Its text, without quotes.
    pub text: String,
    /// Not quoted, so it may be a number or a boolean.
    pub plain: bool,
}

/// One `key: value`.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The key.
    pub key: Key,
    /// The value.
    pub value: Node,
}

/// A key; keys are always text.
#[derive(Debug, Clone)]
pub struct Key {
    /// Its text, without quotes.
    pub text: String,
    /// Where it is.
    pub span: Span,
}

/// A node read by the core schema of YAML 1.2.
#[derive(Debug, Clone, Copy)]
pub enum Value<'n> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, spelled as a JSON number.
    Number(&'n str),
    /// A spelling that some readers take for a number and JSON does not: `010`, `0x1F`, `1_000`.
    AmbiguousNumber(&'n str),
    /// Text.
    Text(&'n str),
    /// A list.
    List(&'n [Node]),
    /// A mapping.
    Map(&'n [Entry]),
}

impl Node {
    /// A quoted string.
    pub fn text(text: impl Into<String>, span: Span) -> Self {
        Self { kind: Kind::Scalar(Scalar { text: text.into(), plain: false }), span }
    }

    /// A mapping.
    pub fn map(entries: Vec<Entry>, span: Span) -> Self {
        Self { kind: Kind::Map { entries, dropped: Vec::new() }, span }
    }

    /// The node by the core schema.
    pub fn value(&self) -> Value<'_> {
        match &self.kind {
            Kind::Null => Value::Null,
            Kind::Scalar(scalar) => scalar.value(),
            Kind::List(items) => Value::List(items),
            Kind::Map { entries, .. } => Value::Map(entries),
        }
    }

    /// The value of a key, if the node is a mapping that has it.
    pub fn get(&self, name: &str) -> Option<&Node> {
        let Value::Map(entries) = self.value() else { return None };
        entries.iter().find(|entry| entry.key.text == name).map(|entry| &entry.value)
    }

    /// Calls `visit` for every scalar that is not a key.
    pub fn for_each_scalar(&mut self, visit: &mut dyn FnMut(&mut Scalar, Span)) {
        match &mut self.kind {
            Kind::Null => {}
            Kind::Scalar(scalar) => visit(scalar, self.span),
            Kind::List(items) => {
                for item in items {
                    item.for_each_scalar(visit);
                }
            }
            Kind::Map { entries, .. } => {
                for entry in entries {
                    entry.value.for_each_scalar(visit);
                }
            }
        }
    }

    /// The value as JSON, numbers as spelled.
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        self.write_json(&mut out);
        out
    }

    fn write_json(&self, out: &mut String) {
        match self.value() {
            Value::Null => out.push_str("null"),
            Value::Bool(flag) => out.push_str(if flag { "true" } else { "false" }),
            Value::Number(text) => out.push_str(text),
            Value::AmbiguousNumber(text) | Value::Text(text) => {
                toolgate_json::push_quoted(text, out);
            }
            Value::List(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    item.write_json(out);
                }
                out.push(']');
            }
            Value::Map(entries) => {
                out.push('{');
                for (index, Entry { key, value }) in entries.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    toolgate_json::push_quoted(&key.text, out);
                    out.push(':');
                    value.write_json(out);
                }
                out.push('}');
            }
        }
    }
}

impl Scalar {
    /// The scalar by the core schema.
    pub fn value(&self) -> Value<'_> {
        let text = self.text.as_str();
        match text {
            _ if !self.plain => Value::Text(text),
            "true" | "True" | "TRUE" => Value::Bool(true),
            "false" | "False" | "FALSE" => Value::Bool(false),
            _ if toolgate_json::is_number(text) => Value::Number(text),
            _ if number::is_ambiguous(text) => Value::AmbiguousNumber(text),
            _ => Value::Text(text),
        }
    }
}
