//! List cache: the lists and capabilities that a server last advertised.
//!
//! Lists are fetched in the background (`link/list_refresh.rs`) and answered from here. No list
//! waits for a server that was listed before, and a server that is down keeps its tools visible.
//! Servers may advertise different things to different clients, so one entry is kept for each
//! client profile; a profile without an entry uses the newest one.
//!
//! Invariant: an entry is never changed, only replaced.
//! Invariant: at most [`MAX_PROFILES`] entries are kept for a server.
//!
//! Start at [`ListCache::of`] and [`ListCache::put`].

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use toolgate_admission::list_kind::Kind;
use toolgate_json::{members, peek, text};

use crate::lists::List;

/// For how many client profiles the lists of a server are kept.
const MAX_PROFILES: usize = 8;
/// How long the first list after a start waits for servers that were not listed yet.
pub const FIRST_LIST_WAIT: Duration = Duration::from_millis(1_500);

/// What a server can tell apart of its clients: protocol version and capabilities.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClientProfile(Box<str>);

/// What a server advertised: capabilities, instructions and lists.
#[derive(Debug, Default)]
pub struct Advertised {
    /// Raw JSON, from the handshake.
    pub capabilities: Box<str>,
    /// Its instructions for models.
    pub instructions: Option<Box<str>>,
    lists: [Arc<List>; 4],
    fetched: Option<Instant>,
}

/// An agent session that sees the lists of many servers.
pub trait Watcher: Send + Sync {
    /// These lists may have changed.
    fn lists_changed(self: Arc<Self>, kinds: &[Kind]);
}

/// The cache of one server.
pub struct ListCache {
    /// Newest last.
    kept: ArcSwap<Vec<(ClientProfile, Arc<Advertised>)>>,
    /// Agent sessions to notify, with their client profiles.
    watchers: Mutex<Vec<(ClientProfile, Weak<dyn Watcher>)>>,
    first_requested: OnceLock<Instant>,
    /// Whether the first attempt to fetch the lists is over, successfully or not.
    settled: watch::Sender<bool>,
}

// === impl ClientProfile ===

impl ClientProfile {
    /// The profile of a client with these `params` of `initialize`.
    pub(crate) fn of(opening: &str) -> Self {
        let parts = members(opening, ["protocolVersion", "capabilities"]).unwrap_or_default();
        Self(parts.map(Option::unwrap_or_default).concat().into())
    }
}

// === impl Advertised ===

impl Advertised {
    /// From the answer to `initialize`; the lists are added later.
    pub(crate) fn new(welcome: &str) -> Self {
        let parts = members(welcome, ["capabilities", "instructions"]).unwrap_or_default();
        let [capabilities, instructions] = parts;
        Self {
            capabilities: capabilities.unwrap_or("{}").into(),
            instructions: instructions.and_then(text).map(|text| text.as_ref().into()),
            ..Self::default()
        }
    }

    /// Whether the server declares this capability.
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

    /// Whether it was fetched longer ago than `age`.
    pub fn is_older(&self, age: Duration, now: Instant) -> bool {
        self.fetched.is_none_or(|heard| now.saturating_duration_since(heard) > age)
    }

    /// The lists that differ from those in `before`.
    fn changes(&self, before: Option<&Self>) -> Vec<Kind> {
        let none = List::default();
        let same = |kind: &Kind| {
            self.list(*kind).shows_as(before.map_or(&none, |before| before.list(*kind)))
        };
        Kind::ALL.into_iter().filter(|kind| !same(kind)).collect()
    }
}

// === impl ListCache ===

impl ListCache {
    pub(crate) fn new() -> Self {
        Self {
            kept: ArcSwap::default(),
            watchers: Mutex::default(),
            first_requested: OnceLock::new(),
            settled: watch::Sender::new(false),
        }
    }

    /// The entry of this client profile, or else the newest one; `None` if there is none.
    pub fn of(&self, client_profile: &ClientProfile) -> Option<Arc<Advertised>> {
        let kept = self.kept.load();
        let own = kept.iter().find(|(whose, _)| whose == client_profile).or(kept.last());
        own.map(|(_, advertised)| Arc::clone(advertised))
    }

    /// Whether there is an entry for exactly this client profile.
    pub fn has_own(&self, client_profile: &ClientProfile) -> bool {
        self.kept.load().iter().any(|(whose, _)| whose == client_profile)
    }

    /// Stores a new entry and notifies the sessions whose lists change.
    pub(crate) fn put(
        &self,
        client_profile: &ClientProfile,
        mut advertised: Advertised,
        now: Instant,
    ) {
        advertised.fetched = Some(now);
        let (watchers, changes) = {
            let mut watchers = self.watchers.lock();
            let before = self.of(client_profile);
            let changes = advertised.changes(before.as_deref());
            for kind in Kind::ALL.into_iter().filter(|kind| !changes.contains(kind)) {
                // Unchanged lists keep their allocation, because readers compare pointers.
                if let Some(before) = &before {
                    advertised.set_list(kind, Arc::clone(before.list(kind)));
                }
            }
            let mut kept = Vec::clone(&self.kept.load());
            kept.retain(|(whose, _)| whose != client_profile);
            kept.push((client_profile.clone(), Arc::new(advertised)));
            if kept.len() > MAX_PROFILES {
                kept.remove(0);
            }
            self.kept.store(Arc::new(kept));
            watchers.retain(|(_, watcher)| watcher.strong_count() > 0);
            let concerned = watchers.iter().filter(|(whose, _)| whose == client_profile);
            let concerned: Vec<_> =
                concerned.filter_map(|(_, watcher)| watcher.upgrade()).collect();
            (concerned, changes)
        };
        self.settle();
        for watcher in watchers {
            watcher.lists_changed(&changes);
        }
    }

    /// Copies the entries of another server of the same name, if this one has none.
    pub fn inherit(&self, other: &Self) {
        if self.kept.load().is_empty() {
            self.kept.store(other.kept.load_full());
        }
    }

    /// Notifies this agent session of changes for its client profile from now on.
    pub fn watch(&self, client_profile: &ClientProfile, watcher: Weak<dyn Watcher>) {
        let mut watchers = self.watchers.lock();
        watchers.retain(|(_, watcher)| watcher.strong_count() > 0);
        watchers.push((client_profile.clone(), watcher));
    }

    /// Records that the lists are being fetched.
    pub(crate) fn note_request(&self, now: Instant) {
        self.first_requested.get_or_init(|| now);
    }

    /// The first attempt to fetch the lists is over.
    pub(crate) fn settle(&self) {
        self.settled.send_if_modified(|settled| !std::mem::replace(settled, true));
    }

    /// Waits until the first attempt to fetch the lists is over.
    pub async fn settled(&self) {
        // The sender lives as long as `self`.
        drop(self.settled.subscribe().wait_for(|settled| *settled).await);
    }

    /// Waits a short time for the first lists of a server, if they are being fetched.
    pub async fn wait_for_first_list(&self) {
        let Some(asked) = self.first_requested.get() else { return };
        let mut settled = self.settled.subscribe();
        let heard = settled.wait_for(|settled| *settled);
        if timeout_at(*asked + FIRST_LIST_WAIT, heard).await.is_err() {
            tracing::debug!("list answered without a server that has not answered yet");
        }
    }
}
