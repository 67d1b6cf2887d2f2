//! Servers: what the gateway knows of each upstream MCP server.
//!
//! A server is a name, a connector that makes channels to it, and how long it may take. A child
//! that fails to start or dies young is started again on use, but not before its back-off is over.
//!
//! Invariant: nothing here talks to a server; that is the link's.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use toolgate_admission::access::Grant;
use toolgate_admission::list_kind::Kind;
use toolgate_json::is_variant;
use toolgate_policy::Class;

use super::agent::Agent;
use super::{Link, Parties};
use crate::annotations::Annotations;
use crate::backoff::Backoff;
use crate::channel::Connector;
use crate::era::{Era, Eras};
use crate::failure::Failure;
use crate::list_cache::Offers;
use crate::listed::Heard;
use crate::metrics::ServerMetrics;
use crate::names::Naming;

/// Whether agents share one channel to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instances {
    /// Each agent session has its own child or HTTP session.
    PerAgent,
    /// All agent sessions speak through one.
    Shared,
}

/// What the configuration says of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSettings {
    /// Its name, the `<server>` of `/mcp/<server>`.
    pub name: String,
    /// Whether agents share one channel.
    pub instances: Instances,
    /// How long a request may take.
    pub timeout: Duration,
    /// How long the start and the handshake may take.
    pub start_timeout: Duration,
    /// How long a handshake made on behalf of an agent that is already connected may take.
    pub reconnect_timeout: Duration,
    /// Tools that may take another time than `timeout`.
    pub tool_timeouts: HashMap<String, Duration>,
    /// Tools whose risk class the operator has said.
    pub tool_classes: HashMap<String, Class>,
    /// Whether its tools are shown under their bare names on `/mcp`.
    pub bare_names: bool,
    /// How many requests may be under way at once, of all agents together.
    pub max_requests: usize,
    /// Whether failed starts are spaced out (children; an HTTP connection is cheap to try).
    pub backs_off: bool,
}

/// One upstream MCP server.
pub struct Server {
    /// What the configuration says of it.
    pub settings: ServerSettings,
    pub(crate) connector: Arc<dyn Connector>,
    pub(crate) metrics: ServerMetrics,
    /// How what it has is named where all servers are shown.
    pub naming: Naming,
    /// What is kept of its lists.
    pub offers: Offers,
    /// Which protocols it speaks, as far as it was heard.
    pub(crate) eras: Eras,
    /// Which arguments of its tools are repeated in headers.
    pub(crate) annotations: Annotations,
    /// What it was heard to list.
    pub(crate) heard: Heard,
    pub(crate) shared: Mutex<Option<Arc<Link>>>,
    /// Links of each grant whose process was started to hear what there is, not for a call.
    surveyed: Mutex<HashMap<Arc<str>, Vec<Weak<Link>>>>,
    backoff: Mutex<Backoff>,
    room: Arc<Semaphore>,
    /// It was removed from the configuration, or another takes its place.
    retired: AtomicBool,
}

// === impl Server ===

impl Server {
    /// A server that is reached through `connector`.
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
            offers: Offers::new(),
            eras: Eras::default(),
            annotations: Annotations::default(),
            heard: Heard::default(),
            shared: Mutex::new(None),
            surveyed: Mutex::default(),
            backoff: Mutex::new(Backoff::default()),
            room,
            retired: AtomicBool::new(false),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// The link that all agents share, made when the first one comes; `session` joins it.
    pub fn shared_link(
        self: &Arc<Self>,
        session: Weak<dyn Agent>,
        tasks: &TaskTracker,
    ) -> Arc<Link> {
        let mut shared = self.shared.lock();
        let link = shared.get_or_insert_with(|| {
            let parties = Parties::Many(Mutex::default());
            let opening = Bytes::from_static(OPENING.as_bytes());
            // Only in the newer protocol can such a server tell apart whom it asks.
            Link::new(Arc::clone(self), parties, opening, Era::Modern, tasks.clone())
        });
        // Still locked, so that nobody joins what is being closed as deserted.
        link.join(session);
        Arc::clone(link)
    }

    /// Closes the shared link if no agent has used it for `idle`.
    pub fn close_deserted(&self, tasks: &TaskTracker, now: Instant, idle: Duration) {
        let deserted = self.shared.lock().take_if(|link| link.deserted(now, idle));
        close(deserted, tasks);
    }

    /// Closes the shared link.
    pub fn close_shared(&self, tasks: &TaskTracker) {
        let link = self.shared.lock().take();
        close(link, tasks);
    }

    /// Lets go of the shared link, because another server takes this one's place. It ends with the
    /// last call that runs on it.
    pub fn retire(&self) {
        self.retired.store(true, Ordering::Release);
        // INVARIANT: the link holds its server, so only this takes the two apart.
        drop(self.shared.lock().take());
    }

    /// Whether it was removed from the configuration, or another has taken its place.
    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    /// How long a call of `tool` may take.
    pub(crate) fn timeout(&self, tool: Option<&str>) -> Duration {
        tool.and_then(|tool| self.settings.tool_timeouts.get(tool))
            .copied()
            .unwrap_or(self.settings.timeout)
    }

    /// The risk class of `tool`: the operator's word, or else what its name says. The server's own
    /// word raises that, and so does what the operator said of a tool that the name folds to.
    pub fn class(&self, tool: &str) -> Class {
        if let Some(said) = self.settings.tool_classes.get(tool) {
            return *said;
        }
        let folded = self.settings.tool_classes.iter().filter(|(name, _)| is_variant(tool, name));
        let raises = folded.map(|(_, class)| *class).chain(self.heard.class(tool));
        raises.fold(Class::by_name(tool), Class::raised)
    }

    /// Whether a grant must not see this: the server's own name of a tool or prompt, or a URI.
    pub fn is_hidden_from(&self, grant: &Grant, kind: Kind, own: &str, now: Timestamp) -> bool {
        grant.hides(kind, self.name(), own, || self.class(own), now)
    }

    /// Whether something holds of any name that the server has listed; `None` if it has not listed
    /// yet, or lists more than `most`.
    pub fn any_listed(
        &self,
        kind: Kind,
        most: usize,
        holds: impl FnMut(&str) -> bool,
    ) -> Option<bool> {
        self.heard.any(kind, most, holds)
    }

    /// Room for one more request, until it is dropped: a server that answers slowly must not make
    /// the gateway hold ever more.
    pub(crate) fn room(&self) -> Result<OwnedSemaphorePermit, Failure> {
        Arc::clone(&self.room).try_acquire_owned().map_err(|_| {
            let most = self.settings.max_requests;
            Failure::unavailable(format!("{most} requests to it are under way, which is the limit"))
        })
    }

    /// Whether a process may be started for this link of a grant before anybody has called.
    pub(crate) fn may_survey(&self, grant: &Arc<str>, link: &Arc<Link>) -> bool {
        let mut surveyed = self.surveyed.lock();
        let lives = |link: &Weak<Link>| {
            link.upgrade().is_some_and(|link| link.is_up() || link.is_surveying())
        };
        surveyed.retain(|_, links| {
            links.retain(lives);
            !links.is_empty()
        });
        let links = surveyed.entry(Arc::clone(grant)).or_default();
        let is_it = |known: &Weak<Link>| std::ptr::eq(known.as_ptr(), Arc::as_ptr(link));
        if links.iter().any(is_it) {
            return true;
        }
        let has_room = links.len() < SURVEYED;
        if has_room {
            links.push(Arc::downgrade(link));
        }
        has_room
    }

    /// How long a start has to wait, if it has to.
    pub(crate) fn must_wait(&self, now: Instant) -> Option<Duration> {
        if !self.settings.backs_off {
            return None;
        }
        self.backoff.lock().wait(now)
    }

    pub(crate) fn start_failed(&self, now: Instant) {
        self.metrics.failed_starts.inc();
        self.backoff.lock().failed(now);
    }

    pub(crate) fn start_worked(&self) {
        self.metrics.starts.inc();
        *self.backoff.lock() = Backoff::default();
    }
}

/// How many processes of one server run for one grant only so that its lists are known.
const SURVEYED: usize = 4;

/// How toolgate introduces itself where it speaks for many agents: it can answer nothing for them.
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
