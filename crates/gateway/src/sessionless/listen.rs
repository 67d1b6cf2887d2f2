//! `subscriptions/listen`: one stream with the change notifications that a client requested.
//!
//! The implicit session receives messages of its servers on one general stream. While there are
//! subscriptions, one task reads it and passes each message to those that selected it, under the id of
//! their own request.
//!
//! Invariant: the first message is the acknowledgement; only requested and acknowledged notifications
//! follow.

mod filter;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolgate_admission::answer_kind::AnswerKind;
use toolgate_admission::call_request::CallRequest;
use toolgate_json::{Edit, peek, quote};
use toolgate_mcp::sessionless::key;
use toolgate_mcp::{
    Incoming, Limits, Message, Notification, OwnedRequest, Refusal, method, parse_server, write,
};
use toolgate_upstream::event_buffer::{EventBuffer, First, Next};
use toolgate_upstream::link::{HandshakeOutcome, TaskStream};
use toolgate_upstream::tasks;

use self::filter::Filter;
use super::call::{CallState, CancelOnDrop, SessionlessCall};
use super::{Clients, ImplicitSession, Shape};
use crate::downstream::agent::{AgentSession, Attached};
use crate::downstream::endpoint::Endpoint;

/// The subscriptions of one implicit session.
#[derive(Default)]
pub(super) struct Subscriptions(Mutex<State>);

#[derive(Default)]
struct State {
    all: Vec<Arc<Subscription>>,
    /// Ends the task that reads the general stream; set while there are subscriptions.
    reading: Option<CancellationToken>,
}

/// A subscription.
pub(super) struct Subscription {
    /// The id of the listen request, as the client spelled it.
    id: Box<str>,
    filter: Mutex<Filter>,
    buffer: Arc<EventBuffer>,
    /// The tasks that it follows.
    task_stream: Option<Arc<TaskStream>>,
    /// The task subscriptions that the server acknowledged, members in raw JSON.
    agreed_tasks: Mutex<String>,
    /// The client is gone.
    ended: AtomicBool,
}

/// Starts listening.
pub(super) fn start(
    implicit: &ImplicitSession,
    request: &CallRequest<'_>,
) -> Result<SessionlessCall, Refusal> {
    let session = &implicit.session;
    let since = Instant::now();
    let (wanted, tasks) = Filter::of(request.params.unwrap_or("{}"))?;
    let tasks = own_tasks(session, &tasks)?;
    let buffer = Arc::new(EventBuffer::expecting(session.next_number(), 1));
    let task_stream = match session.endpoint() {
        Endpoint::Server(server) if !tasks.is_empty() => {
            let me: Weak<AgentSession> = Arc::downgrade(session);
            Some(TaskStream::new((me, server), &tasks, request.id, &buffer))
        }
        _ => None,
    };
    let subscription = Arc::new(Subscription {
        id: request.id.into(),
        filter: Mutex::default(),
        buffer: Arc::clone(&buffer),
        task_stream,
        agreed_tasks: Mutex::default(),
        ended: AtomicBool::new(false),
    });
    let work = {
        let (implicit, subscription) = (implicit.clone(), Arc::clone(&subscription));
        async move { subscription.begin(&implicit, wanted, since).await }
    };
    let call = session.call(buffer, Box::pin(work));
    let cancel = CancelOnDrop::changes(implicit, subscription);
    Ok(SessionlessCall::new(call, CallState { shape: Shape::Ours, cancel, input: None }))
}

/// The servers' own ids of these tasks; refused if one of them does not belong to this grant.
fn own_tasks(session: &AgentSession, shown: &[String]) -> Result<Vec<String>, Refusal> {
    let own = |shown: &String| {
        let found = tasks::own_id(session, shown);
        let is_here = |server: &str| match session.endpoint() {
            Endpoint::Server(name) => name == server,
            Endpoint::All | Endpoint::Sessions => true,
        };
        let found = found.filter(|(server, _)| is_here(server));
        found.map(|(_, own)| own).ok_or_else(tasks::no_such_task)
    };
    shown.iter().map(own).collect()
}

// === impl Subscription ===

impl Subscription {
    async fn begin(self: &Arc<Self>, implicit: &ImplicitSession, wanted: Filter, since: Instant) {
        let session = &implicit.session;
        let mut agreed = match supported(session, &wanted, &self.id, since).await {
            Ok(agreed) => agreed,
            Err(answer) => return self.buffer.answer(answer, None),
        };
        for uri in wanted.uris {
            if follow(session, method::RESOURCES_SUBSCRIBE, &uri).await {
                agreed.uris.insert(uri);
            }
        }
        for link in session.links().iter().filter(|link| link.is_sessionless()) {
            link.listen();
            link.wait_for_change_stream().await;
            if let Some(task_stream) = &self.task_stream {
                *self.agreed_tasks.lock() = link.open_task_stream(task_stream).await;
            }
        }
        *self.filter.lock() = agreed;
        implicit.clients.subscriptions.add(implicit, self);
        if let Some(task_stream) = &self.task_stream {
            task_stream.begin();
        }
        if self.ended.load(Ordering::Acquire) {
            self.end(implicit);
        }
    }

    /// Ends the subscription, and unsubscribes from resources that no other one follows.
    pub(super) fn end(self: &Arc<Self>, ImplicitSession { session, clients }: &ImplicitSession) {
        // If `begin` still runs, it sees this and ends the subscription.
        self.ended.store(true, Ordering::Release);
        if let Some(task_stream) = &self.task_stream {
            task_stream.end();
        }
        let unfollowed = clients.subscriptions.remove(self);
        if unfollowed.is_empty() {
            return;
        }
        let work = {
            let session = Arc::clone(session);
            async move {
                for uri in unfollowed {
                    follow(&session, method::RESOURCES_UNSUBSCRIBE, &uri).await;
                }
            }
        };
        session.spawn_in_background(Box::pin(work));
    }

    /// Sends a notification that the filter selects.
    fn send(&self, notification: &Notification<'_>) {
        if self.filter.lock().selects(notification)
            && let Some(tagged) = tagged(notification, &self.id)
        {
            self.buffer.push(tagged);
        }
    }

    fn acknowledgement(&self) -> Bytes {
        let agreed = self.filter.lock().to_json().to_string();
        let more = self.agreed_tasks.lock();
        let comma = if more.is_empty() || agreed == "{}" { "" } else { "," };
        let agreed = agreed.trim_end_matches('}');
        let params = format!(
            r#"{{"_meta":{{"{}":{}}},"notifications":{agreed}{comma}{more}}}}}"#,
            key::SUBSCRIPTION_ID,
            self.id,
        );
        write::notification(method::LISTEN_ACKNOWLEDGED, Some(&params))
    }

    /// Ends the stream.
    fn close(&self) {
        if let Some(task_stream) = &self.task_stream {
            task_stream.end();
        }
        let result = format!(
            r#"{{"resultType":"complete","_meta":{{"{}":{}}}}}"#,
            key::SUBSCRIPTION_ID,
            self.id
        );
        self.buffer.answer(write::result(&self.id, &result), None);
    }
}

// === impl Subscriptions ===

impl Subscriptions {
    /// Acknowledges a subscription; it receives notifications from now on.
    fn add(&self, implicit: &ImplicitSession, subscription: &Arc<Subscription>) {
        let mut state = self.0.lock();
        if state.reading.is_none() {
            let ended = CancellationToken::new();
            state.reading = Some(ended.clone());
            let general = implicit.session.listen_from_now();
            tokio::spawn(read(Arc::clone(&implicit.clients), general, ended));
        }
        subscription.buffer.push(subscription.acknowledgement());
        state.all.push(Arc::clone(subscription));
    }

    /// Removes a subscription; returns the resources that no other one follows.
    fn remove(&self, subscription: &Arc<Subscription>) -> Vec<String> {
        let mut state = self.0.lock();
        let before = state.all.len();
        state.all.retain(|other| !Arc::ptr_eq(other, subscription));
        if state.all.len() == before {
            return Vec::new();
        }
        if state.all.is_empty()
            && let Some(reading) = state.reading.take()
        {
            reading.cancel();
        }
        let uris = std::mem::take(&mut subscription.filter.lock().uris);
        let followed =
            |uri: &String| state.all.iter().any(|it| it.filter.lock().uris.contains(uri));
        uris.into_iter().filter(|uri| !followed(uri)).collect()
    }

    fn send(&self, body: &Bytes) {
        let Ok(Incoming::One(Message::Notification(notification))) =
            parse_server(body, &Limits::default())
        else {
            return;
        };
        let all = self.0.lock().all.clone();
        for subscription in all {
            subscription.send(&notification);
        }
    }

    fn close(&self) {
        let mut state = self.0.lock();
        state.reading = None;
        for subscription in state.all.drain(..) {
            subscription.close();
        }
    }
}

/// Passes messages of the general stream to the subscriptions.
async fn read(clients: Arc<Clients>, mut general: Attached, ended: CancellationToken) {
    loop {
        let next = tokio::select! {
            biased;
            () = ended.cancelled() => return,
            next = general.next() => next,
        };
        match next {
            Next::Event(_, body) => clients.subscriptions.send(&body),
            Next::Pause(_) | Next::Gap => {}
            Next::End => return clients.subscriptions.close(),
        }
    }
}

/// The notifications that can be sent; or the answer, if the server cannot be reached. toolgate itself
/// reports changes of every list that the server has, because a policy can hide and show entries.
async fn supported(
    session: &Arc<AgentSession>,
    wanted: &Filter,
    id: &str,
    since: Instant,
) -> Result<Filter, Bytes> {
    let mut agreed = Filter { uris: BTreeSet::new(), ..wanted.clone() };
    let links = session.links();
    if let (Endpoint::Server(_), Some(link)) = (session.endpoint(), links.first()) {
        let welcome = match link.opened(since).await {
            Ok(HandshakeOutcome::Accepted(welcome) | HandshakeOutcome::Rejected(welcome)) => {
                welcome
            }
            Err(failure) => {
                return Err(failure.answer(link.server().name(), id, AnswerKind::Other, None));
            }
        };
        let welcome = String::from_utf8_lossy(&welcome);
        let has =
            |kind: &str| matches!(peek(&welcome, &["result", "capabilities", kind]), Ok(Some(_)));
        agreed.tools &= has("tools");
        agreed.prompts &= has("prompts");
        agreed.resources &= has("resources");
    }
    Ok(agreed)
}

/// Subscribes to a resource or unsubscribes; whether the server accepts it.
async fn follow(session: &Arc<AgentSession>, method: &str, uri: &str) -> bool {
    let number = session.next_number();
    let params = format!(r#"{{"uri":{}}}"#, quote(uri));
    let request = OwnedRequest::write(number, method, Some(&params));
    let buffer = Arc::new(EventBuffer::expecting(number, 1));
    let Ok(work) = session.start_own(&request, &buffer) else { return false };
    work.await;
    match buffer.first().await {
        First::Answer(answer, _) => {
            let answer = answer.into_bytes();
            let answer = String::from_utf8_lossy(&answer);
            matches!(peek(&answer, &["result"]), Ok(Some(_)))
        }
        First::Stream => false,
    }
}

/// The notification with the id of a listen request.
fn tagged(notification: &Notification<'_>, id: &str) -> Option<Bytes> {
    let Some(params) = notification.params else {
        let params = format!(r#"{{"_meta":{{"{}":{id}}}}}"#, key::SUBSCRIPTION_ID);
        return Some(write::notification(&notification.method, Some(&params)));
    };
    let edit = Edit::new(notification.raw);
    let edit = match peek(params, &["_meta"]).ok()? {
        Some(meta) if meta.starts_with('{') => edit.insert(meta, key::SUBSCRIPTION_ID, id),
        Some(_) => return None,
        None => {
            let meta = format!(r#"{{"{}":{id}}}"#, key::SUBSCRIPTION_ID);
            edit.insert(params, "_meta", &meta)
        }
    };
    Some(edit.ok()?.finish())
}
