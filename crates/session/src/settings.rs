//! What the operator has set, complete: the machine knows no defaults but those written here.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::entry::ShowcaseLimits;
use crate::glob::Glob;
use crate::tool::Tool;

/// Everything that can be set.
#[derive(Debug, Clone)]
pub struct SessionSettings {
    /// What register answers as `server_version`.
    pub server_version: String,
    /// What register answers as `heartbeat_interval_ms`; informational.
    pub heartbeat_interval: Duration,
    /// What register answers as `idle_timeout_secs`, if not what its kind really has.
    pub reported_idle_secs: Option<u64>,
    /// How often a WebSocket ping is sent; `None` is never.
    pub ping_interval: Option<Duration>,
    /// A socket without any inbound frame for so long is dead.
    pub dead_after: Duration,
    /// A socket that does not register within this time is closed.
    pub register_within: Duration,
    /// How long a session without socket is kept.
    pub grace: Duration,
    /// The `grace_ms` of `session.shutdown`.
    pub shutdown_grace: Duration,
    /// Whether an answer on an unregistered socket re-binds it to its session.
    pub rebind: bool,
    /// Whether tool names are published in transliteration.
    pub ascii_names: bool,
    /// How different schemas of one name are shown.
    pub conflict: SchemaConflict,
    /// Whether the showcase is kept at all.
    pub showcase: bool,
    /// How long the showcase keeps tools after their last register.
    pub showcase_life: Duration,
    /// How much the showcase keeps.
    pub room: ShowcaseLimits,
    /// How long changes of lists are gathered before anybody is told.
    pub coalesce: Duration,
    /// The most tools that one session may publish.
    pub max_tools: usize,
    /// How many sessions of one token are kept after they have left, and how many bytes their
    /// different lists of tools may have, before a new one is refused.
    pub away: ShowcaseLimits,
    /// Names that session tools may not take.
    pub built_ins: Vec<String>,
    /// Names of the servers in force: tools called `<server>__…` get another name. Kept up to date
    /// by [`crate::SessionMachine::set_servers`].
    pub servers: Vec<String>,
    /// Settings of kinds that have none of their own.
    pub common: KindSettings,
    /// Settings of single kinds.
    pub kinds: BTreeMap<String, KindSettings>,
    /// Deadlines of single sessions; the first that matches counts.
    pub session_timeouts: Vec<(Glob, Duration)>,
}

/// Settings that may differ from kind to kind.
#[derive(Debug, Clone)]
pub struct KindSettings {
    /// How long a new call waits for a disconnected session.
    pub reconnect_wait: Duration,
    /// A session without calls for so long is idle; `None` is never.
    pub idle_timeout: Option<Duration>,
    /// What happens to an idle session.
    pub idle: Idle,
    /// How many calls may wait for one session.
    pub queue: usize,
    /// How long a late answer is awaited before the next call is sent.
    pub late_answer: Duration,
    /// Whether arguments with keys that are no 1C identifiers are refused.
    pub identifier_keys: bool,
    /// Deadline of calls.
    pub timeout: Duration,
    /// Whether agents may ask for no deadline.
    pub no_deadline: bool,
    /// The operator's word about single tools.
    pub tools: BTreeMap<String, ToolSettings>,
}

/// The operator's word about one tool.
#[derive(Debug, Clone, Copy, Default)]
pub struct ToolSettings {
    /// Its deadline.
    pub timeout: Option<Duration>,
    /// How many calls at once.
    pub concurrency: Option<u32>,
}

/// What happens to an idle session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idle {
    /// Its tools are hidden until somebody calls it by its id or it comes back.
    Hide,
    /// The program is asked to end.
    Shutdown,
}

/// How different schemas of one tool name are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaConflict {
    /// One object schema, the union of all.
    Merged,
    /// A branch for each, under `oneOf`.
    OneOf,
}

impl SessionSettings {
    /// The settings for sessions of a kind.
    pub fn of_kind(&self, kind: &str) -> &KindSettings {
        self.kinds.get(kind).unwrap_or(&self.common)
    }

    /// How many calls at once: the operator's word, else the tool's own.
    pub(crate) fn concurrency(&self, kind: &str, tool: &Tool) -> usize {
        let operator = self.of_kind(kind).tools.get(&*tool.name).and_then(|tool| tool.concurrency);
        operator.or(tool.concurrency).unwrap_or(1).max(1) as usize
    }

    /// How long a call may take: the operator's word about the tool, about the session, what the
    /// tool says itself, what its kind has.
    pub(crate) fn deadline(&self, uid: &str, kind: &str, tool: &Tool) -> Duration {
        let kind = self.of_kind(kind);
        let operator = kind.tools.get(&*tool.name).and_then(|tool| tool.timeout);
        let session = || self.session_timeouts.iter().find(|(glob, _)| glob.matches(uid));
        operator
            .or_else(|| session().map(|(_, timeout)| *timeout))
            .or(tool.timeout)
            .unwrap_or(kind.timeout)
    }
}

impl Default for SessionSettings {
    fn default() -> Self {
        let common = KindSettings::default();
        let server = KindSettings {
            reconnect_wait: Duration::from_secs(10),
            timeout: Duration::from_hours(1),
            no_deadline: true,
            ..common.clone()
        };
        Self {
            server_version: concat!("toolgate/", env!("CARGO_PKG_VERSION")).to_owned(),
            heartbeat_interval: Duration::from_secs(15),
            reported_idle_secs: None,
            ping_interval: Some(Duration::from_secs(20)),
            dead_after: Duration::from_secs(30),
            register_within: Duration::from_secs(30),
            grace: Duration::from_secs(30),
            shutdown_grace: Duration::from_secs(5),
            rebind: true,
            ascii_names: false,
            conflict: SchemaConflict::Merged,
            showcase: true,
            showcase_life: Duration::from_hours(5 * 24),
            room: ShowcaseLimits::default(),
            coalesce: Duration::from_millis(200),
            max_tools: 2000,
            away: ShowcaseLimits { entries: 4_096, bytes: 64 * 1024 * 1024 },
            built_ins: ["session_list", "tools_cache_reset", "my_permissions"]
                .map(str::to_owned)
                .to_vec(),
            servers: Vec::new(),
            common,
            kinds: BTreeMap::from([("server".to_owned(), server)]),
            session_timeouts: Vec::new(),
        }
    }
}

impl Default for KindSettings {
    fn default() -> Self {
        Self {
            reconnect_wait: Duration::ZERO,
            idle_timeout: None,
            idle: Idle::Hide,
            queue: 100,
            late_answer: Duration::from_secs(30),
            identifier_keys: true,
            timeout: Duration::from_mins(1),
            no_deadline: false,
            tools: BTreeMap::new(),
        }
    }
}
