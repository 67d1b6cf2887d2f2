//! The gateway: its servers and agent sessions.
//!
//! Start at [`Gateway::open`] (an agent's `initialize`, in `gateway/opening.rs`) and
//! [`Gateway::session`] (everything after).

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolgate_admission::access::Grant;
use toolgate_admission::admit::Admission;
use toolgate_admission::environment::Ids;
use toolgate_admission::list_kind::Kind;
use toolgate_upstream::arguments::ArgumentCheck;
use toolgate_upstream::link::Server;
use toolgate_upstream::list_cache::LIST_WAIT;
use toolgate_upstream::metrics::Metrics;

use crate::dial_in::DialIn;
use crate::downstream::agent::AgentSession;
use crate::downstream::coarse_timer::CoarseTimer;
use crate::downstream::endpoint::Endpoint;
use crate::sessionless::ParkedCalls;
use arguments::ServerArguments;
use implicit_sessions::ImplicitSessions;
pub use own_lists::NotListed;
use pins::PinBook;
pub use sessionless::NotStarted;

mod arguments;
mod dial_in;
mod implicit_sessions;
mod opening;
mod own_lists;
mod pins;
mod sessionless;

/// The limits of agent sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSessions {
    /// The maximum number.
    pub max: usize,
    /// The maximum number of one grant.
    pub per_grant: usize,
    /// The time without use after which one ends.
    pub idle: Duration,
}

/// The gateway.
pub struct Gateway {
    servers: ArcSwap<Vec<Arc<Server>>>,
    sessions: RwLock<HashMap<String, Arc<AgentSession>>>,
    /// Programs that dial in, if they can.
    dial_in: OnceLock<Arc<DialIn>>,
    /// The number that is being opened; the limit includes them. Grows under a lock of `sessions`, and
    /// shrinks under its write lock when one is added, so that none is counted twice.
    opening: AtomicUsize,
    /// The number of each grant, including those that are being opened. Locked briefly, alone or
    /// inside a lock of `sessions`.
    of_grants: Mutex<HashMap<Arc<str>, usize>>,
    /// The implicit ones, which serve clients without agent sessions.
    implicit: Mutex<ImplicitSessions>,
    parked_calls: Arc<ParkedCalls>,
    limits: ArcSwap<AgentSessions>,
    ids: Arc<dyn Ids>,
    admission: Arc<Admission>,
    metrics: Metrics,
    tasks: TaskTracker,
    timer: Arc<CoarseTimer>,
    next_key: AtomicU64,
    draining: CancellationToken,
    applying: Mutex<()>,
    /// How long a list waits for servers that were never listed.
    list_wait: ArcSwap<Duration>,
    /// How many servers toolgate lists at once.
    listings: Arc<Semaphore>,
    /// Which definitions of tools may be used.
    pins: Arc<PinBook>,
    /// Checks arguments of servers.
    argument_check: Arc<dyn ArgumentCheck>,
}

/// Why an agent session was not opened.
#[derive(Debug)]
pub enum NotOpened {
    /// There is no such server.
    UnknownServer,
    /// There are too many agent sessions.
    TooMany(usize),
    /// There are too many of this grant.
    TooManyOfGrant(usize),
    /// The gateway is about to stop.
    Stopping,
    /// There is no randomness for an id.
    NoIds,
    /// The server could not be reached or refused; this is the answer for the agent.
    Answer(Bytes),
}

// === impl Gateway ===

impl Gateway {
    /// A gateway without servers. Must be called inside a tokio runtime.
    pub fn new(
        ids: Arc<dyn Ids>,
        metrics: Metrics,
        limits: AgentSessions,
        admission: Arc<Admission>,
    ) -> Arc<Self> {
        let parked_calls = ParkedCalls::new(ids.agent_session().unwrap_or_default());
        Arc::new(Self {
            servers: ArcSwap::default(),
            sessions: RwLock::default(),
            dial_in: OnceLock::new(),
            opening: AtomicUsize::new(0),
            of_grants: Mutex::default(),
            implicit: Mutex::default(),
            parked_calls,
            limits: ArcSwap::from_pointee(limits),
            ids,
            pins: PinBook::new(&admission),
            argument_check: Arc::new(ServerArguments::default()),
            admission,
            metrics,
            tasks: TaskTracker::new(),
            timer: CoarseTimer::start(),
            next_key: AtomicU64::new(1),
            draining: CancellationToken::new(),
            applying: Mutex::new(()),
            list_wait: ArcSwap::from_pointee(LIST_WAIT),
            listings: Arc::new(Semaphore::new(own_lists::AT_ONCE)),
        })
    }

    /// The server of that name.
    pub fn server(&self, name: &str) -> Option<Arc<Server>> {
        self.servers.load().iter().find(|server| server.name() == name).cloned()
    }

    /// All servers, in their configured order.
    pub(crate) fn servers(&self) -> Arc<Vec<Arc<Server>>> {
        self.servers.load_full()
    }

    pub(crate) fn open_sessions(&self) -> usize {
        self.sessions.read().len()
    }

    /// The metrics.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Tracks the tasks that a stop waits for.
    pub fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    /// Replaces the servers, in their configured order. A server that is the same object as before
    /// keeps its links; agent sessions of a changed server continue with the new one, and those of a
    /// removed server end.
    pub fn apply(&self, servers: Vec<Arc<Server>>, limits: AgentSessions) {
        let _turn = self.applying.lock();
        for server in &servers {
            self.admission.metrics().add_server(server.name());
        }
        self.limits.store(Arc::new(limits));
        // Names of new servers are reserved before they are listed, and names of old ones until they
        // are gone.
        let old = self.servers.load_full();
        self.reserve_names(old.iter().chain(&servers));
        for server in &servers {
            server.list_cache.set_list_wait(**self.list_wait.load());
            server.set_pins(&self.pins.of(server.name()));
            server.set_argument_check(&self.argument_check);
        }
        let before = self.servers.swap(Arc::new(servers));
        let after = self.servers.load_full();
        let mut gone = Vec::new();
        for old in before.iter() {
            match after.iter().find(|new| new.name() == old.name()) {
                Some(new) if Arc::ptr_eq(new, old) => continue,
                Some(new) => {
                    new.list_cache.inherit(&old.list_cache);
                    self.move_sessions(old.name(), new);
                }
                None => self.drop_sessions(old.name()),
            }
            gone.push(old);
        }
        for session in self.sessions_on(&Endpoint::All) {
            self.attach_all(&session);
            session.lists_changed(&Kind::ALL);
        }
        for old in gone {
            old.retire();
        }
        self.reserve_names(after.iter());
    }

    /// Decides calls.
    pub fn admission(&self) -> &Arc<Admission> {
        &self.admission
    }

    /// The agent session `id`, if this grant opened it on `endpoint`.
    pub fn session(
        &self,
        endpoint: &Endpoint,
        id: &str,
        caller: &Arc<Grant>,
    ) -> Option<Arc<AgentSession>> {
        let sessions = self.sessions.read();
        let session = sessions
            .get(id)
            .filter(|session| session.endpoint() == endpoint && session.is_of(caller))?;
        session.set_grant(caller);
        Some(Arc::clone(session))
    }

    /// Access has changed: agent sessions of removed grants end, and the others get their new lists.
    pub fn access_changed(&self) {
        let _turn = self.applying.lock();
        let sessions: Vec<_> = self.sessions.read().values().cloned().collect();
        for session in sessions {
            let held = session.grant();
            let current = self.admission.current(&held.label);
            // Streams that were opened with the old token end.
            let Some(grant) = current.filter(|grant| grant.token == held.token) else {
                self.cut_off(&session);
                continue;
            };
            session.set_grant(&grant);
            match session.endpoint() {
                // The grant may no longer receive messages of this server.
                Endpoint::Server(name) if !grant.may_reach(name) => {
                    self.cut_off(&session);
                    continue;
                }
                Endpoint::Server(_) => {}
                Endpoint::All | Endpoint::Sessions => self.attach_all(&session),
            }
            session.lists_changed(&Kind::ALL);
        }
        self.watch_dial_in();
    }

    /// Ends an agent session. Its own child or HTTP session is closed in the background, so that the
    /// agent does not wait; an HTTP session is closed once its calls have ended. Until then they are
    /// in flight, so that an agent cannot evade limits by leaving.
    pub fn end(&self, session: &Arc<AgentSession>) {
        self.forget(session);
        let (session, draining) = (Arc::clone(session), self.draining.clone());
        self.tasks.spawn(async move {
            draining.run_until_cancelled(session.calls_end()).await;
            session.leave().await;
        });
    }

    /// Ends an agent session whose token is no longer valid, and all its streams.
    fn cut_off(&self, session: &Arc<AgentSession>) {
        session.cut_off();
        self.end(session);
    }

    /// Ends agent sessions that are idle, and those whose token has expired or was revoked while they
    /// were opened. Called periodically.
    pub fn sweep(&self) {
        self.admission().auth_failures().tick();
        let (now, limits) = (Instant::now(), self.limits.load_full());
        let idle: Vec<Arc<AgentSession>> = {
            let sessions = self.sessions.read();
            let is_idle = |session: &&Arc<AgentSession>| session.is_idle(now, limits.idle);
            sessions.values().filter(is_idle).cloned().collect()
        };
        for session in self.sessions.read().values() {
            session.end_late_server_requests(now);
        }
        let invalid: Vec<_> = {
            let sessions = self.sessions.read();
            let is_invalid =
                |session: &&Arc<AgentSession>| !self.admission.is_valid(&session.grant());
            sessions.values().filter(is_invalid).cloned().collect()
        };
        for session in invalid {
            self.cut_off(&session);
        }
        for session in idle {
            tracing::debug!(endpoint = %session.endpoint(), "idle agent session ended");
            self.end(&session);
        }
        self.watch_dial_in();
        for server in self.servers.load().iter() {
            server.close_idle(&self.tasks, now, limits.idle);
        }
    }

    /// Stops: no new agent sessions, idle streams end at once, running calls have `grace` to end,
    /// then every child and HTTP session is closed.
    pub async fn drain(&self, grace: Duration) {
        {
            // A session that is added later sees the token; earlier ones are in the map.
            let _turn = self.applying.lock();
            self.draining.cancel();
        }
        // Held calls are answered; their approvals stay pending.
        self.admission.holds().stop();
        let sessions: Vec<_> = self.sessions.read().values().cloned().collect();
        for session in &sessions {
            self.hang_up(session);
        }
        self.tasks.close();
        if timeout(grace, self.tasks.wait()).await.is_err() {
            tracing::warn!(calls = self.tasks.len(), "grace period over; running calls aborted");
        }
        self.tasks.reopen();
        if timeout(RECORDING, self.admission.tasks.stop()).await.is_err() {
            tracing::warn!("outcomes of some task calls not recorded yet");
        }
        for session in sessions {
            self.end(&session);
        }
        for server in self.servers.load().iter() {
            server.close_shared(&self.tasks);
        }
        self.tasks.close();
        if timeout(CLOSING, self.tasks.wait()).await.is_err() {
            tracing::warn!("some servers did not stop in time");
        }
    }

    /// Gives the agent sessions of a changed server a link to the new one. The old link ends with the
    /// last call that runs on it.
    fn move_sessions(&self, name: &str, new: &Arc<Server>) {
        for session in self.sessions_on(&Endpoint::Server(name.to_owned())) {
            self.attach_one(new, &session);
            session.lists_changed(&Kind::ALL);
        }
    }

    fn drop_sessions(&self, name: &str) {
        for session in self.sessions_on(&Endpoint::Server(name.to_owned())) {
            self.forget(&session);
            session.set_links(Vec::new());
        }
    }

    fn sessions_on(&self, endpoint: &Endpoint) -> Vec<Arc<AgentSession>> {
        let sessions = self.sessions.read();
        sessions.values().filter(|session| session.endpoint() == endpoint).cloned().collect()
    }

    /// Ends the streams of an agent session on which nothing runs, and its parked calls.
    fn hang_up(&self, session: &AgentSession) {
        if session.is_implicit() {
            self.parked_calls.clear(session.key());
        }
        session.hang_up();
    }

    fn forget(&self, session: &Arc<AgentSession>) {
        self.hang_up(session);
        let mut sessions = self.sessions.write();
        if sessions.remove(session.id()).is_some() {
            opening::release(&self.of_grants, &session.grant().label);
        }
        self.metrics.agent_sessions.set(i64::try_from(sessions.len()).unwrap_or(i64::MAX));
    }
}

/// How long a stop waits for the outcomes of calls that created a task.
const RECORDING: Duration = Duration::from_secs(1);
/// How long a stop waits for children, which are killed earlier.
const CLOSING: Duration = Duration::from_secs(10);
