//! What a server says, and whom it concerns.

use std::borrow::Cow;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use toolgate_mcp::{
    Incoming, Limits, Message, Notification, Payload, Pieces, Request, Response, code, method,
    parse_server, peek, text, write,
};

use super::asking::{asks_for_more, hear_asks};
use super::changes::without_tag;
use super::waiting::{AgentWaiting, Bridge, Waiting};
use super::{Link, Parties};
use crate::agent::{AgentSession, Asked, Asker};
use crate::channel::{Inbox, Progress};
use crate::clearance::Closed;
use crate::ended::{Ended, Withheld};
use crate::lists::{Kind, Unreadable};
use crate::modern;
use crate::outlet::Outlet;
use crate::passage::Onward;
use crate::rewrite::{push, with_error};

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
                if self.nonsense.may_say(Instant::now()) {
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
                waiting.outlet.mark_newer();
            }
        }
        let lacking = modern::lacking(&waiting.outlet, &waiting.id, response.payload);
        let answer = match lacking {
            Some(lacking) => lacking.into(),
            None => self.answer_for(&waiting, response, body),
        };
        self.server.metrics.answered.inc();
        let mut ended = Ended::answered(response.payload, response.is_error);
        if let (true, Payload::Result(result)) = (waiting.withheld, response.payload) {
            let (outlet, result) = (Arc::clone(&waiting.outlet), result.to_owned());
            ended.withheld = Some(Withheld { answer, outlet, result });
        } else {
            waiting.outlet.answer(answer, None);
        }
        if let Err(unheard) = waiting.answered.send(ended) {
            tracing::trace!("the request's own future was gone before its answer");
            if let Some(withheld) = unheard.withheld {
                withheld.outlet.forgo();
            }
        }
    }

    /// The server's answer as the agent is to see it.
    fn answer_for(&self, waiting: &AgentWaiting, response: &Response<'_>, body: &Bytes) -> Pieces {
        match (response.id, response.payload) {
            (id, Payload::Result(result)) => match (self.result_for_agent(waiting, result), id) {
                (Ok(Some(shown)), _) => write::result(&waiting.id, &shown).into(),
                (Ok(None), Some(id)) => {
                    Pieces::replace(body, response.raw, id, &waiting.id).unwrap_or_default()
                }
                (Ok(None), None) => write::result(&waiting.id, result).into(),
                (Err(Unreadable), _) => {
                    let server = self.server.name();
                    tracing::warn!(server, "the server's list cannot be read and is not shown");
                    let why = format!("the list of the server `{server}` cannot be read");
                    write::error(Some(&waiting.id), code::INTERNAL_ERROR, &why, None).into()
                }
            },
            (id, Payload::Error(error)) => match (waiting.error_for_agent(error), id) {
                (Cow::Borrowed(_), Some(id)) => {
                    Pieces::replace(body, response.raw, id, &waiting.id).unwrap_or_default()
                }
                (error, _) => with_error(&waiting.id, &error).into(),
            },
        }
    }

    fn hear_notification(&self, notification: &Notification<'_>, body: &Bytes, call: Option<u64>) {
        if self.hear_more(notification, call) {
            return;
        }
        match notification.method.as_ref() {
            method::PROGRESS => self.hear_progress(notification),
            method::CANCELLED => self.hear_cancelled(notification),
            method::LISTEN_ACKNOWLEDGED => self.hear_acknowledged(notification, call),
            method if is_general(method) => {
                self.note_change(method);
                match without_tag(notification) {
                    Some(untagged) => self.tell_untagged(&untagged),
                    None => self.tell_all(notification, body),
                }
            }
            // It names a task, and that is shown under another name there.
            method::TASKS_STATUS if self.is_of_all() => self.tell_all(notification, body),
            _ => match self.outlet_of(call) {
                Some(outlet) => outlet.push(body.clone()),
                None => self.tell_all(notification, body),
            },
        }
    }

    /// What is kept of a list that has changed is asked for again.
    fn note_change(&self, method: &str) {
        let changed = Kind::changed_by(method);
        if !changed.is_empty()
            && self.surveyed.load(Ordering::Relaxed)
            && let Some(me) = self.me.upgrade()
        {
            me.survey(changed);
        }
    }

    fn hear_progress(&self, notification: &Notification<'_>) {
        let token =
            notification.params.and_then(|params| peek(params, &["progressToken"]).ok().flatten());
        let number: Option<u64> = token.and_then(|token| token.parse().ok());
        let found = number.and_then(|number| self.waiting.progress_of(number));
        if let (Some((outlet, theirs)), Some(ours)) = (found, token) {
            push(&outlet, notification.raw, &[(ours, &theirs)]);
        } else {
            self.server.metrics.dropped.inc();
        }
    }

    /// The server withdraws what it asked an agent.
    fn hear_cancelled(&self, notification: &Notification<'_>) {
        let id = notification.params.and_then(|params| peek(params, &["requestId"]).ok().flatten());
        if self.hear_ended(id) {
            return;
        }
        let (Some(id), Parties::One(session)) = (id, &self.parties) else { return };
        let Some(session) = session.upgrade() else { return };
        if let Some((number, outlet)) = session.withdraw_asked(&self.me, id) {
            self.unasked();
            push(&outlet, notification.raw, &[(id, &number.to_string())]);
        }
    }

    fn hear_request(&self, request: &Request<'_>, epoch: u64, call: Option<u64>) {
        if self.speaks_modern() {
            // Servers ask nothing like that in protocol 2026-07-28, and nobody could answer.
            self.server.metrics.dropped.inc();
            return;
        }
        let session = match &self.parties {
            Parties::One(session) => session.upgrade(),
            Parties::Many(_) => None,
        };
        match session {
            Some(session) => self.ask_agent(&session, request, epoch, call),
            None => self.answer_for_agents(request),
        }
    }

    fn ask_agent(
        &self,
        session: &Arc<AgentSession>,
        request: &Request<'_>,
        epoch: u64,
        call: Option<u64>,
    ) {
        let of_call = self.outlet_of(call).or_else(|| self.waiting.newest_outlet());
        if let Some(answer) = modern::answer_at_once(session, request, of_call.as_deref()) {
            return self.answer_server(answer);
        }
        let outlet = of_call.unwrap_or_else(|| Arc::clone(session.general()));
        let token = request
            .params
            .and_then(|params| peek(params, &["_meta", "progressToken"]).ok().flatten());
        let asked = Asked {
            link: Weak::clone(&self.me),
            epoch,
            asker: Asker::Server { id: request.id.into(), token: token.map(Into::into) },
            outlet: Arc::clone(&outlet),
        };
        self.asked.fetch_add(1, Ordering::Relaxed);
        let Some(number) = session.ask(asked) else {
            self.unasked();
            let why = "the agent has too many requests to answer already";
            return self.answer_server(write::error(
                Some(request.id),
                code::INTERNAL_ERROR,
                why,
                None,
            ));
        };
        let number = number.to_string();
        let mut changes = vec![(request.id, number.as_str())];
        changes.extend(token.map(|token| (token, number.as_str())));
        push(&outlet, request.raw, &changes);
    }

    /// On a shared link there is no one agent that the server could mean.
    fn answer_for_agents(&self, request: &Request<'_>) {
        let answer = if request.method == method::PING {
            write::result(request.id, "{}")
        } else {
            let why = "this server is shared by several agents, so it cannot ask any of them \
                       (`instances: shared` in toolgate.yaml)";
            write::error(Some(request.id), code::METHOD_NOT_FOUND, why, None)
        };
        self.answer_server(answer);
    }

    fn answer_server(&self, answer: Bytes) {
        let Some(me) = self.me.upgrade() else { return };
        self.tasks.spawn(async move { me.tell(answer, Closed::answer()).await });
    }

    /// Gives a notification that belongs to no request to every agent that it concerns.
    fn tell_all(&self, notification: &Notification<'_>, body: &Bytes) {
        match &self.parties {
            Parties::One(session) => {
                if let Some(session) = session.upgrade() {
                    session.hear_general(&self.server, notification, body);
                }
            }
            Parties::Many(sessions) => {
                let sessions = sessions.lock().clone();
                let alone = sessions.len() == 1;
                let uri = notification
                    .params
                    .filter(|_| notification.method == method::RESOURCES_UPDATED)
                    .and_then(|params| peek(params, &["uri"]).ok().flatten())
                    .and_then(text);
                for session in sessions.iter().filter_map(Weak::upgrade) {
                    // What is not about lists may hold what another agent sent.
                    let concerned = match &uri {
                        Some(uri) => session.wishes.subscribed(self.server.name(), uri),
                        None => alone || is_general(&notification.method),
                    };
                    if concerned {
                        session.hear_general(&self.server, notification, body);
                    }
                }
            }
        }
    }

    /// Whether it speaks for an agent that sees all servers.
    fn is_of_all(&self) -> bool {
        let Parties::One(session) = &self.parties else { return false };
        session.upgrade().is_some_and(|session| !session.endpoint().is_one())
    }

    fn tell_untagged(&self, body: &Bytes) {
        if let Ok(Incoming::One(Message::Notification(notification))) =
            parse_server(body, &Limits::default())
        {
            self.tell_all(&notification, body);
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

/// Notifications about what a server offers, which never belong to one request.
pub(super) fn is_general(method: &str) -> bool {
    method.ends_with("/list_changed") || method == method::RESOURCES_UPDATED
}

fn raw_of<'a>(message: &Message<'a>) -> &'a str {
    match message {
        Message::Request(request) => request.raw,
        Message::Notification(notification) => notification.raw,
        Message::Response(response) => response.raw,
    }
}
