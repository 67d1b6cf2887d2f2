//! The showcase in the store: one document for each entry; coalesced changes are one transaction.
//!
//! Invariant: entries that changed together are written together.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_session::{EntryKey, Millis, Publisher, ShowcaseEntry};
use toolgate_store::Change;

/// The space of the store that holds it.
pub(super) const SPACE: &str = "showcase";
/// How many entries a row names.
const NAMED: usize = 10;

/// Changed entries: their new content, or removed.
#[derive(Debug, Default)]
pub(super) struct Changes(BTreeMap<EntryKey, Option<Arc<ShowcaseEntry>>>);

impl Changes {
    /// A later change of an entry replaces an earlier one.
    pub(super) fn add(&mut self, changes: Vec<(EntryKey, Option<Arc<ShowcaseEntry>>)>) {
        self.0.extend(changes);
    }

    /// Puts back what could not be written, unless it has changed again since.
    pub(super) fn put_back(&mut self, older: Self) {
        for (key, entry) in older.0 {
            self.0.entry(key).or_insert(entry);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of it as one change of the store.
    pub(super) fn change(&self) -> Change {
        let (mut keep, mut forget) = (Vec::new(), Vec::new());
        for (key, entry) in &self.0 {
            match entry {
                Some(entry) => keep.push((name(key), write(entry).into())),
                None => forget.push(name(key)),
            }
        }
        Change::ReplaceDocuments { space: SPACE.into(), keep, forget }
    }

    /// The message of the row.
    pub(super) fn row_message(&self) -> String {
        let entries = self.0.iter().take(NAMED).map(|(key, entry)| {
            let (kind, config_id) = (&key.kind, &key.config_id);
            match entry {
                Some(entry) => format!("{} tools of {kind}/{config_id} kept", entry.tools.len()),
                None => format!("{kind}/{config_id} forgotten"),
            }
        });
        let entries: Vec<String> = entries.collect();
        let more = match self.0.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        format!("showcase: {}{more}", entries.join(", "))
    }
}

/// The key under which the store has an entry.
fn name(key: &EntryKey) -> Arc<str> {
    json!([key.kind, key.config_id, key.infobase_name]).to_string().into()
}

fn write(entry: &ShowcaseEntry) -> String {
    let publishers = entry.publishers.iter().map(|publisher| {
        let Publisher { session_id, infobase_name, host_id, last_seen } = publisher;
        json!([&**session_id, infobase_name, host_id, last_seen.0])
    });
    let publishers: Vec<Value> = publishers.collect();
    let tools: Vec<&str> = entry.tools.values().map(|tool| tool.raw.get()).collect();
    let head = json!({
        "kind": entry.key.kind,
        "config_id": entry.key.config_id,
        "infobase_name": entry.key.infobase_name,
        "last_seen": entry.last_seen.0,
        "publishers": publishers,
        "tools": tools,
    });
    head.to_string()
}

/// An entry as it was written.
pub(super) fn restore(json: &str) -> Option<ShowcaseEntry> {
    let kept: Value = serde_json::from_str(json).ok()?;
    let text = |key: &str| Some(kept.get(key)?.as_str()?.to_owned());
    let key = EntryKey {
        kind: text("kind")?,
        config_id: text("config_id")?,
        infobase_name: text("infobase_name"),
    };
    let last_seen = Millis(kept.get("last_seen")?.as_u64()?);
    let publishers = kept.get("publishers")?.as_array()?;
    let publishers = publishers.iter().filter_map(|raw| publisher(raw, last_seen));
    // Definitions are kept as text, so that every number keeps its spelling.
    let tools = kept.get("tools")?.as_array()?.iter().filter_map(Value::as_str);
    Some(ShowcaseEntry::restore(key, tools, last_seen, publishers))
}

/// A publisher. Older versions stored only its id and infobase.
fn publisher(raw: &Value, last_seen: Millis) -> Option<Publisher> {
    Some(Publisher {
        session_id: raw.get(0)?.as_str()?.into(),
        infobase_name: raw.get(1)?.as_str()?.to_owned(),
        host_id: raw.get(2).and_then(Value::as_str).unwrap_or("unknown").to_owned(),
        last_seen: raw.get(3).and_then(Value::as_u64).map_or(last_seen, Millis),
    })
}
