//! Sight: what an agent was shown, and whether it still is so.
//!
//! Of all servers at once the lists are compared; of one server (`change_tracking/one.rs`) what is hidden in
//! them, because that server tells of its own lists itself.
//!
//! Invariant: an agent is told of every change of what it sees, also of what it has never asked for,
//! and of nothing else: what it was last shown, or told of, is what the next change is one of.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use toolgate_admission::list_kind::Kind;
use toolgate_audit::Hash;
use toolgate_policy::Class;
use toolgate_upstream::lists::List;

use self::one::One;
use crate::downstream::agent::AgentSession;

mod one;

/// What one agent was shown.
#[derive(Default)]
pub(crate) struct Sight {
    /// What the agent was last shown, or told that it has changed; before that, what there was to
    /// see when it came.
    shown: Mutex<Vec<(Kind, Seen)>>,
    /// The same of an agent of one server.
    one: Mutex<Option<One>>,
    /// Lists that may have changed and were not compared yet.
    changed: Mutex<Vec<Kind>>,
    /// Names that another server has taken, as far as that was reported.
    shadowed: Mutex<HashSet<String>>,
}

/// Which lists of which servers there are to see.
#[derive(Debug)]
pub(crate) struct Seen {
    lists: Vec<(String, Weak<List>)>,
    /// The policy that may hide some of it.
    hidden_by: Option<Hash>,
    /// The classes by which it may, of each server that the operator gave any.
    classes: Vec<(String, HashMap<String, Class>)>,
    /// Equal for equal lists of sessions' tools.
    of_sessions: Option<[u8; 32]>,
}

// === impl Sight ===

impl Sight {
    /// Remembers what the agent is shown now.
    pub(crate) fn note_shown(&self, kind: Kind, seen: Seen) {
        let mut shown = self.shown.lock();
        shown.retain(|(other, _)| *other != kind);
        shown.push((kind, seen));
    }

    /// Remembers what there is to see for an agent that has just come.
    pub(crate) fn note_first(&self, session: &AgentSession) {
        if session.endpoint().is_one() {
            self.one.lock().get_or_insert_with(|| One::by(session));
            return;
        }
        let first = Kind::ALL.map(|kind| (kind, Seen::by(session, kind)));
        let mut shown = self.shown.lock();
        for (kind, seen) in first {
            if !shown.iter().any(|(known, _)| *known == kind) {
                shown.push((kind, seen));
            }
        }
    }

    /// Something may have changed; true if somebody has to compare soon.
    pub(crate) fn may_have_changed(&self, kinds: &[Kind]) -> bool {
        let mut changed = self.changed.lock();
        let nobody_does = changed.is_empty() && !kinds.is_empty();
        changed.extend_from_slice(kinds);
        nobody_does
    }

    /// Which lists were shown as they no longer are. They count as told of.
    pub(crate) fn take_outdated(&self, session: &AgentSession) -> Vec<Kind> {
        let changed = std::mem::take(&mut *self.changed.lock());
        if session.endpoint().is_one() {
            let mut one = self.one.lock();
            return one.as_mut().map(|one| one.take_outdated(session)).unwrap_or_default();
        }
        let mut shown = self.shown.lock();
        let is_changed = |kind: &Kind| changed.contains(kind);
        let outdated = Kind::ALL.into_iter().filter(is_changed).filter(|kind| {
            let now = Seen::by(session, *kind);
            match shown.iter_mut().find(|(known, _)| known == kind) {
                Some((_, seen)) if seen.is_same(&now) => false,
                Some((_, seen)) => {
                    *seen = now;
                    true
                }
                // The agent has not come yet.
                None => false,
            }
        });
        outdated.collect()
    }

    /// Says, once, that a server's name is not shown because another has it.
    pub(crate) fn report_shadowed(&self, server: &str, winner: &str, name: &str) {
        if self.shadowed.lock().insert(format!("{server} {name}")) {
            tracing::warn!(
                server,
                winner,
                name,
                "a name belongs to another server and is not shown; use `names: prefixed`"
            );
        }
    }
}

// === impl Seen ===

impl Seen {
    /// What there is to see for this agent session.
    pub(crate) fn by(session: &AgentSession, kind: Kind) -> Self {
        let (links, grant) = (session.links(), session.grant());
        let seen = links.iter().filter_map(|link| {
            let advertised = link.server().list_cache.of(link.client_profile())?;
            let list = advertised.list(kind);
            (!list.is_empty()).then(|| (link.server().name().to_owned(), Arc::downgrade(list)))
        });
        let policy = grant.policy.as_ref().filter(|_| grant.may_hide());
        let dial_in = session.dial_in().filter(|_| kind == Kind::Tools);
        let of_sessions = dial_in.map(|dial_in| {
            let tools = dial_in.driver.tools(&grant.sessions);
            tools.digest(dial_in, &grant, session.admission().now())
        });
        let hidden_by = grant.hidden_by();
        let classes = links.iter().filter(|_| policy.is_some() && kind == Kind::Tools);
        let classes = classes.map(|link| link.server()).filter_map(|server| {
            let classes = &server.settings.tool_classes;
            (!classes.is_empty()).then(|| (server.name().to_owned(), classes.clone()))
        });
        Self { lists: seen.collect(), hidden_by, classes: classes.collect(), of_sessions }
    }

    fn is_same(&self, other: &Self) -> bool {
        let pairs = self.lists.iter().zip(&other.lists);
        self.lists.len() == other.lists.len()
            && self.hidden_by == other.hidden_by
            && self.classes == other.classes
            && self.of_sessions == other.of_sessions
            && pairs.into_iter().all(|(one, two)| one.0 == two.0 && one.1.ptr_eq(&two.1))
    }
}
