//! Timers: at most one time for each waiting object.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::io::{CallNumber, SocketId};
use crate::time::Millis;

/// An object that waits for a time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Timer {
    /// Ping, liveness, and the deadline to register.
    Socket(SocketId),
    /// The end of a session's grace.
    Grace(Arc<str>),
    /// The idle timeout of a session.
    Idle(Arc<str>),
    /// The deadline of a call, in the queue or running; or the end of its slot's quarantine.
    Call(CallNumber),
    /// The notification of views.
    Lists,
    /// The expiry of the oldest showcase entry.
    Showcase,
}

#[derive(Debug, Default)]
pub(crate) struct Timers {
    order: BTreeSet<(Millis, Timer)>,
    due: HashMap<Timer, Millis>,
}

impl Timers {
    /// Sets the time of `timer`, replacing any earlier one.
    pub(crate) fn set(&mut self, timer: Timer, at: Millis) {
        if let Some(before) = self.due.insert(timer.clone(), at) {
            self.order.remove(&(before, timer.clone()));
        }
        self.order.insert((at, timer));
    }

    pub(crate) fn clear(&mut self, timer: &Timer) {
        if let Some(at) = self.due.remove(timer) {
            self.order.remove(&(at, timer.clone()));
        }
    }

    pub(crate) fn is_set(&self, timer: &Timer) -> bool {
        self.due.contains_key(timer)
    }

    /// Removes the first timer that is due.
    pub(crate) fn pop(&mut self, now: Millis) -> Option<Timer> {
        if self.order.first()?.0 > now {
            return None;
        }
        let (_, timer) = self.order.pop_first()?;
        self.due.remove(&timer);
        Some(timer)
    }

    pub(crate) fn next(&self) -> Option<Millis> {
        self.order.first().map(|(at, _)| *at)
    }
}
