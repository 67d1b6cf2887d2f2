//! Starts of a server: which process may be started, when, and what became of it.
//!
//! A start that fails delays the next one. Starts run at the same time until simultaneous ones have
//! failed.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard};
use tokio::time::Instant;

use super::Server;
use crate::backoff::Backoff;
use crate::link::Link;
use crate::status::{Running, ServerStatus, Starting};

/// How many processes of one server may run for one grant only to fetch its lists.
const MAX_STARTED_FOR_LISTS: usize = 4;

/// The turn of a start, until it is dropped.
#[expect(dead_code, reason = "the guards are only held")]
pub(crate) enum StartTurn {
    /// With other starts.
    Together(OwnedRwLockReadGuard<()>),
    /// While no other start runs.
    Alone(OwnedRwLockWriteGuard<()>),
}

impl Server {
    /// Whether a process may be started for this link of a grant before a call.
    pub(crate) fn may_start_for_lists(&self, grant: &Arc<str>, link: &Arc<Link>) -> bool {
        let mut started = self.started_for_lists.lock();
        let lives = |link: &Weak<Link>| {
            link.upgrade().is_some_and(|link| link.is_up() || link.is_refreshing())
        };
        started.retain(|_, links| {
            links.retain(lives);
            !links.is_empty()
        });
        let links = started.entry(Arc::clone(grant)).or_default();
        let is_it = |known: &Weak<Link>| std::ptr::eq(known.as_ptr(), Arc::as_ptr(link));
        if links.iter().any(is_it) {
            return true;
        }
        let has_room = links.len() < MAX_STARTED_FOR_LISTS;
        if has_room {
            links.push(Arc::downgrade(link));
        }
        has_room
    }

    /// How long a start must wait; `None` if it need not.
    pub(crate) fn must_wait(&self, now: Instant) -> Option<Duration> {
        if !self.settings.backs_off {
            return None;
        }
        self.backoff.lock().wait(now)
    }

    /// What people see of it.
    pub fn status(&self) -> ServerStatus {
        let now = Instant::now();
        self.status.status(self.must_wait(now), now)
    }

    /// Whether a handshake with it has ever succeeded.
    pub fn has_worked(&self) -> bool {
        self.status.has_worked()
    }

    /// Starts its process before an agent of this grant needs it.
    pub fn start_ahead(&self, grant: &str) {
        self.connector.start_ahead(grant);
    }

    /// Ends a process that was started ahead and not used.
    pub async fn end_ahead(&self) {
        self.connector.end_ahead().await;
    }

    /// Why its last start failed, if it did.
    pub(crate) fn last_cause(&self) -> Option<String> {
        self.status.cause()
    }

    /// Lets the next start begin at once.
    pub fn reset_backoff(&self) {
        *self.backoff.lock() = Backoff::default();
    }

    /// A start begins; it may have to wait for another one.
    pub(crate) async fn begin_start(&self) -> (StartTurn, Starting) {
        let turn = Arc::clone(&self.start_turn);
        let turn = if self.one_start_at_a_time.load(Ordering::Acquire) {
            StartTurn::Alone(turn.write_owned().await)
        } else {
            StartTurn::Together(turn.read_owned().await)
        };
        (turn, self.status.begin())
    }

    /// Runs starts one at a time from now on. Some servers lock a file while they start.
    pub(crate) fn start_one_at_a_time(&self) {
        if !self.one_start_at_a_time.swap(true, Ordering::AcqRel) {
            tracing::info!(
                server = self.name(),
                "simultaneous starts failed; starting one process at a time"
            );
        }
    }

    pub(crate) fn start_failed(&self, why: String, now: Instant) {
        self.metrics.failed_starts.inc();
        self.backoff.lock().failed(now);
        self.status.failed(why, now);
    }

    pub(crate) fn start_worked(&self) -> Running {
        self.metrics.starts.inc();
        *self.backoff.lock() = Backoff::default();
        self.status.worked()
    }

    /// Its connection was lost.
    pub(crate) fn was_lost(&self, why: &str, now: Instant) {
        self.status.failed(why.to_owned(), now);
    }
}
