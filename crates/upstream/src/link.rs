//! Links: a conversation with one server, for one agent session or shared by all.
//!
//! A link owns what makes messages of different agents and servers tell apart: towards the server
//! every request id and progress token is the link's own number; what comes back is given to
//! whoever waits under that number, and to nobody else. A link comes up when it is first needed
//! and again after it was lost, repeating the handshake; it is never shared between grants unless
//! the server is configured `instances: shared`.
//!
//! Invariant: whoever waits under a number is answered exactly once: by the server, or by a
//! [`Failure`].
//!
//! Start at [`Link::pending`]; `link/pending.rs` sends, `link/waiting.rs` knows who waits, `link/handshake.rs` brings a link up,
//! `link/inbound.rs` takes in what the server says.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};
use tokio_util::task::TaskTracker;
use toolgate_admission::clearance::{Clearance, Closed};

use crate::backoff::Backoff;
use crate::channel::{Heads, Outbound};
use crate::era::Era;
use crate::failure::Failure;
use crate::list_cache::Audience;
use crate::log_limit::LogLimit;

mod agent;
mod asked;
mod barred;
mod changes;
mod discover;
mod early;
mod handshake;
mod inbound;
mod input_required;
mod list_refresh;
mod missing_capability;
mod on_behalf;
mod pending;
mod present;
mod relay;
mod server;
mod sessionless;
mod waiting;

pub use agent::Agent;
pub use asked::{Asked, Asker};
use changes::Changes;
pub use changes::More;
use early::Early;
pub use handshake::Opened;
use handshake::Up;
use inbound::Ear;
use list_refresh::Survey;
pub use pending::Ask;
pub(crate) use pending::{Owner, Pending};
pub use server::{Instances, Server, ServerSettings};
use waiting::WaitingRoom;

/// How many messages without sense of one link are logged in a minute.
const WARNINGS_A_MINUTE: u32 = 10;
/// How long a notification or an agent's answer may take to be delivered.
const TELL: Duration = Duration::from_secs(5);

/// A conversation with one server.
pub struct Link {
    server: Arc<Server>,
    parties: Parties,
    /// The `params` of the `initialize` that opens this conversation, every time.
    opening: Bytes,
    /// Which protocol is spoken with a server that speaks both.
    prefers: Era,
    /// Who opens like that, as far as a server can tell.
    audience: Audience,
    /// The server's last answer to it.
    opened: Mutex<Option<Bytes>>,
    up: ArcSwapOption<Up>,
    connecting: tokio::sync::Mutex<()>,
    /// How many attempts to come up have failed, and how the last one did.
    failures: AtomicU64,
    failure: Mutex<Option<Failure>>,
    waiting: WaitingRoom,
    epochs: AtomicU64,
    died: AtomicU64,
    /// Spaces out channels that come up and die young; other agents of the server do not wait.
    deaths: Mutex<Backoff>,
    listening: AtomicBool,
    /// What the server said of tasks before it answered the calls that create them.
    early: Early,
    /// What it hears of a server of protocol 2026-07-28 without asking.
    changes: Changes,
    /// Whether its lists are kept for an agent that sees all servers.
    surveyed: AtomicBool,
    survey: Survey,
    /// Limits warnings about messages of the server that make no sense.
    nonsense: Mutex<LogLimit>,
    /// Closed for good: it does not come up again.
    ended: AtomicBool,
    /// Requests of the server that an agent has not answered yet.
    asked: AtomicUsize,
    deserted_since: Mutex<Option<Instant>>,
    tasks: TaskTracker,
    me: Weak<Link>,
}

/// Whom a link speaks for.
pub enum Parties {
    /// One agent session.
    One(Weak<dyn Agent>),
    /// All agent sessions that use the server.
    Many(Mutex<Vec<Weak<dyn Agent>>>),
}

// === impl Link ===

impl Link {
    /// A link that is not up yet.
    pub fn new(
        server: Arc<Server>,
        parties: Parties,
        opening: Bytes,
        prefers: Era,
        tasks: TaskTracker,
    ) -> Arc<Self> {
        let audience = Audience::of(&String::from_utf8_lossy(&opening));
        Arc::new_cyclic(|me| Self {
            server,
            parties,
            opening,
            prefers,
            audience,
            opened: Mutex::new(None),
            up: ArcSwapOption::empty(),
            connecting: tokio::sync::Mutex::new(()),
            failures: AtomicU64::new(0),
            failure: Mutex::default(),
            waiting: WaitingRoom::new(),
            epochs: AtomicU64::new(0),
            died: AtomicU64::new(0),
            deaths: Mutex::default(),
            listening: AtomicBool::new(false),
            early: Early::default(),
            changes: Changes::default(),
            surveyed: AtomicBool::new(false),
            survey: Survey::default(),
            nonsense: Mutex::new(LogLimit::new(
                WARNINGS_A_MINUTE,
                Duration::from_mins(1),
                Instant::now(),
            )),
            ended: AtomicBool::new(false),
            asked: AtomicUsize::new(0),
            deserted_since: Mutex::new(None),
            tasks,
            me: Weak::clone(me),
        })
    }

    /// Passes on a notification, or an agent's answer to the server's request. Best effort: nobody
    /// is told when it cannot be delivered, as with any notification.
    pub async fn tell(&self, body: Bytes, closed: Closed) {
        let Some(up) = self.up.load_full() else { return };
        let ear = self.ear(up.epoch, None);
        let message = match up.era {
            Era::Legacy => Outbound::word(body, Heads::new(), closed).ok(),
            Era::Modern => sessionless::word(&up, body, closed),
        };
        let Some(message) = message else { return };
        let sending = up.channel.send(message, ear);
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
    pub fn withdraw(&self, session: u64, id: &str) -> Option<u64> {
        let number = self.waiting.withdraw(session, id)?;
        // Where hanging up is what cancels, nothing is to be said.
        if self.has_exchanges() {
            self.waiting.give_up(number);
            return None;
        }
        Some(number)
    }

    /// Waits no longer for what an agent has cancelled.
    pub fn forgo_cancelled(&self) {
        self.waiting.forgo_cancelled(&self.server);
    }

    /// The server's request that an agent was asked has been answered or given up.
    pub fn unasked(&self) {
        self.asked.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether the channel of `epoch` is the one that is up.
    pub fn is_up_in(&self, epoch: u64) -> bool {
        self.up.load().as_ref().is_some_and(|up| up.epoch == epoch)
    }

    /// Keeps the server's own stream open from now on, also after a reconnect.
    pub fn listen(&self) {
        if !self.listening.swap(true, Ordering::Relaxed)
            && let Some(up) = self.up.load_full()
        {
            self.listen_over(&up);
        }
    }

    /// Whether an agent wants to hear the server's own stream.
    pub(crate) fn is_listening(&self) -> bool {
        self.listening.load(Ordering::Relaxed)
    }

    /// The server at its other end.
    pub fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// Who opens like this link does.
    pub fn audience(&self) -> &Audience {
        &self.audience
    }

    /// Keeps the server's lists from now on, whenever the link comes up.
    pub fn keep_lists(&self) {
        self.surveyed.store(true, Ordering::Relaxed);
    }

    /// Whether asking the server costs little: it is there, or is no process to be started.
    pub fn is_cheap(&self) -> bool {
        self.is_up() || !self.server.settings.backs_off
    }

    /// Asks the server something of our own, whose answer nobody waits for.
    pub fn wish(self: &Arc<Self>, method: &'static str, params: String, closed: Closed) {
        let me = Arc::clone(self);
        tokio::spawn(async move {
            if let Err(failure) = me.ask(method, Some(&params), Clearance::Closed(closed)).await {
                let why = failure.what(me.server.name());
                tracing::debug!(server = me.server.name(), method, why, "a wish was not heard");
            }
        });
    }

    /// Whether there is a channel now, over which protocol 2026-07-28 is spoken.
    pub fn speaks_modern(&self) -> bool {
        self.up.load().as_ref().is_some_and(|up| up.era == Era::Modern)
    }

    /// Whether the same holds, and each request has an exchange of its own: headers reach the
    /// server, and hanging up cancels.
    pub(crate) fn has_exchanges(&self) -> bool {
        let up = self.up.load();
        up.as_ref().is_some_and(|up| up.era == Era::Modern && up.channel.hangs_up())
    }

    /// Whether there is a channel now.
    pub fn is_up(&self) -> bool {
        self.up.load().is_some()
    }

    /// Whether several agents speak through it.
    pub fn is_shared(&self) -> bool {
        matches!(self.parties, Parties::Many(_))
    }

    /// Whoever speaks through it.
    fn sessions(&self) -> Vec<Arc<dyn Agent>> {
        match &self.parties {
            Parties::One(session) => session.upgrade().into_iter().collect(),
            Parties::Many(sessions) => sessions.lock().iter().filter_map(Weak::upgrade).collect(),
        }
    }

    /// Adds an agent session to a shared link.
    pub(crate) fn join(&self, session: Weak<dyn Agent>) {
        if let Parties::Many(sessions) = &self.parties {
            sessions.lock().push(session);
            *self.deserted_since.lock() = None;
        }
    }

    /// Takes an agent session off: a link of its own is closed, a shared one stays.
    pub async fn leave(&self, session: u64) {
        match &self.parties {
            Parties::One(_) => self.close().await,
            Parties::Many(sessions) => {
                self.unfollow_all(session);
                sessions
                    .lock()
                    .retain(|other| other.upgrade().is_some_and(|other| other.key() != session));
            }
        }
    }

    /// Whether, of those who share it, others than this agent session follow a resource that the
    /// server may take for this one. For itself it follows it no longer.
    pub(crate) fn is_left_to_others(&self, session: u64, uri: &str) -> bool {
        if !self.is_shared() {
            return false;
        }
        let sessions = self.sessions();
        let follows = |other: &Arc<dyn Agent>| {
            other.key() != session && other.wishes().follows_alike(self.server.name(), uri)
        };
        let left = sessions.iter().any(follows);
        if left {
            self.unfollow(Some(session), uri);
        }
        left
    }

    /// Whether a request of the agent session runs on it.
    pub fn waits_for(&self, session: u64) -> bool {
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

    fn listen_over(&self, up: &Arc<Up>) {
        match up.era {
            Era::Legacy => up.listen(),
            Era::Modern => self.hear_changes(),
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

/// Fails a request whose future was dropped half-way.
struct Unanswered {
    link: Arc<Link>,
    number: u64,
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        let failure = Failure::Lost { why: "toolgate gave it up".into() };
        self.link.waiting.fail(self.number, &failure, &self.link.server);
    }
}
