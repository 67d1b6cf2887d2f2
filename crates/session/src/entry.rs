//! An entry of the showcase, and how many entries are kept.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::reach::Reach;
use crate::time::Millis;
use crate::tool::{Tools, read_tool};

/// Which entry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryKey {
    /// The kind of its sessions.
    pub kind: String,
    /// Their configuration.
    pub config_id: String,
    /// Their base, where no configuration was sent, so that two bases do not overwrite each other.
    pub infobase_name: Option<String>,
}

/// The tools that the sessions of one configuration publish.
#[derive(Debug, Clone)]
pub struct ShowcaseEntry {
    /// Which entry.
    pub key: EntryKey,
    /// The tools of the newest register or `tools_changed`.
    pub tools: Arc<Tools>,
    /// When a session last registered.
    pub last_seen: Millis,
    /// Session ids and infobase names of those that published it, the newest last; none if it was
    /// imported.
    pub publishers: VecDeque<(Arc<str>, String)>,
}

/// How much a showcase keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShowcaseLimits {
    /// Entries.
    pub entries: usize,
    /// Bytes of all of them together.
    pub bytes: usize,
}

impl Default for ShowcaseLimits {
    fn default() -> Self {
        Self { entries: 4096, bytes: 64 * 1024 * 1024 }
    }
}

impl ShowcaseEntry {
    /// An entry as a store has kept it: raw definitions as in [`crate::Tool::raw`]. What cannot be read
    /// any more is left out.
    pub fn restore<'a>(
        key: EntryKey,
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
    pub(crate) fn weight(&self) -> usize {
        let EntryKey { kind, config_id, infobase_name } = &self.key;
        let key = kind.len() + config_id.len() + infobase_name.as_ref().map_or(0, String::len);
        let tools: usize = self.tools.values().map(|tool| tool.raw.get().len()).sum();
        let publishers: usize =
            self.publishers.iter().map(|(uid, base)| uid.len() + base.len()).sum();
        key + tools + publishers
    }

    pub(crate) fn is_visible(&self, reach: &Reach) -> bool {
        if self.publishers.is_empty() {
            return reach.allows_kind_alone(&self.key.kind);
        }
        self.publishers.iter().any(|(uid, base)| reach.allows(uid, &self.key.kind, base))
    }
}
