//! The gateway itself: which servers there are, and which agent sessions.
//!
//! Start at [`Gateway::open`] (an agent's `initialize`, in `gateway/opening.rs`) and
//! [`Gateway::session`] (everything after).

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolgate_admission::access::Grant;
use toolgate_admission::admit::Admission;
use toolgate_admission::environment::Ids;
use toolgate_admission::list_kind::Kind;
use toolgate_upstream::link::Server;
use toolgate_upstream::metrics::Metrics;

use crate::dial_in::DialIn;
use crate::downstream::agent::AgentSession;
use crate::downstream::coarse_timer::Pace;
use crate::downstream::endpoint::Endpoint;
use crate::sessionless::Parking;
pub use sessionless::NotStarted;
use standing::StandingSessions;

mod dial_in;
mod opening;
mod sessionless;
mod standing;

/// How many agent sessions there may be, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSessions {
    /// How many at once.
    pub max: usize,
    /// How many at once of one grant.
    pub per_grant: usize,
    /// After how long without use one is ended.
    pub idle: Duration,
}

/// The gateway.
pub struct Gateway {
    servers: ArcSwap<Vec<Arc<Server>>>,
    sessions: RwLock<HashMap<String, Arc<AgentSession>>>,
    /// Programs that dial in, where they can.
    dial_in: OnceLock<Arc<DialIn>>,
    /// How many are being opened; they count as open. Goes up under a lock of `sessions`, and down
    /// under its write lock where one is let in, so that none counts twice.
    opening: AtomicUsize,
    /// How many each grant has, those that are being opened too. Locked for a moment, alone or
    /// inside a lock of `sessions`.
    of_grants: Mutex<HashMap<Arc<str>, usize>>,
    /// Which of them stand for clients that have none.
    standing: Mutex<StandingSessions>,
    parking: Arc<Parking>,
    limits: ArcSwap<AgentSessions>,
    ids: Arc<dyn Ids>,
    admission: Arc<Admission>,
    metrics: Metrics,
    tasks: TaskTracker,
    pace: Arc<Pace>,
    next_key: AtomicU64,
    draining: CancellationToken,
    applying: Mutex<()>,
    /// Whether servers that were never heard are being asked for people.
    pub(crate) hearing: AtomicBool,
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
    /// There is no randomness to make an id of.
    NoIds,
    /// The server could not be reached or refused; this is the answer for the agent.
    Answer(Bytes),
}

// === impl Gateway ===

impl Gateway {
    /// A gateway without servers. To be made inside a tokio runtime.
    pub fn new(
        ids: Arc<dyn Ids>,
        metrics: Metrics,
        limits: AgentSessions,
        admission: Arc<Admission>,
    ) -> Arc<Self> {
        let parking = Parking::new(ids.agent_session().unwrap_or_default());
        Arc::new(Self {
            servers: ArcSwap::default(),
            sessions: RwLock::default(),
            dial_in: OnceLock::new(),
            opening: AtomicUsize::new(0),
            of_grants: Mutex::default(),
            standing: Mutex::default(),
            parking,
            limits: ArcSwap::from_pointee(limits),
            ids,
            admission,
            metrics,
            tasks: TaskTracker::new(),
            pace: Pace::start(),
            next_key: AtomicU64::new(1),
            draining: CancellationToken::new(),
            applying: Mutex::new(()),
            hearing: AtomicBool::new(false),
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

    /// What the gateway counts.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Where tasks that a stop has to wait for are counted.
    pub fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    /// Replaces the servers, in their configured order. A server that is the same object as before
    /// keeps its links; agent sessions of one that changed go on with the new one, and those of one
    /// that is gone are ended.
    pub fn apply(&self, servers: Vec<Arc<Server>>, limits: AgentSessions) {
        let _turn = self.applying.lock();
        self.limits.store(Arc::new(limits));
        // Sessions leave the names of new servers before these are listed, and take those of old
        // ones only when they are gone.
        let old = self.servers.load_full();
        self.reserve_names(old.iter().chain(&servers));
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

    /// Who may do what.
    pub fn admission(&self) -> &Arc<Admission> {
        &self.admission
    }

    /// The agent session `id`, if this grant has opened it on `endpoint`.
    pub fn session(
        &self,
        endpoint: &Endpoint,
        id: &str,
        caller: &Arc<Grant>,
    ) -> Option<Arc<AgentSession>> {
        let sessions = self.sessions.read();
        let session = sessions.get(id).filter(|session| {
            let grant = session.grant();
            let is_its = grant.label == caller.label && grant.token == caller.token;
            session.endpoint() == endpoint && is_its
        })?;
        session.set_grant(caller);
        Some(Arc::clone(session))
    }

    /// Something else is in force: sessions of grants that are gone end, and the others see what
    /// they may see now.
    pub fn access_changed(&self) {
        let _turn = self.applying.lock();
        let sessions: Vec<_> = self.sessions.read().values().cloned().collect();
        for session in sessions {
            let held = session.grant();
            let current = self.admission.current(&held.label);
            // Streams that were opened with another token are not for the holder of that one.
            let Some(grant) = current.filter(|grant| grant.token == held.token) else {
                self.cut_off(&session);
                continue;
            };
            session.set_grant(&grant);
            match session.endpoint() {
                // The server's own words on an open stream are not for this grant any more.
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

    /// Ends an agent session. A child or HTTP session of its own is closed in the background, so
    /// that the agent does not wait for it; an HTTP session once its calls have ended. Until then
    /// they are in flight: an agent must not free their places by leaving.
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

    /// Ends agent sessions that are idle, and those whose token has expired, or has ended while they
    /// were opened. To be called now and then.
    pub fn sweep(&self) {
        self.admission().strangers().tick();
        let (now, limits) = (Instant::now(), self.limits.load_full());
        let idle: Vec<Arc<AgentSession>> = {
            let sessions = self.sessions.read();
            let is_idle = |session: &&Arc<AgentSession>| session.is_idle(now, limits.idle);
            sessions.values().filter(is_idle).cloned().collect()
        };
        for session in self.sessions.read().values() {
            session.end_late_questions(now);
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
            tracing::debug!(endpoint = %session.endpoint(), "an idle agent session is ended");
            self.end(&session);
        }
        self.watch_dial_in();
        for server in self.servers.load().iter() {
            server.close_idle(&self.tasks, now, limits.idle);
        }
    }

    /// Does this unless the gateway stops meanwhile.
    pub(crate) async fn unless_stopping<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.draining.run_until_cancelled(work).await
    }

    /// Stops: no new agent sessions, idle streams end at once, running calls have `grace` to end,
    /// then every child and HTTP session is closed.
    pub async fn drain(&self, grace: Duration) {
        {
            // Whoever is let in after this sees it; whoever was before is among the sessions.
            let _turn = self.applying.lock();
            self.draining.cancel();
        }
        let sessions: Vec<_> = self.sessions.read().values().cloned().collect();
        for session in &sessions {
            self.hang_up(session);
        }
        self.tasks.close();
        if timeout(grace, self.tasks.wait()).await.is_err() {
            tracing::warn!(calls = self.tasks.len(), "calls still running are given up");
        }
        self.tasks.reopen();
        if timeout(RECORDING, self.admission.tasks.stop()).await.is_err() {
            tracing::warn!("some calls that created a task are not recorded yet");
        }
        for session in sessions {
            self.end(&session);
        }
        for server in self.servers.load().iter() {
            server.close_shared(&self.tasks);
        }
        self.tasks.close();
        if timeout(CLOSING, self.tasks.wait()).await.is_err() {
            tracing::warn!("some servers did not end in time");
        }
    }

    /// Gives every session of a changed server a link to the new one. The old link ends with the
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
        if session.is_standing() {
            self.parking.clear(session.key());
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

/// How long the ends of calls that created a task may take to be recorded when toolgate stops.
const RECORDING: Duration = Duration::from_secs(1);
/// How long children may take to end when toolgate stops; they are killed after less.
const CLOSING: Duration = Duration::from_secs(10);
