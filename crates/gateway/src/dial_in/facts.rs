//! What is known of the definitions of session tools, computed once for each.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use toolgate_session::Tool;
use toolgate_upstream::pins::Facts;

/// Entries of removed tools are dropped whenever so many bytes were added.
const SWEEP: usize = 8 * 1024 * 1024;
/// What an entry takes beside the text of its definition.
const ENTRY: usize = 512;

/// What is known of the tools that sessions publish.
#[derive(Debug, Default)]
pub(super) struct SessionFacts(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// By the address of the tool, which is valid while the tool exists.
    known: HashMap<usize, Known>,
    /// Bytes that were added since the last sweep.
    added: usize,
}

/// A tool and its facts.
type Known = (Weak<Tool>, Arc<Facts>);

impl SessionFacts {
    /// The facts of a tool's definition, as its program sent it.
    pub(super) fn of(&self, tool: &Arc<Tool>) -> Arc<Facts> {
        let address = Arc::as_ptr(tool) as usize;
        if let Some((known, found)) = self.0.lock().known.get(&address)
            && known.strong_count() > 0
        {
            return Arc::clone(found);
        }
        let found = Arc::new(Facts::of(&tool.name, tool.raw.get()));
        let mut state = self.0.lock();
        state.added += ENTRY + found.definition.as_ref().map_or(0, |text| text.len());
        if state.added >= SWEEP {
            state.added = 0;
            state.known.retain(|_, (known, _)| known.strong_count() > 0);
        }
        state.known.insert(address, (Arc::downgrade(tool), Arc::clone(&found)));
        found
    }
}
