//! Messages of a server: what they answer, and whom they concern.
//!
//! Start at [`Link::hear`]; `inbound/notifications.rs` has notifications, `inbound/questions.rs` requests.

mod notifications;
mod questions;

use std::borrow::Cow;
use std::future::pending;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use toolgate_admission::ended::{Ended, Withheld};
use toolgate_admission::task_call::CreatedTask;
use toolgate_mcp::{
    Incoming, Limits, Message, Payload, Pieces, Response, code, parse_server, write,
};

use super::Link;
use super::input_required::{is_input_required, receive_input_required};
use super::missing_capability::missing_capability_answer;
use super::present::Withholding;
use super::waiting::{AgentWaiter, Bridge, Waiter};
use crate::channel::{BoxFuture, Inbox, Progress};
use crate::event_buffer::EventBuffer;
use crate::label;
use crate::relay::RelayWriter;
use crate::rewrite::with_error;

/// How long an agent may take to answer a question of a server.
pub(crate) const QUESTION: Duration = Duration::from_mins(10);

/// Receives the messages of one exchange, or (without a call) all that belong to none.
pub(super) struct Inbound {
    pub(super) link: Weak<Link>,
    pub(super) epoch: u64,
    pub(super) call: Option<u64>,
}

// === impl Inbound ===

impl Inbox for Inbound {
    fn message(&self, body: Bytes) -> Progress {
        match self.link.upgrade() {
            Some(link) => link.receive(&body, self.epoch, self.call),
            None => Progress::Answered,
        }
    }

    fn begins(&self, beginning: &Bytes, size: usize) -> Option<RelayWriter> {
        self.link.upgrade()?.begins(beginning, size, self.call?)
    }

    fn paused(&self, retry: Option<Duration>) {
        if let (Some(link), Some(call)) = (self.link.upgrade(), self.call)
            && let Some(buffer) = link.waiting.buffer_of(call)
        {
            buffer.pause(retry);
        }
    }

    fn resumed(&self) -> BoxFuture<'static, ()> {
        let link = self.link.upgrade();
        let buffer = link.zip(self.call).and_then(|(link, call)| link.waiting.buffer_of(call));
        match buffer {
            Some(buffer) => Box::pin(buffer.resumed()),
            None => Box::pin(pending()),
        }
    }

    fn closed(&self, why: &str) {
        if let Some(link) = self.link.upgrade() {
            link.lost(self.epoch, why);
        }
    }
}

// === impl Link ===

impl Link {
    /// Receives one message (or a batch) over the channel of `epoch`; `call` is the number of its
    /// exchange.
    pub(super) fn receive(&self, body: &Bytes, epoch: u64, call: Option<u64>) -> Progress {
        match parse_server(body, &Limits::default()) {
            Ok(Incoming::One(message)) => self.receive_one(&message, body, epoch, call),
            Ok(Incoming::Batch(messages)) => {
                let mut progress = Progress::Expecting;
                for message in messages.iter().flatten() {
                    let raw = body.slice_ref(raw_of(message).as_bytes());
                    if self.receive_one(message, &raw, epoch, call) == Progress::Answered {
                        progress = Progress::Answered;
                    }
                }
                progress
            }
            Err(refusal) => {
                self.server.metrics.dropped.inc();
                // A server that sends only invalid messages must not fill the log.
                if self.log_limit.lock().allows(Instant::now()) {
                    let (server, why) = (self.server.name(), refusal.message);
                    tracing::warn!(server, why, "server sent an invalid message");
                }
                Progress::Expecting
            }
        }
    }

    fn receive_one(
        &self,
        message: &Message<'_>,
        body: &Bytes,
        epoch: u64,
        call: Option<u64>,
    ) -> Progress {
        match message {
            Message::Response(response) => return self.receive_response(response, body, call),
            Message::Notification(notification) => {
                self.receive_notification(notification, body, call);
            }
            Message::Request(request) => self.receive_request(request, epoch, call),
        }
        Progress::Expecting
    }

    fn receive_response(
        &self,
        response: &Response<'_>,
        body: &Bytes,
        call: Option<u64>,
    ) -> Progress {
        let number = match (response.id.and_then(|id| id.parse().ok()), response.payload) {
            (Some(number), _) => Some(number),
            // Some servers do not name the request that they reject; within an exchange it is
            // known.
            (None, Payload::Error(_)) => call,
            (None, Payload::Result(_)) => None,
        };
        let waiting = number.and_then(|number| self.waiting.take(number));
        match waiting {
            Some(Waiter::Agent(waiting)) => self.answer(waiting, response, body),
            Some(Waiter::Own(waiting, _)) => drop(waiting.send(Ok(body.clone()))),
            None => {
                tracing::debug!(server = self.server.name(), "response matches no pending request");
                self.server.metrics.dropped.inc();
            }
        }
        if number == call { Progress::Answered } else { Progress::Expecting }
    }

    fn answer(&self, waiting: AgentWaiter, response: &Response<'_>, body: &Bytes) {
        if let (Some(bridge), Payload::Result(result)) = (waiting.bridge, response.payload) {
            if is_input_required(result) {
                return receive_input_required(waiting, result);
            }
            if bridge == Bridge::Passthrough {
                waiting.reply.buffer().mark_sessionless();
            }
        }
        let missing_capability_answer =
            missing_capability_answer(waiting.reply.buffer(), waiting.reply.id(), response.payload);
        let (answer, task) = match missing_capability_answer {
            Some(missing_capability_answer) => (missing_capability_answer.into(), None),
            None => self.answer_for(&waiting, response, body),
        };
        self.server.metrics.answered.inc();
        let mut ended = Ended::answered(response.payload, response.is_error);
        ended.task = task;
        let reply = waiting.reply;
        if let (true, Payload::Result(result)) = (waiting.held, response.payload) {
            ended.withheld = Some(Withheld::new(result.to_owned(), || reply.answer(answer)));
        } else {
            reply.answer(answer);
        }
        if waiting.answered.send(Ok(ended)).is_err() {
            tracing::trace!("request was dropped before its answer");
        }
    }

    /// The server's answer as the agent sees it.
    fn answer_for(
        &self,
        waiting: &AgentWaiter,
        response: &Response<'_>,
        body: &Bytes,
    ) -> (Pieces, Option<Box<CreatedTask>>) {
        let as_it_is =
            |id| Pieces::replace(body, response.raw, id, waiting.reply.id()).unwrap_or_default();
        let result = match response.payload {
            Payload::Result(result) => result,
            Payload::Error(error) => {
                let error = waiting.error_for_agent(error);
                let error = match self.server.settings.results.apply(&error) {
                    Some(clean) => Cow::Owned(clean),
                    None => error,
                };
                let named = waiting.mapped.then(|| label::error(&error, self.server.name()));
                let answer = match (named.flatten(), error, response.id) {
                    (Some(named), ..) => with_error(waiting.reply.id(), &named).into(),
                    (None, Cow::Borrowed(_), Some(id)) => as_it_is(id),
                    (None, error, _) => with_error(waiting.reply.id(), &error).into(),
                };
                return (answer, None);
            }
        };
        let shown = self.result_for_agent(waiting, result).map_err(Withholding::from);
        let shown = shown.and_then(|shown| {
            let now = shown.as_deref().unwrap_or(result);
            let (tasks, made) = self.tasks_for_agent(waiting, now, result)?;
            Ok((tasks.or(shown), made))
        });
        match (shown, response.id) {
            (Ok((Some(shown), made)), _) => {
                (write::result(waiting.reply.id(), &shown).into(), made)
            }
            (Ok((None, made)), Some(id)) => (as_it_is(id), made),
            (Ok((None, made)), None) => (write::result(waiting.reply.id(), result).into(), made),
            (Err(withheld), _) => {
                let server = self.server.name();
                let why = withheld.why(server);
                tracing::warn!(server, why, "an answer of the server is not shown");
                let id = Some(waiting.reply.id());
                (write::error(id, code::INTERNAL_ERROR, &why, None).into(), withheld.made)
            }
        }
    }

    /// The event buffer of the request `call`. A child does not name the request a message belongs
    /// to; then it is the only running request, if there is only one. On a shared server even that
    /// one may belong to another agent than the message.
    fn buffer_of(&self, call: Option<u64>) -> Option<Arc<EventBuffer>> {
        match call {
            Some(call) => self.waiting.buffer_of(call),
            None if self.is_shared() => None,
            None => self.waiting.only_buffer(),
        }
    }
}

fn raw_of<'a>(message: &Message<'a>) -> &'a str {
    match message {
        Message::Request(request) => request.raw,
        Message::Notification(notification) => notification.raw,
        Message::Response(response) => response.raw,
    }
}
