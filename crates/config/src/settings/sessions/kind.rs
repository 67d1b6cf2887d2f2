//! Settings that may differ between kinds: built in, then `sessions`, then `sessions.kinds`.

use std::time::Duration;

use super::raw::{RawKind, RawSessions};
use super::{TIMEOUTS, ToolConfig, lower_tools};
use crate::reader::{At, Reader};
use crate::value::{Period, Switch, Whole, within, words};

/// Settings of sessions of one kind, complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindSettings {
    /// How long a new call waits for a disconnected session.
    pub reconnect_wait: Duration,
    /// A session without calls for this time is idle; `None` means never.
    pub idle_timeout: Option<Duration>,
    /// What happens to an idle session.
    pub idle: Idle,
    /// Maximum number of calls that wait for one session.
    pub queue: u64,
    /// How long a late answer is awaited before the next call is sent.
    pub late_answer: Duration,
    /// Whether arguments with keys that are not 1C identifiers are rejected.
    pub identifier_keys: bool,
    /// Deadline of calls.
    pub timeout: Duration,
    /// Whether agents may disable the deadline.
    pub no_deadline: bool,
    /// The operator's settings for single tools: the kind's own first, then those of all kinds.
    pub tools: Vec<ToolConfig>,
}

words! {
    /// What happens to an idle session.
    pub enum Idle {
        /// Its tools are hidden.
        Hide = "hide",
        /// The program is asked to end.
        Shutdown = "shutdown",
    }
}

/// The kind of 1C servers; it has its own defaults.
const SERVER: &str = "server";

impl KindSettings {
    fn built_in() -> Self {
        Self {
            reconnect_wait: Duration::ZERO,
            idle_timeout: None,
            idle: Idle::Hide,
            queue: 100,
            late_answer: Duration::from_secs(30),
            identifier_keys: true,
            timeout: Duration::from_mins(1),
            no_deadline: false,
            tools: Vec::new(),
        }
    }

    /// The defaults of kind `server`.
    fn server(common: &Self) -> Self {
        Self {
            reconnect_wait: Duration::from_secs(10),
            timeout: Duration::from_hours(1),
            no_deadline: true,
            ..common.clone()
        }
    }

    /// These settings, overridden by `raw`.
    fn with(self, raw: RawKind, reader: &mut Reader<'_>) -> Self {
        let (day, hour) = ((Whole(0), Whole(86_400)), (Whole(0), Whole(3600)));
        let month = (Whole(0), Whole(30 * 86_400));
        let idle = self.idle_timeout.unwrap_or_default();
        let idle = seconds(raw.idle_timeout_secs, month, idle, reader);
        let mut tools = lower_tools(raw.tools, reader);
        tools.extend(self.tools);
        Self {
            reconnect_wait: seconds(raw.reconnect_wait_secs, hour, self.reconnect_wait, reader),
            idle_timeout: (!idle.is_zero()).then_some(idle),
            idle: raw.idle.map_or(self.idle, |at| at.value),
            queue: within(raw.queue, (Whole(1), Whole(100_000)), Whole(self.queue), reader).0,
            late_answer: seconds(raw.late_answer_secs, day, self.late_answer, reader),
            identifier_keys: switch(raw.identifier_keys, self.identifier_keys),
            timeout: within(raw.timeout, TIMEOUTS, Period(self.timeout), reader).0,
            no_deadline: switch(raw.no_deadline, self.no_deadline),
            tools,
        }
    }
}

impl RawSessions {
    /// The settings of all kinds, and the complete settings of kinds with their own.
    pub(super) fn lower_kinds(
        &mut self,
        reader: &mut Reader<'_>,
    ) -> (KindSettings, Vec<(String, KindSettings)>) {
        let common = RawKind {
            reconnect_wait_secs: self.reconnect_wait_secs.take(),
            idle_timeout_secs: self.idle_timeout_secs.take(),
            idle: self.idle.take(),
            queue: self.queue.take(),
            late_answer_secs: self.late_answer_secs.take(),
            identifier_keys: self.identifier_keys.take(),
            timeout: self.timeout.take(),
            no_deadline: self.no_deadline.take(),
            tools: self.tools.take(),
            unreadable: Vec::new(),
        };
        let common = KindSettings::built_in().with(common, reader);
        let entries = self.kinds.take().map(|at| at.value.entries).unwrap_or_default();
        let mut kinds: Vec<_> = entries
            .into_iter()
            .map(|(name, raw)| {
                let server = name.value == SERVER;
                let base = if server { KindSettings::server(&common) } else { common.clone() };
                (name.value, base.with(raw, reader))
            })
            .collect();
        if kinds.iter().all(|(name, _)| name != SERVER) {
            kinds.push((SERVER.to_owned(), KindSettings::server(&common)));
        }
        (common, kinds)
    }
}

fn seconds(
    value: Option<At<Whole>>,
    bounds: (Whole, Whole),
    default: Duration,
    reader: &mut Reader<'_>,
) -> Duration {
    Duration::from_secs(within(value, bounds, Whole(default.as_secs()), reader).0)
}

fn switch(value: Option<At<Switch>>, default: bool) -> bool {
    value.map_or(default, |at| at.value.0)
}
