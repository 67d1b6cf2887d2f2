//! Requests that wait for an answer of the server, by number.
//!
//! Invariant: a number is assigned once in the life of a link, across all its channels.
//! Invariant: the code that removes a waiter answers it, so each waiter is answered exactly once.
//!
//! Start at [`Waiters::insert`]. Tested by `link/waiting/tests.rs`.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;
use toolgate_admission::ended::Ended;
use toolgate_audit::Effect;

use super::server::Server;
use crate::event_buffer::EventBuffer;
use crate::failure::Failure;

#[cfg(test)]
mod tests;
mod waiter;

pub(super) use waiter::{AgentWaiter, Bridge, ListFilter, Waiter};

/// All requests that wait for an answer over one link.
pub(super) struct Waiters {
    next: AtomicU64,
    /// Numbers grow and few wait at a time, so a tree is faster than hashing.
    all: Mutex<BTreeMap<u64, Waiter>>,
    /// Notified when one was removed.
    removed: Notify,
}

// === impl Waiters ===

impl Waiters {
    pub(super) fn new() -> Self {
        Self { next: AtomicU64::new(1), all: Mutex::default(), removed: Notify::new() }
    }

    /// A number that was not used before.
    pub(super) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn insert(&self, number: u64, waiting: Waiter) {
        self.all.lock().insert(number, waiting);
    }

    /// Removes the waiter `number`; the caller must answer it.
    pub(super) fn take(&self, number: u64) -> Option<Waiter> {
        let waiting = self.all.lock().remove(&number);
        self.removed.notify_waiters();
        waiting
    }

    /// Waits until no admitted request that was sent is left.
    pub(super) async fn calls_end(&self) {
        let is_call = |waiting: &Waiter| {
            matches!(waiting, Waiter::Agent(agent)
                if agent.epoch.is_some() && agent.reply.call_id().is_some())
        };
        loop {
            let mut removed = pin!(self.removed.notified());
            removed.as_mut().enable();
            if !self.all.lock().values().any(is_call) {
                return;
            }
            removed.await;
        }
    }

    /// Returns false if no agent waits for it any more: then it must not be sent.
    pub(super) fn mark_sent(&self, number: u64, epoch: u64) -> bool {
        match self.all.lock().get_mut(&number) {
            Some(Waiter::Agent(waiting)) => {
                waiting.epoch = Some(epoch);
                waiting.bridge = None;
                true
            }
            _ => false,
        }
    }

    /// The same for a sessionless server.
    pub(super) fn mark_sent_sessionless(&self, number: u64, epoch: u64, bridge: Bridge) -> bool {
        match self.all.lock().get_mut(&number) {
            Some(Waiter::Agent(waiting)) => {
                waiting.epoch = Some(epoch);
                waiting.bridge = Some(bridge);
                true
            }
            _ => false,
        }
    }

    /// It was not sent after all.
    pub(super) fn mark_unsent(&self, number: u64, bridge: Option<Bridge>) {
        if let Some(Waiter::Agent(waiting)) = self.all.lock().get_mut(&number) {
            (waiting.epoch, waiting.bridge) = (None, bridge);
        }
    }

    /// Sets the progress token of the next round.
    pub(super) fn set_token(&self, number: u64, token: Option<&str>) {
        if let Some(Waiter::Agent(waiting)) = self.all.lock().get_mut(&number) {
            waiting.token = token.map(Into::into);
        }
    }

    /// Whether the request `number` was sent and has no answer yet.
    pub(super) fn is_sent(&self, number: u64) -> bool {
        self.all.lock().get(&number).and_then(Waiter::running).is_some()
    }

    /// Whether any request of the agent session waits.
    pub(super) fn waits_for(&self, session: u64) -> bool {
        let is_its =
            |waiting: &Waiter| matches!(waiting, Waiter::Agent(agent) if agent.session == session);
        self.all.lock().values().any(is_its)
    }

    /// Whether the agent session is being asked for input for one of its requests.
    pub(super) fn is_asking(&self, session: u64) -> bool {
        let is_asked = |waiting: &Waiter| matches!(waiting, Waiter::Agent(agent) if agent.session == session && agent.bridge == Some(Bridge::AskingAgent));
        self.all.lock().values().any(is_asked)
    }

    /// Whether no request waits.
    pub(super) fn is_empty(&self) -> bool {
        self.all.lock().is_empty()
    }

    /// Cancels the agent's request `id`. Returns the number under which it was sent; a request that
    /// was not sent yet, or whose agent is being asked for input, ends here.
    pub(super) fn withdraw(&self, session: u64, id: &str) -> Option<u64> {
        let mut all = self.all.lock();
        let (number, sent) = all.iter_mut().find_map(|(number, waiting)| match waiting {
            Waiter::Agent(agent) if agent.session == session && agent.reply.id() == id => {
                agent.cancelled = true;
                Some((*number, agent.epoch.is_some()))
            }
            _ => None,
        })?;
        if sent {
            return Some(number);
        }
        if let Some(Waiter::Agent(waiting)) = all.remove(&number) {
            let effect = waiting.effect_unsent();
            waiting.reply.skip_answer();
            drop(waiting.answered.send(Ok(Ended::cancelled(effect))));
        }
        None
    }

    /// Drops the request `number` without an answer. Returns false if it did not wait any more.
    pub(super) fn give_up(&self, number: u64) -> bool {
        let Some(Waiter::Agent(waiting)) = self.take(number) else { return false };
        waiting.reply.skip_answer();
        drop(waiting.answered.send(Ok(Ended::cancelled(Effect::Unknown))));
        true
    }

    /// Fails the waiter `number`. Returns true if the server still executes it and was not told of
    /// a cancellation.
    pub(super) fn fail(&self, number: u64, failure: &Failure, server: &Server) -> bool {
        let Some(waiting) = self.take(number) else { return false };
        let runs = waiting.running().is_some_and(|agent| !agent.cancelled);
        waiting.fail(failure, server);
        runs
    }

    /// Fails requests that an agent has cancelled.
    pub(super) fn drop_cancelled(&self, server: &Server) {
        let cancelled =
            |waiting: &Waiter| matches!(waiting, Waiter::Agent(agent) if agent.cancelled);
        let failure = Failure::Lost { why: "the agent has cancelled it".into() };
        self.fail_where(cancelled, &failure, server);
    }

    /// Fails all requests that were sent in `epoch`.
    pub(super) fn fail_epoch(&self, epoch: u64, failure: &Failure, server: &Server) {
        self.fail_where(|waiting| waiting.epoch() == Some(epoch), failure, server);
    }

    /// Fails all requests.
    pub(super) fn fail_all(&self, failure: &Failure, server: &Server) {
        self.fail_where(|_| true, failure, server);
    }

    /// The event buffer of the request `number`, and its progress token as the agent wrote it.
    pub(super) fn progress_of(&self, number: u64) -> Option<(Arc<EventBuffer>, Box<str>)> {
        match self.all.lock().get(&number) {
            Some(Waiter::Agent(agent)) => {
                Some((Arc::clone(agent.reply.buffer()), agent.token.clone()?))
            }
            _ => None,
        }
    }

    /// The event buffer of the request `number`.
    pub(super) fn buffer_of(&self, number: u64) -> Option<Arc<EventBuffer>> {
        match self.all.lock().get(&number) {
            Some(Waiter::Agent(agent)) => Some(Arc::clone(agent.reply.buffer())),
            _ => None,
        }
    }

    /// The event buffer and the agent's id of the request `number`, if its answer may be relayed.
    pub(super) fn passes(&self, number: u64) -> Option<(Arc<EventBuffer>, Box<str>)> {
        match self.all.lock().get(&number) {
            Some(Waiter::Agent(agent)) if agent.sees_list_as_it_is() => {
                Some((Arc::clone(agent.reply.buffer()), agent.reply.id().into()))
            }
            _ => None,
        }
    }

    /// The agent session of the request `number`.
    pub(super) fn session_of(&self, number: u64) -> Option<u64> {
        match self.all.lock().get(&number) {
            Some(Waiter::Agent(agent)) => Some(agent.session),
            _ => None,
        }
    }

    /// The event buffer of the only running request; `None` if there are several.
    pub(super) fn only_buffer(&self) -> Option<Arc<EventBuffer>> {
        let all = self.all.lock();
        let mut running = all.values().filter_map(Waiter::running);
        let only = running.next().filter(|_| running.next().is_none());
        only.map(|agent| Arc::clone(agent.reply.buffer()))
    }

    /// The event buffer of the newest running request.
    pub(super) fn newest_buffer(&self) -> Option<Arc<EventBuffer>> {
        let all = self.all.lock();
        let newest = all.values().rev().find_map(Waiter::running);
        newest.map(|agent| Arc::clone(agent.reply.buffer()))
    }

    fn fail_where(&self, whom: impl Fn(&Waiter) -> bool, failure: &Failure, server: &Server) {
        // Removed first: buffers wake readers, and the lock must not be held meanwhile.
        let failed: Vec<_> = self.all.lock().extract_if(.., |_, waiting| whom(waiting)).collect();
        self.removed.notify_waiters();
        for (_, waiting) in failed {
            waiting.fail(failure, server);
        }
    }
}
