//! The state of a server, as people see it.
//!
//! Invariant: nothing here decides anything; starts report to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The state of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerState {
    /// No start was attempted.
    NeverUsed,
    /// A start is running.
    Starting,
    /// It runs, or its last start succeeded.
    Ready,
    /// Its last start failed, or it was lost.
    Failed,
    /// As `Failed`, and the next start is delayed.
    BackingOff,
}

/// What people see of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerStatus {
    /// Its state.
    pub state: ServerState,
    /// How many of its processes or connections are open.
    pub running: usize,
    /// Why its last start failed, or why it was lost; `None` after a successful start.
    pub last_error: Option<LastError>,
    /// When the next start is possible, if it is delayed.
    pub retry_after: Option<Duration>,
}

/// Why a server is not available.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastError {
    /// For people: what happened.
    pub why: String,
    /// How long ago.
    pub ago: Duration,
}

/// Records the starts of one server.
#[derive(Debug, Default)]
pub(crate) struct StatusTracker(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    starting: AtomicUsize,
    /// How many starts have begun.
    begun: AtomicU64,
    running: AtomicUsize,
    /// Whether a start has ever succeeded.
    has_worked: AtomicBool,
    last: Mutex<Last>,
}

#[derive(Debug, Default)]
enum Last {
    #[default]
    Never,
    Worked,
    Failed {
        why: String,
        at: Instant,
    },
}

/// A start that is running; it has ended when this is dropped.
#[derive(Debug)]
pub(crate) struct Starting {
    tracker: Arc<Inner>,
    number: u64,
    /// Whether another start was running when it began.
    joined: bool,
}

/// An open channel; it is closed when this is dropped.
#[derive(Debug)]
pub(crate) struct Running(Arc<Inner>);

// === impl ServerState ===

impl ServerState {
    /// Its name for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NeverUsed => "never_used",
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Failed => "failed",
            Self::BackingOff => "backing_off",
        }
    }
}

// === impl StatusTracker ===

impl StatusTracker {
    /// A start begins.
    pub(crate) fn begin(&self) -> Starting {
        let joined = self.0.starting.fetch_add(1, Ordering::AcqRel) > 0;
        let number = self.0.begun.fetch_add(1, Ordering::AcqRel) + 1;
        Starting { tracker: Arc::clone(&self.0), number, joined }
    }

    /// A start has succeeded.
    pub(crate) fn worked(&self) -> Running {
        *self.0.last.lock() = Last::Worked;
        self.0.has_worked.store(true, Ordering::Release);
        self.0.running.fetch_add(1, Ordering::AcqRel);
        Running(Arc::clone(&self.0))
    }

    /// A start has failed, or the server was lost.
    pub(crate) fn failed(&self, why: String, at: Instant) {
        *self.0.last.lock() = Last::Failed { why, at };
    }

    /// Whether a start has ever succeeded.
    pub(crate) fn has_worked(&self) -> bool {
        self.0.has_worked.load(Ordering::Acquire)
    }

    /// Why the last start failed, if it did.
    pub(crate) fn cause(&self) -> Option<String> {
        match &*self.0.last.lock() {
            Last::Failed { why, .. } => Some(why.clone()),
            Last::Never | Last::Worked => None,
        }
    }

    /// The status now; the next start must wait `retry_after`.
    pub(crate) fn status(&self, retry_after: Option<Duration>, now: Instant) -> ServerStatus {
        let running = self.0.running.load(Ordering::Acquire);
        let is_starting = self.0.starting.load(Ordering::Acquire) > 0;
        let last = self.0.last.lock();
        let state = match &*last {
            _ if running > 0 => ServerState::Ready,
            _ if is_starting => ServerState::Starting,
            Last::Never => ServerState::NeverUsed,
            Last::Worked => ServerState::Ready,
            Last::Failed { .. } if retry_after.is_some() => ServerState::BackingOff,
            Last::Failed { .. } => ServerState::Failed,
        };
        let last_error = match &*last {
            Last::Failed { why, at } => {
                Some(LastError { why: why.clone(), ago: now.saturating_duration_since(*at) })
            }
            Last::Never | Last::Worked => None,
        };
        ServerStatus { state, running, last_error, retry_after }
    }
}

// === impl Starting ===

impl Starting {
    /// Whether another start of the server ran at the same time.
    pub(crate) fn overlaps(&self) -> bool {
        self.joined || self.tracker.begun.load(Ordering::Acquire) != self.number
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        self.tracker.starting.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_state_follows_the_starts() {
        let (tracker, now) = (StatusTracker::default(), Instant::now());
        let state = |retry_after| tracker.status(retry_after, now).state;
        assert_eq!(state(None), ServerState::NeverUsed);
        let starting = tracker.begin();
        assert_eq!(state(None), ServerState::Starting);
        drop(starting);
        assert_eq!(state(None), ServerState::NeverUsed, "the start was given up");
        tracker.failed("no file".to_owned(), now);
        assert_eq!(state(None), ServerState::Failed);
        let wait = Some(Duration::from_secs(2));
        let status = tracker.status(wait, now + Duration::from_secs(3));
        assert_eq!(status.state, ServerState::BackingOff);
        let ago = Duration::from_secs(3);
        assert_eq!(status.last_error, Some(LastError { why: "no file".to_owned(), ago }));
        let running = tracker.worked();
        assert_eq!(tracker.status(None, now).running, 1);
        assert_eq!((state(None), tracker.cause()), (ServerState::Ready, None));
        drop(running);
        assert_eq!(tracker.status(None, now).running, 0);
        assert_eq!(state(None), ServerState::Ready, "its last start succeeded");
    }

    #[tokio::test]
    async fn overlapping_starts_are_noticed_by_both() {
        let tracker = StatusTracker::default();
        let alone = tracker.begin();
        assert!(!alone.overlaps());
        drop(alone);
        let (one, two) = (tracker.begin(), tracker.begin());
        assert!(one.overlaps() && two.overlaps());
    }
}
