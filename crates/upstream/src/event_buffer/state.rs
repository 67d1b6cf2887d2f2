//! The state of an event buffer, behind its lock.

use std::collections::VecDeque;
use std::time::Duration;

use toolgate_mcp::Pieces;

use super::Rejection;
use crate::relay::RelayReader;

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) events: VecDeque<Pieces>,
    /// Number of the message at the front of `events`; the first message ever is 1.
    pub(super) front: u64,
    pub(super) bytes: usize,
    /// The last message that was delivered to a reader.
    pub(super) delivered: u64,
    /// Set if the answer rejects the request itself.
    pub(super) rejection: Option<Rejection>,
    /// Whether the answer came from a sessionless server and has the shape of its protocol.
    pub(super) sessionless: bool,
    /// The capability (raw JSON) that the server required and the client did not declare.
    pub(super) missing_capability: Option<&'static str>,
    /// Whether the only answer may be relayed while it arrives.
    pub(super) relaying: Relaying,
    /// How many answers are still expected; `None` keeps the buffer open until it is ended.
    pub(super) due: Option<usize>,
    pub(super) ended: bool,
    /// A pause that was not reported to a reader yet.
    pub(super) pause: Option<Pause>,
    /// The reader that the last pause was reported to.
    pub(super) paused: Option<u64>,
    /// The current reader.
    pub(super) reader: u64,
    /// How many connections wait for or read it; `None` before the first.
    pub(super) attended: Option<usize>,
}

/// The state of an answer that may be relayed.
#[derive(Debug, Default)]
pub(super) enum Relaying {
    /// Only the complete answer is accepted.
    #[default]
    No,
    /// The waiting reader accepts a relayed answer.
    Welcome,
    /// Relaying has begun, and no reader has taken it yet.
    Begun(RelayReader),
    /// The reader has taken it.
    Taken,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Pause {
    pub(super) retry: Option<Duration>,
}

impl State {
    /// Takes the relayed answer. Without one, accepts one from now on.
    pub(super) fn welcome(&mut self) -> Option<RelayReader> {
        match std::mem::replace(&mut self.relaying, Relaying::Welcome) {
            Relaying::Begun(relay_reader) => {
                self.relaying = Relaying::Taken;
                Some(relay_reader)
            }
            _ => None,
        }
    }

    /// Takes the relayed answer. Without one, rejects later ones.
    pub(super) fn decline(&mut self) -> Option<RelayReader> {
        let begun = self.welcome();
        if begun.is_none() {
            self.relaying = Relaying::No;
        }
        begun
    }

    pub(super) fn one_less_due(&mut self) {
        let due = self.due.unwrap_or(1).saturating_sub(1);
        self.due = Some(due);
        self.ended |= due == 0;
    }

    /// Whether a reader has come after the one that the last pause was reported to.
    pub(super) fn has_resumed(&self) -> bool {
        self.paused.is_some_and(|paused| self.reader > paused)
    }

    /// Number of the newest message; 0 before the first.
    pub(super) fn last(&self) -> u64 {
        self.front - 1 + self.events.len() as u64
    }

    pub(super) fn drop_oldest(&mut self) {
        if let Some(oldest) = self.events.pop_front() {
            self.bytes -= oldest.len();
            self.front += 1;
        }
    }

    pub(super) fn after(&self, cursor: u64) -> Option<&Pieces> {
        let index = (cursor + 1).checked_sub(self.front)?;
        self.events.get(usize::try_from(index).ok()?)
    }
}
