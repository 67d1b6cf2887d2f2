//! Pending requests: an agent's request from the moment it has a number to its end.
//!
//! Invariant: a message is sent once, with a clearance, whatever the server answers. Only a request
//! that needs no permit (a list, a ping) is sent again to a server that has lost its session.
//! Invariant: a request with a permit is checked again immediately before it is written.
//! Invariant: however it ends, even by a panic, the agent receives an answer.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use tokio::sync::oneshot;
use tokio::time::Instant;
use toolgate_admission::access::Grant;
use toolgate_admission::answer_kind::AnswerKind;
use toolgate_admission::call_request::{CallRequest, Subject};
use toolgate_admission::clearance::Clearance;
use toolgate_admission::ended::Ended;
use toolgate_admission::list_kind::Kind;
use toolgate_admission::multi_round::SessionlessParts;
use toolgate_admission::recheck::Recheck;
use toolgate_admission::refused::Refused;
use toolgate_audit::{CallId, Effect};
use toolgate_json::peek;
use toolgate_mcp::sessionless::without_claims;
use toolgate_mcp::{Payload, Refusal, code, method, write};

use super::handshake::LiveChannel;
use super::input_required::{Settled, over};
use super::sessionless::Delivered;
use super::waiting::{AgentWaiter, ListFilter, Waiter};
use super::{FailOnDrop, Link, Usable};
use crate::channel::{
    FinalCheck, Heads, Outbound, RefusedStatus, SendError, StatusClass, Uncleared,
};
use crate::era::Era;
use crate::event_buffer::{EventBuffer, Rejection};
use crate::failure::Failure;
use crate::reply::Reply;
use crate::rewrite::{error_in, rewrite, with_error};
use crate::tasks::Role;

mod checks;
mod run;

/// How an agent's request is put to the server of a link.
#[derive(Clone, Copy, Default)]
pub struct AgentRequest<'a> {
    /// What the request is about, if the server knows it under another name than the agent.
    pub own: Option<&'a str>,
    /// Parts of the request that are replaced by the server's own names.
    pub changes: &'a [(&'a str, &'a str)],
    /// The task that it is about, under the server's own id.
    pub task: Option<&'a str>,
    /// Whether URIs in the answer are shown as on `/mcp`.
    pub mapped: bool,
    /// The grant from which some entries of a list are hidden.
    pub hides: Option<(&'a Arc<Grant>, Timestamp)>,
}

/// Whose a request is, and how it is recorded.
pub(crate) struct Owner {
    /// Key of the agent session.
    pub(crate) session: u64,
    /// Whether the agent session stands for clients of protocol 2026-07-28.
    pub(crate) is_sessionless: bool,
    /// Whether the outcome is to be recorded before the agent may have the answer.
    pub(crate) held: bool,
    /// Its id in the audit, if it has one.
    pub(crate) call_id: Option<CallId>,
}

/// A request that has a number and is not sent yet.
pub(crate) struct Pending {
    pub(super) unanswered: FailOnDrop,
    pub(super) body: Bytes,
    limit: Duration,
    pub(super) answer: oneshot::Receiver<Settled>,
    /// Whether it is of protocol 2026-07-28.
    pub(super) is_sessionless: bool,
    /// The state of a sessionless client's call.
    pub(super) sessionless: Option<Box<SessionlessParts>>,
    arrived: Instant,
    /// Checks it again before it is written, if it was admitted.
    recheck: Option<Arc<Recheck>>,
    /// The tool that it calls.
    called: Option<CalledTool>,
    /// It, or a request of an earlier round, may have been written.
    pub(super) written: bool,
    /// Whether it has waited since it was admitted.
    pub(super) waited: bool,
    /// How many times its agent was asked for input.
    pub(super) rounds: usize,
}

/// The tool of a call, and what its definition is compared with.
pub(crate) struct CalledTool {
    /// The server's own name.
    pub(crate) tool: Arc<str>,
    /// The label of the grant that calls.
    pub(crate) grant: Arc<str>,
    /// The raw arguments, if they are checked.
    pub(crate) arguments: Option<Arc<str>>,
    /// Set once its definition was judged.
    pub(crate) usable: Option<Usable>,
}

// === impl Link ===

impl Link {
    /// Assigns a number to an agent's request. From now on it can be cancelled, and it will be
    /// answered.
    pub(crate) fn pending(
        self: &Arc<Self>,
        request: &CallRequest<'_>,
        ask: &AgentRequest<'_>,
        owner: &Owner,
        buffer: &Arc<EventBuffer>,
    ) -> Result<Pending, Refusal> {
        let limit = self.limit_of(request, ask);
        let token = request.progress_token;
        let number = self.waiting.number();
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(number);
        let mut changes = vec![(request.raw_id, digits)];
        changes.extend(token.map(|token| (token, digits)));
        changes.extend_from_slice(ask.changes);
        let body = rewrite(request.raw, &changes)?;
        let (answered, answer) = oneshot::channel();
        let waiting = AgentWaiter {
            session: owner.session,
            mapped: ask.mapped,
            held: owner.held,
            role: Role::of(request.method, ask.task),
            list: Kind::listed_by(request.method),
            hides: ask.hides.and_then(|(grant, now)| ListFilter::of(request.method, grant, now)),
            reply: Reply::new(buffer, request.id, AnswerKind::of(request.method))
                .with_call_id(owner.call_id),
            token: token.map(Into::into),
            from_start: self.wanted_by(request),
            epoch: None,
            cancelled: false,
            bridge: None,
            answered,
        };
        self.waiting.insert(number, Waiter::Agent(waiting));
        let unanswered = FailOnDrop { link: Arc::clone(self), number };
        Ok(Pending {
            unanswered,
            body,
            limit,
            answer,
            is_sessionless: owner.is_sessionless,
            sessionless: None,
            arrived: Instant::now(),
            recheck: None,
            called: None,
            written: false,
            waited: false,
            rounds: 0,
        })
    }

    /// How many times a new list of tools was necessary by now, if this requests a list from its
    /// beginning.
    fn wanted_by(&self, request: &CallRequest<'_>) -> Option<u64> {
        Kind::listed_by(request.method)?;
        let cursor = request.params.map_or(Ok(None), |params| peek(params, &["cursor"]));
        matches!(cursor, Ok(None | Some("null"))).then(|| self.vetting.wanted())
    }

    /// How long the request may take.
    fn limit_of(&self, request: &CallRequest<'_>, ask: &AgentRequest<'_>) -> Duration {
        if request.method == method::DISCOVER {
            // A client asks this first, and must not wait longer than for a server that cannot be
            // reached.
            return self.server.timeout(None).min(self.server.settings.reconnect_timeout);
        }
        let Subject::Tool(Some(tool)) = &request.subject else { return self.server.timeout(None) };
        self.server.timeout(ask.own.or(tool.text.as_deref()))
    }

    async fn deliver(
        self: &Arc<Self>,
        pending: &mut Pending,
        clearance: Clearance,
    ) -> Result<Ended, Failure> {
        let _room = self.server.room()?;
        // Any answer may be the result of an execution.
        let mut second_chance = clearance.may_repeat();
        let mut next = clearance;
        loop {
            let up = self.ensure_up_for(pending).await?;
            if pending.called.is_some() {
                self.vet(&up).await?;
            }
            if let Some(ended) = self.refused_on_recheck(pending).await {
                return Ok(ended);
            }
            if let Some(ended) = self.refused_arguments(pending).await {
                return Ok(ended);
            }
            let spare = next.once_more();
            let clearance = std::mem::replace(&mut next, spare);
            if up.era == Era::Sessionless {
                let delivered = self.deliver_sessionless(pending, &up, second_chance, clearance);
                match delivered.await? {
                    Delivered::Ended(ended) => return Ok(ended),
                    Delivered::Refused => {
                        second_chance = false;
                        continue;
                    }
                }
            }
            let number = pending.unanswered.number;
            if !self.waiting.mark_sent(number, up.epoch) {
                return Ok(pending.taken_out());
            }
            let message = pending.outbound(pending.sessionful_body(), Heads::new(), clearance)?;
            pending.written = true;
            let sent = tokio::select! {
                biased;
                sent = up.channel.send(message, self.inbound(up.epoch, Some(number))) => sent,
                // The request ended otherwise; the server's answer is no longer awaited.
                ended = &mut pending.answer => return Ok(over(ended)),
            };
            match sent {
                Ok(()) => return Ok(over((&mut pending.answer).await)),
                Err(SendError::NoLongerAllowed) => {
                    pending.written = false;
                    self.waiting.mark_unsent(number, None);
                }
                Err(SendError::SessionLost) => {
                    self.forget(up.epoch);
                    if !std::mem::take(&mut second_chance) {
                        self.reopen();
                        return Err(Failure::Forgotten);
                    }
                }
                Err(SendError::Refused { status, body }) => {
                    // It has changed its protocol.
                    if status.class == StatusClass::BadRequest && is_sessionless_refusal(&body) {
                        self.server.eras.refuses(Era::Sessionful);
                        self.forget(up.epoch);
                        if std::mem::take(&mut second_chance) {
                            continue;
                        }
                    }
                    return self.refused(number, status, &body);
                }
                Err(error) => {
                    pending.written = !matches!(error, SendError::NotSent(_));
                    return Err(error.into());
                }
            }
        }
    }

    /// The live channel for a request, which may have to wait for it.
    pub(super) async fn ensure_up_for(
        self: &Arc<Self>,
        pending: &mut Pending,
    ) -> Result<Arc<LiveChannel>, Failure> {
        if let Some(up) = self.up.load_full() {
            return Ok(up);
        }
        pending.waited = true;
        self.ensure_up(pending.arrived).await
    }

    /// Opens a new session in the background, because the server has lost the previous one.
    fn reopen(self: &Arc<Self>) {
        let me = Arc::clone(self);
        tokio::spawn(async move {
            if let Err(failure) = me.ensure_up(Instant::now()).await {
                let why = failure.what(me.server.name());
                tracing::debug!(server = me.server.name(), why, "no new session was opened");
            }
        });
    }

    /// A rejection that is a JSON-RPC error is the server's answer.
    pub(super) fn refused(
        &self,
        number: u64,
        status: RefusedStatus,
        body: &Bytes,
    ) -> Result<Ended, Failure> {
        let Some(error) = error_in(body) else { return Err(Failure::Refused { status }) };
        if let Some(Waiter::Agent(waiting)) = self.waiting.take(number) {
            let error = waiting.error_for_agent(error);
            let answer = with_error(waiting.reply.id(), &error);
            let is_invalid = status.class == StatusClass::BadRequest;
            let rejection = is_invalid.then_some(Rejection::InvalidRequest);
            waiting.reply.answer_with(answer, rejection);
            self.server.metrics.answered.inc();
        }
        Ok(Ended::answered(Payload::Error(error), None))
    }
}

// === impl Pending ===

impl Pending {
    /// Rejects it and answers the agent.
    pub(crate) fn refuse(self, refused: &Refused) {
        let FailOnDrop { link, number } = &self.unanswered;
        if let Some(Waiter::Agent(waiting)) = link.waiting.take(*number) {
            waiting.reply.refuse(refused);
        }
    }

    /// Rejects it as an invalid request and answers the agent.
    pub(crate) fn object(self, refusal: &Refusal) {
        let FailOnDrop { link, number } = &self.unanswered;
        if let Some(Waiter::Agent(waiting)) = link.waiting.take(*number) {
            let id = Some(waiting.reply.id());
            let answer = write::error(id, refusal.code, &refusal.message, None);
            waiting.reply.answer_with(answer, Some(Rejection::InvalidRequest));
        }
    }

    /// It belongs to a sessionless client.
    pub(crate) fn with_sessionless(self, sessionless: SessionlessParts) -> Self {
        Self { sessionless: Some(Box::new(sessionless)), ..self }
    }

    /// It was admitted, and is checked again before it is written: it, and the definition of the
    /// tool that it calls. It may have waited for a person, so the time in which the server must be
    /// reached begins now.
    pub(crate) fn with_recheck(self, recheck: Arc<Recheck>, called: Option<CalledTool>) -> Self {
        Self { recheck: Some(recheck), called, arrived: Instant::now(), ..self }
    }

    /// Waits until it is cancelled or ends otherwise, before it was sent.
    pub(crate) async fn ended_early(&mut self) {
        drop((&mut self.answer).await);
    }

    /// The message that carries `body`.
    pub(super) fn outbound(
        &self,
        body: Bytes,
        heads: Heads,
        clearance: Clearance,
    ) -> Result<Outbound, Uncleared> {
        let final_check = self.recheck.as_ref().map(|recheck| {
            let called = self.called.as_ref().map(|it| (Arc::clone(&it.tool), it.usable));
            let recheck = Arc::clone(recheck);
            let link = Arc::clone(&self.unanswered.link);
            FinalCheck::new(move || {
                let is_usable = |(tool, usable): &(Arc<str>, Option<Usable>)| {
                    let mut usable = *usable;
                    link.check_usable(tool, &mut usable).is_ok()
                };
                recheck.check().is_ok() && called.as_ref().is_none_or(is_usable)
            })
        });
        Ok(Outbound::request(body, heads, clearance)?.with_final_check(final_check))
    }

    /// How it ended: the sender of the outcome has reported it, or it was cancelled before it was
    /// sent.
    pub(super) fn taken_out(&mut self) -> Ended {
        let effect = if self.written { Effect::Unknown } else { Effect::NotStarted };
        self.answer.try_recv().ok().and_then(Result::ok).unwrap_or(Ended::cancelled(effect))
    }

    /// The body for a sessionful server.
    fn sessionful_body(&self) -> Bytes {
        if !self.is_sessionless {
            return self.body.clone();
        }
        let raw = String::from_utf8_lossy(&self.body);
        without_claims(&raw).ok().flatten().unwrap_or_else(|| self.body.clone())
    }
}

/// Whether a rejection is one that only sessionless servers give.
fn is_sessionless_refusal(body: &Bytes) -> bool {
    let code = error_in(body).and_then(|error| peek(error, &["code"]).ok().flatten());
    let code = code.and_then(|code| code.parse().ok());
    matches!(code, Some(code::HEADER_MISMATCH | code::UNSUPPORTED_VERSION))
}
