//! The showcase: tools that agents see even while no session serves them.
//!
//! The store persists it; this module holds, ages and lists it. Start at [`Showcase::publish`].
//!
//! Invariant: a grant sees an entry only if it may reach one of the sessions that published it.
//! Invariant: the showcase never exceeds its limits; an entry that does not fit changes nothing.

mod file;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

pub use self::file::{ImportError, export, import};
use crate::entry::{EntryKey, Publisher, ShowcaseEntry, ShowcaseLimits};
use crate::io::{Output, SessionEvent, SessionEventKind};
use crate::reach::Reach;
use crate::registration::SessionInfo;
use crate::time::Millis;
use crate::tool::{Tools, read_tool};

/// The maximum number of publishers of an entry, so that sessions with new ids do not make it grow
/// without bound.
const MAX_PUBLISHERS: usize = 256;

/// All entries.
#[derive(Debug, Default)]
pub(crate) struct Showcase {
    entries: BTreeMap<EntryKey, Arc<ShowcaseEntry>>,
    /// Their total size.
    bytes: usize,
}

/// A publication of tools by a session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Publication<'a> {
    pub(crate) uid: &'a Arc<str>,
    pub(crate) card: &'a SessionInfo,
    pub(crate) tools: &'a Arc<Tools>,
    /// By a register, not by `tools_changed`.
    pub(crate) registered: bool,
}

impl Showcase {
    /// Restores the stored entries, even above the limits.
    pub(crate) fn new(entries: impl IntoIterator<Item = ShowcaseEntry>) -> Self {
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
    pub(crate) fn visible(&self, reach: &Reach) -> impl Iterator<Item = &Arc<ShowcaseEntry>> {
        self.entries.values().filter(|entry| entry.is_visible(reach))
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<ShowcaseEntry>> {
        self.entries.values()
    }

    /// Records the tools of a session.
    pub(crate) fn publish(
        &mut self,
        publication: Publication<'_>,
        room: ShowcaseLimits,
        now: Millis,
    ) -> Vec<Output> {
        let Publication { uid, card, tools, registered } = publication;
        let key = key_of(card);
        // An entry stored under larger limits may shrink but not grow.
        let entries = room.entries.max(self.entries.len());
        let room = ShowcaseLimits { entries, bytes: room.bytes.max(self.bytes) };
        let mut outputs = self.displace_imported(&key);
        let before = self.entries.get(&key);
        let mut publishers = before.map(|entry| entry.publishers.clone()).unwrap_or_default();
        publishers.retain(|known| !is_by(known, uid, card));
        publishers.push_back(Publisher {
            session_id: Arc::clone(uid),
            infobase_name: card.infobase_name.clone(),
            host_id: card.host_id.clone(),
            last_seen: now,
        });
        while publishers.len() > MAX_PUBLISHERS {
            publishers.pop_front();
        }
        let last_seen = match before {
            Some(entry) if !registered => entry.last_seen,
            _ => now,
        };
        let entry = ShowcaseEntry { key, tools: Arc::clone(tools), last_seen, publishers };
        if self.has_room(&entry, room) {
            let entry = Arc::new(entry);
            self.put(Arc::clone(&entry));
            outputs.push(Output::Keep(entry));
        } else {
            outputs.push(self.full(uid, &entry.key));
        }
        outputs
    }

    /// Records when a session that published an entry was last connected. The life of the entry
    /// does not change.
    pub(crate) fn left(
        &mut self,
        uid: &Arc<str>,
        card: &SessionInfo,
        last_seen: Millis,
    ) -> Option<Output> {
        let entry = self.entries.get_mut(&key_of(card))?;
        if !entry.publishers.iter().any(|known| is_by(known, uid, card)) {
            return None;
        }
        let changed = Arc::make_mut(entry);
        for publisher in changed.publishers.iter_mut().filter(|known| is_by(known, uid, card)) {
            publisher.last_seen = last_seen;
        }
        Some(Output::Keep(Arc::clone(entry)))
    }

    fn has_room(&self, entry: &ShowcaseEntry, room: ShowcaseLimits) -> bool {
        let before = self.entries.get(&entry.key);
        let bytes = self.bytes - before.map_or(0, |entry| entry.weight()) + entry.weight();
        (before.is_some() || self.entries.len() < room.entries) && bytes <= room.bytes
    }

    fn full(&self, uid: &Arc<str>, key: &EntryKey) -> Output {
        let text = format!(
            "the tools of {}/{} are not kept: the showcase has {} entries of {} bytes already",
            key.kind,
            key.config_id,
            self.entries.len(),
            self.bytes
        );
        let session_id = Some(Arc::clone(uid));
        Output::Event(SessionEvent {
            what: SessionEventKind::ShowcaseFull,
            session_id,
            socket: None,
            text,
        })
    }

    fn put(&mut self, entry: Arc<ShowcaseEntry>) {
        self.bytes += entry.weight();
        if let Some(before) = self.entries.insert(entry.key.clone(), entry) {
            self.bytes -= before.weight();
        }
    }

    fn remove(&mut self, key: &EntryKey) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= entry.weight();
        }
    }

    /// An imported entry is removed when the first session of its kind and configuration registers.
    fn displace_imported(&mut self, key: &EntryKey) -> Vec<Output> {
        let imported = EntryKey { infobase_name: None, ..key.clone() };
        match self.entries.get(&imported) {
            Some(entry) if entry.publishers.is_empty() => {
                self.remove(&imported);
                vec![Output::Forget(imported)]
            }
            _ => Vec::new(),
        }
    }

    /// Removes expired entries.
    pub(crate) fn evict(&mut self, now: Millis, life: Duration) -> Vec<EntryKey> {
        self.take(|entry| entry.last_seen.after(life) <= now)
    }

    /// When the oldest entry was last seen.
    pub(crate) fn oldest(&self) -> Option<Millis> {
        self.entries.values().map(|entry| entry.last_seen).min()
    }

    /// Removes what a grant may see: everything, or one configuration.
    pub(crate) fn reset(&mut self, config_id: Option<&str>, reach: &Reach) -> Vec<EntryKey> {
        self.take(|entry| {
            entry.is_visible(reach) && config_id.is_none_or(|id| entry.key.config_id == id)
        })
    }

    fn take(&mut self, doomed: impl Fn(&ShowcaseEntry) -> bool) -> Vec<EntryKey> {
        let doomed = self.entries.values().filter(|entry| doomed(entry));
        let keys: Vec<EntryKey> = doomed.map(|entry| entry.key.clone()).collect();
        for key in &keys {
            self.remove(key);
        }
        keys
    }
}

/// The entry of a session.
fn key_of(card: &SessionInfo) -> EntryKey {
    EntryKey {
        kind: card.kind.clone(),
        config_id: card.config_id.clone(),
        infobase_name: (!card.config_id_sent).then(|| card.infobase_name.clone()),
    }
}

fn is_by(publisher: &Publisher, uid: &Arc<str>, card: &SessionInfo) -> bool {
    publisher.session_id == *uid && publisher.infobase_name == card.infobase_name
}

/// The entries from elsewhere whose kind and configuration are not in the showcase, up to its
/// limits; and how many did not fit.
pub fn new_to(
    showcase: &[ShowcaseEntry],
    entries: &[ShowcaseEntry],
    room: ShowcaseLimits,
) -> (Vec<ShowcaseEntry>, usize) {
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
