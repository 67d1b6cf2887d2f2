//! Who waits for an answer of the server, and under which number.
//!
//! Invariant: a number is given out once in the life of a link, across all its channels.
//! Invariant: whoever is taken out of the room is answered by whoever took it, so nobody is
//! answered twice and nobody is forgotten.
//!
//! Start at [`WaitingRoom::insert`]. Tested by `link/waiting/tests.rs`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use toolgate_admission::access::Grant;
use toolgate_admission::ended::Ended;
use toolgate_admission::list_kind::Kind;
use toolgate_audit::Effect;

use super::input_required::Settled;
use super::server::Server;
use crate::event_buffer::Outlet;
use crate::failure::Failure;
use crate::reply::Reply;
use crate::tasks::Role;

#[cfg(test)]
mod tests;

/// Everybody who waits for an answer over one link.
pub(super) struct WaitingRoom {
    next: AtomicU64,
    /// Numbers grow and few wait at a time, so that a tree is quicker than to hash each number.
    all: Mutex<BTreeMap<u64, Waiting>>,
}

/// Who waits for an answer of the server.
pub(super) enum Waiting {
    /// An agent.
    Agent(AgentWaiting),
    /// The link itself, for what it asked in that epoch: its handshake, a list.
    Own(oneshot::Sender<Result<Bytes, Failure>>, u64),
}

/// An agent's request that has no answer yet.
pub(super) struct AgentWaiting {
    /// Key of the agent session.
    pub(super) session: u64,
    /// The answer that it is owed.
    pub(super) reply: Reply,
    /// The progress token as the agent spelled it.
    pub(super) token: Option<Box<str>>,
    /// Whether URIs in the answer are to be shown as on `/mcp`.
    pub(super) mapped: bool,
    /// Whether the answer is to be written down before the agent may have it.
    pub(super) withheld: bool,
    /// What its answer may say of tasks.
    pub(super) role: Role,
    /// What is asked for, if it is a list.
    pub(super) list: Option<Kind>,
    /// This grant must not see everything of it.
    pub(super) hides: Option<Hides>,
    /// The epoch it was sent in; none while it has not been sent.
    pub(super) epoch: Option<u64>,
    /// The agent does not want it any more: the server may still answer it, nobody else will.
    pub(super) cancelled: bool,
    /// If the server speaks protocol 2026-07-28: what of it the agent is to see.
    pub(super) newer: Option<Bridge>,
    pub(super) answered: oneshot::Sender<Settled>,
}

/// Between a server of protocol 2026-07-28 and an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bridge {
    /// The agent speaks it too.
    Same,
    /// The agent speaks an older one.
    Older,
    /// The agent speaks either, and is being asked something before the request goes on.
    Asking,
}

/// A list of which a grant must not see everything.
pub(super) struct Hides {
    pub(super) kind: Kind,
    pub(super) grant: Arc<Grant>,
    /// When it was asked for.
    pub(super) now: Timestamp,
}

impl Hides {
    /// None if `method` asks for no list.
    pub(super) fn of(method: &str, grant: &Arc<Grant>, now: Timestamp) -> Option<Self> {
        Some(Self { kind: Kind::listed_by(method)?, grant: Arc::clone(grant), now })
    }
}

// === impl WaitingRoom ===

impl WaitingRoom {
    pub(super) fn new() -> Self {
        Self { next: AtomicU64::new(1), all: Mutex::default() }
    }

    /// A number that nobody has waited under before.
    pub(super) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn insert(&self, number: u64, waiting: Waiting) {
        self.all.lock().insert(number, waiting);
    }

    /// Takes out whoever waits under `number`; the caller owes it an answer.
    pub(super) fn take(&self, number: u64) -> Option<Waiting> {
        self.all.lock().remove(&number)
    }

    /// False if no agent waits for it any more: then it must not be sent.
    pub(super) fn mark_sent(&self, number: u64, epoch: u64) -> bool {
        match self.all.lock().get_mut(&number) {
            Some(Waiting::Agent(waiting)) => {
                waiting.epoch = Some(epoch);
                waiting.newer = None;
                true
            }
            _ => false,
        }
    }

    /// The same for a server of protocol 2026-07-28.
    pub(super) fn mark_sent_newer(&self, number: u64, epoch: u64, bridge: Bridge) -> bool {
        match self.all.lock().get_mut(&number) {
            Some(Waiting::Agent(waiting)) => {
                waiting.epoch = Some(epoch);
                waiting.newer = Some(bridge);
                true
            }
            _ => false,
        }
    }

    /// It was not sent after all.
    pub(super) fn mark_unsent(&self, number: u64, newer: Option<Bridge>) {
        if let Some(Waiting::Agent(waiting)) = self.all.lock().get_mut(&number) {
            (waiting.epoch, waiting.newer) = (None, newer);
        }
    }

    /// The agent's request goes on with another one, which has this progress token.
    pub(super) fn set_token(&self, number: u64, token: Option<&str>) {
        if let Some(Waiting::Agent(waiting)) = self.all.lock().get_mut(&number) {
            waiting.token = token.map(Into::into);
        }
    }

    /// Whether the request `number` was sent and has no answer yet.
    pub(super) fn is_sent(&self, number: u64) -> bool {
        self.all.lock().get(&number).and_then(Waiting::running).is_some()
    }

    /// Whether any request of the agent session waits.
    pub(super) fn waits_for(&self, session: u64) -> bool {
        let is_its = |waiting: &Waiting| matches!(waiting, Waiting::Agent(agent) if agent.session == session);
        self.all.lock().values().any(is_its)
    }

    /// Whether the agent session is being asked something before a request of it goes on.
    pub(super) fn asks(&self, session: u64) -> bool {
        let is_asked = |waiting: &Waiting| matches!(waiting, Waiting::Agent(agent) if agent.session == session && agent.newer == Some(Bridge::Asking));
        self.all.lock().values().any(is_asked)
    }

    /// Whether nobody waits at all.
    pub(super) fn is_empty(&self) -> bool {
        self.all.lock().is_empty()
    }

    /// The number under which the agent's request `id` was sent. One that has not been sent yet
    /// never will be.
    /// One whose agent is being asked something goes no further, and nobody need be told.
    pub(super) fn withdraw(&self, session: u64, id: &str) -> Option<u64> {
        let mut all = self.all.lock();
        let (number, sent) = all.iter_mut().find_map(|(number, waiting)| match waiting {
            Waiting::Agent(agent) if agent.session == session && agent.reply.id() == id => {
                agent.cancelled = true;
                Some((*number, agent.epoch.is_some()))
            }
            _ => None,
        })?;
        if sent {
            return Some(number);
        }
        if let Some(Waiting::Agent(waiting)) = all.remove(&number) {
            let effect = waiting.effect_unsent();
            waiting.reply.forgo();
            drop(waiting.answered.send(Ok(Ended::cancelled(effect))));
        }
        None
    }

    /// Nobody wants the answer to the request `number` any more. True if somebody did.
    pub(super) fn give_up(&self, number: u64) -> bool {
        let Some(Waiting::Agent(waiting)) = self.take(number) else { return false };
        waiting.reply.forgo();
        drop(waiting.answered.send(Ok(Ended::cancelled(Effect::Unknown))));
        true
    }

    /// Tells whoever waits under `number` of the failure; true if the server still works on it and
    /// does not know that nobody waits any more.
    pub(super) fn fail(&self, number: u64, failure: &Failure, server: &Server) -> bool {
        let Some(waiting) = self.take(number) else { return false };
        let runs = waiting.running().is_some_and(|agent| !agent.cancelled);
        waiting.fail(failure, server);
        runs
    }

    /// Waits no longer for what an agent has cancelled.
    pub(super) fn forgo_cancelled(&self, server: &Server) {
        let cancelled =
            |waiting: &Waiting| matches!(waiting, Waiting::Agent(agent) if agent.cancelled);
        let failure = Failure::Lost { why: "the agent has cancelled it".into() };
        self.fail_where(cancelled, &failure, server);
    }

    /// Tells everybody whose request went out in `epoch`.
    pub(super) fn fail_epoch(&self, epoch: u64, failure: &Failure, server: &Server) {
        self.fail_where(|waiting| waiting.epoch() == Some(epoch), failure, server);
    }

    /// Tells everybody.
    pub(super) fn fail_all(&self, failure: &Failure, server: &Server) {
        self.fail_where(|_| true, failure, server);
    }

    /// Where the request `number` is answered, and how the agent spelled its progress token.
    pub(super) fn progress_of(&self, number: u64) -> Option<(Arc<Outlet>, Box<str>)> {
        match self.all.lock().get(&number) {
            Some(Waiting::Agent(agent)) => {
                Some((Arc::clone(agent.reply.outlet()), agent.token.clone()?))
            }
            _ => None,
        }
    }

    /// Where the request `number` is answered.
    pub(super) fn outlet_of(&self, number: u64) -> Option<Arc<Outlet>> {
        match self.all.lock().get(&number) {
            Some(Waiting::Agent(agent)) => Some(Arc::clone(agent.reply.outlet())),
            _ => None,
        }
    }

    /// The same if its answer may go on there while it comes in, and the agent's own id.
    pub(super) fn passes(&self, number: u64) -> Option<(Arc<Outlet>, Box<str>)> {
        match self.all.lock().get(&number) {
            Some(Waiting::Agent(agent)) if agent.sees_list_as_it_is() => {
                Some((Arc::clone(agent.reply.outlet()), agent.reply.id().into()))
            }
            _ => None,
        }
    }

    /// Whose the request `number` is.
    pub(super) fn session_of(&self, number: u64) -> Option<u64> {
        match self.all.lock().get(&number) {
            Some(Waiting::Agent(agent)) => Some(agent.session),
            _ => None,
        }
    }

    /// Where the only request that runs is answered; none if there are several.
    pub(super) fn only_outlet(&self) -> Option<Arc<Outlet>> {
        let all = self.all.lock();
        let mut running = all.values().filter_map(Waiting::running);
        let only = running.next().filter(|_| running.next().is_none());
        only.map(|agent| Arc::clone(agent.reply.outlet()))
    }

    /// Where the newest of the requests that run is answered.
    pub(super) fn newest_outlet(&self) -> Option<Arc<Outlet>> {
        let all = self.all.lock();
        let newest = all.values().rev().find_map(Waiting::running);
        newest.map(|agent| Arc::clone(agent.reply.outlet()))
    }

    fn fail_where(&self, whom: impl Fn(&Waiting) -> bool, failure: &Failure, server: &Server) {
        // Taken out first: outlets wake readers, and the room is not to be locked meanwhile.
        let failed: Vec<_> = self.all.lock().extract_if(.., |_, waiting| whom(waiting)).collect();
        for (_, waiting) in failed {
            waiting.fail(failure, server);
        }
    }
}

// === impl AgentWaiting ===

impl AgentWaiting {
    fn sees_list_as_it_is(&self) -> bool {
        self.list.is_some() && self.hides.is_none() && !self.mapped && self.newer.is_none()
    }

    /// What may have happened although it has not been sent: parts of it may have run before.
    fn effect_unsent(&self) -> Effect {
        match self.newer {
            Some(Bridge::Asking) => Effect::Unknown,
            _ => Effect::NotStarted,
        }
    }
}

// === impl Waiting ===

impl Waiting {
    fn fail(self, failure: &Failure, server: &Server) {
        match self {
            Self::Agent(waiting) if waiting.cancelled => {
                server.metrics.cancelled.inc();
                let sent = waiting.epoch.is_some();
                let effect = if sent { Effect::Unknown } else { waiting.effect_unsent() };
                waiting.reply.forgo();
                drop(waiting.answered.send(Ok(Ended::cancelled(effect))));
            }
            Self::Agent(waiting) => {
                let failure = match failure {
                    // What never left cannot have taken effect.
                    Failure::Lost { why }
                        if waiting.epoch.is_none() && waiting.newer != Some(Bridge::Asking) =>
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
    fn running(&self) -> Option<&AgentWaiting> {
        match self {
            Self::Agent(agent) if agent.epoch.is_some() => Some(agent),
            _ => None,
        }
    }
}
