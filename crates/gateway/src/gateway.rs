//! The gateway itself: which servers there are, and which agent sessions.
//!
//! Start at [`Gateway::open`] (an agent's `initialize`) and [`Gateway::session`] (everything after).

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolgate_mcp::{
    Incoming, Limits, Message, Payload, Request, Version, parse_server, peek, text,
};

use crate::agent::AgentSession;
use crate::failure::Expects;
use crate::link::{Link, Opened, Parties};
use crate::metrics::Metrics;
use crate::pace::Pace;
use crate::rewrite::{rewrite, with_error};
use crate::server::{Instances, Server};

/// Where ids that nobody can guess come from.
pub trait Ids: Send + Sync + 'static {
    /// A new agent session id: at least 128 random bits in visible ASCII. None if there is no
    /// randomness to be had, and then no session is opened.
    fn agent_session(&self) -> Option<String>;
}

/// How many agent sessions there may be, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSessions {
    /// How many at once.
    pub max: usize,
    /// After how long without use one is ended.
    pub idle: Duration,
}

/// The gateway.
pub struct Gateway {
    servers: ArcSwap<Vec<Arc<Server>>>,
    sessions: RwLock<HashMap<String, Arc<AgentSession>>>,
    /// How many are being opened; they count as open. Goes up under a lock of `sessions`, and down
    /// under its write lock where one is let in, so that none counts twice.
    opening: AtomicUsize,
    limits: ArcSwap<AgentSessions>,
    ids: Box<dyn Ids>,
    metrics: Metrics,
    tasks: TaskTracker,
    pace: Arc<Pace>,
    next_key: AtomicU64,
    draining: CancellationToken,
    applying: Mutex<()>,
}

/// Why an agent session was not opened.
#[derive(Debug)]
pub enum NotOpened {
    /// There is no such server.
    UnknownServer,
    /// There are too many agent sessions.
    TooMany(usize),
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
    pub fn new(ids: Box<dyn Ids>, metrics: Metrics, limits: AgentSessions) -> Arc<Self> {
        Arc::new(Self {
            servers: ArcSwap::default(),
            sessions: RwLock::default(),
            opening: AtomicUsize::new(0),
            limits: ArcSwap::from_pointee(limits),
            ids,
            metrics,
            tasks: TaskTracker::new(),
            pace: Pace::start(),
            next_key: AtomicU64::new(1),
            draining: CancellationToken::new(),
            applying: Mutex::new(()),
        })
    }

    /// The server of that name.
    pub fn server(&self, name: &str) -> Option<Arc<Server>> {
        self.servers.load().iter().find(|server| server.name() == name).cloned()
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
        let before = self.servers.swap(Arc::new(servers));
        let after = self.servers.load_full();
        for old in before.iter() {
            match after.iter().find(|new| new.name() == old.name()) {
                Some(new) if Arc::ptr_eq(new, old) => continue,
                Some(new) => self.move_sessions(old.name(), new),
                None => self.drop_sessions(old.name()),
            }
            old.retire();
        }
    }

    /// Opens an agent session with the agent's `initialize`.
    pub async fn open(
        &self,
        server: &str,
        request: &Request<'_>,
    ) -> Result<(Arc<AgentSession>, Bytes), NotOpened> {
        let server = self.server(server).ok_or(NotOpened::UnknownServer)?;
        if self.draining.is_cancelled() {
            return Err(NotOpened::Stopping);
        }
        let place = self.take_place()?;
        let session = self.new_session(&server, request).ok_or(NotOpened::NoIds)?;
        let link = self.attach(&server, &session);
        // A stop waits for this too, and breaks it off.
        let _counted = self.tasks.token();
        let opening = async {
            match server.settings.instances {
                Instances::PerAgent => link.open().await,
                Instances::Shared => link.opened().await,
            }
        };
        let opened = self.draining.run_until_cancelled(opening).await;
        let opened = opened.ok_or(NotOpened::Stopping)?;
        let answer = match opened {
            Ok(Opened::Yes(answer)) => welcome(&session, request, &answer, &server),
            Ok(Opened::No(answer)) => return Err(NotOpened::Answer(with_id(&answer, request.id))),
            Err(failure) => {
                let answer = failure.answer(server.name(), request.id, Expects::Other);
                return Err(NotOpened::Answer(answer));
            }
        };
        self.let_in(&session, &server, place)?;
        Ok((session, answer))
    }

    /// The agent session `id`, if it was opened for `server`.
    pub fn session(&self, server: &str, id: &str) -> Option<Arc<AgentSession>> {
        let sessions = self.sessions.read();
        sessions.get(id).filter(|session| session.server() == server).cloned()
    }

    /// Ends an agent session. A child or HTTP session of its own is closed behind the scenes: it
    /// may take its time, and the agent need not wait for it.
    pub fn end(&self, session: &Arc<AgentSession>) {
        self.forget(session);
        let session = Arc::clone(session);
        self.tasks.spawn(async move { session.leave().await });
    }

    /// Ends what nobody has used for long. To be called now and then.
    pub fn sweep(&self) {
        let (now, limits) = (Instant::now(), self.limits.load_full());
        let idle: Vec<Arc<AgentSession>> = {
            let sessions = self.sessions.read();
            let is_idle = |session: &&Arc<AgentSession>| session.is_idle(now, limits.idle);
            sessions.values().filter(is_idle).cloned().collect()
        };
        for session in idle {
            tracing::debug!(server = session.server(), "an idle agent session is ended");
            self.end(&session);
        }
        for server in self.servers.load().iter() {
            server.close_deserted(&self.tasks, now, limits.idle);
        }
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
            session.hang_up();
        }
        self.tasks.close();
        if timeout(grace, self.tasks.wait()).await.is_err() {
            tracing::warn!(calls = self.tasks.len(), "calls still running are given up");
        }
        self.tasks.reopen();
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

    fn take_place(&self) -> Result<Place<'_>, NotOpened> {
        let max = self.limits.load().max;
        let sessions = self.sessions.read();
        let opening = self.opening.fetch_add(1, Ordering::Relaxed) + 1;
        let place = Place(&self.opening);
        if sessions.len() + opening > max {
            self.metrics.refused_sessions.inc();
            return Err(NotOpened::TooMany(max));
        }
        Ok(place)
    }

    /// Lets a session in, with the server that there is now: a reload or a stop may have come
    /// while it was being opened.
    fn let_in(
        &self,
        session: &Arc<AgentSession>,
        opened: &Arc<Server>,
        place: Place<'_>,
    ) -> Result<(), NotOpened> {
        let _turn = self.applying.lock();
        if self.draining.is_cancelled() {
            return Err(NotOpened::Stopping);
        }
        let now = self.server(opened.name());
        if !now.as_ref().is_some_and(|now| Arc::ptr_eq(now, opened)) {
            opened.retire();
            self.attach(&now.ok_or(NotOpened::UnknownServer)?, session);
        }
        let mut sessions = self.sessions.write();
        sessions.insert(session.id().to_owned(), Arc::clone(session));
        drop(place);
        self.metrics.agent_sessions.set(i64::try_from(sessions.len()).unwrap_or(i64::MAX));
        Ok(())
    }

    fn new_session(&self, server: &Server, request: &Request<'_>) -> Option<Arc<AgentSession>> {
        let key = self.next_key.fetch_add(1, Ordering::Relaxed);
        let (id, name) = (self.ids.agent_session()?, server.name().to_owned());
        let opening = Bytes::copy_from_slice(request.params.unwrap_or("{}").as_bytes());
        Some(AgentSession::new(id, key, name, opening, self.tasks.clone(), Arc::clone(&self.pace)))
    }

    /// Gives the session its link to `server`.
    fn attach(&self, server: &Arc<Server>, session: &Arc<AgentSession>) -> Arc<Link> {
        let link = match server.settings.instances {
            Instances::PerAgent => {
                let parties = Parties::One(Arc::downgrade(session));
                let opening = session.opening().clone();
                Link::new(Arc::clone(server), parties, opening, self.tasks.clone())
            }
            Instances::Shared => server.shared_link(session, &self.tasks),
        };
        session.set_link(Some(Arc::clone(&link)));
        link
    }

    /// Gives every session of a changed server a link to the new one. The old link ends with the
    /// last call that runs on it.
    fn move_sessions(&self, name: &str, new: &Arc<Server>) {
        let sessions: Vec<_> = self.sessions.read().values().cloned().collect();
        for session in sessions.iter().filter(|session| session.server() == name) {
            self.attach(new, session);
        }
    }

    fn drop_sessions(&self, name: &str) {
        let sessions: Vec<_> = self.sessions.read().values().cloned().collect();
        for session in sessions.iter().filter(|session| session.server() == name) {
            self.forget(session);
            session.set_link(None);
        }
    }

    fn forget(&self, session: &Arc<AgentSession>) {
        session.hang_up();
        let mut sessions = self.sessions.write();
        sessions.remove(session.id());
        self.metrics.agent_sessions.set(i64::try_from(sessions.len()).unwrap_or(i64::MAX));
    }
}

/// The place of an agent session that is being opened.
struct Place<'a>(&'a AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How long children may take to end when toolgate stops; they are killed after less.
const CLOSING: Duration = Duration::from_secs(10);

/// The server's answer to `initialize`, made out to this agent.
fn welcome(
    session: &AgentSession,
    request: &Request<'_>,
    answer: &Bytes,
    server: &Server,
) -> Bytes {
    let Ok(Incoming::One(Message::Response(response))) = parse_server(answer, &Limits::default())
    else {
        return answer.clone();
    };
    let (Some(id), Payload::Result(result)) = (response.id, response.payload) else {
        return answer.clone();
    };
    let raw = peek(result, &["protocolVersion"]).ok().flatten();
    let mut version = raw.and_then(text).and_then(|version| Version::parse(&version));
    let mut changes = vec![(id, request.id.to_owned())];
    if server.settings.instances == Instances::Shared {
        // The server agreed with us, not with this agent, which may be older.
        let wanted = request
            .params
            .and_then(|params| peek(params, &["protocolVersion"]).ok().flatten())
            .and_then(text)
            .and_then(|version| Version::parse(&version));
        version = version.min(wanted).or(version);
        if let (Some(raw), Some(version)) = (raw, version) {
            changes.push((raw, format!("\"{}\"", version.as_str())));
        }
    }
    if let Some(version) = version {
        session.set_version(version);
    }
    let changes: Vec<_> = changes.iter().map(|(part, with)| (*part, with.as_str())).collect();
    rewrite(response.raw, &changes).unwrap_or_else(|_| answer.clone())
}

/// The server's refusal of `initialize`, made out to this agent.
fn with_id(answer: &Bytes, id: &str) -> Bytes {
    let Ok(Incoming::One(Message::Response(response))) = parse_server(answer, &Limits::default())
    else {
        return answer.clone();
    };
    match (response.id, response.payload) {
        (Some(old), _) => rewrite(response.raw, &[(old, id)]).unwrap_or_else(|_| answer.clone()),
        (None, Payload::Error(error) | Payload::Result(error)) => with_error(id, error),
    }
}
