//! Shares parsed tools and tool lists between sessions that publish the same ones.
//!
//! Invariant: the lock is held for lookups and insertions, never while parsing.
//!
//! A thousand equal clients send a thousand equal lists: the first one is parsed, the others are
//! found by their hash, and comparing them is cheap.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use sha2::{Digest, Sha256};
use toolgate_json::{fold, items};

use crate::error::{ParamsError, ToolError};
use crate::tool::{Tool, Tools, read_tool};

/// Parsed values by the hash of their text; clones share the pool.
#[derive(Debug, Default, Clone)]
pub(crate) struct Pool(Arc<Mutex<Held>>);

#[derive(Debug, Default)]
struct Held {
    tools: HashMap<[u8; 32], Weak<Tool>>,
    lists: HashMap<[u8; 32], (Weak<Tools>, Vec<String>)>,
    /// Dead entries are removed when there are this many.
    sweep_at: usize,
}

/// A parsed list of tools.
#[derive(Debug, Default)]
pub(crate) struct ReadTools {
    pub(crate) tools: Arc<Tools>,
    /// Names that occur more than once; the first definition is used.
    pub(crate) doubled: Vec<String>,
}

impl Pool {
    /// Parses `tools` of a register or of `tools_changed`.
    pub(crate) fn read(&self, raw: &str, max: usize) -> Result<ReadTools, ParamsError> {
        let key: [u8; 32] = Sha256::digest(raw.as_bytes()).into();
        if let Some(known) = self.held().list(&key) {
            return Ok(known);
        }
        let items = items(raw).map_err(|error| ParamsError::Json(error.to_string()))?;
        let items = items.ok_or(ParamsError::ToolsNotAnArray)?;
        if items.len() > max {
            return Err(ParamsError::TooManyTools { count: items.len(), max });
        }
        let (mut tools, mut doubled) = (Tools::new(), Vec::new());
        // 1C does not distinguish names that differ only by case.
        let mut folded = HashSet::new();
        for (index, item) in items.into_iter().enumerate() {
            let tool = self.tool(item).map_err(|error| ParamsError::Tool { index, error })?;
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
        // Another socket may have parsed the same list meanwhile.
        if let Some(known) = held.list(&key) {
            return Ok(known);
        }
        held.lists.insert(key, (Arc::downgrade(&tools), doubled.clone()));
        Ok(ReadTools { tools, doubled })
    }

    /// Shares tools that were parsed elsewhere.
    pub(crate) fn share(&self, tools: &Tools) -> Arc<Tools> {
        let shared = tools.values().map(|tool| {
            let key: [u8; 32] = Sha256::digest(tool.raw.get().as_bytes()).into();
            let tool = self.held().share(key, Arc::clone(tool));
            (Arc::clone(&tool.name), tool)
        });
        Arc::new(shared.collect())
    }

    fn tool(&self, raw: &str) -> Result<Option<Arc<Tool>>, ToolError> {
        let key: [u8; 32] = Sha256::digest(raw.as_bytes()).into();
        if let Some(tool) = self.held().tools.get(&key).and_then(Weak::upgrade) {
            return Ok(Some(tool));
        }
        let tool = read_tool(raw)?;
        Ok(tool.map(|tool| self.held().share(key, Arc::new(tool))))
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        // A panic leaves it consistent: each entry is inserted in one step.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn list(&self, key: &[u8; 32]) -> Option<ReadTools> {
        let (list, doubled) = self.lists.get(key)?;
        Some(ReadTools { tools: list.upgrade()?, doubled: doubled.clone() })
    }

    /// The known tool with this key, or this one, which is then known.
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
