//! The reader of an event buffer.

use std::sync::Arc;

use super::{Attending, EventBuffer, Next};

/// Reads one buffer.
#[derive(Debug)]
pub struct Reader {
    buffer: Arc<EventBuffer>,
    turn: u64,
    /// Number of the last message read.
    cursor: u64,
    _attending: Attending,
}

// === impl Reader ===

impl Reader {
    pub(super) fn new(buffer: Arc<EventBuffer>, turn: u64, cursor: u64) -> Self {
        let attending = buffer.attend();
        Self { buffer, turn, cursor, _attending: attending }
    }

    /// Waits for the next message.
    pub async fn next(&mut self) -> Next {
        let buffer = Arc::clone(&self.buffer);
        loop {
            let woken = buffer.wake.notified();
            tokio::pin!(woken);
            woken.as_mut().enable();
            if let Some(next) = self.poll() {
                return next;
            }
            woken.await;
        }
    }

    /// Whether the answers have the shape of protocol 2026-07-28.
    pub fn is_sessionless(&self) -> bool {
        self.buffer.is_sessionless()
    }

    /// Whether the last message has been added.
    pub fn has_ended(&self) -> bool {
        self.buffer.ended()
    }

    /// The number of the stream.
    pub fn number(&self) -> u64 {
        self.buffer.number
    }

    fn poll(&mut self) -> Option<Next> {
        let mut state = self.buffer.state.lock();
        if state.reader != self.turn {
            return Some(Next::End);
        }
        if self.cursor + 1 < state.front {
            // The next read continues with the messages that are left.
            self.cursor = state.front - 1;
            return Some(Next::Gap);
        }
        if let Some(body) = state.after(self.cursor).cloned() {
            self.cursor += 1;
            state.delivered = state.delivered.max(self.cursor);
            return Some(Next::Event(self.cursor, body.into_bytes()));
        }
        if state.ended {
            return Some(Next::End);
        }
        let pause = state.pause.take()?;
        state.paused = Some(self.turn);
        Some(Next::Pause(pause.retry))
    }
}
