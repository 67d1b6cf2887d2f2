//! Notifications about tasks that arrive before the answer that creates the task.
//!
//! A server may report the state of a task before it has answered the call that creates it. Until
//! that answer is received no grant owns the task, so the notification waits here.
//!
//! Invariant: a notification is delivered only once its task belongs to an agent session.
//! Invariant: at most [`MAX`] notifications of at most [`MAX_BYTES`] each wait; the oldest is
//! dropped first.

use std::collections::VecDeque;

use bytes::Bytes;
use parking_lot::Mutex;
use toolgate_mcp::{Incoming, Limits, Message, parse_server};

use super::Link;

/// How many notifications wait.
const MAX: usize = 32;
/// How large a notification that waits may be.
const MAX_BYTES: usize = 4 * 1024;

/// The notifications that wait.
#[derive(Default)]
pub(super) struct Early {
    waiting: Mutex<VecDeque<EarlyNotification>>,
}

struct EarlyNotification {
    /// The server's own id of the task.
    own: String,
    body: Bytes,
    /// The exchange that carried it.
    call: Option<u64>,
}

impl Early {
    /// Keeps a notification about the task `own`. Returns how many notifications it drops for
    /// that, itself included; `None` if it drops none.
    pub(super) fn keep(&self, own: &str, raw: &str, call: Option<u64>) -> Option<u64> {
        if raw.len() > MAX_BYTES || own.len() > MAX_BYTES {
            return Some(1);
        }
        let mut waiting = self.waiting.lock();
        let is_full = waiting.len() >= MAX;
        if is_full {
            waiting.pop_front();
        }
        let body = Bytes::copy_from_slice(raw.as_bytes());
        waiting.push_back(EarlyNotification { own: own.to_owned(), body, call });
        is_full.then_some(1)
    }

    /// Takes the notifications about the task `own`, in the order of their arrival.
    fn take(&self, own: &str) -> Vec<EarlyNotification> {
        let mut waiting = self.waiting.lock();
        let (taken, rest) = waiting.drain(..).partition(|one| one.own == own);
        *waiting = rest;
        Vec::from(taken)
    }
}

impl Link {
    /// Delivers notifications about a task that arrived before the answer that created it.
    pub(super) fn deliver_early(&self, own: &str) {
        for EarlyNotification { body, call, .. } in self.early.take(own) {
            if let Ok(Incoming::One(Message::Notification(notification))) =
                parse_server(&body, &Limits::default())
            {
                self.receive_notification(&notification, &body, call);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Early, MAX, MAX_BYTES};

    #[test]
    fn notifications_wait_for_their_own_task_and_are_bounded() {
        let early = Early::default();
        assert_eq!(early.keep("a", "1", Some(7)), None);
        assert_eq!(early.keep("b", "2", None), None);
        assert_eq!(early.keep("a", "3", None), None);
        let bodies = |own| early.take(own).into_iter().map(|one| one.body).collect::<Vec<_>>();
        assert_eq!(bodies("a"), ["1", "3"]);
        assert!(bodies("a").is_empty());
        assert_eq!(early.keep("c", &"x".repeat(MAX_BYTES + 1), None), Some(1));
        for _ in 0..MAX - 1 {
            assert_eq!(early.keep("d", "4", None), None);
        }
        assert_eq!(early.keep("d", "5", None), Some(1));
        assert!(bodies("b").is_empty(), "the oldest is dropped first");
        assert_eq!(bodies("d").len(), MAX);
    }
}
