//! Links: a conversation with one server, for one agent session or shared by all.
//!
//! A link owns what makes messages of different agents and servers tell apart: towards the server
//! every request id and progress token is the link's own number; what comes back is given to
//! whoever waits under that number, and to nobody else. A link comes up when it is first needed
//! and again after it was lost, repeating the handshake; it is never shared between grants unless
//! the server is configured `instances: shared`.
//!
//! Invariant: a message is sent once. Only a server that refused it unread (a forgotten session)
//! gets it a second time.
//! Invariant: whoever waits under a number is answered exactly once: by the server, or by a
//! [`Failure`].
//!
//! Start at [`Link::call`]; `link/waiting.rs` knows who waits, `link/handshake.rs` brings a link up,
//! `link/hear.rs` takes in what the server says.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use memchr::memmem;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::TaskTracker;
use toolgate_mcp::{Refusal, Request, method, peek, text, write};

use crate::agent::AgentSession;
use crate::backoff::Backoff;
use crate::channel::{Outbound, SendError};
use crate::failure::{Expects, Failure};
use crate::offers::Audience;
use crate::outlet::Outlet;
use crate::rewrite::{error_in, rewrite, with_error};
use crate::server::Server;

mod handshake;
mod hear;
mod survey;
mod waiting;

pub(crate) use handshake::Opened;
use handshake::Up;
use hear::Ear;
use survey::Survey;
use waiting::{AgentWaiting, Waiting, WaitingRoom};

/// How long a notification or an agent's answer may take to be delivered.
const TELL: Duration = Duration::from_secs(5);

/// A conversation with one server.
pub(crate) struct Link {
    server: Arc<Server>,
    parties: Parties,
    /// The `params` of the `initialize` that opens this conversation, every time.
    opening: Bytes,
    /// Who opens like that, as far as a server can tell.
    audience: Audience,
    /// The server's last answer to it.
    opened: Mutex<Option<Bytes>>,
    up: ArcSwapOption<Up>,
    connecting: tokio::sync::Mutex<()>,
    waiting: WaitingRoom,
    epochs: AtomicU64,
    died: AtomicU64,
    /// Spaces out channels that come up and die young; other agents of the server do not wait.
    deaths: Mutex<Backoff>,
    listening: AtomicBool,
    /// Whether its lists are kept for an agent that sees all servers.
    surveyed: AtomicBool,
    survey: Survey,
    /// Closed for good: it does not come up again.
    ended: AtomicBool,
    /// Requests of the server that an agent has not answered yet.
    asked: AtomicUsize,
    deserted_since: Mutex<Option<Instant>>,
    tasks: TaskTracker,
    me: Weak<Link>,
}

/// An agent's request on its way into a link.
pub(crate) struct Ask<'a> {
    /// Key of the agent session.
    pub(crate) session: u64,
    pub(crate) request: &'a Request<'a>,
    /// Parts of the request that the server knows under other names.
    pub(crate) changes: &'a [(&'a str, &'a str)],
    /// Whether URIs in the answer are to be shown as on `/mcp`.
    pub(crate) mapped: bool,
}

/// Whom a link speaks for.
pub(crate) enum Parties {
    /// One agent session.
    One(Weak<AgentSession>),
    /// All agent sessions that use the server.
    Many(Mutex<Vec<Weak<AgentSession>>>),
}

// === impl Link ===

impl Link {
    /// A link that is not up yet.
    pub(crate) fn new(
        server: Arc<Server>,
        parties: Parties,
        opening: Bytes,
        tasks: TaskTracker,
    ) -> Arc<Self> {
        let audience = Audience::of(&String::from_utf8_lossy(&opening));
        Arc::new_cyclic(|me| Self {
            server,
            parties,
            opening,
            audience,
            opened: Mutex::new(None),
            up: ArcSwapOption::empty(),
            connecting: tokio::sync::Mutex::new(()),
            waiting: WaitingRoom::new(),
            epochs: AtomicU64::new(0),
            died: AtomicU64::new(0),
            deaths: Mutex::default(),
            listening: AtomicBool::new(false),
            surveyed: AtomicBool::new(false),
            survey: Survey::default(),
            ended: AtomicBool::new(false),
            asked: AtomicUsize::new(0),
            deserted_since: Mutex::new(None),
            tasks,
            me: Weak::clone(me),
        })
    }

    /// Sends an agent's request. The future ends with the request; everything that the agent is to
    /// see of it, at the latest a failure, is in `outlet` by then.
    pub(crate) fn call(
        self: &Arc<Self>,
        ask: &Ask<'_>,
        outlet: &Arc<Outlet>,
    ) -> Result<impl Future<Output = ()> + Send + use<>, Refusal> {
        let request = ask.request;
        let is_call = request.method == method::TOOLS_CALL;
        let tool = match request.params {
            Some(params) if is_call && !self.server.settings.tool_timeouts.is_empty() => {
                peek(params, &["name"])?.and_then(text)
            }
            _ => None,
        };
        let tool = tool.as_deref().and_then(|tool| {
            if ask.mapped { self.server.naming.own_name(tool) } else { Some(tool) }
        });
        let limit = self.server.timeout(tool);
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
            outlet: Arc::clone(outlet),
            id: request.id.into(),
            token: token.map(Into::into),
            expects: if is_call { Expects::ToolResult } else { Expects::Other },
            epoch: None,
            cancelled: false,
            answered,
        };
        self.waiting.insert(number, Waiting::Agent(waiting));
        Ok(Arc::clone(self).run(number, body, limit, answer))
    }

    /// Passes on a notification, or an agent's answer to the server's request. Best effort: nobody
    /// is told when it cannot be delivered, as with any notification.
    pub(crate) async fn tell(&self, body: Bytes) {
        let Some(up) = self.up.load_full() else { return };
        let ear = self.ear(up.epoch, None);
        let sending = up.channel.send(Outbound { body, expects_answer: false }, ear);
        match timeout(TELL, sending).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::debug!(server = self.server.name(), %error, "could not pass on a message");
            }
            Err(_) => {
                tracing::debug!(server = self.server.name(), "passing on a message took too long");
            }
        }
    }

    /// The number under which the agent's request `id` was sent. One that has not been sent yet
    /// never will be.
    pub(crate) fn withdraw(&self, session: u64, id: &str) -> Option<u64> {
        self.waiting.withdraw(session, id)
    }

    /// Waits no longer for what an agent has cancelled.
    pub(crate) fn forgo_cancelled(&self) {
        self.waiting.forgo_cancelled(&self.server);
    }

    /// The server's request that an agent was asked has been answered or given up.
    pub(crate) fn unasked(&self) {
        self.asked.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether the channel of `epoch` is the one that is up.
    pub(crate) fn is_up_in(&self, epoch: u64) -> bool {
        self.up.load().as_ref().is_some_and(|up| up.epoch == epoch)
    }

    /// Keeps the server's own stream open from now on, also after a reconnect.
    pub(crate) fn listen(&self) {
        if !self.listening.swap(true, Ordering::Relaxed)
            && let Some(up) = self.up.load_full()
        {
            up.listen();
        }
    }

    /// Whether an agent wants to hear the server's own stream.
    pub(crate) fn is_listening(&self) -> bool {
        self.listening.load(Ordering::Relaxed)
    }

    /// The server at its other end.
    pub(crate) fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// Who opens like this link does.
    pub(crate) fn audience(&self) -> &Audience {
        &self.audience
    }

    /// Keeps the server's lists from now on, whenever the link comes up.
    pub(crate) fn keep_lists(&self) {
        self.surveyed.store(true, Ordering::Relaxed);
    }

    /// Whether asking the server costs little: it is there, or is no process to be started.
    pub(crate) fn is_cheap(&self) -> bool {
        self.is_up() || !self.server.settings.backs_off
    }

    /// Asks the server something of our own, whose answer nobody waits for.
    pub(crate) fn wish(self: &Arc<Self>, method: &'static str, params: String) {
        let me = Arc::clone(self);
        tokio::spawn(async move {
            if let Err(failure) = me.ask(method, Some(&params)).await {
                let why = failure.what(me.server.name());
                tracing::debug!(server = me.server.name(), method, why, "a wish was not heard");
            }
        });
    }

    /// Whether there is a channel now.
    pub(crate) fn is_up(&self) -> bool {
        self.up.load().is_some()
    }

    /// Whether several agents speak through it.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self.parties, Parties::Many(_))
    }

    /// Adds an agent session to a shared link.
    pub(crate) fn join(&self, session: &Arc<AgentSession>) {
        if let Parties::Many(sessions) = &self.parties {
            sessions.lock().push(Arc::downgrade(session));
            *self.deserted_since.lock() = None;
        }
    }

    /// Takes an agent session off: a link of its own is closed, a shared one stays.
    pub(crate) async fn leave(&self, session: u64) {
        match &self.parties {
            Parties::One(_) => self.close().await,
            Parties::Many(sessions) => {
                sessions
                    .lock()
                    .retain(|other| other.upgrade().is_some_and(|other| other.key() != session));
            }
        }
    }

    /// Whether a request of the agent session runs on it.
    pub(crate) fn waits_for(&self, session: u64) -> bool {
        self.waiting.waits_for(session)
    }

    /// Whether a shared link has had nobody to speak for, for `idle` by now.
    pub(crate) fn deserted(&self, now: Instant, idle: Duration) -> bool {
        let Parties::Many(sessions) = &self.parties else { return false };
        let mut sessions = sessions.lock();
        sessions.retain(|session| session.strong_count() > 0);
        let mut since = self.deserted_since.lock();
        if !sessions.is_empty() || !self.waiting.is_empty() {
            *since = None;
            return false;
        }
        now.saturating_duration_since(*since.get_or_insert(now)) >= idle
    }

    /// Ends the conversation for good; whoever still waits is told.
    pub(crate) async fn close(&self) {
        self.ended.store(true, Ordering::Release);
        let up = self.up.swap(None);
        let failure = Failure::Lost { why: "the agent session has ended".into() };
        self.waiting.fail_all(&failure, &self.server);
        if let Some(up) = up {
            up.channel.close().await;
        }
    }

    async fn run(
        self: Arc<Self>,
        number: u64,
        body: Bytes,
        limit: Duration,
        answer: oneshot::Receiver<()>,
    ) {
        // Whatever ends this future early, a panic too: nobody is left waiting.
        let _unanswered = Unanswered { link: &self, number };
        let failure = tokio::select! {
            biased;
            delivered = self.deliver(number, body, answer) => match delivered {
                Ok(()) => return,
                Err(failure) => failure,
            },
            () = self.expiry(limit) => self.too_late(number, limit),
        };
        let timed_out = matches!(failure, Failure::Timeout { .. });
        let still_runs = self.waiting.fail(number, &failure, &self.server);
        if timed_out && still_runs {
            let params = format!(r#"{{"requestId":{number},"reason":"timeout"}}"#);
            self.tell(write::notification(method::CANCELLED, Some(&params))).await;
        }
    }

    async fn deliver(
        self: &Arc<Self>,
        number: u64,
        body: Bytes,
        answer: oneshot::Receiver<()>,
    ) -> Result<(), Failure> {
        let mut second_chance = true;
        loop {
            let up = self.come_up().await?;
            if !self.waiting.mark_sent(number, up.epoch) {
                return Ok(());
            }
            let message = Outbound { body: body.clone(), expects_answer: true };
            match up.channel.send(message, self.ear(up.epoch, Some(number))).await {
                Ok(()) => {
                    // A dropped sender means that somebody else has answered; either way it is over.
                    drop(answer.await);
                    return Ok(());
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
    fn refused(&self, number: u64, status: u16, body: &Bytes) -> Result<(), Failure> {
        if let Some(error) = error_in(body) {
            if let Some(Waiting::Agent(waiting)) = self.waiting.take(number) {
                let answer = with_error(&waiting.id, error);
                waiting.outlet.answer(answer, (status == 400).then_some(status));
                self.server.metrics.answered.inc();
            }
            return Ok(());
        }
        Err(Failure::Refused { status })
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

    fn ear(&self, epoch: u64, call: Option<u64>) -> Arc<Ear> {
        Arc::new(Ear { link: Weak::clone(&self.me), epoch, call })
    }

    /// The channel of `epoch` is of no use any more, and nobody hears an answer to what it asked.
    fn forget(&self, epoch: u64) {
        let current = self.up.load_full();
        if let Some(up) = current.filter(|up| up.epoch == epoch) {
            self.up.compare_and_swap(&up, None);
        }
        if let Parties::One(session) = &self.parties {
            let forgotten = session.upgrade().map_or(0, |s| s.forget_asked(&self.me, epoch));
            self.asked.fetch_sub(forgotten, Ordering::Relaxed);
        }
    }
}

/// Whether `json` may have the key; most messages plainly do not. A key can be spelled with escapes.
fn may_hold(json: &str, key: &str) -> bool {
    memmem::find(json.as_bytes(), key.as_bytes()).is_some() || json.contains('\\')
}

/// Fails a request whose future was dropped half-way.
struct Unanswered<'a> {
    link: &'a Link,
    number: u64,
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        let failure = Failure::Lost { why: "toolgate gave it up".into() };
        self.link.waiting.fail(self.number, &failure, &self.link.server);
    }
}
