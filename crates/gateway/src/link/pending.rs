//! Pending requests: an agent's request from the moment it has a number to its end.
//!
//! Invariant: a message is sent once, with a pass. Only a server that refused it unread (a forgotten
//! session) gets it a second time.
//! Invariant: however this ends, a panic too, nobody is left waiting.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use memchr::memmem;
use tokio::sync::oneshot;
use tokio::time::sleep;
use toolgate_audit::Effect;
use toolgate_mcp::{Payload, Refusal, Request, method, peek, text, write};

use super::waiting::{AgentWaiting, Hides, Waiting};
use super::{Link, Unanswered};
use crate::access::Grant;
use crate::channel::{Outbound, SendError};
use crate::ended::Ended;
use crate::failure::{Expects, Failure};
use crate::outlet::Outlet;
use crate::pass::Pass;
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
    /// From whom some of the entries of a list are hidden.
    pub(crate) hides: Option<(&'a Arc<Grant>, Timestamp)>,
}

/// A request that has a number and was not sent yet.
pub(crate) struct Pending {
    unanswered: Unanswered,
    body: Bytes,
    limit: Duration,
    answer: oneshot::Receiver<Ended>,
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
            Some(params) if may_hold(params, "progressToken") => {
                peek(params, &["_meta", "progressToken"])?
            }
            _ => None,
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
            hides: ask.hides.and_then(|(grant, now)| Hides::of(&request.method, grant, now)),
            outlet: Arc::clone(outlet),
            id: request.id.into(),
            token: token.map(Into::into),
            expects: Expects::of(&request.method),
            epoch: None,
            cancelled: false,
            answered,
        };
        self.waiting.insert(number, Waiting::Agent(waiting));
        let unanswered = Unanswered { link: Arc::clone(self), number };
        Ok(Pending { unanswered, body, limit, answer })
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
        number: u64,
        body: Bytes,
        answer: &mut oneshot::Receiver<Ended>,
        pass: Pass,
    ) -> Result<Ended, Failure> {
        let _room = self.server.room()?;
        let mut second_chance = true;
        loop {
            let up = self.come_up().await?;
            if !self.waiting.mark_sent(number, up.epoch) {
                // Whoever took it out has said how it ended, or it was cancelled before it left.
                return Ok(answer.try_recv().unwrap_or(Ended::cancelled(Effect::NotStarted)));
            }
            let message = Outbound { body: body.clone(), expects_answer: true };
            match up.channel.send(message, self.ear(up.epoch, Some(number))).await {
                Ok(()) => {
                    pass.spend();
                    return Ok(answer.await.unwrap_or(Ended::cancelled(Effect::Unknown)));
                }
                Err(SendError::SessionLost) if second_chance => {
                    second_chance = false;
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
    fn refused(&self, number: u64, status: u16, body: &Bytes) -> Result<Ended, Failure> {
        let Some(error) = error_in(body) else { return Err(Failure::Refused { status }) };
        if let Some(Waiting::Agent(waiting)) = self.waiting.take(number) {
            let answer = with_error(&waiting.id, error);
            waiting.outlet.answer(answer, (status == 400).then_some(status));
            self.server.metrics.answered.inc();
        }
        Ok(Ended::answered(Payload::Error(error)))
    }

    /// Time is up, unless the server waits for the agent (a person may be typing an answer).
    async fn expiry(&self, limit: Duration) {
        loop {
            sleep(limit).await;
            if self.asked.load(Ordering::Relaxed) == 0 {
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

    /// Sends it and waits for its end; everything that the agent is to see of it, at the latest a
    /// failure, is in its outlet by then.
    pub(crate) async fn run(self, pass: Pass) -> Ended {
        let Self { unanswered, body, limit, mut answer } = self;
        let Unanswered { link, number } = &unanswered;
        let delivered = tokio::select! {
            biased;
            delivered = link.deliver(*number, body, &mut answer, pass) => delivered,
            () = link.expiry(limit) => Err(link.too_late(*number, limit)),
        };
        let failure = match delivered {
            Ok(ended) => return ended,
            Err(failure) => failure,
        };
        let timed_out = matches!(failure, Failure::Timeout { .. });
        let still_runs = link.waiting.fail(*number, &failure, &link.server);
        if timed_out && still_runs {
            let params = format!(r#"{{"requestId":{number},"reason":"timeout"}}"#);
            link.tell(write::notification(method::CANCELLED, Some(&params))).await;
        }
        answer.try_recv().unwrap_or_else(|_| Ended::failed(&failure))
    }
}

/// Whether `json` may have the key; most messages plainly do not. A key can be spelled with escapes.
fn may_hold(json: &str, key: &str) -> bool {
    memmem::find(json.as_bytes(), key.as_bytes()).is_some() || json.contains('\\')
}
