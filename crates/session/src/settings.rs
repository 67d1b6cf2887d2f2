//! The settings of the operator, complete: the machine has no defaults but those here.

use std::collections::BTreeMap;
use std::time::Duration;

use toolgate_policy::{Class, Glob};

use crate::entry::ShowcaseLimits;
use crate::tool::Tool;

/// All settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSettings {
    /// `server_version` in the result of a register.
    pub server_version: String,
    /// `heartbeat_interval_ms` in the result of a register; informational.
    pub heartbeat_interval: Duration,
    /// `idle_timeout_secs` in the result of a register, if it differs from the kind's setting.
    pub reported_idle_secs: Option<u64>,
    /// The interval of WebSocket pings; `None` disables them.
    pub ping_interval: Option<Duration>,
    /// A socket without any received frame for this long is closed.
    pub dead_after: Duration,
    /// A socket that does not register within this time is closed.
    pub register_within: Duration,
    /// How long a disconnected session is kept.
    pub grace: Duration,
    /// The `grace_ms` of `session.shutdown`.
    pub shutdown_grace: Duration,
    /// Whether an answer on an unregistered socket binds the socket to its session.
    pub rebind: bool,
    /// Whether tool names are transliterated.
    pub ascii_names: bool,
    /// How different schemas of one name are composed.
    pub conflict: SchemaConflict,
    /// Which selectors the schemas publish.
    pub selectors: Selectors,
    /// Whether the showcase is kept at all.
    pub showcase: bool,
    /// How long the showcase keeps tools after their last register.
    pub showcase_life: Duration,
    /// The limits of the showcase.
    pub room: ShowcaseLimits,
    /// How long list changes are batched before views are notified.
    pub coalesce: Duration,
    /// The maximum number of tools of one session.
    pub max_tools: usize,
    /// How many sessions of one token are kept after they have left, and how many bytes their
    /// different lists of tools may have, before a new one is refused.
    pub away: ShowcaseLimits,
    /// How many bytes the different lists of tools of one token's sessions may have together.
    pub lists: usize,
    /// Names that session tools may not take.
    pub built_ins: Vec<String>,
    /// Names of the active servers: tools called `<server>__…` are renamed. Updated by
    /// [`crate::SessionMachine::set_servers`].
    pub servers: Vec<String>,
    /// Settings of kinds without their own.
    pub common: KindSettings,
    /// Settings of single kinds.
    pub kinds: BTreeMap<String, KindSettings>,
    /// Deadlines of single sessions; the first match applies.
    pub session_timeouts: Vec<(Glob, Duration)>,
}

/// Settings that may differ from kind to kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindSettings {
    /// How long a new call waits for a disconnected session.
    pub reconnect_wait: Duration,
    /// A session without calls for this long is idle; `None` disables this.
    pub idle_timeout: Option<Duration>,
    /// What happens to an idle session.
    pub idle: Idle,
    /// The maximum number of queued calls per session.
    pub queue: usize,
    /// How long a late answer is awaited before the next call is sent.
    pub late_answer: Duration,
    /// Whether arguments with keys that are not 1C identifiers are rejected.
    pub identifier_keys: bool,
    /// Deadline of calls.
    pub timeout: Duration,
    /// Whether agents may request no deadline.
    pub no_deadline: bool,
    /// Settings of single tools.
    pub tools: BTreeMap<String, ToolSettings>,
}

/// Settings of one tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ToolSettings {
    /// Its deadline.
    pub timeout: Option<Duration>,
    /// Its number of concurrent calls.
    pub concurrency: Option<u32>,
    /// Its risk class, if the operator set one. The machine does not use it.
    pub class: Option<Class>,
}

/// What happens to an idle session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idle {
    /// Its tools are hidden until it is called by its id or reconnects.
    Hide,
    /// The program is asked to exit.
    Shutdown,
}

/// How different schemas of one tool name are composed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaConflict {
    /// One object schema, the union of all.
    Merged,
    /// One branch per schema, under `oneOf`.
    OneOf,
}

/// Which selectors the schema of a tool publishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selectors {
    /// `session_id`, required as soon as two sessions serve the tool.
    SessionId,
    /// `session_id`, `infobase_name` and `kind`, none of them required.
    Any,
}

impl SessionSettings {
    /// The settings for sessions of a kind.
    pub fn of_kind(&self, kind: &str) -> &KindSettings {
        self.kinds.get(kind).unwrap_or(&self.common)
    }

    /// The number of concurrent calls: the setting, else the tool's own value.
    pub(crate) fn concurrency(&self, kind: &str, tool: &Tool) -> usize {
        let operator = self.of_kind(kind).tools.get(&*tool.name).and_then(|tool| tool.concurrency);
        operator.or(tool.concurrency).unwrap_or(1).max(1) as usize
    }

    /// The time limit of a call. Precedence: setting of the tool, setting of the session, the
    /// tool's own value, setting of its kind.
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
        let server = KindSettings::server(&common);
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
            selectors: Selectors::SessionId,
            showcase: true,
            showcase_life: Duration::from_hours(5 * 24),
            room: ShowcaseLimits::default(),
            coalesce: Duration::from_millis(200),
            max_tools: 2000,
            away: ShowcaseLimits { entries: 4_096, bytes: 32 * 1024 * 1024 },
            lists: 64 * 1024 * 1024,
            built_ins: ["session_list", "tools_cache_reset", "my_permissions"]
                .map(str::to_owned)
                .to_vec(),
            servers: Vec::new(),
            common,
            kinds: BTreeMap::from([(KindSettings::SERVER.to_owned(), server)]),
            session_timeouts: Vec::new(),
        }
    }
}

impl KindSettings {
    /// The kind of server channels of 1C, which has defaults of its own.
    pub const SERVER: &'static str = "server";

    /// The defaults of the kind [`KindSettings::SERVER`]; the rest is as in `common`.
    #[must_use]
    pub fn server(common: &Self) -> Self {
        Self {
            reconnect_wait: Duration::from_secs(10),
            timeout: Duration::from_hours(1),
            no_deadline: true,
            ..common.clone()
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
