//! What is known of the definitions of session tools, computed once for each.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use toolgate_session::Tool;
use toolgate_upstream::pins::Facts;

/// Entries of removed tools are dropped from this number on.
const SWEEP: usize = 4_096;

/// Facts by the address of the tool, which is valid while the tool exists.
#[derive(Debug, Default)]
pub(super) struct SessionFacts(Mutex<HashMap<usize, Known>>);

/// A tool and its facts.
type Known = (Weak<Tool>, Arc<Facts>);

impl SessionFacts {
    /// The facts of a tool's definition, as its program sent it.
    pub(super) fn of(&self, tool: &Arc<Tool>) -> Arc<Facts> {
        let address = Arc::as_ptr(tool) as usize;
        if let Some((known, found)) = self.0.lock().get(&address)
            && known.strong_count() > 0
        {
            return Arc::clone(found);
        }
        let found = Arc::new(Facts::of(&tool.name, tool.raw.get()));
        let mut all = self.0.lock();
        if all.len() >= SWEEP {
            all.retain(|_, (known, _)| known.strong_count() > 0);
        }
        all.insert(address, (Arc::downgrade(tool), Arc::clone(&found)));
        found
    }
}
