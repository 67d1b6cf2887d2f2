//! An entry of the showcase, and the limits of the showcase.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::reach::Reach;
use crate::time::Millis;
use crate::tool::{Tools, read_tool};

/// The key of an entry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryKey {
    /// The kind of its sessions.
    pub kind: String,
    /// Their configuration.
    pub config_id: String,
    /// Their infobase, if no configuration was sent, so that two infobases do not overwrite each
    /// other.
    pub infobase_name: Option<String>,
}

/// The tools that the sessions of one configuration publish.
#[derive(Debug, Clone)]
pub struct ShowcaseEntry {
    /// The key.
    pub key: EntryKey,
    /// The tools of the latest register or `tools_changed`.
    pub tools: Arc<Tools>,
    /// When a session last registered.
    pub last_seen: Millis,
    /// The sessions that published it, the latest last; empty if it was imported.
    pub publishers: VecDeque<Publisher>,
}

/// A session that published an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publisher {
    /// Its id.
    pub session_id: Arc<str>,
    /// Its infobase.
    pub infobase_name: String,
    /// The machine it ran on.
    pub host_id: String,
    /// When it last registered or ended.
    pub last_seen: Millis,
}

/// The limits of a showcase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShowcaseLimits {
    /// The maximum number of entries.
    pub entries: usize,
    /// The maximum size of all entries, in bytes.
    pub bytes: usize,
}

impl Default for ShowcaseLimits {
    fn default() -> Self {
        Self { entries: 4096, bytes: 64 * 1024 * 1024 }
    }
}

impl ShowcaseEntry {
    /// Restores a stored entry: raw definitions as in [`crate::Tool::raw`]. Definitions that can no
    /// longer be parsed are skipped.
    pub fn restore<'a>(
        key: EntryKey,
        tools: impl IntoIterator<Item = &'a str>,
        last_seen: Millis,
        publishers: impl IntoIterator<Item = Publisher>,
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

    /// Its approximate size in bytes.
    pub(crate) fn weight(&self) -> usize {
        let EntryKey { kind, config_id, infobase_name } = &self.key;
        let key = kind.len() + config_id.len() + infobase_name.as_ref().map_or(0, String::len);
        let tools: usize = self.tools.values().map(|tool| tool.raw.get().len()).sum();
        let publishers: usize = self.publishers.iter().map(Publisher::weight).sum();
        key + tools + publishers
    }

    pub(crate) fn is_visible(&self, reach: &Reach) -> bool {
        if self.publishers.is_empty() {
            return reach.allows_kind_alone(&self.key.kind);
        }
        self.reachable(reach).next().is_some()
    }

    /// The publisher within reach that was seen last.
    pub(crate) fn last_publisher(&self, reach: &Reach) -> Option<&Publisher> {
        self.reachable(reach).max_by_key(|publisher| publisher.last_seen)
    }

    fn reachable(&self, reach: &Reach) -> impl Iterator<Item = &Publisher> {
        self.publishers.iter().filter(|publisher| {
            reach.allows(&publisher.session_id, &self.key.kind, &publisher.infobase_name)
        })
    }
}

impl Publisher {
    fn weight(&self) -> usize {
        self.session_id.len() + self.infobase_name.len() + self.host_id.len()
    }
}
