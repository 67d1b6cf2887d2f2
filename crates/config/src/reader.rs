//! Typed reading over the tree, collecting problems instead of stopping at the first.
//!
//! A type of a value in the file implements [`Read`]; sections are defined by the [`section!`]
//! macro, which derives reader, schema and documentation from one definition.
//!
//! Invariant: a reader that returns `None` has reported why.
//! Start at [`Read`] and [`Reader`].

use std::borrow::Cow;
use std::fmt::Display;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use toolgate_policy::Severity;

use crate::finding::{Finding, MAX_FINDINGS, Span};
use crate::problem::code;
use crate::suggest;
use crate::surroundings::Surroundings;
use crate::syntax::{Entry, Key, Kind, Node};

/// A type that can be read from a node.
pub(crate) trait Read: Sized {
    /// Reads `node`; `None` after reporting what is wrong with it.
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self>;
}

/// The shared state of readers: the base folder, the source of references, and the findings.
pub(crate) struct Reader<'a> {
    pub(crate) findings: Vec<Finding>,
    pub(crate) text: &'a str,
    pub(crate) folder: PathBuf,
    pub(crate) surroundings: &'a dyn Surroundings,
    /// The listeners that the file names, with their positions.
    pub(crate) listeners: Vec<(&'static str, Span)>,
}

impl Reader<'_> {
    pub(crate) fn error(&mut self, code: &'static str, span: Span, message: impl Display) {
        self.push(Severity::Error, code, span, message.to_string(), None);
    }

    pub(crate) fn error_hint(
        &mut self,
        code: &'static str,
        span: Span,
        message: impl Display,
        hint: impl Display,
    ) {
        self.push(Severity::Error, code, span, message.to_string(), Some(hint.to_string()));
    }

    pub(crate) fn warn(&mut self, code: &'static str, span: Span, message: String, hint: String) {
        self.push(Severity::Warning, code, span, message, Some(hint));
    }

    /// Reports that `node` is not what was `expected`.
    pub(crate) fn wrong_type(&mut self, node: &Node, expected: &str, hint: Option<String>) {
        let found = match &node.kind {
            Kind::Null => "nothing",
            Kind::Scalar(scalar) if scalar.plain && is_number(&scalar.text) => "a number",
            Kind::Scalar(scalar) if scalar.plain && is_boolean(&scalar.text) => "a boolean",
            Kind::Scalar(_) => "text",
            Kind::List(_) => "a list",
            Kind::Map { .. } => "a mapping",
        };
        let message = format!("expected {expected}, found {found}");
        self.push(Severity::Error, code::WRONG_TYPE, first_line(node, self.text), message, hint);
    }

    /// The value, or a report at `parent` that `key` is missing. A value that was present but
    /// invalid has been reported and is not missing.
    pub(crate) fn require<T>(
        &mut self,
        value: Option<T>,
        key: &str,
        parent: Span,
        unreadable: &[&str],
    ) -> Option<T> {
        if value.is_none() && !unreadable.contains(&key) {
            self.error(code::MISSING_KEY, parent, format!("`{key}` is missing"));
        }
        value
    }

    /// Whether the list at `span` was written without items, rather than left without valid ones.
    pub(crate) fn is_empty_list(&self, span: Span) -> bool {
        let written = self.text.get(span.start..).and_then(|text| text.strip_prefix('['));
        written.is_some_and(|rest| rest.trim_start().starts_with(']'))
    }

    /// A path relative to the folder of the file.
    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        // Without the `.` that may be between the two.
        self.folder.join(path).components().collect()
    }

    fn push(
        &mut self,
        severity: Severity,
        code: &'static str,
        span: Span,
        message: String,
        hint: Option<String>,
    ) {
        if self.findings.iter().filter(|other| other.severity == severity).count() >= MAX_FINDINGS {
            return;
        }
        let message = clipped(message);
        // A placeholder for an invalid value needs no second report.
        let broken = |other: &Finding| other.code == code::SYNTAX && other.span == span;
        let finding = Finding { severity, code, span, message, hint };
        // A value used through an alias is read more than once.
        if !self.findings.iter().any(|other| broken(other) || *other == finding) {
            self.findings.push(finding);
        }
    }
}

/// A message that quotes a very long value is cut.
fn clipped(message: String) -> String {
    match message.char_indices().nth(300) {
        Some((end, _)) => format!("{}…", message.get(..end).unwrap_or_default()),
        None => message,
    }
}

/// A value with its position.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At<T> {
    pub(crate) value: T,
    pub(crate) span: Span,
}

impl<T: Read> Read for At<T> {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        Some(Self { value: T::read(node, reader)?, span: first_line(node, reader.text) })
    }
}

impl<T: JsonSchema> JsonSchema for At<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }
    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// A list; invalid items are reported and left out.
impl<T: Read> Read for Vec<T> {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        if let Kind::List(items) = &node.kind {
            return Some(items.iter().filter_map(|item| T::read(item, reader)).collect());
        }
        let hint = "write `[a, b]`, or one `- item` a line".to_owned();
        reader.wrong_type(node, "a list", Some(hint));
        None
    }
}

/// A mapping whose keys the user chooses, in the order of the file.
#[derive(Debug, Clone)]
pub(crate) struct Named<K, T> {
    pub(crate) entries: Vec<(At<String>, T)>,
    key: PhantomData<K>,
}

impl<K, T> Default for Named<K, T> {
    fn default() -> Self {
        Self { entries: Vec::new(), key: PhantomData }
    }
}

/// The rule for keys of a [`Named`].
pub(crate) trait KeyRule {
    /// Regular expression for the schema.
    const PATTERN: &'static str;
    /// Reports what is wrong with `key`.
    fn check(key: &Key, reader: &mut Reader<'_>);
}

impl<K: KeyRule, T: Read> Read for Named<K, T> {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        let entries = entries(node, reader)?;
        let mut read = Self::default();
        for Entry { key, value } in entries {
            K::check(key, reader);
            if let Some(value) = T::read(value, reader) {
                read.entries.push((At { value: key.text.clone(), span: key.span }, value));
            }
        }
        Some(read)
    }
}

impl<K: KeyRule, T: JsonSchema> JsonSchema for Named<K, T> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("Named{}", T::schema_name()).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "additionalProperties": generator.subschema_for::<T>(),
            "propertyNames": { "pattern": K::PATTERN },
        })
    }
}

/// The entries of a mapping, or a report that `node` is not a mapping.
pub(crate) fn entries<'a>(node: &'a Node, reader: &mut Reader<'_>) -> Option<&'a [Entry]> {
    if let Kind::Map { entries, .. } = &node.kind {
        return Some(entries);
    }
    reader.wrong_type(node, "a mapping", Some("write `key: value` lines below it".to_owned()));
    None
}

/// Reports a key that a section does not have.
pub(crate) fn unknown_key(
    key: &Key,
    known: &[&str],
    foreign: &[(&str, &str)],
    reader: &mut Reader<'_>,
) {
    let message = format!("unknown key `{}`", key.text);
    let foreign = foreign.iter().find(|(name, _)| *name == key.text);
    let hint =
        foreign.map(|(_, hint)| (*hint).to_owned()).or_else(|| suggest::hint(&key.text, known));
    reader.push(Severity::Error, code::UNKNOWN_KEY, key.span, message, hint);
}

/// A node of several lines is underlined only in its first.
fn first_line(node: &Node, text: &str) -> Span {
    let written = text.get(node.span.start..node.span.end).unwrap_or_default();
    let end = node.span.start + written.lines().next().map_or(0, str::len);
    Span { end, ..node.span }
}

pub(crate) fn is_number(text: &str) -> bool {
    text.parse::<f64>().is_ok() && text.contains(|c: char| c.is_ascii_digit())
}

pub(crate) fn is_boolean(text: &str) -> bool {
    matches!(text, "true" | "True" | "TRUE" | "false" | "False" | "FALSE")
}

/// Defines a section of fixed keys: the struct, its reader and its schema.
///
/// Every key is optional, and `key:` without a value is absent; keys that begin with `x-` are
/// skipped. `as "key"` names a key that is not a Rust name. `foreign` lists keys of other programs,
/// each with a hint.
macro_rules! section {
    ($(foreign = $foreign:expr;)? $(#[$meta:meta])* struct $name:ident {
        $($(#[$field_meta:meta])* $field:ident $(as $key:literal)?: $type:ty,)*
    }) => {
        #[derive(Debug, Default, schemars::JsonSchema)]
        $(#[$meta])*
        #[schemars(deny_unknown_fields, extend("patternProperties" = {"^x-": true}))]
        pub(crate) struct $name {
            $($(#[$field_meta])* $(#[schemars(rename = $key)])? pub(crate) $field: Option<crate::reader::At<$type>>,)*
            /// Keys that are in the file with an invalid value.
            #[schemars(skip)]
            pub(crate) unreadable: Vec<&'static str>,
        }

        impl crate::reader::Read for $name {
            fn read(node: &crate::syntax::Node, reader: &mut crate::reader::Reader<'_>) -> Option<Self> {
                let entries = crate::reader::entries(node, reader)?;
                let mut section = Self::default();
                for crate::syntax::Entry { key, value } in entries {
                    let absent = matches!(value.kind, crate::syntax::Kind::Null);
                    match key.text.as_str() {
                        $(section!(@key $field $($key)?) if absent => {})*
                        $(section!(@key $field $($key)?) => {
                            section.$field = crate::reader::Read::read(value, reader);
                            if section.$field.is_none() {
                                section.unreadable.push(section!(@key $field $($key)?));
                            }
                        })*
                        text if text.starts_with("x-") => {}
                        _ => {
                            let known = &[$(section!(@key $field $($key)?)),*];
                            let foreign: &[(&str, &str)] = section!(@foreign $($foreign)?);
                            crate::reader::unknown_key(key, known, foreign, reader);
                        }
                    }
                }
                Some(section)
            }
        }
    };
    (@foreign $foreign:expr) => { $foreign };
    (@foreign) => { &[] };
    (@key $field:ident $key:literal) => { $key };
    (@key $field:ident) => { stringify!($field) };
}

pub(crate) use section;
