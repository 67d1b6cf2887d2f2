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

use bytes::Bytes;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use toolgate_admission::access::Grant;
use toolgate_admission::ended::Ended;
use toolgate_admission::list_kind::Kind;
use toolgate_audit::Effect;
use toolgate_mcp::method;

use super::input_required::Settled;
use super::server::Server;
use crate::event_buffer::EventBuffer;
use crate::failure::Failure;
use crate::reply::Reply;
use crate::tasks::Role;

#[cfg(test)]
mod tests;

/// All requests that wait for an answer over one link.
pub(super) struct Waiters {
    next: AtomicU64,
    /// Numbers grow and few wait at a time, so a tree is faster than hashing.
    all: Mutex<BTreeMap<u64, Waiter>>,
    /// Notified when one was removed.
    removed: Notify,
}

/// A request that waits for an answer of the server.
pub(super) enum Waiter {
    /// An agent.
    Agent(AgentWaiter),
    /// The link itself, in that epoch: a handshake, a list.
    Own(oneshot::Sender<Result<Bytes, Failure>>, u64),
}

/// An agent's request that has no answer yet.
pub(super) struct AgentWaiter {
    /// Key of the agent session.
    pub(super) session: u64,
    /// The answer that it is owed.
    pub(super) reply: Reply,
    /// The progress token as the agent spelled it.
    pub(super) token: Option<Box<str>>,
    /// Whether URIs in the answer are shown as on `/mcp`.
    pub(super) mapped: bool,
    /// Whether the answer must be recorded before the agent may see it.
    pub(super) held: bool,
    /// How its answer may refer to tasks.
    pub(super) role: Role,
    /// Which list is requested, if any.
    pub(super) list: Option<Kind>,
    /// Set if entries of the list are hidden from the grant.
    pub(super) hides: Option<ListFilter>,
    /// Set if it requests a list from its beginning: how many times a new list of tools was
    /// necessary when it was made.
    pub(super) from_start: Option<u64>,
    /// The epoch in which it was sent; `None` if it was not sent yet.
    pub(super) epoch: Option<u64>,
    /// The agent cancelled it: only the server may still answer it.
    pub(super) cancelled: bool,
    /// If the server is sessionless: how its answer reaches the agent.
    pub(super) bridge: Option<Bridge>,
    pub(super) answered: oneshot::Sender<Settled>,
}

/// How answers of a sessionless server reach an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bridge {
    /// Unchanged: the agent is sessionless too.
    Passthrough,
    /// Translated for a sessionful agent.
    Translate,
    /// The agent is being asked for input before the request continues.
    AskingAgent,
}

/// A list from which entries are hidden.
pub(super) struct ListFilter {
    pub(super) kind: Kind,
    pub(super) grant: Arc<Grant>,
    /// When it was requested.
    pub(super) now: Timestamp,
}

impl ListFilter {
    /// `None` if `method` does not request a list.
    pub(super) fn of(method: &str, grant: &Arc<Grant>, now: Timestamp) -> Option<Self> {
        Some(Self { kind: Kind::listed_by(method)?, grant: Arc::clone(grant), now })
    }
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

// === impl AgentWaiter ===

impl AgentWaiter {
    fn sees_list_as_it_is(&self) -> bool {
        // Tools are judged before the agent sees them.
        self.list.is_some_and(|kind| kind != Kind::Tools)
            && self.hides.is_none()
            && !self.mapped
            && self.bridge.is_none()
    }

    /// The method that requests the list, if it is one.
    pub(super) fn list_method(&self) -> Option<&'static str> {
        let of_tasks = (self.role == Role::List).then_some(method::TASKS_LIST);
        self.list.map(Kind::method).or(of_tasks)
    }

    /// The effect of a request that was not sent: earlier rounds may have run.
    fn effect_unsent(&self) -> Effect {
        match self.bridge {
            Some(Bridge::AskingAgent) => Effect::Unknown,
            _ => Effect::NotStarted,
        }
    }
}

// === impl Waiter ===

impl Waiter {
    fn fail(self, failure: &Failure, server: &Server) {
        match self {
            Self::Agent(waiting) if waiting.cancelled => {
                server.metrics.cancelled.inc();
                let sent = waiting.epoch.is_some();
                let effect = if sent { Effect::Unknown } else { waiting.effect_unsent() };
                waiting.reply.skip_answer();
                drop(waiting.answered.send(Ok(Ended::cancelled(effect))));
            }
            Self::Agent(waiting) => {
                let failure = match failure {
                    // A request that was not sent cannot have had an effect.
                    Failure::Lost { why }
                        if waiting.epoch.is_none()
                            && waiting.bridge != Some(Bridge::AskingAgent) =>
                    {
                        &Failure::unavailable(why.clone())
                    }
                    failure => failure,
                };
                match failure {
                    Failure::Timeout { .. } => server.metrics.timeout.inc(),
                    Failure::Lost { .. } => server.metrics.lost.inc(),
                    _ => server.metrics.unavailable.inc(),
                };
                let reply = waiting.reply;
                let (expects, call_id) = (reply.expects(), reply.call_id());
                let answer = failure.answer(server.name(), reply.id(), expects, call_id);
                reply.answer(answer);
                drop(waiting.answered.send(Ok(failure.ended())));
            }
            Self::Own(waiting, _) => drop(waiting.send(Err(failure.clone()))),
        }
    }

    fn epoch(&self) -> Option<u64> {
        match self {
            Self::Agent(waiting) => waiting.epoch,
            Self::Own(_, epoch) => Some(*epoch),
        }
    }

    /// An agent's request that has been sent.
    fn running(&self) -> Option<&AgentWaiter> {
        match self {
            Self::Agent(agent) if agent.epoch.is_some() => Some(agent),
            _ => None,
        }
    }
}
