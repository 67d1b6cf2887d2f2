//! An index of keys, to find those that match a tool without trying all of them.
//!
//! Exact names are in a map; globs are found by their literal prefix or suffix; only globs with
//! neither are tried one by one.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use smallvec::SmallVec;

use crate::{glob::Glob, model::ToolKey};

/// Positions of matching keys, ascending.
pub(crate) type Matches = SmallVec<[usize; 8]>;

/// Keys by a text. The texts are the operator's, so an attacker cannot choose them to collide, and a
/// fixed, fast hash is sufficient.
type ByText = HashMap<String, Vec<usize>, FixedState>;

#[derive(Debug, Default)]
pub(crate) struct Index {
    exact: ByText,
    prefixed: Bucket,
    suffixed: Bucket,
    rest: Vec<usize>,
}

/// Keys by a literal of some length.
#[derive(Debug, Default)]
struct Bucket {
    by_text: ByText,
    lengths: Vec<usize>,
}

impl Index {
    pub(crate) fn new<'k>(keys: impl IntoIterator<Item = &'k ToolKey>) -> Self {
        let mut index = Self::default();
        for (at, key) in keys.into_iter().enumerate() {
            index.add(&key.tool, at);
            if let Some(whole) = &key.whole {
                index.add(whole, at);
            }
        }
        index
    }

    fn add(&mut self, glob: &Glob, at: usize) {
        if let Some(name) = glob.exact() {
            self.exact.entry(name.to_owned()).or_default().push(at);
        } else if !glob.prefix.is_empty() {
            self.prefixed.add(&glob.prefix, at);
        } else if !glob.suffix.is_empty() {
            self.suffixed.add(&glob.suffix, at);
        } else {
            self.rest.push(at);
        }
    }

    /// Candidates; the caller checks each key, server part included.
    pub(crate) fn candidates(&self, tool: &str) -> Matches {
        let mut found = Matches::new();
        take(&self.exact, tool, &mut found);
        for length in &self.prefixed.lengths {
            if let Some(head) = tool.get(..*length) {
                take(&self.prefixed.by_text, head, &mut found);
            }
        }
        for length in &self.suffixed.lengths {
            if let Some(tail) = tool.len().checked_sub(*length).and_then(|at| tool.get(at..)) {
                take(&self.suffixed.by_text, tail, &mut found);
            }
        }
        if !self.rest.is_empty() {
            found.extend_from_slice(&self.rest);
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}

fn take(from: &ByText, text: &str, found: &mut Matches) {
    if let Some(places) = from.get(text) {
        found.extend_from_slice(places);
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
