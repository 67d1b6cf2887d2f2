//! Large answers that are relayed to their agent while they arrive.
//!
//! Invariant: only lists, and only if the agent receives them unchanged except for the id. The cursor
//! of a list that was the first of its server with several pages is not valid: the agent has to
//! list again from the start.

use bytes::Bytes;
use toolgate_mcp::Outline;

use super::Link;
use crate::relay::{RelayWriter, begin};

impl Link {
    /// The writer for the answer to `call` that begins like this; `None` if the complete answer is
    /// required.
    pub(super) fn begins(&self, beginning: &Bytes, size: usize, call: u64) -> Option<RelayWriter> {
        // Cursors are shown under another text.
        if self.server.has_pages() {
            return None;
        }
        let outline = Outline::begin(beginning)?;
        let named = std::str::from_utf8(beginning.get(outline.id())?).ok()?;
        if named.parse() != Ok(call) {
            return None;
        }
        let (buffer, id) = self.waiting.passes(call)?;
        let (relay_writer, relay_reader) = begin(outline, beginning, size, &id)?;
        buffer.begin(relay_reader).then_some(relay_writer)
    }
}
