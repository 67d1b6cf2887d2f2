//! Which tool arguments a server wants repeated in headers (`x-mcp-header`).
//!
//! Invariant: learned from lists only, when they pass; fetching a list is up to the link.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;
use toolgate_json::{items, peek, text};
use toolgate_mcp::sessionless::annotations::{Annotation, may_annotate, of_tool};

/// The known annotations of one server.
#[derive(Debug, Default)]
pub(crate) struct Annotations {
    tools: RwLock<HashMap<Box<str>, Arc<[Annotation]>>>,
    /// Whether all tools of the server are known.
    whole: AtomicBool,
}

impl Annotations {
    /// Learns from a page of the server's tools. Returns the tools whose annotations break a rule:
    /// they cannot be called the way their server requires.
    pub(crate) fn learn(&self, result: &str) -> HashSet<String> {
        if !may_annotate(result) && self.tools.read().is_empty() {
            return HashSet::new();
        }
        let list = peek(result, &["tools"]).ok().flatten();
        let tools = list.and_then(|list| items(list).ok().flatten()).unwrap_or_default();
        let mut broken = HashSet::new();
        let mut known = self.tools.write();
        for tool in tools {
            let Some(name) = peek(tool, &["name"]).ok().flatten().and_then(text) else { continue };
            match of_tool(tool) {
                Some(all) if all.is_empty() => drop(known.remove(&*name)),
                Some(all) => drop(known.insert(name.as_ref().into(), all.into())),
                None => {
                    known.remove(&*name);
                    broken.insert(name.into_owned());
                }
            }
        }
        broken
    }

    /// The annotations of `tool`.
    pub(crate) fn of(&self, tool: &str) -> Option<Arc<[Annotation]>> {
        self.tools.read().get(tool).cloned()
    }

    /// Whether all tools of the server are known.
    pub(crate) fn is_whole(&self) -> bool {
        self.whole.load(Ordering::Relaxed)
    }

    pub(crate) fn set_whole(&self) {
        self.whole.store(true, Ordering::Relaxed);
    }
}
