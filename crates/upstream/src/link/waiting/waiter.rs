//! One request that waits, and how it fails.

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use tokio::sync::oneshot;
use toolgate_admission::access::Grant;
use toolgate_admission::ended::Ended;
use toolgate_admission::list_kind::Kind;
use toolgate_audit::Effect;
use toolgate_mcp::method;

use crate::failure::Failure;
use crate::link::input_required::Settled;
use crate::link::server::Server;
use crate::reply::Reply;
use crate::tasks::Role;

/// A request that waits for an answer of the server.
pub(in crate::link) enum Waiter {
    /// An agent.
    Agent(AgentWaiter),
    /// The link itself, in that epoch: a handshake, a list.
    Own(oneshot::Sender<Result<Bytes, Failure>>, u64),
}

/// An agent's request that has no answer yet.
pub(in crate::link) struct AgentWaiter {
    /// Key of the agent session.
    pub(in crate::link) session: u64,
    /// The answer that it is owed.
    pub(in crate::link) reply: Reply,
    /// The progress token as the agent spelled it.
    pub(in crate::link) token: Option<Box<str>>,
    /// Whether URIs in the answer are shown as on `/mcp`.
    pub(in crate::link) mapped: bool,
    /// Whether the answer must be recorded before the agent may see it.
    pub(in crate::link) held: bool,
    /// How its answer may refer to tasks.
    pub(in crate::link) role: Role,
    /// Which list is requested, if any.
    pub(in crate::link) list: Option<Kind>,
    /// Set if entries of the list are hidden from the grant.
    pub(in crate::link) hides: Option<ListFilter>,
    /// Set if it requests a list from its beginning: how many times a new list of tools was
    /// necessary when it was made.
    pub(in crate::link) from_start: Option<u64>,
    /// The epoch in which it was sent; `None` if it was not sent yet.
    pub(in crate::link) epoch: Option<u64>,
    /// The agent cancelled it: only the server may still answer it.
    pub(in crate::link) cancelled: bool,
    /// If the server is sessionless: how its answer reaches the agent.
    pub(in crate::link) bridge: Option<Bridge>,
    pub(in crate::link) answered: oneshot::Sender<Settled>,
}

/// How answers of a sessionless server reach an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::link) enum Bridge {
    /// Unchanged: the agent is sessionless too.
    Passthrough,
    /// Translated for a sessionful agent.
    Translate,
    /// The agent is being asked for input before the request continues.
    AskingAgent,
}

/// A list from which entries are hidden.
pub(in crate::link) struct ListFilter {
    pub(in crate::link) kind: Kind,
    pub(in crate::link) grant: Arc<Grant>,
    /// When it was requested.
    pub(in crate::link) now: Timestamp,
}

impl ListFilter {
    /// `None` if `method` does not request a list.
    pub(in crate::link) fn of(method: &str, grant: &Arc<Grant>, now: Timestamp) -> Option<Self> {
        Some(Self { kind: Kind::listed_by(method)?, grant: Arc::clone(grant), now })
    }
}

// === impl AgentWaiter ===

impl AgentWaiter {
    pub(super) fn sees_list_as_it_is(&self) -> bool {
        // Tools are judged before the agent sees them.
        self.list.is_some_and(|kind| kind != Kind::Tools)
            && self.hides.is_none()
            && !self.mapped
            && self.bridge.is_none()
    }

    /// The method that requests the list, if it is one.
    pub(in crate::link) fn list_method(&self) -> Option<&'static str> {
        let of_tasks = (self.role == Role::List).then_some(method::TASKS_LIST);
        self.list.map(Kind::method).or(of_tasks)
    }

    /// The effect of a request that was not sent: earlier rounds may have run.
    pub(super) fn effect_unsent(&self) -> Effect {
        match self.bridge {
            Some(Bridge::AskingAgent) => Effect::Unknown,
            _ => Effect::NotStarted,
        }
    }
}

// === impl Waiter ===

impl Waiter {
    pub(super) fn fail(self, failure: &Failure, server: &Server) {
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

    pub(super) fn epoch(&self) -> Option<u64> {
        match self {
            Self::Agent(waiting) => waiting.epoch,
            Self::Own(_, epoch) => Some(*epoch),
        }
    }

    /// An agent's request that has been sent.
    pub(super) fn running(&self) -> Option<&AgentWaiter> {
        match self {
            Self::Agent(agent) if agent.epoch.is_some() => Some(agent),
            _ => None,
        }
    }
}
