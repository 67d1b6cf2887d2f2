//! What is due when: one time for each thing that waits for one.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::io::{CallNumber, SocketId};
use crate::time::Millis;

/// Something that waits for a time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Timer {
    /// Ping, death and the duty to register.
    Socket(SocketId),
    /// The end of a session's grace.
    Grace(Arc<str>),
    /// A session that nobody uses.
    Idle(Arc<str>),
    /// The deadline of a call, in the queue or running; or the end of its slot's quarantine.
    Call(CallNumber),
    /// Views are told what has changed.
    Lists,
    /// The oldest entry of the showcase has lived its life.
    Showcase,
}

#[derive(Debug, Default)]
pub(crate) struct Timers {
    order: BTreeSet<(Millis, Timer)>,
    due: HashMap<Timer, Millis>,
}

impl Timers {
    /// Wakes `timer` at that time and no other.
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

    /// Takes the first that is due.
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
