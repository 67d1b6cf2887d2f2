//! Settings that may differ between kinds: built in, then `sessions`, then `sessions.kinds`.

use std::collections::BTreeMap;
use std::time::Duration;

use toolgate_session::{Idle, KindSettings};

use super::raw::{RawKind, RawSessions};
use crate::reader::{At, Reader};
use crate::settings::tools::{TIMEOUTS, lower_session_tools};
use crate::value::{Keyword, Period, Switch, Whole, within};

impl Keyword for Idle {
    const WORDS: &'static [(&'static str, Self)] =
        &[("hide", Self::Hide), ("shutdown", Self::Shutdown)];
}

impl RawKind {
    /// These settings, laid over `base`.
    fn lower(self, base: KindSettings, reader: &mut Reader<'_>) -> KindSettings {
        let (day, hour) = ((Whole(0), Whole(86_400)), (Whole(0), Whole(3600)));
        let month = (Whole(0), Whole(30 * 86_400));
        let idle = base.idle_timeout.unwrap_or_default();
        let idle = seconds(self.idle_timeout_secs, month, idle, reader);
        let queue = Whole(u64::try_from(base.queue).unwrap_or(u64::MAX));
        let queue = within(self.queue, (Whole(1), Whole(100_000)), queue, reader).0;
        KindSettings {
            reconnect_wait: seconds(self.reconnect_wait_secs, hour, base.reconnect_wait, reader),
            idle_timeout: (!idle.is_zero()).then_some(idle),
            idle: self.idle.map_or(base.idle, |at| at.value.0),
            queue: usize::try_from(queue).unwrap_or(usize::MAX),
            late_answer: seconds(self.late_answer_secs, day, base.late_answer, reader),
            identifier_keys: switch(self.identifier_keys, base.identifier_keys),
            timeout: within(self.timeout, TIMEOUTS, Period(base.timeout), reader).0,
            no_deadline: switch(self.no_deadline, base.no_deadline),
            tools: lower_session_tools(self.tools, base.tools, reader),
        }
    }
}

impl RawSessions {
    /// The settings of all kinds, and the complete settings of kinds with their own.
    pub(super) fn lower_kinds(
        &mut self,
        reader: &mut Reader<'_>,
    ) -> (KindSettings, BTreeMap<String, KindSettings>) {
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
        let common = common.lower(KindSettings::default(), reader);
        let entries = self.kinds.take().map(|at| at.value.entries).unwrap_or_default();
        let mut kinds = BTreeMap::new();
        for (name, raw) in entries {
            let is_server = name.value == KindSettings::SERVER;
            let base = if is_server { KindSettings::server(&common) } else { common.clone() };
            kinds.insert(name.value, raw.lower(base, reader));
        }
        let server = kinds.entry(KindSettings::SERVER.to_owned());
        server.or_insert_with(|| KindSettings::server(&common));
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
