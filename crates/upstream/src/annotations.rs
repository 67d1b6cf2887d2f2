//! Which arguments of a server's tools are repeated in headers (`x-mcp-header`), as it was heard.
//!
//! Invariant: learned from lists only as they pass; asking for one is the link's affair.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;
use toolgate_json::{items, peek, text};
use toolgate_mcp::modern::annotations::{Annotation, may_annotate, of_tool};

/// What is known of one server.
#[derive(Debug, Default)]
pub(crate) struct Annotations {
    tools: RwLock<HashMap<Box<str>, Arc<[Annotation]>>>,
    /// Whether every tool was heard of.
    whole: AtomicBool,
}

impl Annotations {
    /// Learns from a page of the server's tools. Which of them have annotations that break a rule:
    /// they cannot be called as their server wants.
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

    /// What is known of this tool.
    pub(crate) fn of(&self, tool: &str) -> Option<Arc<[Annotation]>> {
        self.tools.read().get(tool).cloned()
    }

    /// Every tool was heard of by now.
    pub(crate) fn is_whole(&self) -> bool {
        self.whole.load(Ordering::Relaxed)
    }

    pub(crate) fn set_whole(&self) {
        self.whole.store(true, Ordering::Relaxed);
    }
}
