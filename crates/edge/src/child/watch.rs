//! Observes and signals the children of one connector: `toolgate run` passes signals on to its child
//! and ends as the child does.

use std::process::ExitStatus;

use tokio::sync::{broadcast, watch};

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildEnd {
    /// It exited, or was ended by a signal.
    Exited(ExitStatus),
    /// It was not started; the exit code that a shell gives for it.
    NotStarted(u8),
}

/// Sees the end of children and sends them signals.
#[derive(Debug, Clone)]
pub struct ChildWatch {
    last: watch::Sender<Option<ChildEnd>>,
    signals: broadcast::Sender<i32>,
}

/// How many signals may wait for a supervisor.
const SIGNALS: usize = 16;

impl Default for ChildWatch {
    fn default() -> Self {
        Self { last: watch::Sender::new(None), signals: broadcast::Sender::new(SIGNALS) }
    }
}

impl ChildWatch {
    /// Follows the ends of children; the value is the last one.
    pub fn ends(&self) -> watch::Receiver<Option<ChildEnd>> {
        self.last.subscribe()
    }

    /// Sends a signal to the process groups of all running children; how many there are.
    pub fn signal(&self, number: i32) -> usize {
        self.signals.send(number).unwrap_or_default()
    }

    pub(super) fn ended(&self, end: ChildEnd) {
        self.last.send_replace(Some(end));
    }

    pub(super) fn signals(&self) -> broadcast::Receiver<i32> {
        self.signals.subscribe()
    }
}
