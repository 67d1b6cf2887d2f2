//! Tools as sessions publish them, read once when they come and shared between sessions.
//!
//! Invariant: a schema that is kept has been read by serde_json, so it is well formed and not
//! deeper than serde_json goes (128); whoever walks it may recurse.

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

/// One tool of one session; equal ones are shared.
#[derive(Debug)]
pub struct Tool {
    /// Its name, as the client spells it.
    pub name: Arc<str>,
    /// Where `description` is in `raw`: it may be long, so it is not copied.
    description: Option<Range<usize>>,
    /// A name for people.
    pub title: Option<String>,
    /// Its arguments.
    pub input_schema: Schema,
    /// What its arguments are checked against: `session_id` is the gate's, so a client's own
    /// property of that name is taken out.
    pub checked_schema: Schema,
    /// Kept as they came: `annotations`, `outputSchema`, `icons`, `_meta`, under their MCP names.
    pub extras: BTreeMap<&'static str, Box<RawValue>>,
    /// Its own deadline.
    pub timeout: Option<Duration>,
    /// How many calls at once it says it can take.
    pub concurrency: Option<u32>,
    /// The whole definition as it came.
    pub raw: Box<RawValue>,
    /// SHA-256 over everything of it that agents see in lists.
    pub(crate) shown: [u8; 32],
}

/// A JSON schema and its hash.
#[derive(Debug, Clone)]
pub struct Schema {
    /// As it came.
    pub raw: Box<RawValue>,
    /// SHA-256 over its canonical form: equal schemas have equal hashes, however they are laid out.
    pub hash: [u8; 32],
    /// Why no arguments can be checked against it, if so: it asks for too much.
    pub exceeded: Option<Arc<str>>,
}

impl Tool {
    /// What it is for.
    pub fn description(&self) -> Option<Cow<'_, str>> {
        text(self.raw_description()?)
    }

    /// The same as the JSON string that the client sent.
    pub(crate) fn raw_description(&self) -> Option<&str> {
        self.raw.get().get(self.description.clone()?)
    }

    /// Whether its results have a schema of their own.
    pub fn has_output_schema(&self) -> bool {
        self.extras.contains_key("outputSchema")
    }
}

impl Schema {
    fn read(raw: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(raw).map_err(|error| error.to_string())?;
        if !value.is_object() {
            return Err("must be an object".to_owned());
        }
        let exceeded = bounds::exceeded(raw, &value).map(Into::into);
        let raw = RawValue::from_string(raw.to_owned()).map_err(|error| error.to_string())?;
        Ok(Self { raw, hash: Sha256::digest(value.to_string().as_bytes()).into(), exceeded })
    }
}

/// What is the same for the same value: sorted keys, no layout. Equal by value means equal as
/// serde_json reads it; nothing of it is ever forwarded.
pub(crate) fn canonical(raw: &str) -> Result<String, String> {
    let value: Value = serde_json::from_str(raw).map_err(|error| error.to_string())?;
    Ok(value.to_string())
}

/// The public tools of one session, by name.
pub type Tools = BTreeMap<Arc<str>, Arc<Tool>>;

/// `None` is an internal tool, which nobody ever sees. Errors go on after `` `tools[3] ``.
pub(crate) fn read_tool(raw: &str) -> Result<Option<Tool>, String> {
    // As [`RawValue`] keeps it.
    let raw = raw.trim();
    if raw.len() > MAX_TOOL {
        return Err(format!("` is larger than {} KiB", MAX_TOOL / 1024));
    }
    let members = members(raw).map_err(|_| "` must be an object".to_owned())?;
    let name = string(&members, "name")?.ok_or(".name` is missing")?;
    if name.is_empty() || name.len() > 256 || name.contains(is_invisible) {
        return Err(
            ".name` must have 1 to 256 bytes and no control or invisible characters".to_owned()
        );
    }
    if name.trim() != name {
        return Err(".name` must not begin or end with white space".to_owned());
    }
    match string(&members, "visibility")?.as_deref() {
        None | Some("public") => {}
        Some("internal") => return Ok(None),
        Some(_) => return Err(".visibility` must be `public` or `internal`".to_owned()),
    }
    let schema = value(&members, "input_schema").or_else(|| value(&members, "inputSchema"));
    let schema = schema.ok_or(".input_schema` is missing")?;
    let input_schema = Schema::read(schema).map_err(|what| format!(".input_schema`: {what}"))?;
    let checked_schema = match without_property(schema, SESSION_ID) {
        Some(without) => Schema::read(&without)?,
        None => input_schema.clone(),
    };
    let mut extras = BTreeMap::new();
    for (key, published) in EXTRAS {
        if let Some(raw) = value(&members, key).filter(|raw| *raw != "null") {
            // A definition that nobody can read would spoil every list it stands in.
            canonical(raw).map_err(|what| format!(".{key}`: {what}"))?;
            let raw = RawValue::from_string(raw.to_owned()).map_err(|error| error.to_string())?;
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
        raw: RawValue::from_string(raw.to_owned()).map_err(|error| error.to_string())?,
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

/// A client that claims more gets this.
const MAX_CONCURRENCY: u32 = 1000;
/// A client that wants longer gets this; the operator may say more.
const MAX_TIMEOUT: Duration = Duration::from_hours(24);
/// The largest definition, bytes: every agent is shown it.
const MAX_TOOL: usize = 512 * 1024;

/// Characters that a name must not have: they show nothing, and other names read the same.
fn is_invisible(c: char) -> bool {
    let mut buffer = [0; 4];
    c.is_control() || (!c.is_whitespace() && fold(c.encode_utf8(&mut buffer)).is_empty())
}

/// What is kept as it comes, and what MCP calls it.
const EXTRAS: [(&str, &str); 4] = [
    ("annotations", "annotations"),
    ("output_schema", "outputSchema"),
    ("icons", "icons"),
    ("_meta", "_meta"),
];

fn string(members: &[Member<'_>], key: &str) -> Result<Option<String>, String> {
    match value(members, key) {
        None | Some("null") => Ok(None),
        Some(raw) => match text(raw) {
            Some(text) => Ok(Some(text.into_owned())),
            None => Err(format!(".{key}` must be a string")),
        },
    }
}

fn whole(members: &[Member<'_>], key: &str) -> Result<Option<u64>, String> {
    match value(members, key) {
        None | Some("null") => Ok(None),
        Some(raw) => match raw.parse() {
            Ok(0) | Err(_) => Err(format!(".{key}` must be a whole number above 0")),
            Ok(number) => Ok(Some(number)),
        },
    }
}

/// The schema without a property; `None` if it does not speak of it.
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
