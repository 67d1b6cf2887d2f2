//! Changes of the lists that an agent of one server sees.
//!
//! The server itself reports changes of its lists. toolgate reports what the server cannot know: a
//! policy or grant that hides or shows something, a tool that is quarantined or approved, and a
//! configuration that replaces the server.
//!
//! Invariant: an agent is notified if a listed name is hidden now and was not before, or the reverse;
//! if the names are not known, if the policy that may hide has changed.

use std::sync::{Arc, Weak};

use jiff::Timestamp;
use toolgate_admission::access::Grant;
use toolgate_admission::list_kind::Kind;
use toolgate_upstream::link::Server;
use toolgate_upstream::pins::Quarantined;

use crate::downstream::agent::AgentSession;

/// The maximum number of names that are compared. Beyond it, another policy is a change.
pub(super) const COMPARED: usize = 1_000;

/// What determines the lists of an agent of one server.
#[derive(Debug)]
pub(super) struct ServerView {
    grant: Arc<Grant>,
    at: Timestamp,
    server: Weak<Server>,
    /// The lists that the server has, once it is known.
    has: Option<Vec<Kind>>,
    /// Its quarantined tools.
    quarantined: Quarantined,
}

impl ServerView {
    /// The current state.
    pub(super) fn by(session: &AgentSession) -> Self {
        let links = session.links();
        let link = links.first();
        Self {
            grant: session.grant(),
            at: session.admission().now(),
            server: link.map(|link| Arc::downgrade(link.server())).unwrap_or_default(),
            has: link.and_then(|link| link.lists()),
            quarantined: link.map(|link| link.server().quarantined()).unwrap_or_default(),
        }
    }

    /// The lists that have changed. The current state becomes the shown one.
    pub(super) fn take_outdated(&mut self, session: &AgentSession) -> Vec<Kind> {
        let mut now = Self::by(session);
        now.has = now.has.or_else(|| self.has.take());
        let before = std::mem::replace(self, now);
        let has = |kind: &Kind| self.has.as_ref().is_none_or(|has| has.contains(kind));
        let outdated = |kind: &Kind| self.differs(&before, *kind);
        Kind::ALL.into_iter().filter(has).filter(outdated).collect()
    }

    fn differs(&self, before: &Self, kind: Kind) -> bool {
        if !self.server.ptr_eq(&before.server) {
            return true;
        }
        if kind == Kind::Tools && self.quarantined != before.quarantined {
            return true;
        }
        let Some(server) = self.server.upgrade() else { return false };
        let changes = |name: &str| {
            server.is_hidden_from(&self.grant, kind, name, self.at)
                != server.is_hidden_from(&before.grant, kind, name, before.at)
        };
        let known = server.any_listed(kind, COMPARED, changes);
        known.unwrap_or_else(|| self.grant.hidden_by() != before.grant.hidden_by())
    }
}
