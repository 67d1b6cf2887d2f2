//! The showcase as the store keeps it: one document for each entry, all changes of a while in one
//! transaction.
//!
//! Invariant: what has changed together is written together, or not yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_session::{EntryKey, Millis, ShowcaseEntry};
use toolgate_store::Change;

/// The space of the store that holds it.
pub(super) const SPACE: &str = "showcase";
/// How many entries a row names.
const NAMED: usize = 10;

/// What has become of entries: kept as they are now, or forgotten.
#[derive(Debug, Default)]
pub(super) struct Changes(BTreeMap<EntryKey, Option<Arc<ShowcaseEntry>>>);

impl Changes {
    /// What comes later counts.
    pub(super) fn add(&mut self, changes: Vec<(EntryKey, Option<Arc<ShowcaseEntry>>)>) {
        self.0.extend(changes);
    }

    /// Puts back what could not be written; what has come since counts.
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

    /// What the row says.
    pub(super) fn said(&self) -> String {
        let said = self.0.iter().take(NAMED).map(|(key, entry)| {
            let (kind, config_id) = (&key.kind, &key.config_id);
            match entry {
                Some(entry) => format!("{} tools of {kind}/{config_id} kept", entry.tools.len()),
                None => format!("{kind}/{config_id} forgotten"),
            }
        });
        let said: Vec<String> = said.collect();
        let more = match self.0.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        format!("showcase: {}{more}", said.join(", "))
    }
}

/// The key under which the store has an entry.
fn name(key: &EntryKey) -> Arc<str> {
    json!([key.kind, key.config_id, key.infobase_name]).to_string().into()
}

fn write(entry: &ShowcaseEntry) -> String {
    let publishers: Vec<Value> =
        entry.publishers.iter().map(|(uid, base)| json!([&**uid, base])).collect();
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
    let publishers = kept.get("publishers")?.as_array()?.iter().filter_map(|pair| {
        Some((pair.get(0)?.as_str()?.into(), pair.get(1)?.as_str()?.to_owned()))
    });
    // Definitions are kept as text, so that every number keeps its spelling.
    let tools = kept.get("tools")?.as_array()?.iter().filter_map(Value::as_str);
    let last_seen = Millis(kept.get("last_seen")?.as_u64()?);
    Some(ShowcaseEntry::restore(key, tools, last_seen, publishers))
}
