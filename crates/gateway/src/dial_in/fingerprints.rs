//! Fingerprints of session tools, computed once for each definition.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use toolgate_audit::Hash;
use toolgate_session::Tool;
use toolgate_upstream::fingerprint::fingerprint;

/// Entries of removed tools are dropped from this number on.
const SWEEP: usize = 4_096;

/// Fingerprints by the address of the tool, which is valid while the tool exists.
#[derive(Debug, Default)]
pub(super) struct SessionFingerprints(Mutex<HashMap<usize, Known>>);

/// A tool and its fingerprint.
type Known = (Weak<Tool>, Option<Hash>);

impl SessionFingerprints {
    /// The fingerprint of a tool's definition, as its program sent it.
    pub(super) fn of(&self, tool: &Arc<Tool>) -> Option<Hash> {
        let address = Arc::as_ptr(tool) as usize;
        if let Some((known, found)) = self.0.lock().get(&address)
            && known.strong_count() > 0
        {
            return *found;
        }
        let found = fingerprint(tool.raw.get());
        let mut all = self.0.lock();
        if all.len() >= SWEEP {
            all.retain(|_, (known, _)| known.strong_count() > 0);
        }
        all.insert(address, (Arc::downgrade(tool), found));
        found
    }
}
