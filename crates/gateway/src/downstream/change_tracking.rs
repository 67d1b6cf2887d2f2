//! Change tracking: which lists an agent was shown, and whether they have changed since.
//!
//! On `/mcp` the lists are compared. On `/mcp/<server>` (`change_tracking/one_server.rs`) only the
//! hidden entries are compared, because the server itself reports changes of its lists.
//!
//! Invariant: an agent is notified of every change of its visible lists, including lists it never
//! requested, and of nothing else: each change is compared with the last list or notification.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};

use jiff::Timestamp;
use parking_lot::Mutex;
use toolgate_admission::access::Grant;
use toolgate_admission::list_kind::Kind;
use toolgate_audit::Hash;
use toolgate_policy::Class;
use toolgate_upstream::lists::List;
use toolgate_upstream::pins::Quarantined;

use self::one_server::{COMPARED, ServerView};
use crate::downstream::agent::AgentSession;

mod one_server;

/// Tracks the lists of one agent.
#[derive(Default)]
pub(crate) struct ChangeTracker {
    /// The state of each list at the last request or notification; initially, when the agent session
    /// was opened.
    shown: Mutex<Vec<(Kind, ListState)>>,
    /// The same for an agent of one server.
    one: Mutex<Option<ServerView>>,
    /// Lists that may have changed and are not compared yet.
    changed: Mutex<Vec<Kind>>,
    /// Names owned by another server that were logged.
    shadowed: Mutex<HashSet<String>>,
}

/// The state of one kind of list: which lists of which servers are visible.
#[derive(Debug)]
pub(crate) struct ListState {
    lists: Vec<(String, Weak<List>)>,
    /// The quarantined tools of each of them.
    quarantined: Vec<Arc<Quarantined>>,
    /// The policy, if it may hide something.
    hidden_by: Option<Hash>,
    grant: Arc<Grant>,
    at: Timestamp,
    /// The classes set by the operator, for each server that has any.
    classes: Vec<(String, HashMap<String, Class>)>,
    /// A digest of the session tools.
    of_sessions: Option<[u8; 32]>,
}

// === impl ChangeTracker ===

impl ChangeTracker {
    /// Sets the state of a list that the agent receives now.
    pub(crate) fn set_shown(&self, kind: Kind, seen: ListState) {
        let mut shown = self.shown.lock();
        shown.retain(|(other, _)| *other != kind);
        shown.push((kind, seen));
    }

    /// Sets the initial states of a new agent session.
    pub(crate) fn set_initial(&self, session: &AgentSession) {
        if session.endpoint().is_one() {
            self.one.lock().get_or_insert_with(|| ServerView::by(session));
            return;
        }
        let first = Kind::ALL.map(|kind| (kind, ListState::by(session, kind)));
        let mut shown = self.shown.lock();
        for (kind, seen) in first {
            if !shown.iter().any(|(known, _)| *known == kind) {
                shown.push((kind, seen));
            }
        }
    }

    /// Lists may have changed; true if the caller must start a comparison.
    pub(crate) fn may_have_changed(&self, kinds: &[Kind]) -> bool {
        let mut changed = self.changed.lock();
        let is_first = changed.is_empty() && !kinds.is_empty();
        changed.extend_from_slice(kinds);
        is_first
    }

    /// The lists that have changed since they were shown. Their current state becomes the shown one.
    pub(crate) fn take_outdated(&self, session: &AgentSession) -> Vec<Kind> {
        let changed = std::mem::take(&mut *self.changed.lock());
        if session.endpoint().is_one() {
            let mut one = self.one.lock();
            return one.as_mut().map(|one| one.take_outdated(session)).unwrap_or_default();
        }
        let mut shown = self.shown.lock();
        let is_changed = |kind: &Kind| changed.contains(kind);
        let outdated = Kind::ALL.into_iter().filter(is_changed).filter(|kind| {
            let now = ListState::by(session, *kind);
            match shown.iter_mut().find(|(known, _)| known == kind) {
                Some((_, seen)) => {
                    let before = std::mem::replace(seen, now);
                    !before.is_same(seen, session, *kind)
                }
                // The agent session is not open yet.
                None => false,
            }
        });
        outdated.collect()
    }

    /// Logs, once, that a server's name is not shown because another server owns it.
    pub(crate) fn report_shadowed(&self, server: &str, winner: &str, name: &str) {
        if self.shadowed.lock().insert(format!("{server} {name}")) {
            tracing::warn!(
                server,
                winner,
                name,
                "name not shown, because another server owns it; use `names: prefixed`"
            );
        }
    }
}

// === impl ListState ===

impl ListState {
    /// The current state for this agent session.
    pub(crate) fn by(session: &AgentSession, kind: Kind) -> Self {
        let (links, grant) = (session.links(), session.grant());
        let seen = links.iter().filter_map(|link| {
            let server = link.server();
            let advertised = server.list_cache.of(link.client_profile())?;
            let list = advertised.list(kind);
            let quarantined = list.quarantined(server.settings.pin, server.pins());
            let seen = (server.name().to_owned(), Arc::downgrade(list));
            (!list.is_empty()).then_some((seen, quarantined))
        });
        let (lists, quarantined) = seen.unzip();
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
        let (classes, at) = (classes.collect(), session.admission().now());
        Self { lists, quarantined, hidden_by, grant, at, classes, of_sessions }
    }

    fn is_same(&self, other: &Self, session: &AgentSession, kind: Kind) -> bool {
        let pairs = self.lists.iter().zip(&other.lists);
        self.lists.len() == other.lists.len()
            && self.hides_as(other, session, kind)
            && self.quarantined == other.quarantined
            && self.classes == other.classes
            && self.of_sessions == other.of_sessions
            && pairs.into_iter().all(|(one, two)| one.0 == two.0 && one.1.ptr_eq(&two.1))
    }

    /// Whether the same entries are hidden, if the lists are the same. Built-in tools are not known
    /// here, so another policy is a change of the tools.
    fn hides_as(&self, other: &Self, session: &AgentSession, kind: Kind) -> bool {
        if self.hidden_by == other.hidden_by {
            return true;
        }
        let mut compared = 0;
        kind != Kind::Tools
            && session.links().iter().all(|link| {
                let server = link.server();
                let Some(advertised) = server.list_cache.of(link.client_profile()) else {
                    return true;
                };
                let mut names = advertised.list(kind).entries();
                names.all(|(own, _)| {
                    compared += 1;
                    compared <= COMPARED
                        && server.is_hidden_from(&self.grant, kind, own, self.at)
                            == server.is_hidden_from(&other.grant, kind, own, other.at)
                })
            })
    }
}
