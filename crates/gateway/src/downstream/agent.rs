//! Agent sessions: one agent connected to one endpoint.
//!
//! An agent session holds what belongs to the agent alone: its streams, the pending requests of
//! servers, and its links. It knows no transport: the edge turns HTTP into these calls.
//!
//! Invariant: an agent's response reaches a server only if that server sent a request to this agent
//! session.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use toolgate_admission::access::Grant;
use toolgate_admission::admit::Admission;
use toolgate_admission::call_context::Sender;
use toolgate_admission::call_request::CallRequest;
use toolgate_admission::list_kind::Kind;
use toolgate_mcp::{Message, Notification, Refusal, Request, Version};
use toolgate_upstream::event_buffer::{EventBuffer, Next, Reader};
use toolgate_upstream::link::{Link, Server, ServerRequest};
use toolgate_upstream::resubscribe::ServerSubscriptions;
use toolgate_upstream::rewrite::refused;

use crate::dial_in::{DialIn, RunningCalls};
use crate::downstream::call::Call;
use crate::downstream::change_tracking::ChangeTracker;
use crate::downstream::coarse_timer::CoarseTimer;
use crate::downstream::endpoint::Endpoint;
use crate::downstream::links::Links;
use crate::downstream::streams::{EventId, Streams};

mod aggregate;
mod implicit;
mod notifications;
mod opening;
mod requests;
mod server_requests;
mod traits;

pub(crate) use aggregate::Aggregate;
pub(crate) use opening::{Opening, public};

/// One agent connected to one endpoint.
pub struct AgentSession {
    id: String,
    key: u64,
    endpoint: Endpoint,
    /// The `params` of its `initialize`.
    opening: Bytes,
    /// As last looked up.
    grant: ArcSwap<Grant>,
    sender: Sender,
    admission: Arc<Admission>,
    version: OnceLock<Version>,
    /// The sessions, if programs can dial in.
    dial_in: Option<Arc<DialIn>>,
    /// Its calls to sessions.
    pub(crate) running: Arc<RunningCalls>,
    links: ArcSwap<Links>,
    /// Earlier links, on which calls may still run.
    former: Mutex<Vec<Weak<Link>>>,
    general: Arc<EventBuffer>,
    streams: Mutex<Streams>,
    next_stream: AtomicU64,
    asked: Mutex<HashMap<u64, ServerRequest>>,
    next_asked: AtomicU64,
    pub(crate) server_subscriptions: ServerSubscriptions,
    /// Serves it on `/mcp`.
    aggregate: &'static dyn Aggregate,
    /// Whether it serves clients of protocol 2026-07-28, which have no agent session of their own.
    is_implicit: bool,
    pub(crate) changes: ChangeTracker,
    /// Whether the agent has listened to its general stream.
    listening: AtomicBool,
    /// Whether its token is no longer valid: its streams deliver nothing more.
    cut_off: AtomicBool,
    /// The number of connections that read one of its streams.
    readers: AtomicUsize,
    last_use: Mutex<Instant>,
    tasks: TaskTracker,
    timer: Arc<CoarseTimer>,
}

/// A connection that reads a stream; while it exists, the agent session is in use.
pub struct Attached {
    /// What it reads.
    pub(crate) reader: Reader,
    session: Arc<AgentSession>,
}

// === impl AgentSession ===

impl AgentSession {
    /// Its id, as the agent presents it.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its endpoint.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The protocol version agreed on, if it is one we know.
    pub fn version(&self) -> Option<Version> {
        self.version.get().copied()
    }

    /// Starts a request; the returned call provides its answer.
    pub fn request(self: &Arc<Self>, request: &Request<'_>) -> Result<Call, Refusal> {
        let buffer = Arc::new(EventBuffer::expecting(self.stream_number(), 1));
        let work = self.start(CallRequest::read(request)?, &buffer)?;
        Ok(Call::new(buffer, work, &self.tasks, &self.timer))
    }

    /// Handles each member of a batch; the call provides an answer for every request. `None` if there
    /// is no request among them.
    pub async fn batch(self: &Arc<Self>, members: &[Result<Message<'_>, Refusal>]) -> Option<Call> {
        let wants_answer =
            |member: &&Result<_, _>| matches!(member, Ok(Message::Request(_)) | Err(_));
        let answers = members.iter().filter(wants_answer).count();
        let buffer = Arc::new(EventBuffer::expecting(self.stream_number(), answers));
        for member in members {
            let refusal = match member {
                Ok(Message::Request(request)) => {
                    let started = CallRequest::read(request);
                    match started.and_then(|request| self.start(request, &buffer)) {
                        Ok(work) => {
                            self.tasks.spawn(work);
                            continue;
                        }
                        Err(refusal) => refusal,
                    }
                }
                Ok(Message::Notification(notification)) => {
                    if let Err(refusal) = self.notify(notification).await {
                        tracing::debug!(why = refusal.message, "notification rejected");
                    }
                    continue;
                }
                Ok(Message::Response(response)) => {
                    self.respond(response).await;
                    continue;
                }
                Err(refusal) => refusal.clone(),
            };
            buffer.answer(refused(&refusal), None);
        }
        let idle = Box::pin(std::future::ready(()));
        (answers > 0).then(|| Call::new(buffer, idle, &self.tasks, &self.timer))
    }

    /// Reads the general stream: what belongs to no request.
    pub fn listen(self: &Arc<Self>) -> Attached {
        self.listen_to_servers();
        self.attach(self.general.read(None))
    }

    /// Starts to read the streams of the servers. On `/mcp`, the lists of servers that need no new
    /// process are refreshed, because a server without a connection reports no changes.
    pub(crate) fn listen_to_servers(&self) {
        self.listening.store(true, Ordering::Relaxed);
        for link in self.links().iter() {
            link.listen();
            if !self.endpoint.is_one() && !link.is_up() && link.is_cheap() {
                link.refresh_lists(&Kind::ALL);
            }
        }
    }

    /// Resumes a stream after the event `id`; `None` if the stream or the event is not known.
    pub fn resume(self: &Arc<Self>, id: &EventId) -> Option<Attached> {
        let buffer = match id.stream {
            0 => Arc::clone(&self.general),
            stream => self.streams.lock().find(stream)?,
        };
        (id.event <= buffer.last()).then(|| self.attach(buffer.read(Some(id.event))))
    }

    /// Reads the stream of a call; it can be resumed from now on.
    pub fn stream(self: &Arc<Self>, call: &Call) -> Attached {
        let buffer = call.buffer();
        self.streams.lock().keep(Arc::clone(buffer));
        self.attach(buffer.read(Some(0)))
    }

    /// Its grant.
    pub(crate) fn grant(&self) -> Arc<Grant> {
        self.grant.load_full()
    }

    /// Sets the current state of its grant.
    pub(crate) fn set_grant(&self, grant: &Arc<Grant>) {
        if !Arc::ptr_eq(&self.grant.load(), grant) {
            self.grant.store(Arc::clone(grant));
        }
    }

    /// Whether this caller may use it: the grant that opened it, and the same person if one calls
    /// with the rights of the grant.
    pub(crate) fn is_of(&self, caller: &Grant) -> bool {
        let grant = self.grant();
        grant.label == caller.label && grant.token == caller.token && grant.acting == caller.acting
    }

    /// The sender of its requests, for decisions and for the audit.
    pub(crate) fn sender(&self) -> Sender {
        Sender { grant: self.grant(), ..self.sender.clone() }
    }

    pub(crate) fn admission(&self) -> &Arc<Admission> {
        &self.admission
    }

    /// The sessions, if programs can dial in and the endpoint shows them.
    pub(crate) fn dial_in(&self) -> Option<&Arc<DialIn>> {
        self.dial_in.as_ref().filter(|_| !self.endpoint.is_one())
    }

    pub(crate) fn key(&self) -> u64 {
        self.key
    }

    /// The `params` of `initialize` for servers.
    pub(crate) fn opening(&self) -> &Bytes {
        &self.opening
    }

    pub(crate) fn general(&self) -> &Arc<EventBuffer> {
        &self.general
    }

    pub(crate) fn links(&self) -> Arc<Links> {
        self.links.load_full()
    }

    /// Replaces its links. A removed link ends with the last call that runs on it.
    pub(crate) fn set_links(&self, links: Vec<Arc<Link>>) {
        if self.listening.load(Ordering::Relaxed) {
            for link in &links {
                link.listen();
            }
        }
        let links = Arc::new(Links::new(links));
        let before = self.links.swap(Arc::clone(&links));
        let mut former = self.former.lock();
        former.retain(|link| link.strong_count() > 0);
        former.extend(before.iter().filter(|link| !links.holds(link)).map(Arc::downgrade));
    }

    /// A notification of a server that belongs to no request.
    pub(crate) fn receive_general(
        &self,
        server: &Server,
        notification: &Notification<'_>,
        body: &Bytes,
    ) {
        match self.endpoint {
            Endpoint::Server(_) => self.general.push(body.clone()),
            Endpoint::All | Endpoint::Sessions => {
                self.aggregate.receive(self, server, notification, body);
            }
        }
    }

    /// Its lists may have changed; if they have, the agent is notified soon.
    pub(crate) fn lists_changed(self: &Arc<Self>, kinds: &[Kind]) {
        if self.changes.may_have_changed(kinds) {
            self.aggregate.notify_changed(self);
        }
    }

    pub(crate) fn set_version(&self, version: Version) {
        self.version.get_or_init(|| version);
    }

    /// Whether it was not used for `idle`. A reader and a running call are use.
    pub(crate) fn is_idle(&self, now: Instant, idle: Duration) -> bool {
        let unused = now.saturating_duration_since(*self.last_use.lock());
        if self.readers.load(Ordering::Relaxed) > 0 || unused < idle {
            return false;
        }
        let busy = !self.running.is_empty()
            || self.all_links().iter().any(|link| link.waits_for(self.key));
        if busy {
            self.touch();
        }
        !busy
    }

    /// Waits for calls that their servers continue without it.
    pub(crate) async fn calls_end(&self) {
        for link in self.all_links() {
            link.calls_end().await;
        }
    }

    /// Leaves its links, including those from before a reload.
    pub(crate) async fn leave(&self) {
        for link in self.all_links() {
            link.leave(self.key).await;
        }
    }

    /// Stops all its streams, including those of running calls.
    pub(crate) fn cut_off(&self) {
        self.cut_off.store(true, Ordering::Relaxed);
    }

    /// Ends its general stream; the streams of running calls end with their answers, and those of
    /// calls that the agent has cancelled end now.
    pub(crate) fn hang_up(&self) {
        self.general.end();
        for link in self.all_links() {
            link.drop_cancelled();
        }
    }

    /// All links on which one of its calls may run.
    fn all_links(&self) -> Vec<Arc<Link>> {
        let former: Vec<_> = self.former.lock().iter().filter_map(Weak::upgrade).collect();
        self.links().iter().cloned().chain(former).collect()
    }

    fn stream_number(&self) -> u64 {
        self.next_stream.fetch_add(1, Ordering::Relaxed)
    }

    fn touch(&self) {
        *self.last_use.lock() = Instant::now();
    }

    fn attach(self: &Arc<Self>, reader: Reader) -> Attached {
        self.readers.fetch_add(1, Ordering::Relaxed);
        Attached { reader, session: Arc::clone(self) }
    }
}

// === impl Attached ===

impl Attached {
    /// The next message. May be dropped and called again.
    pub async fn next(&mut self) -> Next {
        let next = self.reader.next().await;
        if self.session.cut_off.load(Ordering::Relaxed) { Next::End } else { next }
    }

    /// The number of the stream.
    pub fn number(&self) -> u64 {
        self.reader.number()
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.session.readers.fetch_sub(1, Ordering::Relaxed);
        self.session.touch();
    }
}
