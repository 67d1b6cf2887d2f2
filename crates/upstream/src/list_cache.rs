//! Offers: what a server was last heard to have, kept so that it stays visible.
//!
//! A server's lists are asked for in the background (`link/list_refresh.rs`) and answered from here, so
//! that no list ever waits for a server that was heard once, and a server that is gone keeps its
//! tools in sight. Servers may offer different things to clients of different capabilities, so an
//! offer is kept for each set of them; who has none of its own yet is shown the newest.
//!
//! Invariant: an offer is never changed, only replaced by a newer one.
//! Invariant: at most [`MAX_OFFERS`] offers are kept for a server.
//!
//! Start at [`Offers::of`] and [`Offers::put`].

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use toolgate_admission::list_kind::Kind;
use toolgate_json::{members, peek, text};

use crate::lists::List;

/// For how many sets of capabilities a server's offer is kept.
const MAX_OFFERS: usize = 8;
/// How long the first list after a start waits for servers that were not heard yet.
pub const FIRST_HEARING: Duration = Duration::from_millis(1_500);

/// What agents of the same capabilities have in common.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Audience(Box<str>);

/// What a server was last heard to have.
#[derive(Debug, Default)]
pub struct Offer {
    /// Raw JSON: what it said in its handshake.
    pub capabilities: Box<str>,
    /// Its instructions for models.
    pub instructions: Option<Box<str>>,
    lists: [Arc<List>; 4],
    heard: Option<Instant>,
}

/// An agent session that sees the lists of many servers.
pub trait Watcher: Send + Sync {
    /// These lists may have changed.
    fn lists_changed(self: Arc<Self>, kinds: &[Kind]);
}

/// Everything kept of one server.
pub struct Offers {
    /// Newest last.
    kept: ArcSwap<Vec<(Audience, Arc<Offer>)>>,
    /// Who is shown what is offered to whom.
    watchers: Mutex<Vec<(Audience, Weak<dyn Watcher>)>>,
    first_asked: OnceLock<Instant>,
    /// Whether the first attempt to hear the server is over, one way or the other.
    settled: watch::Sender<bool>,
}

// === impl Audience ===

impl Audience {
    /// Those who open with these `params` of `initialize`.
    pub(crate) fn of(opening: &str) -> Self {
        let parts = members(opening, ["protocolVersion", "capabilities"]).unwrap_or_default();
        Self(parts.map(Option::unwrap_or_default).concat().into())
    }
}

// === impl Offer ===

impl Offer {
    /// What the answer to `initialize` says; the lists are to come.
    pub(crate) fn new(welcome: &str) -> Self {
        let parts = members(welcome, ["capabilities", "instructions"]).unwrap_or_default();
        let [capabilities, instructions] = parts;
        Self {
            capabilities: capabilities.unwrap_or("{}").into(),
            instructions: instructions.and_then(text).map(|text| text.as_ref().into()),
            ..Self::default()
        }
    }

    /// Whether the server says that it can do this.
    pub fn can(&self, capability: &str) -> bool {
        peek(&self.capabilities, &[capability]).is_ok_and(|found| found.is_some())
    }

    /// The list of that kind.
    pub fn list(&self, kind: Kind) -> &Arc<List> {
        let [tools, prompts, resources, templates] = &self.lists;
        match kind {
            Kind::Tools => tools,
            Kind::Prompts => prompts,
            Kind::Resources => resources,
            Kind::Templates => templates,
        }
    }

    pub(crate) fn set_list(&mut self, kind: Kind, list: Arc<List>) {
        let [tools, prompts, resources, templates] = &mut self.lists;
        *match kind {
            Kind::Tools => tools,
            Kind::Prompts => prompts,
            Kind::Resources => resources,
            Kind::Templates => templates,
        } = list;
    }

    /// Whether it was heard longer ago than `age`.
    pub fn is_older(&self, age: Duration, now: Instant) -> bool {
        self.heard.is_none_or(|heard| now.saturating_duration_since(heard) > age)
    }

    /// What shows differently than in `before`.
    fn changes(&self, before: Option<&Self>) -> Vec<Kind> {
        let none = List::default();
        let same = |kind: &Kind| {
            self.list(*kind).shows_as(before.map_or(&none, |before| before.list(*kind)))
        };
        Kind::ALL.into_iter().filter(|kind| !same(kind)).collect()
    }
}

// === impl Offers ===

impl Offers {
    pub(crate) fn new() -> Self {
        Self {
            kept: ArcSwap::default(),
            watchers: Mutex::default(),
            first_asked: OnceLock::new(),
            settled: watch::Sender::new(false),
        }
    }

    /// The offer to this audience, or else the newest one; none if the server was never heard.
    pub fn of(&self, audience: &Audience) -> Option<Arc<Offer>> {
        let kept = self.kept.load();
        let own = kept.iter().find(|(whose, _)| whose == audience).or(kept.last());
        own.map(|(_, offer)| Arc::clone(offer))
    }

    /// Whether an offer to this very audience is kept.
    pub fn has_own(&self, audience: &Audience) -> bool {
        self.kept.load().iter().any(|(whose, _)| whose == audience)
    }

    /// Keeps a newer offer, and tells those who see something change.
    pub(crate) fn put(&self, audience: &Audience, mut offer: Offer, now: Instant) {
        offer.heard = Some(now);
        let (watchers, changes) = {
            let mut watchers = self.watchers.lock();
            let before = self.of(audience);
            let changes = offer.changes(before.as_deref());
            for kind in Kind::ALL.into_iter().filter(|kind| !changes.contains(kind)) {
                // Who compares lists compares where they are.
                if let Some(before) = &before {
                    offer.set_list(kind, Arc::clone(before.list(kind)));
                }
            }
            let mut kept = Vec::clone(&self.kept.load());
            kept.retain(|(whose, _)| whose != audience);
            kept.push((audience.clone(), Arc::new(offer)));
            if kept.len() > MAX_OFFERS {
                kept.remove(0);
            }
            self.kept.store(Arc::new(kept));
            watchers.retain(|(_, watcher)| watcher.strong_count() > 0);
            let concerned = watchers.iter().filter(|(whose, _)| whose == audience);
            let concerned: Vec<_> =
                concerned.filter_map(|(_, watcher)| watcher.upgrade()).collect();
            (concerned, changes)
        };
        self.settle();
        for watcher in watchers {
            watcher.lists_changed(&changes);
        }
    }

    /// Takes over what another server of the same name had, for as long as this one was not heard.
    pub fn inherit(&self, other: &Self) {
        if self.kept.load().is_empty() {
            self.kept.store(other.kept.load_full());
        }
    }

    /// Tells this agent session from now on of changes in what is offered to `audience`.
    pub fn watch(&self, audience: &Audience, watcher: Weak<dyn Watcher>) {
        let mut watchers = self.watchers.lock();
        watchers.retain(|(_, watcher)| watcher.strong_count() > 0);
        watchers.push((audience.clone(), watcher));
    }

    /// Somebody tries to hear the server.
    pub(crate) fn asked(&self, now: Instant) {
        self.first_asked.get_or_init(|| now);
    }

    /// The server was heard, or cannot be.
    pub(crate) fn settle(&self) {
        self.settled.send_if_modified(|settled| !std::mem::replace(settled, true));
    }

    /// Waits until the server was heard, or cannot be.
    pub async fn settled(&self) {
        // It is never dropped while somebody waits here.
        drop(self.settled.subscribe().wait_for(|settled| *settled).await);
    }

    /// Waits for the first word of a server that is being asked for the first time.
    pub async fn first_hearing(&self) {
        let Some(asked) = self.first_asked.get() else { return };
        let mut settled = self.settled.subscribe();
        let heard = settled.wait_for(|settled| *settled);
        if timeout_at(*asked + FIRST_HEARING, heard).await.is_err() {
            tracing::debug!("a list is shown without a server that was not heard yet");
        }
    }
}
