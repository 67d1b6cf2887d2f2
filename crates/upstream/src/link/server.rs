//! Servers: what the gateway knows of each upstream MCP server.
//!
//! A server is a name, a connector that makes channels to it, and its time limits. A child that
//! fails to start or exits early is started again on use, after its back-off.
//!
//! Invariant: nothing here communicates with a server; links do.

mod settings;
mod starts;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, RwLock, Semaphore};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use toolgate_admission::access::Grant;
use toolgate_admission::list_kind::Kind;
use toolgate_json::is_variant;
use toolgate_policy::Class;

use super::agent::Agent;
use super::{Link, Parties};
use crate::annotations::Annotations;
use crate::arguments::{ArgumentCheck, ArgumentsToCheck, InvalidArguments};
use crate::backoff::Backoff;
use crate::channel::Connector;
use crate::era::{Era, Eras};
use crate::failure::Failure;
use crate::list_cache::ListCache;
use crate::listed_names::ListedNames;
use crate::metrics::ServerMetrics;
use crate::names::Naming;
use crate::pins::{Facts, Quarantined, Reason, ServerPins, ToolList};
use crate::status::StatusTracker;

pub use settings::{Instances, ServerSettings};

/// One upstream MCP server.
pub struct Server {
    /// Its configuration.
    pub settings: ServerSettings,
    pub(crate) connector: Arc<dyn Connector>,
    pub(crate) metrics: ServerMetrics,
    /// How its names are shown on `/mcp`.
    pub naming: Naming,
    /// Its cached lists.
    pub list_cache: ListCache,
    /// The eras it is known to speak.
    pub(crate) eras: Eras,
    /// Which arguments of its tools are repeated in headers.
    pub(crate) annotations: Annotations,
    /// The list from which annotations and names were learned last.
    learned: ArcSwapOption<ToolList>,
    /// The names it has listed.
    pub(crate) listed_names: ListedNames,
    pub(crate) shared: Mutex<Option<Arc<Link>>>,
    /// Links of each grant whose process was started to fetch lists, not for a call.
    started_for_lists: Mutex<HashMap<Arc<str>, Vec<Weak<Link>>>>,
    backoff: Mutex<Backoff>,
    status: StatusTracker,
    /// Whether starts run one at a time, because simultaneous ones have failed.
    one_start_at_a_time: AtomicBool,
    start_turn: Arc<RwLock<()>>,
    /// Whether toolgate lists it, or has tried to.
    own_listing: AtomicU8,
    /// An agent has listed its tools while no process of that agent runs.
    wanted_listing: Mutex<Wanted>,
    room: Arc<Semaphore>,
    /// Whether a list of it has had more than one page.
    has_pages: AtomicBool,
    /// It was removed from the configuration, or replaced.
    retired: AtomicBool,
    /// Which definitions of its tools may be used.
    pins: OnceLock<Arc<ServerPins>>,
    argument_check: OnceLock<Arc<dyn ArgumentCheck>>,
}

/// A listing that an agent wants: how it introduces itself.
#[derive(Debug, Clone)]
pub struct WantedListing {
    opening: Bytes,
    era: Era,
}

#[derive(Debug, Default)]
struct Wanted {
    listing: Option<WantedListing>,
    /// When the next listing may begin.
    not_before: Option<Instant>,
}

// === impl Server ===

impl Server {
    /// A server that is connected to through `connector`.
    pub fn new(
        settings: ServerSettings,
        connector: Arc<dyn Connector>,
        metrics: ServerMetrics,
    ) -> Self {
        let room = Arc::new(Semaphore::new(settings.max_requests.min(Semaphore::MAX_PERMITS)));
        let naming = Naming::new(&settings.name, settings.bare_names);
        Self {
            settings,
            connector,
            metrics,
            naming,
            list_cache: ListCache::new(),
            eras: Eras::default(),
            annotations: Annotations::default(),
            learned: ArcSwapOption::empty(),
            listed_names: ListedNames::default(),
            shared: Mutex::new(None),
            started_for_lists: Mutex::default(),
            backoff: Mutex::new(Backoff::default()),
            status: StatusTracker::default(),
            one_start_at_a_time: AtomicBool::new(false),
            start_turn: Arc::default(),
            own_listing: AtomicU8::new(NOT_TRIED),
            wanted_listing: Mutex::default(),
            room,
            has_pages: AtomicBool::new(false),
            retired: AtomicBool::new(false),
            pins: OnceLock::new(),
            argument_check: OnceLock::new(),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// The link that all agents share, created on first use; `session` joins it.
    pub fn shared_link(
        self: &Arc<Self>,
        session: Weak<dyn Agent>,
        tasks: &TaskTracker,
    ) -> Arc<Link> {
        let mut shared = self.shared.lock();
        let link = shared.get_or_insert_with(|| self.new_shared_link(tasks));
        // Still locked, so that no agent joins a link that is being closed as idle.
        link.join(session);
        Arc::clone(link)
    }

    /// The last lines that it printed for its operator.
    pub fn log_tail(&self) -> Vec<String> {
        self.connector.log_tail()
    }

    /// The link over which toolgate itself lists the server: the shared one, or one that
    /// [`Link::end_own`] closes.
    pub fn own_link(self: &Arc<Self>, tasks: &TaskTracker) -> Arc<Link> {
        if self.settings.instances == Instances::Shared {
            let mut shared = self.shared.lock();
            return Arc::clone(shared.get_or_insert_with(|| self.new_shared_link(tasks)));
        }
        let opening = Bytes::from_static(OPENING.as_bytes());
        // A server at a URL answers an unknown `server/discover` at once and then gets `initialize`.
        // A child may ignore it, so it gets `initialize` first.
        let era = if self.settings.backs_off { Era::Sessionful } else { Era::Sessionless };
        Link::new(Arc::clone(self), Parties::Toolgate, opening, era, tasks.clone())
    }

    /// The same, introduced as the agent that wants the list.
    pub fn own_link_as(self: &Arc<Self>, wanted: WantedListing, tasks: &TaskTracker) -> Arc<Link> {
        if self.settings.instances == Instances::Shared {
            return self.own_link(tasks);
        }
        let WantedListing { opening, era } = wanted;
        Link::new(Arc::clone(self), Parties::Toolgate, opening, era, tasks.clone())
    }

    fn new_shared_link(self: &Arc<Self>, tasks: &TaskTracker) -> Arc<Link> {
        let parties = Parties::Many(Mutex::default());
        let opening = Bytes::from_static(OPENING.as_bytes());
        // Only a sessionless server can tell the agents of one link apart.
        Link::new(Arc::clone(self), parties, opening, Era::Sessionless, tasks.clone())
    }

    /// Closes the shared link if no agent has used it for `idle`.
    pub fn close_idle(&self, tasks: &TaskTracker, now: Instant, idle: Duration) {
        let is_idle = self.shared.lock().take_if(|link| link.is_idle(now, idle));
        close(is_idle, tasks);
    }

    /// Closes the shared link.
    pub fn close_shared(&self, tasks: &TaskTracker) {
        let link = self.shared.lock().take();
        close(link, tasks);
    }

    /// Releases the shared link, because the server is replaced. The link ends with its last call.
    pub fn retire(&self) {
        self.retired.store(true, Ordering::Release);
        // INVARIANT: the link holds its server; only this breaks the cycle.
        drop(self.shared.lock().take());
    }

    /// A list of it has more than one page.
    pub fn note_pages(&self) {
        self.has_pages.store(true, Ordering::Relaxed);
    }

    /// Whether a list of it has had more than one page.
    pub(crate) fn has_pages(&self) -> bool {
        self.has_pages.load(Ordering::Relaxed)
    }

    /// Whether it was removed from the configuration, or replaced.
    pub fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    /// How long a call of `tool` may take.
    pub(crate) fn timeout(&self, tool: Option<&str>) -> Duration {
        tool.and_then(|tool| self.settings.tool_timeouts.get(tool))
            .copied()
            .unwrap_or(self.settings.timeout)
    }

    /// The risk class of `tool`: the configured one, or else the class of its newest definition (of
    /// its name, if it was never listed), raised by the configured class of a name with the same
    /// folded form.
    pub fn class(&self, tool: &str) -> Class {
        if let Some(class) = self.settings.tool_classes.get(tool) {
            return *class;
        }
        let folded = self.settings.tool_classes.iter().filter(|(name, _)| is_variant(tool, name));
        let own = self.listed_names.class(tool).unwrap_or_else(|| Class::by_name(tool));
        folded.map(|(_, class)| *class).fold(own, Class::raised)
    }

    /// Uses pins that outlive it, unless it has used its own before.
    pub fn set_pins(&self, pins: &Arc<ServerPins>) {
        if self.pins.set(Arc::clone(pins)).is_err() && !Arc::ptr_eq(self.pins(), pins) {
            tracing::error!(
                server = self.name(),
                "pins set after a list was received; kept the first"
            );
        }
    }

    /// Which definitions of its tools may be used.
    pub fn pins(&self) -> &Arc<ServerPins> {
        self.pins.get_or_init(|| Arc::new(ServerPins::new(self.name())))
    }

    /// Learns annotations from a page of tools. Returns the tools whose annotations break a rule.
    pub(crate) fn learn_annotations(&self, result: &str) -> HashSet<String> {
        self.learned.store(None);
        self.annotations.learn(result)
    }

    /// Everything was learned from this list.
    pub(crate) fn set_learned(&self, list: &Arc<ToolList>) {
        self.learned.store(Some(Arc::clone(list)));
    }

    /// Whether annotations and names were learned from this list, and from no other one since.
    pub(crate) fn has_learned(&self, list: &Arc<ToolList>) -> bool {
        self.learned.load().as_ref().is_some_and(|learned| Arc::ptr_eq(learned, list))
    }

    /// Sets who checks arguments; once.
    pub fn set_argument_check(&self, check: &Arc<dyn ArgumentCheck>) {
        self.argument_check.get_or_init(|| Arc::clone(check));
    }

    /// Checks the arguments of a call, if that is configured.
    pub(crate) async fn check_arguments(
        &self,
        call: impl FnOnce() -> ArgumentsToCheck,
    ) -> Result<(), InvalidArguments> {
        match (self.settings.validate, self.argument_check.get()) {
            (false, _) => Ok(()),
            (true, Some(check)) => check.check(call()).await,
            (true, None) => Err(InvalidArguments("they cannot be checked".to_owned())),
        }
    }

    /// Why a tool with this definition is quarantined.
    pub fn quarantine(&self, own: &str, facts: &Facts) -> Option<Reason> {
        self.pins().quarantine(self.settings.pin, own, facts)
    }

    /// Whether any tool of a list is quarantined.
    pub(crate) fn quarantines_any(&self, list: &ToolList) -> bool {
        self.pins().quarantines_any(self.settings.pin, list.tools())
    }

    /// Its quarantined tools, by the newest definition of each over any link.
    pub fn quarantined(&self) -> Quarantined {
        let newest = self.pins().newest();
        self.pins().quarantined(self.settings.pin, newest.iter())
    }

    /// The class of a definition, unless the operator has set one.
    pub(crate) fn class_of(&self, own: &str, facts: &Facts) -> Class {
        self.settings.tool_classes.get(own).copied().unwrap_or(facts.class)
    }

    /// Whether this is hidden from a grant: the server's own name of a tool or prompt, or a URI.
    pub fn is_hidden_from(&self, grant: &Grant, kind: Kind, own: &str, now: Timestamp) -> bool {
        grant.hides(kind, self.name(), own, || self.class(own), now)
    }

    /// Whether `holds` is true of any name that the server has listed; `None` if it has not listed
    /// yet, or lists more than `most`.
    pub fn any_listed(
        &self,
        kind: Kind,
        most: usize,
        holds: impl FnMut(&str) -> bool,
    ) -> Option<bool> {
        self.listed_names.any(kind, most, holds)
    }

    /// A slot for one more request, until it is dropped: a slow server must not accumulate requests
    /// without bound.
    pub(crate) fn room(&self) -> Result<OwnedSemaphorePermit, Failure> {
        Arc::clone(&self.room).try_acquire_owned().map_err(|_| {
            let most = self.settings.max_requests;
            Failure::unavailable(format!("{most} requests to it are in flight, which is the limit"))
        })
    }

    /// Whether the caller shall list it on behalf of toolgate: it was not tried yet, or, if
    /// `again`, an earlier attempt has ended without a list.
    pub fn claim_own_listing(&self, again: bool) -> bool {
        let claim = |from| {
            let (on, off) = (Ordering::AcqRel, Ordering::Acquire);
            self.own_listing.compare_exchange(from, RUNNING, on, off).is_ok()
        };
        claim(NOT_TRIED) || (again && !self.list_cache.is_listed() && claim(TRIED))
    }

    /// Notes that an agent has listed the tools while no process of that agent runs.
    pub(crate) fn want_listing(&self, opening: &Bytes, era: Era) {
        let opening = Bytes::clone(opening);
        self.wanted_listing.lock().listing = Some(WantedListing { opening, era });
    }

    /// The listing that an agent wants, if the caller shall do it now.
    pub fn claim_wanted_listing(&self, now: Instant) -> Option<WantedListing> {
        let mut wanted = self.wanted_listing.lock();
        let is_due = wanted.listing.is_some() && wanted.not_before.is_none_or(|at| at <= now);
        let (on, off) = (Ordering::AcqRel, Ordering::Acquire);
        let claimed = is_due && self.own_listing.compare_exchange(TRIED, RUNNING, on, off).is_ok();
        if claimed { wanted.listing.take() } else { None }
    }

    /// The listing that was claimed has ended. The next one that an agent wants waits for a time that
    /// grows with its duration, so that a slow server takes a bounded share of time.
    pub fn end_own_listing(&self, began: Instant, now: Instant) {
        let rest = now.saturating_duration_since(began) * LISTING_REST;
        self.wanted_listing.lock().not_before = Some(now + rest.max(LISTING_SPACING));
        self.own_listing.store(TRIED, Ordering::Release);
    }
}

/// States of the listing on behalf of toolgate.
const NOT_TRIED: u8 = 0;
const RUNNING: u8 = 1;
const TRIED: u8 = 2;

/// The least time between two processes of toolgate's own that list a server because agents do.
const LISTING_SPACING: Duration = Duration::from_secs(2);
/// The pause after such a listing, as a multiple of its duration.
const LISTING_REST: u32 = 3;
/// The `initialize` of a shared link: toolgate can answer no requests for its agents.
const OPENING: &str = concat!(
    r#"{"protocolVersion":"2025-11-25","capabilities":{},"#,
    r#""clientInfo":{"name":"toolgate","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#""}}"#
);

fn close(link: Option<Arc<Link>>, tasks: &TaskTracker) {
    if let Some(link) = link {
        tasks.spawn(async move { link.close().await });
    }
}
