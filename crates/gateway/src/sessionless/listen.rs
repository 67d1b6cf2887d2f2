//! `subscriptions/listen`: one stream that tells a client of the changes it has asked for.
//!
//! The standing session hears its servers on one general stream; while anybody listens, one task
//! reads it and gives each message to those who want it, under the id of their own request.
//!
//! Invariant: the first message is the acknowledgement, and nothing is told that was not asked for
//! and acknowledged.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolgate_admission::call_request::CallRequest;
use toolgate_admission::expects::Expects;
use toolgate_json::{Edit, entries, imitates, items, members, peek, quote, text};
use toolgate_mcp::modern::key;
use toolgate_mcp::{
    Incoming, Limits, Message, Notification, OwnedRequest, Refusal, code, method, parse_server,
    write,
};
use toolgate_upstream::event_buffer::{EventBuffer, First, Next};
use toolgate_upstream::link::{HandshakeOutcome, TaskStream};
use toolgate_upstream::tasks;

use super::call::{Calling, Interest, ModernCall};
use super::{Clients, Shape, Standing};
use crate::downstream::agent::{AgentSession, Attached};
use crate::downstream::endpoint::Endpoint;

/// How many resources one client may follow on one stream.
const MAX_RESOURCES: usize = 1_000;

/// What a filter may hold; the last one belongs to the extension `tasks`.
const KNOWN: [&str; 5] = [
    "toolsListChanged",
    "promptsListChanged",
    "resourcesListChanged",
    "resourceSubscriptions",
    "taskIds",
];

/// Everybody who listens over one standing session.
#[derive(Default)]
pub(super) struct Subscriptions(Mutex<State>);

#[derive(Default)]
struct State {
    all: Vec<Arc<Subscription>>,
    /// Ends the task that reads the general stream; there is one while anybody listens.
    reading: Option<CancellationToken>,
}

/// Somebody who listens.
pub(super) struct Subscription {
    /// The id of the listen request, as the client spelled it.
    id: Box<str>,
    wants: Mutex<Wants>,
    buffer: Arc<EventBuffer>,
    /// The tasks that it follows.
    task_stream: Option<Arc<TaskStream>>,
    /// What of that the server tells, members in raw JSON.
    agreed_tasks: Mutex<String>,
    /// Nobody reads it any more.
    over: AtomicBool,
}

/// What somebody wants to be told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Wants {
    tools: bool,
    prompts: bool,
    resources: bool,
    uris: BTreeSet<String>,
}

/// Starts listening.
pub(super) fn start(standing: &Standing, request: &CallRequest<'_>) -> Result<ModernCall, Refusal> {
    let session = &standing.session;
    let since = Instant::now();
    let (wanted, tasks) = Wants::of(request.params.unwrap_or("{}"))?;
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
        wants: Mutex::default(),
        buffer: Arc::clone(&buffer),
        task_stream,
        agreed_tasks: Mutex::default(),
        over: AtomicBool::new(false),
    });
    let work = {
        let (standing, subscription) = (standing.clone(), Arc::clone(&subscription));
        async move { subscription.begin(&standing, wanted, since).await }
    };
    let call = session.call(buffer, Box::pin(work));
    let interest = Interest::changes(standing, subscription);
    Ok(ModernCall::new(call, Calling { shape: Shape::Ours, interest, asking: None }))
}

/// The servers' own ids of these tasks; refused if one of them is not this grant's.
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
    async fn begin(self: &Arc<Self>, standing: &Standing, wanted: Wants, since: Instant) {
        let session = &standing.session;
        let mut agreed = match can_tell(session, &wanted, &self.id, since).await {
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
        *self.wants.lock() = agreed;
        standing.clients.subscriptions.add(standing, self);
        if let Some(task_stream) = &self.task_stream {
            task_stream.begin();
        }
        if self.over.load(Ordering::Acquire) {
            self.end(standing);
        }
    }

    /// Nobody reads it any more. Servers are told of resources that nobody follows now.
    pub(super) fn end(self: &Arc<Self>, Standing { session, clients }: &Standing) {
        // If it is about to begin, whoever begins it sees this and ends it.
        self.over.store(true, Ordering::Release);
        if let Some(task_stream) = &self.task_stream {
            task_stream.end();
        }
        let deserted = clients.subscriptions.remove(self);
        if deserted.is_empty() {
            return;
        }
        let work = {
            let session = Arc::clone(session);
            async move {
                for uri in deserted {
                    follow(&session, method::RESOURCES_UNSUBSCRIBE, &uri).await;
                }
            }
        };
        session.behind_the_scenes(Box::pin(work));
    }

    /// Tells it, if it wants to know.
    fn tell(&self, notification: &Notification<'_>) {
        if self.wants.lock().want(notification)
            && let Some(tagged) = tagged(notification, &self.id)
        {
            self.buffer.push(tagged);
        }
    }

    fn acknowledgement(&self) -> Bytes {
        let agreed = self.wants.lock().to_json().to_string();
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

    /// There will be nothing more to tell.
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
    /// Acknowledges, and tells it of everything from now on.
    fn add(&self, standing: &Standing, subscription: &Arc<Subscription>) {
        let mut state = self.0.lock();
        if state.reading.is_none() {
            let over = CancellationToken::new();
            state.reading = Some(over.clone());
            let general = standing.session.hear_from_now();
            tokio::spawn(read(Arc::clone(&standing.clients), general, over));
        }
        subscription.buffer.push(subscription.acknowledgement());
        state.all.push(Arc::clone(subscription));
    }

    /// Tells it no more; which resources nobody follows now.
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
        let uris = std::mem::take(&mut subscription.wants.lock().uris);
        let followed = |uri: &String| state.all.iter().any(|it| it.wants.lock().uris.contains(uri));
        uris.into_iter().filter(|uri| !followed(uri)).collect()
    }

    fn tell(&self, body: &Bytes) {
        let Ok(Incoming::One(Message::Notification(notification))) =
            parse_server(body, &Limits::default())
        else {
            return;
        };
        let all = self.0.lock().all.clone();
        for subscription in all {
            subscription.tell(&notification);
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

/// Gives what the servers say to those who want to know.
async fn read(clients: Arc<Clients>, mut general: Attached, over: CancellationToken) {
    loop {
        let next = tokio::select! {
            biased;
            () = over.cancelled() => return,
            next = general.next() => next,
        };
        match next {
            Next::Event(_, body) => clients.subscriptions.tell(&body),
            Next::Pause(_) | Next::Gap => {}
            Next::End => return clients.subscriptions.close(),
        }
    }
}

/// What of it can be told; or the answer, if the servers cannot be asked. Of a list that the server
/// has toolgate itself tells, if the server does not: a policy can hide some of it and show it again.
async fn can_tell(
    session: &Arc<AgentSession>,
    wanted: &Wants,
    id: &str,
    since: Instant,
) -> Result<Wants, Bytes> {
    let mut agreed = Wants { uris: BTreeSet::new(), ..wanted.clone() };
    let links = session.links();
    if let (Endpoint::Server(_), Some(link)) = (session.endpoint(), links.first()) {
        let welcome = match link.opened(since).await {
            Ok(HandshakeOutcome::Accepted(welcome) | HandshakeOutcome::Rejected(welcome)) => {
                welcome
            }
            Err(failure) => {
                return Err(failure.answer(link.server().name(), id, Expects::Other, None));
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

/// Subscribes to a resource, or ends that; whether the server agrees.
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

/// The notification under the id of the listen request that it is told to.
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

// === impl Wants ===

impl Wants {
    /// What the `params` of a listen request ask for, and the tasks they name.
    fn of(params: &str) -> Result<(Self, Vec<String>), Refusal> {
        let invalid = |message: &str| Refusal {
            code: code::INVALID_PARAMS,
            message: message.to_owned(),
            id: None,
        };
        let filter = peek(params, &["notifications"])?
            .filter(|raw| raw.starts_with('{'))
            .ok_or_else(|| invalid("`params.notifications` must be an object"))?;
        let [tools, prompts, resources, uris, tasks] = members(filter, KNOWN)?;
        for (raw, _) in entries(filter)?.unwrap_or_default() {
            let key = text(raw).unwrap_or_default();
            // Some servers would take it for what it looks like, and no policy has seen it.
            if let Some(known) = imitates(&key, &KNOWN) {
                return Err(invalid(&format!("write `{known}`, not {raw}")));
            }
            if !KNOWN.contains(&key.as_ref()) {
                let key: String = key.chars().take(100).collect();
                return Err(invalid(&format!("`params.notifications` may not hold `{key}`")));
            }
        }
        let switch = |raw: Option<&str>, key: &str| match raw {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(invalid(&format!("`{key}` must be true or false"))),
        };
        let words = |raw: Option<&str>, key: &str| -> Result<Vec<String>, Refusal> {
            let Some(raw) = raw else { return Ok(Vec::new()) };
            let all = items(raw)?.map(|all| {
                all.into_iter().map(|raw| Some(text(raw)?.into_owned())).collect::<Option<Vec<_>>>()
            });
            let all = all.flatten();
            let all =
                all.ok_or_else(|| invalid(&format!("`{key}` must be an array of strings")))?;
            if all.len() > MAX_RESOURCES {
                return Err(invalid(&format!("`{key}` may hold {MAX_RESOURCES}; listen twice")));
            }
            Ok(all)
        };
        let [tools_key, prompts_key, resources_key, uris_key, tasks_key] = KNOWN;
        let wants = Self {
            tools: switch(tools, tools_key)?,
            prompts: switch(prompts, prompts_key)?,
            resources: switch(resources, resources_key)?,
            uris: words(uris, uris_key)?.into_iter().collect(),
        };
        Ok((wants, words(tasks, tasks_key)?))
    }

    fn want(&self, notification: &Notification<'_>) -> bool {
        match notification.method.as_ref() {
            method::TOOLS_LIST_CHANGED => self.tools,
            method::PROMPTS_LIST_CHANGED => self.prompts,
            method::RESOURCES_LIST_CHANGED => self.resources,
            method::RESOURCES_UPDATED => {
                let uri =
                    notification.params.and_then(|params| text(peek(params, &["uri"]).ok()??));
                uri.is_some_and(|uri| self.uris.contains(uri.as_ref()))
            }
            _ => false,
        }
    }

    fn to_json(&self) -> Value {
        let mut all = Map::new();
        let switches = [
            ("toolsListChanged", self.tools),
            ("promptsListChanged", self.prompts),
            ("resourcesListChanged", self.resources),
        ];
        let on = switches.into_iter().filter(|(_, on)| *on);
        all.extend(on.map(|(name, on)| (name.to_owned(), on.into())));
        if !self.uris.is_empty() {
            let uris = self.uris.iter().cloned().map(Value::from).collect();
            all.insert("resourceSubscriptions".to_owned(), Value::Array(uris));
        }
        Value::Object(all)
    }
}
