//! Messages of a server: what they answer, and whom they concern.
//!
//! Start at [`Link::hear`]; `inbound/notifications.rs` has notifications, `inbound/questions.rs` requests.

mod notifications;
mod questions;

use std::borrow::Cow;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use toolgate_admission::ended::{Ended, Withheld};
use toolgate_admission::task_call::Made;
use toolgate_mcp::{
    Incoming, Limits, Message, Payload, Pieces, Response, code, parse_server, write,
};

use super::Link;
use super::input_required::{asks_for_more, hear_asks};
use super::missing_capability::lacking;
use super::present::NotShown;
use super::waiting::{AgentWaiting, Bridge, Waiting};
use crate::channel::{Inbox, Progress};
use crate::event_buffer::Outlet;
use crate::label;
use crate::relay::Onward;
use crate::rewrite::with_error;

/// How long an agent may take to answer a question of a server.
pub(super) const QUESTION: Duration = Duration::from_mins(10);

/// Hears one exchange, or (without a call) everything that belongs to none.
pub(super) struct Ear {
    pub(super) link: Weak<Link>,
    pub(super) epoch: u64,
    pub(super) call: Option<u64>,
}

// === impl Ear ===

impl Inbox for Ear {
    fn message(&self, body: Bytes) -> Progress {
        match self.link.upgrade() {
            Some(link) => link.hear(&body, self.epoch, self.call),
            None => Progress::Answered,
        }
    }

    fn begins(&self, beginning: &Bytes, size: usize) -> Option<Onward> {
        self.link.upgrade()?.begins(beginning, size, self.call?)
    }

    fn paused(&self, retry: Option<Duration>) {
        if let (Some(link), Some(call)) = (self.link.upgrade(), self.call)
            && let Some(outlet) = link.waiting.outlet_of(call)
        {
            outlet.pause(retry);
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
    /// Takes in one message (or a batch) of the channel of `epoch`; `call` says in answer to what.
    pub(super) fn hear(&self, body: &Bytes, epoch: u64, call: Option<u64>) -> Progress {
        match parse_server(body, &Limits::default()) {
            Ok(Incoming::One(message)) => self.hear_one(&message, body, epoch, call),
            Ok(Incoming::Batch(messages)) => {
                let mut progress = Progress::Expecting;
                for message in messages.iter().flatten() {
                    let raw = body.slice_ref(raw_of(message).as_bytes());
                    if self.hear_one(message, &raw, epoch, call) == Progress::Answered {
                        progress = Progress::Answered;
                    }
                }
                progress
            }
            Err(refusal) => {
                self.server.metrics.dropped.inc();
                // One that says nothing else must not fill the log.
                if self.nonsense.lock().allows(Instant::now()) {
                    let (server, why) = (self.server.name(), refusal.message);
                    tracing::warn!(server, why, "the server sent no MCP message");
                }
                Progress::Expecting
            }
        }
    }

    fn hear_one(
        &self,
        message: &Message<'_>,
        body: &Bytes,
        epoch: u64,
        call: Option<u64>,
    ) -> Progress {
        match message {
            Message::Response(response) => return self.hear_response(response, body, call),
            Message::Notification(notification) => {
                self.hear_notification(notification, body, call);
            }
            Message::Request(request) => self.hear_request(request, epoch, call),
        }
        Progress::Expecting
    }

    fn hear_response(&self, response: &Response<'_>, body: &Bytes, call: Option<u64>) -> Progress {
        let number = match (response.id.and_then(|id| id.parse().ok()), response.payload) {
            (Some(number), _) => Some(number),
            // Some servers cannot say which request they refuse; inside an exchange that is plain.
            (None, Payload::Error(_)) => call,
            (None, Payload::Result(_)) => None,
        };
        let waiting = number.and_then(|number| self.waiting.take(number));
        match waiting {
            Some(Waiting::Agent(waiting)) => self.answer(waiting, response, body),
            Some(Waiting::Own(waiting, _)) => drop(waiting.send(Ok(body.clone()))),
            None => {
                tracing::debug!(server = self.server.name(), "an answer that nobody waits for");
                self.server.metrics.dropped.inc();
            }
        }
        if number == call { Progress::Answered } else { Progress::Expecting }
    }

    fn answer(&self, waiting: AgentWaiting, response: &Response<'_>, body: &Bytes) {
        if let (Some(bridge), Payload::Result(result)) = (waiting.newer, response.payload) {
            if asks_for_more(result) {
                return hear_asks(waiting, result);
            }
            if bridge == Bridge::Same {
                waiting.reply.outlet().mark_newer();
            }
        }
        let lacking = lacking(waiting.reply.outlet(), waiting.reply.id(), response.payload);
        let (answer, task) = match lacking {
            Some(lacking) => (lacking.into(), None),
            None => self.answer_for(&waiting, response, body),
        };
        self.server.metrics.answered.inc();
        let mut ended = Ended::answered(response.payload, response.is_error);
        ended.task = task;
        let reply = waiting.reply;
        if let (true, Payload::Result(result)) = (waiting.withheld, response.payload) {
            ended.withheld = Some(Withheld::new(result.to_owned(), || reply.answer(answer)));
        } else {
            reply.answer(answer);
        }
        if waiting.answered.send(Ok(ended)).is_err() {
            tracing::trace!("the request's own future was gone before its answer");
        }
    }

    /// The server's answer as the agent is to see it.
    fn answer_for(
        &self,
        waiting: &AgentWaiting,
        response: &Response<'_>,
        body: &Bytes,
    ) -> (Pieces, Option<Box<Made>>) {
        let as_it_is =
            |id| Pieces::replace(body, response.raw, id, waiting.reply.id()).unwrap_or_default();
        let result = match response.payload {
            Payload::Result(result) => result,
            Payload::Error(error) => {
                let error = waiting.error_for_agent(error);
                let named = waiting.mapped.then(|| label::error(&error, self.server.name()));
                let answer = match (named.flatten(), error, response.id) {
                    (Some(named), ..) => with_error(waiting.reply.id(), &named).into(),
                    (None, Cow::Borrowed(_), Some(id)) => as_it_is(id),
                    (None, error, _) => with_error(waiting.reply.id(), &error).into(),
                };
                return (answer, None);
            }
        };
        let shown = self.result_for_agent(waiting, result).map_err(NotShown::from);
        let shown = shown.and_then(|shown| {
            let now = shown.as_deref().unwrap_or(result);
            let (tasks, made) = self.tasks_for_agent(waiting, now)?;
            Ok((tasks.or(shown), made))
        });
        match (shown, response.id) {
            (Ok((Some(shown), made)), _) => {
                (write::result(waiting.reply.id(), &shown).into(), made)
            }
            (Ok((None, made)), Some(id)) => (as_it_is(id), made),
            (Ok((None, made)), None) => (write::result(waiting.reply.id(), result).into(), made),
            (Err(why), _) => {
                let server = self.server.name();
                let why = why.why(server);
                tracing::warn!(server, why, "an answer of the server is not shown");
                let id = Some(waiting.reply.id());
                (write::error(id, code::INTERNAL_ERROR, &why, None).into(), None)
            }
        }
    }

    /// Where the request `call` is answered; a child does not say what a message belongs to, so
    /// without a call it is the only request that runs, if there is only one. Where agents share
    /// the server even that one may be another's than the one it speaks of.
    fn outlet_of(&self, call: Option<u64>) -> Option<Arc<Outlet>> {
        match call {
            Some(call) => self.waiting.outlet_of(call),
            None if self.is_shared() => None,
            None => self.waiting.only_outlet(),
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
