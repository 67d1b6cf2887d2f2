//! Streams of an agent session that an agent can resume.
//!
//! Invariant: streams that have ended hold together at most [`MAX_ENDED`] buffers and
//! [`buffer::MAX_BYTES`](toolgate_upstream::event_buffer::MAX_BYTES) bytes; the oldest are evicted first.
//! Invariant: an event id names a stream of its own agent session and no other.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use toolgate_upstream::event_buffer::{EventBuffer, MAX_BYTES};

/// How many ended streams an agent session keeps for an agent that lost its connection.
pub(crate) const MAX_ENDED: usize = 64;

/// The id of one event: stream and number. On the wire `3-17`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventId {
    /// Which stream of the agent session; 0 is the general one.
    pub stream: u64,
    /// Which message of the stream; 0 is the stream's beginning.
    pub event: u64,
}

/// The streams of one agent session, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    kept: VecDeque<Arc<EventBuffer>>,
}

// === impl EventId ===

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.stream, self.event)
    }
}

impl FromStr for EventId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (stream, event) = text.split_once('-').ok_or(())?;
        let number = |digits: &str| digits.parse().map_err(|_| ());
        Ok(Self { stream: number(stream)?, event: number(event)? })
    }
}

// === impl Streams ===

impl Streams {
    pub(crate) fn keep(&mut self, buffer: Arc<EventBuffer>) {
        self.kept.push_back(buffer);
        let (mut ended, mut bytes) = (0, 0);
        // Newest first, so that it is the oldest that no longer fit.
        for index in (0..self.kept.len()).rev() {
            let Some(buffer) = self.kept.get(index).filter(|buffer| buffer.ended()) else {
                continue;
            };
            ended += 1;
            bytes += buffer.bytes();
            if ended > MAX_ENDED || bytes > MAX_BYTES {
                self.kept.remove(index);
            }
        }
    }

    pub(crate) fn find(&self, number: u64) -> Option<Arc<EventBuffer>> {
        self.kept.iter().find(|buffer| buffer.number() == number).cloned()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn ended(number: u64, bytes: usize) -> Arc<EventBuffer> {
        let buffer = EventBuffer::expecting(number, 1);
        buffer.answer(Bytes::from(vec![b'x'; bytes]), None);
        Arc::new(buffer)
    }

    #[test]
    fn event_ids_are_read_as_written() {
        let id = EventId { stream: 3, event: 17 };
        assert_eq!(id.to_string().parse(), Ok(id));
        for bad in ["", "3", "3-", "-17", "a-b", "3-17-1", "99999999999999999999-1"] {
            assert!(bad.parse::<EventId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn ended_streams_are_bounded_and_running_ones_stay() {
        let mut streams = Streams::default();
        streams.keep(Arc::new(EventBuffer::new(1)));
        for number in 2..200 {
            streams.keep(ended(number, 10));
        }
        assert!(streams.find(1).is_some(), "a running stream is never evicted");
        assert!(streams.find(2).is_none());
        assert!(streams.find(199).is_some());
        assert_eq!(streams.kept.len(), MAX_ENDED + 1);

        streams.keep(ended(200, MAX_BYTES));
        streams.keep(ended(201, 1));
        assert!(streams.find(201).is_some());
        assert!(streams.find(200).is_none());
        assert_eq!(streams.kept.len(), 2);
    }
}
