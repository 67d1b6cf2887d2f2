//! What happened in the last hour: calls per minute by decision, latency, the most used tools, the
//! most frequent denials. Made from the newest rows of the audit, and kept up to date.
//!
//! Invariant: bounded; at most [`MAX_ROWS`] rows are read at once, however large the audit is.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;

use crate::items::Row;

/// How many minutes are shown.
pub(crate) const MINUTES: i64 = 60;
/// How many rows are read at once; older ones are left out.
pub(crate) const MAX_ROWS: u64 = 8_000;
/// How many names a minute may have.
const MAX_NAMES: usize = 512;
/// How many latencies of a minute are kept.
const MAX_LATENCIES: usize = 2_048;
/// How long a list of names is.
const TOP: usize = 5;

/// The last hour.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    /// The last row that was read.
    pub(crate) seen: u64,
    minutes: BTreeMap<i64, Minute>,
    /// Rows were left out.
    pub(crate) is_cut: bool,
}

/// One minute.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Minute {
    pub(crate) allowed: u64,
    pub(crate) denied: u64,
    pub(crate) held: u64,
    latencies: Vec<u64>,
    tools: HashMap<String, u64>,
    denials: HashMap<String, u64>,
}

/// A name and how often it occurred.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frequent {
    pub(crate) name: String,
    pub(crate) count: u64,
}

impl Activity {
    /// An hour of which only the rows after `seen` are read.
    pub(crate) fn after(seen: u64) -> Self {
        Self { seen, is_cut: seen > 0, minutes: BTreeMap::new() }
    }

    /// Adds a row.
    pub(crate) fn add(&mut self, row: &Row) {
        self.seen = self.seen.max(row.seq);
        let Ok(time) = row.time.parse::<Timestamp>() else { return };
        let minute = self.minutes.entry(time.as_second().div_euclid(60)).or_default();
        let count = row.count.unwrap_or(1);
        match row.kind.as_str() {
            "intent" => {
                minute.allowed += count;
                minute.name(row, count, false);
            }
            "denied" => {
                minute.denied += count;
                minute.name(row, count, true);
            }
            "held" => minute.held += count,
            "outcome" => {
                let total = row.total_ms.filter(|_| minute.latencies.len() < MAX_LATENCIES);
                minute.latencies.extend(total);
            }
            _ => {}
        }
    }

    /// Forgets what is older than an hour.
    pub(crate) fn forget(&mut self, now: Timestamp) {
        let first = now.as_second().div_euclid(60) - MINUTES + 1;
        self.minutes.retain(|minute, _| *minute >= first);
    }

    /// The minutes of the last hour, the oldest first.
    pub(crate) fn last_hour(&self, now: Timestamp) -> Vec<Minute> {
        let last = now.as_second().div_euclid(60);
        let of = |minute: i64| self.minutes.get(&minute).cloned().unwrap_or_default();
        (last - MINUTES + 1..=last).map(of).collect()
    }

    /// The most used tools.
    pub(crate) fn top_tools(&self) -> Vec<Frequent> {
        top(self.minutes.values().map(|minute| &minute.tools))
    }

    /// The most frequent denials.
    pub(crate) fn top_denials(&self) -> Vec<Frequent> {
        top(self.minutes.values().map(|minute| &minute.denials))
    }
}

impl Minute {
    #[cfg(test)]
    pub(crate) fn of(allowed: u64, denied: u64) -> Self {
        Self { allowed, denied, ..Self::default() }
    }

    fn name(&mut self, row: &Row, count: u64, is_denied: bool) {
        let tool = row.tool.as_deref().or(row.method.as_deref()).unwrap_or("?");
        let mut name = match row.server.as_deref() {
            Some(server) => format!("{server}/{tool}"),
            None => tool.to_owned(),
        };
        if is_denied {
            name = format!(
                "{name} · {}",
                row.rule.as_deref().or(row.error_code.as_deref()).unwrap_or("?")
            );
        }
        let names = if is_denied { &mut self.denials } else { &mut self.tools };
        if names.len() < MAX_NAMES || names.contains_key(&name) {
            *names.entry(name).or_default() += count;
        }
    }

    /// All calls.
    pub(crate) fn calls(&self) -> u64 {
        self.allowed + self.denied + self.held
    }

    /// The latency below which this share of the calls stays, in milliseconds.
    pub(crate) fn percentile(&self, share: u64) -> Option<u64> {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        let last = u64::try_from(sorted.len()).ok()?.checked_sub(1)?;
        let place = usize::try_from(last * share / 100).ok()?;
        sorted.get(place).copied()
    }
}

fn top<'m>(minutes: impl Iterator<Item = &'m HashMap<String, u64>>) -> Vec<Frequent> {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, count) in minutes.flatten() {
        *sums.entry(name).or_default() += count;
    }
    let mut all: Vec<Frequent> =
        sums.into_iter().map(|(name, count)| Frequent { name: name.to_owned(), count }).collect();
    all.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
    all.truncate(TOP);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(seq: u64, minute: i64, kind: &str, tool: &str) -> Row {
        let time = Timestamp::from_second(minute * 60).unwrap().to_string();
        let (tool, server) = (Some(tool.to_owned()), Some("files".to_owned()));
        Row { seq, time, kind: kind.to_owned(), tool, server, ..Row::default() }
    }

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_second(minute * 60 + 30).unwrap()
    }

    #[test]
    fn calls_are_counted_by_minute_and_decision() {
        let mut all = Activity::default();
        all.add(&row(1, 100, "intent", "read"));
        all.add(&row(2, 100, "intent", "read"));
        all.add(&Row { count: Some(7), ..row(3, 101, "denied", "drop") });
        all.add(&row(4, 101, "admin", ""));
        let hour = all.last_hour(at(101));
        assert_eq!(hour.len(), 60);
        let counts: Vec<_> = hour.iter().rev().take(3).map(|m| (m.allowed, m.denied)).collect();
        assert_eq!(counts, [(0, 7), (2, 0), (0, 0)]);
        assert_eq!(all.seen, 4);
        assert_eq!(all.top_tools(), [Frequent { name: "files/read".to_owned(), count: 2 }]);
        assert_eq!(all.top_denials(), [Frequent { name: "files/drop · ?".to_owned(), count: 7 }]);
    }

    #[test]
    fn an_hour_is_kept() {
        let mut all = Activity::default();
        all.add(&row(1, 100, "intent", "read"));
        all.forget(at(159));
        assert_eq!(all.last_hour(at(159)).first().unwrap().allowed, 1);
        all.forget(at(160));
        assert!(all.top_tools().is_empty());
    }

    #[test]
    fn percentiles_are_of_the_calls_that_ended() {
        let mut minute = Minute { latencies: (1..=100).rev().collect(), ..Minute::default() };
        assert_eq!((minute.percentile(50), minute.percentile(99)), (Some(50), Some(99)));
        minute.latencies.clear();
        assert_eq!(minute.percentile(50), None);
    }
}
