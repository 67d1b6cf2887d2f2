//! Links: the conversation with one server, for one agent session or shared by all.
//!
//! A link keeps the messages of different agents apart: towards the server every request id and
//! progress token is the link's own number, and a response is delivered only to the request that
//! waits under its number. A link connects when it is first needed and reconnects after a loss,
//! with a new handshake. It is shared between grants only if the server is configured `instances:
//! shared`.
//!
//! Invariant: a request that waits under a number is answered exactly once: by the server, or by a
//! [`Failure`].
//!
//! Start at [`Link::pending`]; `link/pending.rs` sends, `link/waiting.rs` knows the waiting
//! requests, `link/handshake.rs` connects, `link/inbound.rs` receives.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};
use tokio_util::task::TaskTracker;
use toolgate_admission::clearance::{Clearance, Closed};
use toolgate_admission::list_kind::Kind;
use toolgate_audit::Hash;

use crate::backoff::Backoff;
use crate::channel::{Heads, Outbound};
use crate::era::Era;
use crate::failure::Failure;
use crate::list_cache::ClientProfile;
use crate::log_limit::LogLimit;

mod agent;
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
mod parties;
mod pending;
mod present;
mod relay;
mod server;
mod server_request;
mod sessionless;
mod vetting;
mod waiting;

pub use agent::Agent;
use changes::Changes;
pub use changes::TaskStream;
use early::Early;
pub use handshake::HandshakeOutcome;
use handshake::LiveChannel;
use inbound::Inbound;
pub(crate) use inbound::QUESTION;
use list_refresh::ListRefresh;
pub(crate) use missing_capability::can_fill_forms;
pub use parties::Parties;
pub use pending::AgentRequest;
pub(crate) use pending::{CalledTool, Owner, Pending};
pub use server::{Instances, Server, ServerSettings};
pub use server_request::{Requester, ServerRequest};
pub(crate) use vetting::Usable;
use vetting::Vetting;
use waiting::Waiters;

/// How many invalid messages of one link are logged in a minute.
const WARNINGS_A_MINUTE: u32 = 10;
/// How long delivering a notification or an agent's answer may take.
const TELL: Duration = Duration::from_secs(5);

/// A conversation with one server.
pub struct Link {
    server: Arc<Server>,
    parties: Parties,
    /// The `params` of every `initialize` of this link.
    opening: Bytes,
    /// The preferred era, if the server speaks both.
    prefers: Era,
    /// The client profile that the server sees.
    client_profile: ClientProfile,
    /// The server's last answer to the handshake.
    opened: Mutex<Option<Bytes>>,
    up: ArcSwapOption<LiveChannel>,
    connecting: tokio::sync::Mutex<()>,
    /// How many attempts to connect have failed, and the last failure.
    failures: AtomicU64,
    failure: Mutex<Option<Failure>>,
    waiting: Waiters,
    epochs: AtomicU64,
    died: AtomicU64,
    /// Back-off for channels that close soon after their start; it delays only this link.
    deaths: Mutex<Backoff>,
    listening: AtomicBool,
    /// Notifications about tasks whose creating call is not answered yet.
    early: Early,
    /// Change notifications of a sessionless server.
    changes: Changes,
    /// Whether the lists of the server are cached for an agent that sees all servers.
    keeps_lists: AtomicBool,
    list_refresh: ListRefresh,
    /// The definitions that its connection has listed.
    vetting: Vetting,
    /// Limits warnings about invalid messages of the server.
    log_limit: Mutex<LogLimit>,
    /// Closed for good: the link does not reconnect.
    ended: AtomicBool,
    /// Requests of the server that the agent has not answered yet.
    server_requests: AtomicUsize,
    idle_since: Mutex<Option<Instant>>,
    tasks: TaskTracker,
    me: Weak<Link>,
}

// === impl Link ===

impl Link {
    /// A link that is not connected yet.
    pub fn new(
        server: Arc<Server>,
        parties: Parties,
        opening: Bytes,
        prefers: Era,
        tasks: TaskTracker,
    ) -> Arc<Self> {
        let client_profile = ClientProfile::of(&String::from_utf8_lossy(&opening));
        Arc::new_cyclic(|me| Self {
            server,
            parties,
            opening,
            prefers,
            client_profile,
            opened: Mutex::new(None),
            up: ArcSwapOption::empty(),
            connecting: tokio::sync::Mutex::new(()),
            failures: AtomicU64::new(0),
            failure: Mutex::default(),
            waiting: Waiters::new(),
            epochs: AtomicU64::new(0),
            died: AtomicU64::new(0),
            deaths: Mutex::default(),
            listening: AtomicBool::new(false),
            early: Early::default(),
            changes: Changes::default(),
            keeps_lists: AtomicBool::new(false),
            list_refresh: ListRefresh::default(),
            vetting: Vetting::default(),
            log_limit: Mutex::new(LogLimit::new(
                WARNINGS_A_MINUTE,
                Duration::from_mins(1),
                Instant::now(),
            )),
            ended: AtomicBool::new(false),
            server_requests: AtomicUsize::new(0),
            idle_since: Mutex::new(None),
            tasks,
            me: Weak::clone(me),
        })
    }

    /// Forwards a notification, or an agent's answer to a request of the server. Best effort: a
    /// failed delivery is not reported.
    pub async fn forward_cleared(&self, body: Bytes, closed: Closed) {
        let Some(up) = self.up.load_full() else { return };
        let inbound = self.inbound(up.epoch, None);
        let message = match up.era {
            Era::Sessionful => Outbound::notification(body, Heads::new(), closed).ok(),
            Era::Sessionless => sessionless::notification(&up, body, closed),
        };
        let Some(message) = message else { return };
        let sending = up.channel.send(message, inbound);
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

    /// Cancels the agent's request `id`. Returns the number under which it was sent; a request that
    /// was not sent yet never will be.
    pub fn withdraw(&self, session: u64, id: &str) -> Option<u64> {
        let number = self.waiting.withdraw(session, id)?;
        // Dropping the exchange cancels; no notification is needed.
        if self.has_exchanges() {
            self.waiting.give_up(number);
            return None;
        }
        Some(number)
    }

    /// Stops waiting for requests that an agent has cancelled.
    pub fn drop_cancelled(&self) {
        self.waiting.drop_cancelled(&self.server);
    }

    /// A request of the server to an agent was answered or dropped.
    pub fn server_request_done(&self) {
        self.server_requests.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether the current channel is that of `epoch`.
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

    /// Whether an agent reads the server's own stream.
    pub(crate) fn is_listening(&self) -> bool {
        self.listening.load(Ordering::Relaxed)
    }

    /// The server of this link.
    pub fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// The fingerprint of a tool's definition, if the tool was listed.
    pub fn fingerprint(&self, tool: &str) -> Option<Hash> {
        let listed = || {
            let advertised = self.server.list_cache.of(&self.client_profile)?;
            advertised.list(Kind::Tools).facts(tool).cloned()
        };
        self.facts_of(tool).or_else(listed)?.fingerprint
    }

    /// The client profile of this link.
    pub fn client_profile(&self) -> &ClientProfile {
        &self.client_profile
    }

    /// Caches the server's lists from now on, whenever the link connects.
    pub fn keep_lists(&self) {
        self.keeps_lists.store(true, Ordering::Relaxed);
    }

    /// Whether a request is cheap: the link is connected, or no process must be started.
    pub fn is_cheap(&self) -> bool {
        self.is_up() || !self.server.settings.backs_off
    }

    /// Sends a request of toolgate's own whose answer is ignored.
    pub fn request_detached(
        self: &Arc<Self>,
        method: &'static str,
        params: String,
        closed: Closed,
    ) {
        let me = Arc::clone(self);
        tokio::spawn(async move {
            if let Err(failure) = me.ask(method, Some(&params), Clearance::Closed(closed)).await {
                let why = failure.what(me.server.name());
                tracing::debug!(
                    server = me.server.name(),
                    method,
                    why,
                    "the server did not accept a request"
                );
            }
        });
    }

    /// Whether the link is connected and the server is sessionless.
    pub fn is_sessionless(&self) -> bool {
        self.up.load().as_ref().is_some_and(|up| up.era == Era::Sessionless)
    }

    /// Whether the server is sessionless and each request has an exchange of its own: headers reach
    /// the server, and dropping the exchange cancels.
    pub(crate) fn has_exchanges(&self) -> bool {
        let up = self.up.load();
        up.as_ref()
            .is_some_and(|up| up.era == Era::Sessionless && up.channel.exchange_per_request())
    }

    /// Whether the link is connected.
    pub fn is_up(&self) -> bool {
        self.up.load().is_some()
    }

    /// Closes the link for good; waiting requests fail.
    pub(crate) async fn close(&self) {
        self.ended.store(true, Ordering::Release);
        let up = self.up.swap(None);
        let failure = Failure::Lost { why: "the agent session has ended".into() };
        self.waiting.fail_all(&failure, &self.server);
        if let Some(up) = up {
            up.channel.close().await;
        }
    }

    fn listen_over(&self, up: &Arc<LiveChannel>) {
        match up.era {
            Era::Sessionful => up.listen(),
            Era::Sessionless => self.open_change_stream(),
        }
    }

    fn inbound(&self, epoch: u64, call: Option<u64>) -> Arc<Inbound> {
        Arc::new(Inbound { link: Weak::clone(&self.me), epoch, call })
    }

    /// Forgets the channel of `epoch` and the questions that the server asked over it.
    fn forget(&self, epoch: u64) {
        let current = self.up.load_full();
        if let Some(up) = current.filter(|up| up.epoch == epoch) {
            self.up.compare_and_swap(&up, None);
        }
        if let Parties::One(session) = &self.parties {
            let forgotten =
                session.upgrade().map_or(0, |s| s.forget_server_requests(&self.me, epoch));
            self.server_requests.fetch_sub(forgotten, Ordering::Relaxed);
        }
    }
}

/// Fails a request whose future was dropped before its end.
struct FailOnDrop {
    link: Arc<Link>,
    number: u64,
}

impl Drop for FailOnDrop {
    fn drop(&mut self) {
        let failure = Failure::Lost { why: "toolgate gave it up".into() };
        self.link.waiting.fail(self.number, &failure, &self.link.server);
    }
}
