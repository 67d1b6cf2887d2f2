//! Tools and lists of tools that were read, held once however many sessions publish them.
//!
//! Invariant: its lock is held to look something up and to put it in, never while something is read.
//!
//! A thousand equal clients send a thousand equal lists: the first is read, the others are known by
//! their hash, and whoever makes lists for agents sees at a glance that they are one.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use sha2::{Digest, Sha256};
use toolgate_json::{fold, items};

use crate::tool::{Tool, Tools, read_tool};

/// What is known by the hash of its text; clones share it.
#[derive(Debug, Default, Clone)]
pub(crate) struct Pool(Arc<Mutex<Held>>);

#[derive(Debug, Default)]
struct Held {
    tools: HashMap<[u8; 32], Weak<Tool>>,
    lists: HashMap<[u8; 32], (Weak<Tools>, Vec<String>)>,
    /// Dead entries are swept out when there are this many.
    sweep_at: usize,
}

/// What a list of tools has come to.
#[derive(Debug, Default)]
pub(crate) struct ReadTools {
    pub(crate) tools: Arc<Tools>,
    /// Names that occur more than once; the first was taken.
    pub(crate) doubled: Vec<String>,
}

impl Pool {
    /// Reads `tools` of a register or of `tools_changed`. The error names what is wrong.
    pub(crate) fn read(&self, raw: &str, max: usize) -> Result<ReadTools, String> {
        let key: [u8; 32] = Sha256::digest(raw.as_bytes()).into();
        if let Some(known) = self.held().list(&key) {
            return Ok(known);
        }
        let wrong = || "`tools` must be an array".to_owned();
        let items = items(raw).map_err(|error| error.to_string())?.ok_or_else(wrong)?;
        if items.len() > max {
            return Err(format!("`tools` has {} elements; {max} are the limit", items.len()));
        }
        let (mut tools, mut doubled) = (Tools::new(), Vec::new());
        // 1C reads names that differ only by case as one.
        let mut folded = HashSet::new();
        for (index, item) in items.into_iter().enumerate() {
            let tool = self.tool(item).map_err(|what| format!("`tools[{index}]{what}"))?;
            let Some(tool) = tool else { continue };
            if folded.insert(fold(&tool.name).into_owned()) {
                tools.insert(Arc::clone(&tool.name), tool);
            } else {
                doubled.push(tool.name.to_string());
            }
        }
        let tools = Arc::new(tools);
        let mut held = self.held();
        held.sweep();
        // Another socket may have read the same list meanwhile.
        if let Some(known) = held.list(&key) {
            return Ok(known);
        }
        held.lists.insert(key, (Arc::downgrade(&tools), doubled.clone()));
        Ok(ReadTools { tools, doubled })
    }

    /// Tools that were read elsewhere, those that are known held once.
    pub(crate) fn share(&self, tools: &Tools) -> Arc<Tools> {
        let shared = tools.values().map(|tool| {
            let key: [u8; 32] = Sha256::digest(tool.raw.get().as_bytes()).into();
            let tool = self.held().share(key, Arc::clone(tool));
            (Arc::clone(&tool.name), tool)
        });
        Arc::new(shared.collect())
    }

    fn tool(&self, raw: &str) -> Result<Option<Arc<Tool>>, String> {
        let key: [u8; 32] = Sha256::digest(raw.as_bytes()).into();
        if let Some(tool) = self.held().tools.get(&key).and_then(Weak::upgrade) {
            return Ok(Some(tool));
        }
        let tool = read_tool(raw)?;
        Ok(tool.map(|tool| self.held().share(key, Arc::new(tool))))
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        // Whoever panicked has left it whole: each entry is put in at once.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn list(&self, key: &[u8; 32]) -> Option<ReadTools> {
        let (list, doubled) = self.lists.get(key)?;
        Some(ReadTools { tools: list.upgrade()?, doubled: doubled.clone() })
    }

    /// The tool that is known by this key, or else this one, which is known from now on.
    fn share(&mut self, key: [u8; 32], tool: Arc<Tool>) -> Arc<Tool> {
        let known = self.tools.get(&key).and_then(Weak::upgrade);
        let tool = known.unwrap_or(tool);
        self.tools.insert(key, Arc::downgrade(&tool));
        tool
    }

    fn sweep(&mut self) {
        if self.tools.len() + self.lists.len() >= self.sweep_at {
            self.tools.retain(|_, tool| tool.strong_count() > 0);
            self.lists.retain(|_, (list, _)| list.strong_count() > 0);
            self.sweep_at = (self.tools.len() + self.lists.len()) * 2 + 64;
        }
    }
}
