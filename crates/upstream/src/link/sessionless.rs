//! Requests to sessionless servers: each describes itself and has headers that repeat parts of it.
//!
//! Methods that the protocol no longer has are answered here for sessionful agents; input that such
//! a server requires is handled in `link/input_required.rs`.
//!
//! Invariant: every round of a request has its own number.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use tokio::time::Instant;
use toolgate_admission::clearance::{Clearance, Closed};
use toolgate_admission::ended::Ended;
use toolgate_admission::list_kind::Kind;
use toolgate_audit::Effect;
use toolgate_json::{members, peek, text};
use toolgate_mcp::sessionless::{About, described, heads_of};
use toolgate_mcp::{Incoming, Limits, Message, Payload, code, method, parse_server, write};

use super::agent::Agent;
use super::changes::FollowError;
use super::handshake::LiveChannel;
use super::input_required::{Next, over};
use super::pending::Pending;
use super::waiting::{Bridge, Waiter};
use super::{Link, Parties};
use crate::channel::{Heads, Outbound, RefusedStatus, SendError, StatusClass, Uncleared};
use crate::era::Era;
use crate::failure::Failure;
use crate::rewrite::error_in;

/// The result of sending a request.
pub(super) enum Delivered {
    Ended(Ended),
    /// The server rejected it unread: it no longer speaks this protocol.
    Refused,
}

/// Why toolgate itself rejects a request to such a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum LocalRejection {
    #[error(transparent)]
    Follow(FollowError),
    #[error("`requestState` and `inputResponses` are not part of your protocol version")]
    Continuation,
}

/// A notification for a sessionless server; `None` if it must not be sent to one.
pub(super) fn notification(up: &LiveChannel, body: Bytes, closed: Closed) -> Option<Outbound> {
    let heads = {
        let Ok(Incoming::One(Message::Notification(word))) =
            parse_server(&body, &Limits::default())
        else {
            return None;
        };
        match word.method.as_ref() {
            method::INITIALIZED | method::ROOTS_LIST_CHANGED | method::PROGRESS => return None,
            method::CANCELLED if up.channel.exchange_per_request() => return None,
            _ => heads_of(word.raw),
        }
    };
    Outbound::notification(body, heads, closed).ok()
}

impl Link {
    /// Sends a request, round by round, and waits for its end.
    pub(super) async fn deliver_sessionless(
        self: &Arc<Self>,
        pending: &mut Pending,
        up: &Arc<LiveChannel>,
        second_chance: bool,
        clearance: Clearance,
    ) -> Result<Delivered, Failure> {
        if let Some(ended) = self.answer_here(pending, up).await? {
            clearance.spend();
            return Ok(Delivered::Ended(ended));
        }
        let bridge = if pending.is_sessionless { Bridge::Passthrough } else { Bridge::Translate };
        let (mut body, mut up) = (pending.body.clone(), Arc::clone(up));
        let mut chance = second_chance;
        let mut next = clearance;
        loop {
            let number = pending.unanswered.number;
            let spare = next.once_more();
            let clearance = std::mem::replace(&mut next, spare);
            let message = self.outbound(pending, &body, &up, clearance).await?;
            if let Some(ended) = self.refused_on_recheck(pending).await {
                return Ok(Delivered::Ended(ended));
            }
            if !self.waiting.mark_sent_sessionless(number, up.epoch, bridge) {
                return Ok(Delivered::Ended(pending.taken_out()));
            }
            let was_written = std::mem::replace(&mut pending.written, true);
            let sending = up.channel.send(message, self.inbound(up.epoch, Some(number)));
            let sent = tokio::select! {
                biased;
                sent = sending => sent.map(|()| None),
                // The request was cancelled, or a fast server answered before the write was
                // reported. Dropping the exchange hangs up.
                ended = &mut pending.answer => Ok(Some(ended)),
            };
            let ended = match sent {
                Ok(Some(ended)) => ended,
                Ok(None) => (&mut pending.answer).await,
                Err(SendError::NoLongerAllowed) => {
                    pending.written = was_written;
                    self.waiting.mark_unsent(number, was_written.then_some(Bridge::AskingAgent));
                    continue;
                }
                Err(SendError::Refused { status, body: why }) => {
                    let sessionful = is_sessionful_refusal(status, &why);
                    if sessionful {
                        self.forget(up.epoch);
                    }
                    let misled = bridge == Bridge::Translate && misses_headers(&why);
                    match std::mem::take(&mut chance) {
                        true if sessionful => return Ok(Delivered::Refused),
                        true if misled => {
                            // The known annotations of its tools are out of date.
                            self.learn_tools().await?;
                            continue;
                        }
                        _ => {}
                    }
                    if misled {
                        self.learn_tools_soon();
                    }
                    return self.refused(number, status, &why).map(Delivered::Ended);
                }
                Err(error) => {
                    pending.written = was_written || !matches!(error, SendError::NotSent(_));
                    if error == SendError::SessionLost {
                        self.forget(up.epoch);
                    }
                    return Err(error.into());
                }
            };
            let asks = match ended {
                Ok(Err(asks)) => asks,
                ended => return Ok(Delivered::Ended(over(ended))),
            };
            match self.next_round(pending, *asks).await? {
                Next::Over(ended) => return Ok(Delivered::Ended(ended)),
                Next::Round(leg, permit) => {
                    body = leg;
                    next = permit.map_or(next, Clearance::Permit);
                }
            }
            (chance, pending.waited) = (false, true);
            up = self.ensure_up(Instant::now()).await?;
            if up.era != Era::Sessionless {
                return Err(Failure::Lost { why: "it speaks an older protocol by now".into() });
            }
        }
    }

    /// The message of a request or of a further round of it.
    async fn outbound(
        self: &Arc<Self>,
        pending: &Pending,
        body: &Bytes,
        up: &LiveChannel,
        clearance: Clearance,
    ) -> Result<Outbound, Failure> {
        let agent_of = self.agent_of(pending.unanswered.number);
        let level = agent_of.as_ref().and_then(|agent_of| agent_of.server_subscriptions().level());
        let raw = String::from_utf8_lossy(body);
        let about = |about: &About<'_>| described(&raw, about);
        let body = self.with_about(agent_of.as_deref(), level, about);
        let body = body.map_err(|refusal| Failure::unavailable(refusal.message))?;
        let mut heads = heads_of(&raw);
        match &pending.sessionless {
            // The client's headers agree with the arguments; this was checked before.
            Some(_) if up.channel.exchange_per_request() => {
                heads.extend(self.known_parameters(&raw));
            }
            None if !pending.is_sessionless && up.channel.exchange_per_request() => {
                heads.extend(self.parameters(&raw).await);
            }
            _ => {}
        }
        Ok(pending.outbound(body, heads, clearance)?)
    }

    /// The message of a request of toolgate's own.
    pub(super) fn own_outbound(
        &self,
        body: Bytes,
        up: &LiveChannel,
        clearance: Clearance,
    ) -> Result<Outbound, Uncleared> {
        if up.era == Era::Sessionful {
            return Outbound::request(body, Heads::new(), clearance);
        }
        let raw = String::from_utf8_lossy(&body);
        let heads = heads_of(&raw);
        let described = self.with_about(None, None, |about| described(&raw, about));
        let body = described.unwrap_or_else(|_| body.clone());
        Outbound::request(body, heads, clearance)
    }

    /// The headers that repeat arguments of a tool.
    async fn parameters(self: &Arc<Self>, raw: &str) -> Heads {
        let method = peek(raw, &["method"]).ok().flatten().and_then(text);
        if method.as_deref() == Some(method::TOOLS_CALL) && !self.server.annotations.is_whole() {
            self.learn_tools_or_not().await;
        }
        self.known_parameters(raw)
    }

    /// Fetches the server's tools; a failure is only logged.
    pub(crate) async fn learn_tools_or_not(self: &Arc<Self>) {
        if let Err(failure) = self.learn_tools().await {
            let why = failure.what(self.server.name());
            tracing::debug!(server = self.server.name(), why, "its tools are not known");
        }
    }

    /// The headers that repeat arguments of a tool, as far as its annotations are known.
    fn known_parameters(&self, raw: &str) -> Heads {
        let Ok([method, params]) = members(raw, ["method", "params"]) else { return Heads::new() };
        if method.and_then(text).as_deref() != Some(method::TOOLS_CALL) {
            return Heads::new();
        }
        let [name, arguments] =
            members(params.unwrap_or("{}"), ["name", "arguments"]).unwrap_or_default();
        let annotations = &self.server.annotations;
        let known = name.and_then(text).and_then(|name| annotations.of(&name));
        let heads = known.iter().flat_map(|known| known.iter());
        let heads = heads.filter_map(|one| one.head(arguments.unwrap_or("{}")));
        heads.map(|(name, value)| (name.into(), value)).collect()
    }

    /// Fetches the server's tools, and with them the annotations.
    async fn learn_tools(self: &Arc<Self>) -> Result<(), Failure> {
        self.fetch(Kind::Tools).await.map(drop)
    }

    /// The same in the background, for the next call.
    fn learn_tools_soon(self: &Arc<Self>) {
        let me = Arc::clone(self);
        tokio::spawn(async move { me.learn_tools_or_not().await });
    }

    /// The agent session of the request `number`.
    pub(super) fn agent_of(&self, number: u64) -> Option<Arc<dyn Agent>> {
        match &self.parties {
            Parties::One(session) => session.upgrade(),
            Parties::Many(_) => self.agent_by_key(self.waiting.session_of(number)?),
            Parties::Toolgate => None,
        }
    }

    /// The agent session with that key.
    pub(super) fn agent_by_key(&self, key: u64) -> Option<Arc<dyn Agent>> {
        match &self.parties {
            Parties::One(session) => session.upgrade().filter(|session| session.key() == key),
            Parties::Many(sessions) => {
                let sessions = sessions.lock();
                sessions.iter().filter_map(Weak::upgrade).find(|session| session.key() == key)
            }
            Parties::Toolgate => None,
        }
    }

    /// Answers methods that sessionless protocols no longer have.
    async fn answer_here(
        self: &Arc<Self>,
        pending: &Pending,
        up: &Arc<LiveChannel>,
    ) -> Result<Option<Ended>, Failure> {
        let number = pending.unanswered.number;
        let raw = String::from_utf8_lossy(&pending.body);
        let [method, params] = members(&raw, ["method", "params"]).unwrap_or_default();
        let (method, params) = (method.and_then(text).unwrap_or_default(), params.unwrap_or("{}"));
        let uri = || peek(params, &["uri"]).ok().flatten().and_then(text).unwrap_or_default();
        let answer = match method.as_ref() {
            method::PING | method::LOGGING_SET_LEVEL => Ok(()),
            method::RESOURCES_SUBSCRIBE => {
                let session = self.waiting.session_of(number);
                self.follow(session, &uri(), up).await?.map_err(LocalRejection::Follow)
            }
            method::RESOURCES_UNSUBSCRIBE => {
                self.unfollow(self.waiting.session_of(number), &uri());
                Ok(())
            }
            _ if !pending.is_sessionless && is_forged(params) => Err(LocalRejection::Continuation),
            _ => return Ok(None),
        };
        let Some(Waiter::Agent(waiting)) = self.waiting.take(number) else {
            return Ok(Some(Ended::cancelled(Effect::Unknown)));
        };
        let (answer, ended) = match answer {
            Ok(()) => {
                let answer = write::result(waiting.reply.id(), "{}");
                (answer, Ended::answered(Payload::Result("{}"), None))
            }
            Err(why) => {
                let id = Some(waiting.reply.id());
                let answer = write::error(id, code::INVALID_PARAMS, &why.to_string(), None);
                let mut ended = Ended::answered(Payload::Error("{}"), None);
                if why == LocalRejection::Continuation {
                    // Nothing of it was sent.
                    ended.effect = Effect::NotStarted;
                }
                (answer, ended)
            }
        };
        self.server.metrics.answered.inc();
        waiting.reply.answer(answer);
        Ok(Some(ended))
    }
}

/// Whether a request of a sessionful agent contains members of a continued call.
fn is_forged(params: &str) -> bool {
    let parts = members(params, ["requestState", "inputResponses"]);
    parts.is_ok_and(|parts| parts.iter().any(Option::is_some))
}

/// Whether a rejection is one that only sessionful servers give.
fn is_sessionful_refusal(status: RefusedStatus, body: &Bytes) -> bool {
    match error_in(body) {
        Some(error) => matches!(code_of(error), Some(-32019..=-32000)),
        None => matches!(status.class, StatusClass::BadRequest | StatusClass::NoEndpoint),
    }
}

fn misses_headers(body: &Bytes) -> bool {
    error_in(body).and_then(code_of) == Some(code::HEADER_MISMATCH)
}

fn code_of(error: &str) -> Option<i32> {
    peek(error, &["code"]).ok()??.parse().ok()
}
