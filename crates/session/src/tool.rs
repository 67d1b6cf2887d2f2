//! Tools as published by sessions, parsed once and shared between sessions.
//!
//! Invariant: a stored schema was parsed by serde_json, so it is well formed and at most 128 levels
//! deep; code that walks it may recurse.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use toolgate_json::object::{Member, members, value};
use toolgate_json::{fold, text};

use crate::arguments::SESSION_ID;
use crate::bounds;
use crate::error::{MAX_TOOL, ToolError, ValueError};

/// A tool of a session; equal ones are shared.
#[derive(Debug)]
pub struct Tool {
    /// Its name, as the client spells it.
    pub name: Arc<str>,
    /// Where `description` is in `raw`: it may be long, so it is not copied.
    description: Option<Range<usize>>,
    /// Its display name.
    pub title: Option<String>,
    /// The schema of its arguments.
    pub input_schema: Schema,
    /// The schema that arguments are checked against: `session_id` is reserved, so a property of
    /// that name is removed.
    pub checked_schema: Schema,
    /// Passed through unchanged: `annotations`, `outputSchema`, `icons`, `_meta`, under their MCP
    /// names.
    pub extras: BTreeMap<&'static str, Box<RawValue>>,
    /// Its own deadline.
    pub timeout: Option<Duration>,
    /// How many concurrent calls it declares to support.
    pub concurrency: Option<u32>,
    /// The whole raw definition.
    pub raw: Box<RawValue>,
    /// SHA-256 over everything of it that agents see in lists.
    pub(crate) shown: [u8; 32],
}

/// A JSON schema and its hash.
#[derive(Debug, Clone)]
pub struct Schema {
    /// The raw schema.
    pub raw: Box<RawValue>,
    /// SHA-256 over its canonical form: equal schemas have equal hashes, regardless of layout.
    pub hash: [u8; 32],
    /// Why arguments cannot be checked against it, if it exceeds a limit.
    pub exceeded: Option<Arc<str>>,
}

impl Tool {
    /// Its description.
    pub fn description(&self) -> Option<Cow<'_, str>> {
        text(self.raw_description()?)
    }

    /// The same as the JSON string that the client sent.
    pub(crate) fn raw_description(&self) -> Option<&str> {
        self.raw.get().get(self.description.clone()?)
    }

    /// Whether it declares an output schema.
    pub fn has_output_schema(&self) -> bool {
        self.extras.contains_key("outputSchema")
    }
}

impl Schema {
    /// A schema within the limits of sessions; `None` if it is not an object.
    pub fn parse(raw: &str) -> Option<Self> {
        Self::read(raw).ok()
    }

    fn read(raw: &str) -> Result<Self, ValueError> {
        let value: Value = serde_json::from_str(raw)?;
        if !value.is_object() {
            return Err(ValueError::NotAnObject);
        }
        let exceeded = bounds::exceeded(raw, &value).map(|limit| limit.to_string().into());
        let raw = RawValue::from_string(raw.to_owned())?;
        Ok(Self { raw, hash: Sha256::digest(value.to_string().as_bytes()).into(), exceeded })
    }
}

/// A canonical text: sorted keys, no layout. Values are equal if serde_json parses them as equal;
/// the text is never forwarded.
pub(crate) fn canonical(raw: &str) -> Result<String, ValueError> {
    let value: Value = serde_json::from_str(raw)?;
    Ok(value.to_string())
}

/// The public tools of one session, by name.
pub type Tools = BTreeMap<Arc<str>, Arc<Tool>>;

/// Parses a tool; `None` for an internal tool, which is never published.
pub(crate) fn read_tool(raw: &str) -> Result<Option<Tool>, ToolError> {
    // As [`RawValue`] keeps it.
    let raw = raw.trim();
    if raw.len() > MAX_TOOL {
        return Err(ToolError::TooLarge);
    }
    let members = members(raw).map_err(|_| ToolError::NotAnObject)?;
    let name = string(&members, "name")?.ok_or(ToolError::Missing("name"))?;
    if name.is_empty() || name.len() > 256 || name.contains(is_invisible) {
        return Err(ToolError::Name);
    }
    if name.trim() != name {
        return Err(ToolError::NameSpace);
    }
    match string(&members, "visibility")?.as_deref() {
        None | Some("public") => {}
        Some("internal") => return Ok(None),
        Some(_) => return Err(ToolError::Visibility),
    }
    let schema = value(&members, "input_schema").or_else(|| value(&members, "inputSchema"));
    let schema = schema.ok_or(ToolError::Missing("input_schema"))?;
    let in_schema = |error| ToolError::Value { key: "input_schema", error };
    let input_schema = Schema::read(schema).map_err(in_schema)?;
    let checked_schema = match without_property(schema, SESSION_ID) {
        Some(without) => Schema::read(&without).map_err(in_schema)?,
        None => input_schema.clone(),
    };
    let mut extras = BTreeMap::new();
    for (key, published) in EXTRAS {
        if let Some(raw) = value(&members, key).filter(|raw| *raw != "null") {
            // An unreadable definition would break every list that contains it.
            let checked = canonical(raw).and_then(|_| raw_value(raw));
            let raw = checked.map_err(|error| ToolError::Value { key, error })?;
            extras.insert(published, raw);
        }
    }
    let (title, description) = (string(&members, "title")?, string(&members, "description")?);
    let shown = shown(title.as_deref(), description.as_deref(), &input_schema, &extras);
    Ok(Some(Tool {
        name: name.into(),
        description: place(raw, &members, "description"),
        title,
        shown,
        input_schema,
        checked_schema,
        extras,
        timeout: whole(&members, "timeout_ms")?.map(|n| Duration::from_millis(n).min(MAX_TIMEOUT)),
        concurrency: whole(&members, "concurrency")?
            .map(|n| u32::try_from(n).unwrap_or(u32::MAX).min(MAX_CONCURRENCY)),
        raw: raw_value(raw).map_err(|_| ToolError::NotAnObject)?,
    }))
}

/// Where the string that belongs to `key` is in `raw`.
fn place(raw: &str, members: &[Member<'_>], key: &str) -> Option<Range<usize>> {
    let string = value(members, key).filter(|raw| *raw != "null")?;
    let start = string.as_ptr().addr().checked_sub(raw.as_ptr().addr())?;
    Some(start..start + string.len())
}

fn shown(
    title: Option<&str>,
    description: Option<&str>,
    schema: &Schema,
    extras: &BTreeMap<&'static str, Box<RawValue>>,
) -> [u8; 32] {
    let mut hash = Sha256::new();
    for text in [title, description] {
        match text {
            Some(text) => {
                hash.update(text.len().to_be_bytes());
                hash.update(text);
            }
            None => hash.update(usize::MAX.to_be_bytes()),
        }
    }
    hash.update(schema.hash);
    for (key, raw) in extras {
        hash.update(key);
        hash.update(raw.get().len().to_be_bytes());
        hash.update(raw.get());
    }
    hash.finalize().into()
}

/// Larger declared values are capped at this.
const MAX_CONCURRENCY: u32 = 1000;
/// Longer declared timeouts are capped at this; the operator may configure more.
const MAX_TIMEOUT: Duration = Duration::from_hours(24);

/// Characters that a name must not contain: they are invisible and make names look equal.
fn is_invisible(c: char) -> bool {
    let mut buffer = [0; 4];
    c.is_control() || (!c.is_whitespace() && fold(c.encode_utf8(&mut buffer)).is_empty())
}

/// Members that pass unchanged, and their MCP names.
const EXTRAS: [(&str, &str); 4] = [
    ("annotations", "annotations"),
    ("output_schema", "outputSchema"),
    ("icons", "icons"),
    ("_meta", "_meta"),
];

fn raw_value(raw: &str) -> Result<Box<RawValue>, ValueError> {
    Ok(RawValue::from_string(raw.to_owned())?)
}

fn string(members: &[Member<'_>], key: &'static str) -> Result<Option<String>, ToolError> {
    match value(members, key) {
        None | Some("null") => Ok(None),
        Some(raw) => match text(raw) {
            Some(text) => Ok(Some(text.into_owned())),
            None => Err(ToolError::NotAString(key)),
        },
    }
}

fn whole(members: &[Member<'_>], key: &'static str) -> Result<Option<u64>, ToolError> {
    match value(members, key) {
        None | Some("null") => Ok(None),
        Some(raw) => match raw.parse() {
            Ok(0) | Err(_) => Err(ToolError::NotANumber(key)),
            Ok(number) => Ok(Some(number)),
        },
    }
}

/// The schema without a property; `None` if it does not contain it.
fn without_property(raw: &str, name: &str) -> Option<String> {
    let schema: Value = serde_json::from_str(raw).ok()?;
    let listed = schema.get("properties").is_some_and(|properties| properties.get(name).is_some());
    let required = schema.get("required").and_then(Value::as_array);
    let required = required.is_some_and(|names| names.iter().any(|other| other == name));
    if !listed && !required {
        return None;
    }
    let mut schema = schema;
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.remove(name);
    }
    if let Some(names) = schema.get_mut("required").and_then(Value::as_array_mut) {
        names.retain(|other| other != name);
    }
    Some(schema.to_string())
}
