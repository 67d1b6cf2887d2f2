//! What a server says, and whom it concerns.

use std::borrow::Cow;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use toolgate_admission::clearance::Closed;
use toolgate_admission::list_kind::Kind;
use toolgate_admission::task_call::Made;
use toolgate_mcp::{
    Incoming, Limits, Message, Notification, Payload, Pieces, Request, Response, code, method,
    parse_server, peek, text, write,
};

use super::agent::Agent;
use super::changes::without_tag;
use super::ended::Ended;
use super::input_required::{is_input_required, receive_input_required};
use super::missing_capability::{answer_at_once, missing_capability_answer};
use super::present::NotShown;
use super::server_request::{Requester, ServerRequest};
use super::waiting::{AgentWaiter, Bridge, Waiter};
use super::{Link, Parties};
use crate::channel::{Inbox, Progress};
use crate::event_buffer::EventBuffer;
use crate::held_answer::HeldAnswer;
use crate::label;
use crate::relay::RelayWriter;
use crate::rewrite::{push, rewrite, with_error};
use crate::tasks::TaskMessage;

/// How long an agent may take to answer a question of a server.
pub(super) const QUESTION: Duration = Duration::from_mins(10);
/// How many bytes of what a shared server says are logged.
const MAX_LOGGED: usize = 512;

/// Hears one exchange, or (without a call) everything that belongs to none.
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

    fn closed(&self, why: &str) {
        if let Some(link) = self.link.upgrade() {
            link.lost(self.epoch, why);
        }
    }
}

// === impl Link ===

impl Link {
    /// Takes in one message (or a batch) of the channel of `epoch`; `call` says in answer to what.
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
                // One that says nothing else must not fill the log.
                if self.may_log() {
                    let (server, why) = (self.server.name(), refusal.message);
                    tracing::warn!(server, why, "the server sent no MCP message");
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
            // Some servers cannot say which request they refuse; inside an exchange that is plain.
            (None, Payload::Error(_)) => call,
            (None, Payload::Result(_)) => None,
        };
        let waiting = number.and_then(|number| self.waiting.take(number));
        match waiting {
            Some(Waiter::Agent(waiting)) => self.answer(waiting, response, body),
            Some(Waiter::Own(waiting, _)) => drop(waiting.send(Ok(body.clone()))),
            None => {
                tracing::debug!(server = self.server.name(), "an answer that nobody waits for");
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
                waiting.buffer.mark_sessionless();
            }
        }
        let missing_capability_answer =
            missing_capability_answer(&waiting.buffer, &waiting.id, response.payload);
        let (answer, task) = match missing_capability_answer {
            Some(missing_capability_answer) => (missing_capability_answer.into(), None),
            None => self.answer_for(&waiting, response, body),
        };
        self.server.metrics.answered.inc();
        let mut ended = Ended::answered(response.payload, response.is_error);
        ended.task = task;
        if let (true, Payload::Result(result)) = (waiting.held, response.payload) {
            let (buffer, result) = (Arc::clone(&waiting.buffer), result.to_owned());
            ended.held = Some(HeldAnswer { answer, buffer, result });
        } else {
            waiting.buffer.answer(answer, None);
        }
        if let Err(unheard) = waiting.answered.send(ended) {
            tracing::trace!("the request's own future was gone before its answer");
            if let Some(held) = unheard.held {
                held.buffer.skip_answer();
            }
        }
    }

    /// The server's answer as the agent is to see it.
    fn answer_for(
        &self,
        waiting: &AgentWaiter,
        response: &Response<'_>,
        body: &Bytes,
    ) -> (Pieces, Option<Box<Made>>) {
        let as_it_is =
            |id| Pieces::replace(body, response.raw, id, &waiting.id).unwrap_or_default();
        let result = match response.payload {
            Payload::Result(result) => result,
            Payload::Error(error) => {
                let error = waiting.error_for_agent(error);
                let named = waiting.mapped.then(|| label::error(&error, self.server.name()));
                let answer = match (named.flatten(), error, response.id) {
                    (Some(named), ..) => with_error(&waiting.id, &named).into(),
                    (None, Cow::Borrowed(_), Some(id)) => as_it_is(id),
                    (None, error, _) => with_error(&waiting.id, &error).into(),
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
            (Ok((Some(shown), made)), _) => (write::result(&waiting.id, &shown).into(), made),
            (Ok((None, made)), Some(id)) => (as_it_is(id), made),
            (Ok((None, made)), None) => (write::result(&waiting.id, result).into(), made),
            (Err(why), _) => {
                let server = self.server.name();
                let why = why.why(server);
                tracing::warn!(server, why, "an answer of the server is not shown");
                (write::error(Some(&waiting.id), code::INTERNAL_ERROR, &why, None).into(), None)
            }
        }
    }

    pub(super) fn receive_notification(
        &self,
        notification: &Notification<'_>,
        body: &Bytes,
        call: Option<u64>,
    ) {
        if self.receive_on_task_stream(notification, call) {
            return;
        }
        if notification.method != method::PROGRESS
            && let Some(named) = TaskMessage::of(&notification.method, notification.params)
        {
            return self.receive_task_notification(notification, &named, call);
        }
        match notification.method.as_ref() {
            method::PROGRESS => self.receive_progress(notification),
            method::CANCELLED => self.receive_cancelled(notification),
            method::LISTEN_ACKNOWLEDGED => self.receive_acknowledged(notification, call),
            method if is_general(method) => {
                self.note_change(method);
                match without_tag(notification) {
                    Some(untagged) => self.tell_untagged(&untagged),
                    None => self.tell_all(notification, body),
                }
            }
            // It names no task.
            method::TASKS_STATUS | method::TASKS_CHANGED => {
                self.server.metrics.dropped.inc();
            }
            _ => match self.buffer_of(call) {
                Some(buffer) => buffer.push(body.clone()),
                None => self.tell_all(notification, body),
            },
        }
    }

    /// What names a task is for the grants whose calls created it.
    fn receive_task_notification(
        &self,
        notification: &Notification<'_>,
        named: &TaskMessage<'_>,
        call: Option<u64>,
    ) {
        let sessions = match &self.parties {
            Parties::One(session) => session.upgrade().into_iter().collect(),
            // One server speaks to many: whoever created the task, or asked for it last.
            Parties::Many(sessions) => {
                let sessions: Vec<_> = sessions.lock().iter().filter_map(Weak::upgrade).collect();
                let book = sessions.first().map(|session| Arc::clone(session.admission()));
                let holders = book.map(|it| it.tasks.holders(self.server.name(), &named.own));
                let holders = holders.unwrap_or_default();
                let holds = |session: &Arc<dyn Agent>| {
                    holders.contains(&(Arc::clone(&session.grant().label), session.key()))
                };
                sessions.into_iter().filter(holds).collect::<Vec<_>>()
            }
        };
        let server = self.server.name();
        let mut told = false;
        for session in sessions.iter().filter(|session| named.is_of(*session, server)) {
            if let Some(heard) = &named.heard {
                let who = (&*session.grant().label, session.key());
                session.admission().tasks.hear(who, server, &named.own, heard);
            }
            let Some((raw, shown)) = named.change(session, server) else { continue };
            let is_one = session.sees_one_server() && !self.is_shared();
            let buffer = is_one.then(|| self.buffer_of(call)).flatten();
            let buffer = buffer.unwrap_or_else(|| Arc::clone(session.general()));
            push(&buffer, notification.raw, &[(raw, &shown)]);
            told = true;
        }
        if !told && let Some(forgotten) = self.early.keep(&named.own, notification.raw, call) {
            self.server.metrics.dropped.inc_by(forgotten);
            tracing::debug!(server, "dropped a notification about a task that no agent here has");
        }
    }

    /// What is kept of a list that has changed is asked for again.
    fn note_change(&self, method: &str) {
        let changed = Kind::changed_by(method);
        if !changed.is_empty()
            && self.keeps_lists.load(Ordering::Relaxed)
            && let Some(me) = self.me.upgrade()
        {
            me.refresh_lists(changed);
        }
    }

    fn receive_progress(&self, notification: &Notification<'_>) {
        let token =
            notification.params.and_then(|params| peek(params, &["progressToken"]).ok().flatten());
        let number: Option<u64> = token.and_then(|token| token.parse().ok());
        let found = number.and_then(|number| self.waiting.progress_of(number));
        if let (Some((buffer, theirs)), Some(ours)) = (found, token) {
            push(&buffer, notification.raw, &[(ours, &theirs)]);
        } else {
            self.server.metrics.dropped.inc();
        }
    }

    /// The server withdraws what it asked an agent.
    fn receive_cancelled(&self, notification: &Notification<'_>) {
        let id = notification.params.and_then(|params| peek(params, &["requestId"]).ok().flatten());
        if self.receive_listen_ended(id) {
            return;
        }
        let (Some(id), Parties::One(session)) = (id, &self.parties) else { return };
        let Some(session) = session.upgrade() else { return };
        if let Some((number, buffer)) = session.withdraw_server_request(&self.me, id) {
            self.server_request_done();
            push(&buffer, notification.raw, &[(id, &number.to_string())]);
        }
    }

    fn receive_request(&self, request: &Request<'_>, epoch: u64, call: Option<u64>) {
        if self.is_sessionless() {
            // Servers ask nothing like that in protocol 2026-07-28, and nobody could answer.
            self.server.metrics.dropped.inc();
            return;
        }
        let session = match &self.parties {
            Parties::One(session) => session.upgrade(),
            Parties::Many(_) => None,
        };
        match session {
            Some(session) if session.sees_one_server() => {
                self.ask_agent(&session, request, epoch, call);
            }
            Some(session) => self.ask_with_label(&session, request, epoch, call),
            None => self.answer_for_agents(request),
        }
    }

    fn ask_agent(
        &self,
        session: &Arc<dyn Agent>,
        request: &Request<'_>,
        epoch: u64,
        call: Option<u64>,
    ) {
        let of_call = self.buffer_of(call).or_else(|| self.waiting.newest_buffer());
        if let Some(answer) = answer_at_once(&**session, request, of_call.as_deref()) {
            return self.answer_server(answer);
        }
        let buffer = of_call.unwrap_or_else(|| Arc::clone(session.general()));
        let server = self.server.name();
        let task = TaskMessage::of(&request.method, request.params);
        if task.as_ref().is_some_and(|task| task.is_of_others(session, server)) {
            return self.refuse_server(request.id, "the task belongs to another agent");
        }
        let task = task.filter(|task| task.is_of(session, server));
        let task = task.and_then(|task| task.change(session, server));
        let token = request
            .params
            .and_then(|params| peek(params, &["_meta", "progressToken"]).ok().flatten());
        let asked = ServerRequest {
            link: Weak::clone(&self.me),
            epoch,
            requester: Requester::Server { id: request.id.into(), token: token.map(Into::into) },
            buffer: Arc::clone(&buffer),
            until: Instant::now() + QUESTION,
        };
        self.server_requests.fetch_add(1, Ordering::Relaxed);
        let Some(number) = session.ask(asked) else {
            self.server_request_done();
            let why = "the agent has too many requests to answer already";
            return self.refuse_server(request.id, why);
        };
        let number = number.to_string();
        let mut changes = vec![(request.id, number.as_str())];
        changes.extend(token.map(|token| (token, number.as_str())));
        changes.extend(task.as_ref().map(|(raw, shown)| (*raw, shown.as_str())));
        push(&buffer, request.raw, &changes);
    }

    /// A question to an agent that sees all servers says which one asks.
    fn ask_with_label(
        &self,
        session: &Arc<dyn Agent>,
        request: &Request<'_>,
        epoch: u64,
        call: Option<u64>,
    ) {
        let named = label::params(&request.method, request.params, self.server.name());
        let (named, params) = match (named, request.params) {
            (Ok(Some(named)), Some(params)) => (named, params),
            (Ok(_), _) => return self.ask_agent(session, request, epoch, call),
            (Err(label::CannotLabel), _) => {
                return self.refuse_server(request.id, "the question cannot be read");
            }
        };
        let Ok(body) = rewrite(request.raw, &[(params, &named)]) else { return };
        if let Ok(Incoming::One(Message::Request(request))) =
            parse_server(&body, &Limits::default())
        {
            self.ask_agent(session, &request, epoch, call);
        }
    }

    /// Tells the server that its question is not asked.
    fn refuse_server(&self, id: &str, why: &str) {
        self.answer_server(write::error(Some(id), code::INTERNAL_ERROR, why, None));
    }

    /// The agent has not answered the server's question `id` in time.
    pub fn answer_late(&self, id: &str) {
        let minutes = QUESTION.as_secs() / 60;
        self.refuse_server(id, &format!("the agent gave no answer within {minutes} minutes"));
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
                    session.receive_general(&self.server, notification, body);
                }
            }
            Parties::Many(sessions) => {
                let sessions = sessions.lock().clone();
                let sessions = sessions.iter().filter_map(Weak::upgrade);
                if notification.method == method::RESOURCES_UPDATED {
                    let params = notification.params.unwrap_or("{}");
                    let uri = peek(params, &["uri"]).ok().flatten().and_then(text);
                    let uri = uri.unwrap_or_default();
                    let follows = |session: &Arc<dyn Agent>| {
                        session.server_subscriptions().subscribed(self.server.name(), &uri)
                    };
                    for session in sessions.filter(follows) {
                        session.receive_general(&self.server, notification, body);
                    }
                } else if Kind::changed_by(&notification.method).is_empty() {
                    self.log_unattributed(notification);
                } else {
                    // Whatever else it holds may be about one of them.
                    let bare = write::notification(&notification.method, None);
                    for session in sessions {
                        session.receive_general(&self.server, notification, &bare);
                    }
                }
            }
        }
    }

    fn may_log(&self) -> bool {
        let mut limit = self.log_limit.lock();
        let suppressed = limit.renew(Instant::now());
        if suppressed > 0 {
            tracing::warn!(server = self.server.name(), suppressed, "log messages suppressed");
        }
        limit.allow()
    }

    /// What belongs to no agent's request or subscription may be about any of those who share the
    /// server.
    fn log_unattributed(&self, notification: &Notification<'_>) {
        self.server.metrics.dropped.inc();
        if self.may_log() {
            let said = notification.params.unwrap_or_default();
            let said = said.get(..said.floor_char_boundary(MAX_LOGGED)).unwrap_or_default();
            let (server, method) = (self.server.name(), &*notification.method);
            tracing::info!(server, method, said, "a shared server spoke to no agent in particular");
        }
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
    fn buffer_of(&self, call: Option<u64>) -> Option<Arc<EventBuffer>> {
        match call {
            Some(call) => self.waiting.buffer_of(call),
            None if self.is_shared() => None,
            None => self.waiting.only_buffer(),
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
