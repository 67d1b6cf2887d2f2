//! What an agent of one server may see of its lists, and whether that has changed.
//!
//! The server tells of its own lists itself. toolgate tells of what the server cannot know: a policy
//! or a grant that hides or shows something, and a configuration that puts another server in place.
//!
//! Invariant: an agent is told if a name that the server was heard to list is hidden now and was not
//! before, or the other way round; where names are not known, if the policy that may hide is another.

use std::sync::{Arc, Weak};

use jiff::Timestamp;
use toolgate_admission::access::Grant;
use toolgate_admission::list_kind::Kind;
use toolgate_upstream::link::Server;

use crate::downstream::agent::AgentSession;

/// How many names are compared one by one. Beyond that another policy is a change.
const COMPARED: usize = 1_000;

/// What decided what the agent was shown.
#[derive(Debug)]
pub(super) struct One {
    grant: Arc<Grant>,
    at: Timestamp,
    server: Weak<Server>,
    /// The lists that the server has, once it is known.
    has: Option<Vec<Kind>>,
}

impl One {
    /// What decides now.
    pub(super) fn by(session: &AgentSession) -> Self {
        let links = session.links();
        let link = links.first();
        Self {
            grant: session.grant(),
            at: session.admission().now(),
            server: link.map(|link| Arc::downgrade(link.server())).unwrap_or_default(),
            has: link.and_then(|link| link.lists()),
        }
    }

    /// Which lists look different by what decides now. They count as told of.
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
        let Some(server) = self.server.upgrade() else { return false };
        let changes = |name: &str| {
            server.is_hidden_from(&self.grant, kind, name, self.at)
                != server.is_hidden_from(&before.grant, kind, name, before.at)
        };
        let known = server.any_listed(kind, COMPARED, changes);
        known.unwrap_or_else(|| self.grant.hidden_by() != before.grant.hidden_by())
    }
}
