//! `tools_cache.json` of an existing installation: imported, and exported in the same layout so
//! that migrating back is possible.

use std::sync::Arc;

use jiff::Timestamp;
use thiserror::Error;
use toolgate_json::object::{members, value};
use toolgate_json::{items, quote, text};

use super::{EntryKey, ShowcaseEntry};
use crate::error::ToolError;
use crate::time::Millis;

/// Why a file was not imported.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ImportError {
    /// The file is not a JSON object; the message of the parser.
    #[error("not a tools cache: {0}")]
    NotAnObject(String),
    /// The version is not supported.
    #[error("`version` must be 1")]
    Version,
    /// The entries are not a list; the message of the parser.
    #[error("{0}")]
    Json(String),
    /// The entries are not a list.
    #[error("`entries` must be an array")]
    NotAnArray,
    /// An entry is invalid; its index and the problem, which continues the path.
    #[error("`entries[{0}].{1}")]
    Entry(usize, String),
}

/// Why an entry is invalid. The text continues its path.
#[derive(Debug, Error)]
enum EntryError {
    #[error("` must be an object")]
    NotAnObject,
    #[error("{0}` must be a string")]
    NotAString(&'static str),
    #[error("tools` must be an array")]
    ToolsNotAnArray,
    #[error("tools[{index}]{error}")]
    Tool { index: usize, error: ToolError },
    #[error("last_seen_at` must be a time")]
    Time,
}

/// Parses `{"version":1,"entries":[{"kind","config_id","tools","last_seen_at"}]}`. `last_seen_at`
/// may be RFC 3339, Unix seconds or Unix milliseconds. Invalid tools are rejected with their
/// position, not skipped.
pub fn import(json: &str) -> Result<Vec<ShowcaseEntry>, ImportError> {
    let whole = members(json).map_err(|error| ImportError::NotAnObject(error.to_string()))?;
    if value(&whole, "version") != Some("1") {
        return Err(ImportError::Version);
    }
    let entries = value(&whole, "entries").map(items).transpose();
    let entries = entries.map_err(|error| ImportError::Json(error.to_string()))?.flatten();
    let entries = entries.ok_or(ImportError::NotAnArray)?;
    let read = entries.into_iter().enumerate().map(|(index, raw)| {
        entry(raw).map_err(|error| ImportError::Entry(index, error.to_string()))
    });
    read.collect()
}

fn entry(raw: &str) -> Result<ShowcaseEntry, EntryError> {
    let members = members(raw).map_err(|_| EntryError::NotAnObject)?;
    let string = |key: &'static str| {
        let found = value(&members, key).and_then(text);
        found.map(std::borrow::Cow::into_owned).ok_or(EntryError::NotAString(key))
    };
    let key =
        EntryKey { kind: string("kind")?, config_id: string("config_id")?, infobase_name: None };
    let tools = value(&members, "tools").and_then(|raw| items(raw).ok().flatten());
    let tools = tools.ok_or(EntryError::ToolsNotAnArray)?;
    let mut read = std::collections::BTreeMap::new();
    for (index, raw) in tools.into_iter().enumerate() {
        let tool = super::read_tool(raw).map_err(|error| EntryError::Tool { index, error })?;
        if let Some(tool) = tool {
            read.entry(Arc::clone(&tool.name)).or_insert_with(|| Arc::new(tool));
        }
    }
    let last_seen = value(&members, "last_seen_at").and_then(time);
    let last_seen = last_seen.ok_or(EntryError::Time)?;
    Ok(ShowcaseEntry {
        key,
        tools: Arc::new(read),
        last_seen,
        publishers: std::collections::VecDeque::new(),
    })
}

fn time(raw: &str) -> Option<Millis> {
    if let Some(text) = text(raw) {
        let time: Timestamp = text.parse().ok()?;
        return u64::try_from(time.as_millisecond()).ok().map(Millis);
    }
    let whole: u64 = raw.split('.').next()?.parse().ok()?;
    // Seconds reach this number in the year 5138.
    Some(Millis(if whole < 100_000_000_000 { whole * 1000 } else { whole }))
}

/// Writes that layout. Entries that differ only in their infobase become one: the newest.
pub fn export<'a>(entries: impl IntoIterator<Item = &'a ShowcaseEntry>) -> String {
    let mut newest: std::collections::BTreeMap<(&str, &str), &ShowcaseEntry> =
        std::collections::BTreeMap::new();
    for entry in entries {
        let known = newest.entry((&entry.key.kind, &entry.key.config_id)).or_insert(entry);
        if known.last_seen < entry.last_seen {
            *known = entry;
        }
    }
    let mut out = String::from(r#"{"version":1,"entries":["#);
    for (index, ((kind, config_id), entry)) in newest.into_iter().enumerate() {
        let tools: Vec<&str> = entry.tools.values().map(|tool| tool.raw.get()).collect();
        let time = entry.last_seen.timestamp();
        out.push_str(if index == 0 { "" } else { "," });
        out.extend([r#"{"kind":"#, &quote(kind), r#","config_id":"#]);
        out.extend([&quote(config_id), r#","tools":["#, &tools.join(",")]);
        out.extend([r#"],"last_seen_at":""#, &time.to_string(), "\"}"]);
    }
    out.push_str("]}");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_comes_back_as_it_was() {
        let file = r#"{"version":1,"entries":[{"kind":"client","config_id":"УТ","tools":[{"name":"Найти","input_schema":{"type":"object"}}],"last_seen_at":"2026-11-15T10:00:00Z"},{"kind":"server","config_id":"server","tools":[],"last_seen_at":"2026-11-14T10:00:00.5Z"}]}"#;
        assert_eq!(export(&import(file).unwrap()), file);
    }

    #[test]
    fn times_are_read_in_every_form() {
        for (raw, expected) in [
            ("\"2026-11-15T10:00:00Z\"", Some(1_794_736_800_000)),
            ("\"2026-11-15T13:00:00+03:00\"", Some(1_794_736_800_000)),
            ("1794736800", Some(1_794_736_800_000)),
            ("1794736800123", Some(1_794_736_800_123)),
            ("\"yesterday\"", None),
            ("null", None),
        ] {
            assert_eq!(time(raw), expected.map(Millis), "{raw}");
        }
    }

    #[test]
    fn invalid_files_are_explained() {
        for (json, expected) in [
            ("[]", "not a tools cache"),
            (r#"{"version":2,"entries":[]}"#, "`version` must be 1"),
            (r#"{"version":1}"#, "`entries` must be an array"),
            (
                r#"{"version":1,"entries":[{"kind":"a"}]}"#,
                "`entries[0].config_id` must be a string",
            ),
            (
                r#"{"version":1,"entries":[{"kind":"a","config_id":"b","tools":[{}],"last_seen_at":1}]}"#,
                "`entries[0].tools[0].name` is missing",
            ),
        ] {
            let error = import(json).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
