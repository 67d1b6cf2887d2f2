//! A session, its queue and its running calls.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::failure::{Candidate, Effect, MissingSession, SessionFailure};
use crate::io::{CallNumber, SocketId};
use crate::registration::SessionInfo;
use crate::time::Millis;
use crate::tool::{Tool, Tools};

/// A registered program.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) card: Arc<SessionInfo>,
    pub(crate) tools: Arc<Tools>,
    /// The size of their definitions.
    pub(crate) bytes: usize,
    /// The token of its registration.
    pub(crate) token: Option<u32>,
    /// Distinguishes it from a later session with the same uid.
    pub(crate) life: u64,
    /// The number of sockets it has had.
    pub(crate) generation: u64,
    /// `None` while it is disconnected.
    pub(crate) socket: Option<SocketId>,
    pub(crate) registered_at: Millis,
    pub(crate) lost_at: Option<Millis>,
    pub(crate) last_call: Option<Millis>,
    pub(crate) last_answer: Option<Millis>,
    /// The start of its idle time.
    pub(crate) used_at: Millis,
    /// Idle for too long: its tools are hidden.
    pub(crate) hidden: bool,
    pub(crate) queue: VecDeque<QueuedCall>,
    /// In the order in which they were sent.
    pub(crate) flights: Vec<InFlightCall>,
    /// When it was taken over, within the last minute.
    pub(crate) takeovers: VecDeque<Millis>,
    /// The host that had it before it was last taken over.
    pub(crate) rival: Option<String>,
    /// The number of consecutive calls without an answer in time.
    pub(crate) timeouts: u32,
    /// How long the last answered call took.
    pub(crate) pace: Duration,
}

/// A call that has not been sent.
#[derive(Debug)]
pub(crate) struct QueuedCall {
    pub(crate) call: CallNumber,
    pub(crate) tool: Arc<Tool>,
    /// The published name of the call.
    pub(crate) published: String,
    pub(crate) arguments: String,
    pub(crate) random: u128,
    pub(crate) allowed: Option<Duration>,
    pub(crate) deadline: Option<Millis>,
    /// Until when it waits for the session to reconnect; `None` if it arrived while the session was
    /// connected.
    pub(crate) waits_until: Option<Millis>,
    /// Whether the agent selected the session.
    pub(crate) selected: bool,
}

/// A sent call whose answer may still arrive.
#[derive(Debug)]
pub(crate) struct InFlightCall {
    pub(crate) call: CallNumber,
    pub(crate) tool: Arc<Tool>,
    pub(crate) wire: String,
    /// The socket it was sent to.
    pub(crate) socket: SocketId,
    pub(crate) concurrency: usize,
    pub(crate) sent_at: Millis,
    pub(crate) allowed: Option<Duration>,
    pub(crate) deadline: Option<Millis>,
    pub(crate) phase: Phase,
}

/// The phase of a sent call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Its answer is awaited.
    Running,
    /// It was cancelled; its answer is awaited until then.
    Cancelled(Millis),
    /// It ended without an answer; the client is assumed to be busy with it.
    Quarantined,
}

impl Session {
    pub(crate) fn same_program(&self, token: Option<u32>, card: &SessionInfo) -> bool {
        self.token == token
            && self.card.kind == card.kind
            && self.card.infobase_name == card.infobase_name
    }

    /// The tool that a call was decided for, if the session still publishes it with the definition
    /// that was decided.
    pub(crate) fn publishes(
        &self,
        uid: &Arc<str>,
        decided: &Tool,
        published: &str,
    ) -> Result<&Arc<Tool>, SessionFailure> {
        let (session_id, tool) = (Arc::clone(uid), published.to_owned());
        match self.tools.get(&decided.name) {
            None => Err(SessionFailure::SessionMismatch { session_id, tool }),
            Some(now) if now.shown != decided.shown => {
                Err(SessionFailure::ToolChanged { session_id, tool })
            }
            Some(now) => Ok(now),
        }
    }

    /// The session as listed in errors.
    pub(crate) fn candidate(&self, uid: &Arc<str>) -> Candidate {
        Candidate {
            session_id: Arc::clone(uid),
            infobase_name: self.card.infobase_name.clone(),
            kind: self.card.kind.clone(),
        }
    }

    /// Whether a call may be sent now. Calls run concurrently only if each of their tools allows
    /// that many. A quarantined slot is occupied.
    pub(crate) fn has_room(&self, concurrency: usize) -> bool {
        let least =
            self.flights.iter().map(|flight| flight.concurrency).fold(concurrency, usize::min);
        self.flights.len() < least
    }

    /// Running calls that a caller awaits.
    pub(crate) fn inflight(&self) -> usize {
        self.flights.iter().filter(|flight| flight.phase != Phase::Quarantined).count()
    }

    /// Whether calls time out repeatedly.
    pub(crate) fn is_unresponsive(&self) -> bool {
        self.timeouts >= UNRESPONSIVE
    }

    /// Whether it was taken over more often in the minute before `now` than a restart explains.
    pub(crate) fn in_conflict(&self, now: Millis) -> bool {
        let recent = self.takeovers.iter().filter(|at| now.since(**at) <= MINUTE);
        recent.count() > MAX_TAKEOVERS
    }

    /// Records a takeover; returns whether that makes it a conflict.
    pub(crate) fn taken_over(&mut self, now: Millis) -> bool {
        let before = self.in_conflict(now);
        self.takeovers.push_back(now);
        while self.takeovers.len() > MAX_TAKEOVERS + 1 {
            self.takeovers.pop_front();
        }
        !before && self.in_conflict(now)
    }

    /// Why a call cannot be sent while the session is disconnected.
    pub(crate) fn away(&self, uid: &Arc<str>, published: &str, selected: bool) -> SessionFailure {
        if selected {
            return SessionFailure::SessionGone {
                session_id: Arc::clone(uid),
                effect: Effect::NotStarted,
            };
        }
        SessionFailure::NoLiveSession(self.missing(published).into())
    }

    /// The session as the one that no longer serves a tool.
    pub(crate) fn missing(&self, published: &str) -> MissingSession {
        let card = &self.card;
        MissingSession {
            tool: published.to_owned(),
            kind: card.kind.clone(),
            config_id: card.config_id.clone(),
            infobase_name: Some(card.infobase_name.clone()),
            host_id: Some(card.host_id.clone()),
            last_seen: self.lost_at.or(self.last_answer).unwrap_or(self.registered_at),
        }
    }

    pub(crate) fn busy(&self, uid: &Arc<str>) -> SessionFailure {
        SessionFailure::SessionBusy {
            session_id: Arc::clone(uid),
            waiting: self.queue.len(),
            retry_after_s: self.pace.as_secs().clamp(1, 60),
        }
    }
}

const MINUTE: Duration = Duration::from_mins(1);
/// A server channel reconnects about once a minute; two programs with one uid conflict every
/// second.
const MAX_TAKEOVERS: usize = 5;
/// This many consecutive timeouts mark a session as unresponsive.
const UNRESPONSIVE: u32 = 3;
