//! Finds the keys that match a tool without looking at all of them.
//!
//! Exact names are a map; globs are found by their literal prefix or suffix; only globs with
//! neither are tried one by one.

use std::collections::HashMap;

use smallvec::SmallVec;

use crate::model::ToolKey;

/// Positions of matching keys, ascending.
pub(crate) type Matches = SmallVec<[usize; 8]>;

#[derive(Debug, Default)]
pub(crate) struct Index {
    exact: HashMap<String, Vec<usize>>,
    prefixed: Bucket,
    suffixed: Bucket,
    rest: Vec<usize>,
}

/// Keys by a literal of some length.
#[derive(Debug, Default)]
struct Bucket {
    by_text: HashMap<String, Vec<usize>>,
    lengths: Vec<usize>,
}

impl Index {
    pub(crate) fn new<'k>(keys: impl IntoIterator<Item = &'k ToolKey>) -> Self {
        let mut index = Self::default();
        for (at, key) in keys.into_iter().enumerate() {
            let glob = &key.tool;
            if let Some(name) = glob.exact() {
                index.exact.entry(name.to_owned()).or_default().push(at);
            } else if !glob.prefix.is_empty() {
                index.prefixed.add(&glob.prefix, at);
            } else if !glob.suffix.is_empty() {
                index.suffixed.add(&glob.suffix, at);
            } else {
                index.rest.push(at);
            }
        }
        index
    }

    /// Candidates; the caller checks each key, server part included.
    pub(crate) fn candidates(&self, tool: &str) -> Matches {
        let mut found = Matches::new();
        found.extend(self.exact.get(tool).into_iter().flatten().copied());
        for length in &self.prefixed.lengths {
            if let Some(head) = tool.get(..*length) {
                found.extend(self.prefixed.by_text.get(head).into_iter().flatten().copied());
            }
        }
        for length in &self.suffixed.lengths {
            if let Some(tail) = tool.len().checked_sub(*length).and_then(|at| tool.get(at..)) {
                found.extend(self.suffixed.by_text.get(tail).into_iter().flatten().copied());
            }
        }
        found.extend(self.rest.iter().copied());
        found.sort_unstable();
        found
    }
}

impl Bucket {
    fn add(&mut self, text: &str, at: usize) {
        self.by_text.entry(text.to_owned()).or_default().push(at);
        if let Err(slot) = self.lengths.binary_search(&text.len()) {
            self.lengths.insert(slot, text.len());
        }
    }
}
