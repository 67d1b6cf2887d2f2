//! The agent sessions that use a link: one, or all that share the server.

use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::{Agent, Link};

/// The agent sessions that use a link.
pub enum Parties {
    /// One agent session.
    One(Weak<dyn Agent>),
    /// All agent sessions that use the server.
    Many(Mutex<Vec<Weak<dyn Agent>>>),
    /// None: toolgate itself lists the server.
    Toolgate,
}

// === impl Link ===

impl Link {
    /// Whether several agents use it.
    pub fn is_shared(&self) -> bool {
        matches!(self.parties, Parties::Many(_))
    }

    /// The agent sessions that use it.
    pub(super) fn sessions(&self) -> Vec<Arc<dyn Agent>> {
        match &self.parties {
            Parties::One(session) => session.upgrade().into_iter().collect(),
            Parties::Many(sessions) => sessions.lock().iter().filter_map(Weak::upgrade).collect(),
            Parties::Toolgate => Vec::new(),
        }
    }

    /// The label of the grant that the link belongs to. Labels that no grant has stand for toolgate
    /// itself and for all grants of a shared server.
    pub(super) fn grant_label(&self) -> Arc<str> {
        match &self.parties {
            Parties::One(session) => match session.upgrade() {
                Some(session) => Arc::clone(&session.grant().label),
                None => "(toolgate)".into(),
            },
            Parties::Many(_) => "(shared)".into(),
            Parties::Toolgate => "(toolgate)".into(),
        }
    }

    /// Adds an agent session to a shared link.
    pub(crate) fn join(&self, session: Weak<dyn Agent>) {
        if let Parties::Many(sessions) = &self.parties {
            sessions.lock().push(session);
            *self.idle_since.lock() = None;
        }
    }

    /// Removes an agent session: a link of its own is closed, a shared one stays.
    pub async fn leave(&self, session: u64) {
        match &self.parties {
            Parties::One(_) | Parties::Toolgate => self.close().await,
            Parties::Many(sessions) => {
                self.unfollow_all(session);
                sessions
                    .lock()
                    .retain(|other| other.upgrade().is_some_and(|other| other.key() != session));
            }
        }
    }

    /// Closes a link of toolgate itself; a shared one stays.
    pub async fn end_own(&self) {
        if matches!(self.parties, Parties::Toolgate) {
            self.close().await;
        }
    }

    /// Waits until the calls of an agent session that is leaving have ended, if their server can
    /// continue them without the connection. Each call has its own time limit.
    pub async fn calls_end(&self) {
        let outlives = self.up.load().as_ref().is_some_and(|up| !up.channel.ends_server());
        if outlives && matches!(self.parties, Parties::One(_)) {
            self.waiting.calls_end().await;
        }
    }

    /// Whether other agent sessions of a shared link follow a resource that the server may regard
    /// as this one. If so, this session stops following it.
    pub(crate) fn others_follow(&self, session: u64, uri: &str) -> bool {
        if !self.is_shared() {
            return false;
        }
        let sessions = self.sessions();
        let follows = |other: &Arc<dyn Agent>| {
            other.key() != session
                && other.server_subscriptions().follows_alike(self.server.name(), uri)
        };
        let left = sessions.iter().any(follows);
        if left {
            self.unfollow(Some(session), uri);
        }
        left
    }

    /// Whether a request of the agent session is in flight.
    pub fn waits_for(&self, session: u64) -> bool {
        self.waiting.waits_for(session)
    }

    /// Whether a shared link has had no agents for `idle`.
    pub(crate) fn is_idle(&self, now: Instant, idle: Duration) -> bool {
        let Parties::Many(sessions) = &self.parties else { return false };
        let mut sessions = sessions.lock();
        sessions.retain(|session| session.strong_count() > 0);
        let mut since = self.idle_since.lock();
        if !sessions.is_empty() || !self.waiting.is_empty() {
            *since = None;
            return false;
        }
        now.saturating_duration_since(*since.get_or_insert(now)) >= idle
    }
}
