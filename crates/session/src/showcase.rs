//! The showcase: tools that agents see also while nobody serves them.
//!
//! The store keeps it; here it is held, aged and shown. Start at [`Showcase::publish`].
//!
//! Invariant: a grant sees an entry only if it may reach one of the sessions that published it.
//! Invariant: it keeps no more than there is room for; what has no room changes nothing that is kept.

mod file;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

pub use self::file::{ImportError, export, import};
use crate::io::{Event, Output, What};
use crate::reach::Reach;
use crate::registration::Card;
use crate::time::Millis;
use crate::tool::{Tools, read_tool};

/// Which entry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The kind of its sessions.
    pub kind: String,
    /// Their configuration.
    pub config_id: String,
    /// Their base, where no configuration was sent, so that two bases do not overwrite each other.
    pub infobase_name: Option<String>,
}

/// The tools that the sessions of one configuration publish.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Which entry.
    pub key: Key,
    /// The tools of the newest register or `tools_changed`.
    pub tools: Arc<Tools>,
    /// When a session last registered.
    pub last_seen: Millis,
    /// Session ids and infobase names of those that published it, the newest last; none if it was
    /// imported.
    pub publishers: VecDeque<(Arc<str>, String)>,
}

/// Sessions with ever new ids do not make an entry grow without end.
const MAX_PUBLISHERS: usize = 256;

/// How much a showcase keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Entries.
    pub entries: usize,
    /// Bytes of all of them together.
    pub bytes: usize,
}

/// All entries.
#[derive(Debug, Default)]
pub(crate) struct Showcase {
    entries: BTreeMap<Key, Arc<Entry>>,
    /// What they weigh together.
    bytes: usize,
}

/// A session has said which tools it has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Publication<'a> {
    pub(crate) uid: &'a Arc<str>,
    pub(crate) card: &'a Card,
    pub(crate) tools: &'a Arc<Tools>,
    /// By registering, not by changing its tools.
    pub(crate) registered: bool,
}

impl Default for Room {
    fn default() -> Self {
        Self { entries: 4096, bytes: 64 * 1024 * 1024 }
    }
}

impl Entry {
    /// An entry as a store has kept it: raw definitions as in [`crate::Tool::raw`]. What cannot be read
    /// any more is left out.
    pub fn restore<'a>(
        key: Key,
        tools: impl IntoIterator<Item = &'a str>,
        last_seen: Millis,
        publishers: impl IntoIterator<Item = (Arc<str>, String)>,
    ) -> Self {
        let tools = tools.into_iter().filter_map(|raw| read_tool(raw).ok().flatten());
        let tools: Tools = tools.map(|tool| (Arc::clone(&tool.name), Arc::new(tool))).collect();
        Self {
            key,
            tools: Arc::new(tools),
            last_seen,
            publishers: publishers.into_iter().collect(),
        }
    }

    /// About as many bytes as keeping it takes.
    fn weight(&self) -> usize {
        let Key { kind, config_id, infobase_name } = &self.key;
        let key = kind.len() + config_id.len() + infobase_name.as_ref().map_or(0, String::len);
        let tools: usize = self.tools.values().map(|tool| tool.raw.get().len()).sum();
        let publishers: usize =
            self.publishers.iter().map(|(uid, base)| uid.len() + base.len()).sum();
        key + tools + publishers
    }

    fn is_visible(&self, reach: &Reach) -> bool {
        if self.publishers.is_empty() {
            return reach.allows_kind_alone(&self.key.kind);
        }
        self.publishers.iter().any(|(uid, base)| reach.allows(uid, &self.key.kind, base))
    }
}

impl Showcase {
    /// As it was kept, however much that is.
    pub(crate) fn new(entries: impl IntoIterator<Item = Entry>) -> Self {
        let mut showcase = Self::default();
        for entry in entries {
            showcase.put(Arc::new(entry));
        }
        showcase
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The entries that a grant sees.
    pub(crate) fn visible(&self, reach: &Reach) -> impl Iterator<Item = &Arc<Entry>> {
        self.entries.values().filter(|entry| entry.is_visible(reach))
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.entries.values()
    }

    /// A session has said which tools it has.
    pub(crate) fn publish(
        &mut self,
        publication: Publication<'_>,
        room: Room,
        now: Millis,
    ) -> Vec<Output> {
        let Publication { uid, card, tools, registered } = publication;
        let key = Key {
            kind: card.kind.clone(),
            config_id: card.config_id.clone(),
            infobase_name: (!card.config_id_sent).then(|| card.infobase_name.clone()),
        };
        // One that was kept when there was more room may become smaller, not larger.
        let entries = room.entries.max(self.entries.len());
        let room = Room { entries, bytes: room.bytes.max(self.bytes) };
        let mut outputs = self.displace_imported(&key);
        let before = self.entries.get(&key);
        let mut publishers = before.map(|entry| entry.publishers.clone()).unwrap_or_default();
        let publisher = (Arc::clone(uid), card.infobase_name.clone());
        publishers.retain(|known| *known != publisher);
        publishers.push_back(publisher);
        while publishers.len() > MAX_PUBLISHERS {
            publishers.pop_front();
        }
        let last_seen = match before {
            Some(entry) if !registered => entry.last_seen,
            _ => now,
        };
        let entry = Entry { key, tools: Arc::clone(tools), last_seen, publishers };
        if self.has_room(&entry, room) {
            let entry = Arc::new(entry);
            self.put(Arc::clone(&entry));
            outputs.push(Output::Keep(entry));
        } else {
            outputs.push(self.full(uid, &entry.key));
        }
        outputs
    }

    fn has_room(&self, entry: &Entry, room: Room) -> bool {
        let before = self.entries.get(&entry.key);
        let bytes = self.bytes - before.map_or(0, |entry| entry.weight()) + entry.weight();
        (before.is_some() || self.entries.len() < room.entries) && bytes <= room.bytes
    }

    fn full(&self, uid: &Arc<str>, key: &Key) -> Output {
        let text = format!(
            "the tools of {}/{} are not kept: the showcase has {} entries of {} bytes already",
            key.kind,
            key.config_id,
            self.entries.len(),
            self.bytes
        );
        let session_id = Some(Arc::clone(uid));
        Output::Event(Event { what: What::ShowcaseFull, session_id, socket: None, text })
    }

    fn put(&mut self, entry: Arc<Entry>) {
        self.bytes += entry.weight();
        if let Some(before) = self.entries.insert(entry.key.clone(), entry) {
            self.bytes -= before.weight();
        }
    }

    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= entry.weight();
        }
    }

    /// An imported entry goes when the first session of its kind and configuration registers.
    fn displace_imported(&mut self, key: &Key) -> Vec<Output> {
        let imported = Key { infobase_name: None, ..key.clone() };
        match self.entries.get(&imported) {
            Some(entry) if entry.publishers.is_empty() => {
                self.remove(&imported);
                vec![Output::Forget(imported)]
            }
            _ => Vec::new(),
        }
    }

    /// Takes out what has lived its life.
    pub(crate) fn evict(&mut self, now: Millis, life: Duration) -> Vec<Key> {
        self.take(|entry| entry.last_seen.after(life) <= now)
    }

    /// When the oldest entry was last seen.
    pub(crate) fn oldest(&self) -> Option<Millis> {
        self.entries.values().map(|entry| entry.last_seen).min()
    }

    /// Takes out what a grant may see, all of it or one configuration.
    pub(crate) fn reset(&mut self, config_id: Option<&str>, reach: &Reach) -> Vec<Key> {
        self.take(|entry| {
            entry.is_visible(reach) && config_id.is_none_or(|id| entry.key.config_id == id)
        })
    }

    fn take(&mut self, doomed: impl Fn(&Entry) -> bool) -> Vec<Key> {
        let doomed = self.entries.values().filter(|entry| doomed(entry));
        let keys: Vec<Key> = doomed.map(|entry| entry.key.clone()).collect();
        for key in &keys {
            self.remove(key);
        }
        keys
    }
}

/// Of entries from elsewhere, those of kinds and configurations that a showcase knows nothing of,
/// as far as there is room; and how many found none.
pub fn new_to(showcase: &[Entry], entries: &[Entry], room: Room) -> (Vec<Entry>, usize) {
    let known: HashSet<_> =
        showcase.iter().map(|entry| (&entry.key.kind, &entry.key.config_id)).collect();
    let mut filled = Showcase::new(showcase.iter().cloned());
    let (mut new, mut left_out) = (Vec::new(), 0);
    for entry in entries.iter().filter(|e| !known.contains(&(&e.key.kind, &e.key.config_id))) {
        if filled.has_room(entry, room) {
            filled.put(Arc::new(entry.clone()));
            new.push(entry.clone());
        } else {
            left_out += 1;
        }
    }
    (new, left_out)
}
