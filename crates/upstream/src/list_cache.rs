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

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
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
/// How long a list waits, by default, for servers that are starting and were never listed.
pub const LIST_WAIT: Duration = Duration::from_secs(5);

/// How long the answer to `initialize` waits for them.
const WELCOME_WAIT: Duration = Duration::from_millis(1_500);

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
    /// Whether it has changed since [`Self::take_changed`].
    changed: AtomicBool,
    /// How long a list waits for it, in milliseconds.
    list_wait: AtomicU64,
    /// Whether its lists were requested.
    requested: AtomicBool,
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

    /// From its text.
    pub(crate) fn from_text(text: &str) -> Self {
        Self(text.into())
    }

    /// Its text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
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
        self.fetched.is_none_or(|fetched| now.saturating_duration_since(fetched) > age)
    }

    /// Whether capabilities and instructions are those of `before`.
    fn introduces_as(&self, before: Option<&Self>) -> bool {
        before.is_some_and(|before| {
            self.capabilities == before.capabilities && self.instructions == before.instructions
        })
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
            changed: AtomicBool::new(false),
            list_wait: AtomicU64::new(millis(LIST_WAIT)),
            requested: AtomicBool::new(false),
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
        let watchers = {
            let mut watchers = self.watchers.lock();
            let before = self.of(client_profile);
            let changes = advertised.changes(before.as_deref());
            if !changes.is_empty() || !advertised.introduces_as(before.as_deref()) {
                self.changed.store(true, Ordering::Release);
            }
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
            let concerned = watchers.iter().filter_map(|(whose, watcher)| {
                if whose == client_profile {
                    return Some((watcher.upgrade()?, changes.clone()));
                }
                // A profile without an entry uses the newest one, which is this one now.
                (!self.has_own(whose)).then_some((watcher.upgrade()?, Kind::ALL.to_vec()))
            });
            concerned.collect::<Vec<_>>()
        };
        self.settle();
        for (watcher, changes) in watchers {
            watcher.lists_changed(&changes);
        }
    }

    /// The newest entry, with its client profile.
    pub fn newest(&self) -> Option<(ClientProfile, Arc<Advertised>)> {
        self.kept.load().last().cloned()
    }

    /// Restores an entry, if there is none.
    pub(crate) fn restore(&self, client_profile: ClientProfile, advertised: Advertised) {
        if self.kept.load().is_empty() {
            self.kept.store(Arc::new(vec![(client_profile, Arc::new(advertised))]));
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

    /// Records that the lists are being fetched, or will be.
    pub fn note_request(&self) {
        self.requested.store(true, Ordering::Release);
    }

    /// Whether the server was ever listed.
    pub fn is_listed(&self) -> bool {
        !self.kept.load().is_empty()
    }

    /// The first attempt to fetch the lists is over.
    pub fn settle(&self) {
        self.settled.send_if_modified(|settled| !std::mem::replace(settled, true));
    }

    /// Whether the entries have changed since the last call.
    pub(crate) fn take_changed(&self) -> bool {
        self.changed.swap(false, Ordering::AcqRel)
    }

    /// Sets how long a list waits for the server.
    pub fn set_list_wait(&self, wait: Duration) {
        self.list_wait.store(millis(wait), Ordering::Relaxed);
    }

    /// Waits for the lists of a server that was never listed, while the first attempt to fetch them
    /// is running. A list that was requested at `since` waits at most as long as configured.
    pub async fn wait_for_first_list(&self, since: Instant) {
        self.wait_until(since + self.configured_wait()).await;
    }

    /// As [`Self::wait_for_first_list`], for the answer to `initialize`, which lists nothing.
    pub async fn wait_before_welcome(&self, since: Instant) {
        self.wait_until(since + self.configured_wait().min(WELCOME_WAIT)).await;
    }

    fn configured_wait(&self) -> Duration {
        Duration::from_millis(self.list_wait.load(Ordering::Relaxed))
    }

    async fn wait_until(&self, deadline: Instant) {
        if self.is_listed() || !self.requested.load(Ordering::Acquire) {
            return;
        }
        let mut settled = self.settled.subscribe();
        // The sender lives as long as `self`.
        drop(timeout_at(deadline, settled.wait_for(|settled| *settled)).await);
    }
}

fn millis(wait: Duration) -> u64 {
    u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)
}
