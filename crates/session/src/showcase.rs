//! The showcase: tools that agents see also while nobody serves them.
//!
//! The store keeps it; here it is held, aged and shown. Start at [`Showcase::publish`].
//!
//! Invariant: a grant sees an entry only if it may reach one of the sessions that published it.

mod file;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

pub use self::file::{ImportError, export, import};
use crate::io::Output;
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

/// All entries.
#[derive(Debug, Default)]
pub(crate) struct Showcase {
    entries: BTreeMap<Key, Arc<Entry>>,
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

    fn is_visible(&self, reach: &Reach) -> bool {
        if self.publishers.is_empty() {
            return reach.allows_kind_alone(&self.key.kind);
        }
        self.publishers.iter().any(|(uid, base)| reach.allows(uid, &self.key.kind, base))
    }
}

impl Showcase {
    pub(crate) fn new(entries: impl IntoIterator<Item = Entry>) -> Self {
        let entries = entries.into_iter().map(|entry| (entry.key.clone(), Arc::new(entry)));
        Self { entries: entries.collect() }
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
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
        uid: &Arc<str>,
        card: &Card,
        tools: &Arc<Tools>,
        registered: bool,
        now: Millis,
    ) -> Vec<Output> {
        let key = Key {
            kind: card.kind.clone(),
            config_id: card.config_id.clone(),
            infobase_name: (!card.config_id_sent).then(|| card.infobase_name.clone()),
        };
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
        let tools = Arc::clone(tools);
        let entry = Arc::new(Entry { key: key.clone(), tools, last_seen, publishers });
        self.entries.insert(key, Arc::clone(&entry));
        outputs.push(Output::Keep(entry));
        outputs
    }

    /// An imported entry goes when the first session of its kind and configuration registers.
    fn displace_imported(&mut self, key: &Key) -> Vec<Output> {
        let imported = Key { infobase_name: None, ..key.clone() };
        match self.entries.get(&imported) {
            Some(entry) if entry.publishers.is_empty() => {
                self.entries.remove(&imported);
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
            self.entries.remove(key);
        }
        keys
    }
}
