//! Large answers that go on to their agent while they come in.
//!
//! Invariant: only lists, and only where the agent is to see them byte for byte but for the id.

use bytes::Bytes;
use toolgate_mcp::Outline;

use super::Link;
use crate::relay::{RelayWriter, begin};

impl Link {
    /// Where the answer to `call` goes on to, of which this is the beginning; none if all of it
    /// must be here first.
    pub(super) fn begins(&self, beginning: &Bytes, size: usize, call: u64) -> Option<RelayWriter> {
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
