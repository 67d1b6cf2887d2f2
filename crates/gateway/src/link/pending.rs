//! Pending requests: an agent's request from the moment it has a number to its end.
//!
//! Invariant: a message is sent once, with a clearance. Only a server that refused it unread (a forgotten
//! session) gets it a second time.
//! Invariant: however this ends, a panic too, nobody is left waiting.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use tokio::sync::oneshot;
use tokio::time::sleep;
use toolgate_audit::{CallId, Effect};
use toolgate_mcp::modern::without_claims;
use toolgate_mcp::{Payload, Refusal, Request, code, method, peek, text, write};

use super::newer::{Delivered, Newer};
use super::waiting::{AgentWaiting, Hides, Waiting};
use super::{Link, Unanswered};
use crate::access::Grant;
use crate::channel::{Heads, Outbound, SendError, Uncleared};
use crate::clearance::{Clearance, Closed};
use crate::ended::Ended;
use crate::era::Era;
use crate::failure::{Expects, Failure};
use crate::lists::Kind;
use crate::outlet::Outlet;
use crate::refused::Refused;
use crate::rewrite::{error_in, rewrite, with_error};

/// An agent's request on its way into a link.
#[derive(Clone, Copy)]
pub(crate) struct Ask<'a> {
    /// Key of the agent session.
    pub(crate) session: u64,
    pub(crate) request: &'a Request<'a>,
    /// Parts of the request that the server knows under other names.
    pub(crate) changes: &'a [(&'a str, &'a str)],
    /// Whether URIs in the answer are to be shown as on `/mcp`.
    pub(crate) mapped: bool,
    /// Whether the answer is to be written down before the agent may have it.
    pub(crate) withheld: bool,
    /// Under what the audit has it, if it does.
    pub(crate) call_id: Option<CallId>,
    /// Whether the request is of protocol 2026-07-28.
    pub(crate) newer: bool,
    /// From whom some of the entries of a list are hidden.
    pub(crate) hides: Option<(&'a Arc<Grant>, Timestamp)>,
}

/// A request that has a number and was not sent yet.
pub(crate) struct Pending {
    pub(super) unanswered: Unanswered,
    pub(super) body: Bytes,
    limit: Duration,
    pub(super) answer: oneshot::Receiver<Ended>,
    /// Whether it is of protocol 2026-07-28.
    pub(super) is_newer: bool,
    /// What only such a request has.
    pub(super) newer: Option<Box<Newer>>,
}

// === impl Link ===

impl Link {
    /// Gives an agent's request its number. From now on it can be cancelled, and it is answered.
    pub(crate) fn pending(
        self: &Arc<Self>,
        ask: &Ask<'_>,
        outlet: &Arc<Outlet>,
    ) -> Result<Pending, Refusal> {
        let request = ask.request;
        let limit = self.limit_of(ask)?;
        let token = match request.params {
            Some(params) => peek(params, &["_meta", "progressToken"])?,
            None => None,
        };
        let number = self.waiting.number();
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(number);
        let mut changes = vec![(request.id, digits)];
        changes.extend(token.map(|token| (token, digits)));
        changes.extend_from_slice(ask.changes);
        let body = rewrite(request.raw, &changes)?;
        let (answered, answer) = oneshot::channel();
        let waiting = AgentWaiting {
            session: ask.session,
            mapped: ask.mapped,
            withheld: ask.withheld,
            list: Kind::listed_by(&request.method),
            hides: ask.hides.and_then(|(grant, now)| Hides::of(&request.method, grant, now)),
            outlet: Arc::clone(outlet),
            id: request.id.into(),
            token: token.map(Into::into),
            expects: Expects::of(&request.method),
            call_id: ask.call_id,
            epoch: None,
            cancelled: false,
            newer: None,
            answered,
        };
        self.waiting.insert(number, Waiting::Agent(waiting));
        let unanswered = Unanswered { link: Arc::clone(self), number };
        Ok(Pending { unanswered, body, limit, answer, is_newer: ask.newer, newer: None })
    }

    /// How long the request may take.
    fn limit_of(&self, ask: &Ask<'_>) -> Result<Duration, Refusal> {
        let request = ask.request;
        let tool = match request.params {
            Some(params)
                if request.method == method::TOOLS_CALL
                    && !self.server.settings.tool_timeouts.is_empty() =>
            {
                peek(params, &["name"])?.and_then(text)
            }
            _ => None,
        };
        let tool = tool.as_deref().and_then(|tool| {
            if ask.mapped { self.server.naming.own_name(tool) } else { Some(tool) }
        });
        Ok(self.server.timeout(tool))
    }

    async fn deliver(
        self: &Arc<Self>,
        pending: &mut Pending,
        clearance: Clearance,
    ) -> Result<Ended, Failure> {
        let _room = self.server.room()?;
        let mut second_chance = true;
        let mut next = Some(clearance);
        loop {
            let up = self.come_up().await?;
            let clearance = next.take().ok_or(Uncleared)?;
            // For a server that refuses it unread.
            let spare = clearance.second_chance().filter(|_| second_chance);
            if up.era == Era::Modern {
                let delivered = self.deliver_newer(pending, &up, second_chance, clearance);
                match delivered.await? {
                    Delivered::Ended(ended) => return Ok(ended),
                    Delivered::Refused => {
                        second_chance = false;
                        next = spare;
                        continue;
                    }
                }
            }
            let number = pending.unanswered.number;
            if !self.waiting.mark_sent(number, up.epoch) {
                // Whoever took it out has said how it ended, or it was cancelled before it left.
                let ended = pending.answer.try_recv();
                return Ok(ended.unwrap_or(Ended::cancelled(Effect::NotStarted)));
            }
            let message = Outbound::request(pending.older_body(), Heads::new(), clearance)?;
            let sent = tokio::select! {
                biased;
                sent = up.channel.send(message, self.ear(up.epoch, Some(number))) => sent,
                // Somebody has said how it ended: nobody waits for the server any more.
                ended = &mut pending.answer => {
                    return Ok(ended.unwrap_or(Ended::cancelled(Effect::Unknown)));
                }
            };
            match sent {
                Ok(()) => {
                    let ended = (&mut pending.answer).await;
                    return Ok(ended.unwrap_or(Ended::cancelled(Effect::Unknown)));
                }
                Err(SendError::SessionLost) => {
                    self.forget(up.epoch);
                    second_chance = false;
                    next = Some(spare.ok_or(SendError::SessionLost)?);
                }
                // It speaks another protocol by now.
                Err(SendError::Refused { status: 400, body })
                    if spare.is_some() && is_newer_only(&body) =>
                {
                    second_chance = false;
                    next = spare;
                    self.server.eras.refuses(Era::Legacy);
                    self.forget(up.epoch);
                }
                Err(SendError::Refused { status, body }) => {
                    return self.refused(number, status, &body);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// A refusal that is itself a JSON-RPC error is the server's answer, with its status.
    pub(super) fn refused(&self, number: u64, status: u16, body: &Bytes) -> Result<Ended, Failure> {
        let Some(error) = error_in(body) else { return Err(Failure::Refused { status }) };
        if let Some(Waiting::Agent(waiting)) = self.waiting.take(number) {
            let error = waiting.error_for_agent(error);
            let answer = with_error(&waiting.id, &error);
            waiting.outlet.answer(answer, (status == 400).then_some(status));
            self.server.metrics.answered.inc();
        }
        Ok(Ended::answered(Payload::Error(error), None))
    }

    /// Time is up, unless the server waits for the agent (a person may be typing an answer). Where
    /// agents share the server, those who are not asked do not wait for it.
    async fn expiry(&self, limit: Duration, session: Option<u64>) {
        loop {
            sleep(limit).await;
            let asked = self.asked.load(Ordering::Relaxed) > 0;
            let asks_it = || session.is_some_and(|session| self.waiting.asks(session));
            if !asked || (self.is_shared() && !asks_it()) {
                return;
            }
        }
    }

    fn too_late(&self, number: u64, limit: Duration) -> Failure {
        if self.waiting.is_sent(number) {
            Failure::Timeout { after: limit }
        } else {
            Failure::unavailable(format!("it was not ready within {limit:?}"))
        }
    }
}

// === impl Pending ===

impl Pending {
    /// It goes no further; the agent is told.
    pub(crate) fn refuse(self, refused: &Refused) {
        let Unanswered { link, number } = &self.unanswered;
        if let Some(Waiting::Agent(waiting)) = link.waiting.take(*number) {
            waiting.outlet.answer(refused.answer(&waiting.id, waiting.expects), None);
        }
    }

    /// It is of protocol 2026-07-28 and has what only such a request has.
    pub(crate) fn with_newer(self, newer: Newer) -> Self {
        Self { newer: Some(Box::new(newer)), ..self }
    }

    /// The body for a server of an older protocol.
    fn older_body(&self) -> Bytes {
        if !self.is_newer {
            return self.body.clone();
        }
        let raw = String::from_utf8_lossy(&self.body);
        without_claims(&raw).ok().flatten().unwrap_or_else(|| self.body.clone())
    }

    /// Sends it and waits for its end; everything that the agent is to see of it, at the latest a
    /// failure, is in its outlet by then.
    pub(crate) async fn run(mut self, clearance: Clearance) -> Ended {
        let (link, limit) = (Arc::clone(&self.unanswered.link), self.limit);
        let session = link.waiting.session_of(self.unanswered.number);
        let delivered = tokio::select! {
            biased;
            delivered = link.deliver(&mut self, clearance) => delivered.map_err(Some),
            () = link.expiry(limit, session) => Err(None),
        };
        let number = self.unanswered.number;
        let failure = match delivered {
            Ok(ended) => return ended,
            Err(failure) => failure.unwrap_or_else(|| link.too_late(number, limit)),
        };
        let timed_out = matches!(failure, Failure::Timeout { .. });
        let still_runs = link.waiting.fail(number, &failure, &link.server);
        if timed_out && still_runs {
            let params = format!(r#"{{"requestId":{number},"reason":"timeout"}}"#);
            let body = write::notification(method::CANCELLED, Some(&params));
            link.tell(body, Closed::CANCELLED).await;
        }
        self.answer.try_recv().unwrap_or_else(|_| Ended::failed(&failure))
    }
}

/// Whether a refusal is one that only servers of protocol 2026-07-28 give.
fn is_newer_only(body: &Bytes) -> bool {
    let code = error_in(body).and_then(|error| peek(error, &["code"]).ok().flatten());
    let code = code.and_then(|code| code.parse().ok());
    matches!(code, Some(code::HEADER_MISMATCH | code::UNSUPPORTED_VERSION))
}
