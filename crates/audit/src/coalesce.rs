//! A storm of denials as few rows.
//!
//! Of one (grant, tool, rule) the first ten denials a minute are rows; the rest are counted and
//! become one row when the minute is over. Minutes are those of the Unix clock.
//!
//! Invariant: memory is bounded. Tool names come from agents, so of one grant at most a thousand
//! pairs of tool and rule are told apart in a minute; beyond that the tool is left out.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use jiff::Timestamp;

use crate::Draft;

/// Denials of one kind that are rows, each minute.
const ROWS: u64 = 10;
/// Kinds of one grant that are told apart, each minute.
const KINDS: u64 = 1_000;

/// Counts the denials of the current minute.
#[derive(Debug, Default)]
pub struct Coalescer {
    minute: i64,
    kinds: HashMap<Kind, Tally>,
    of_grant: HashMap<Option<Arc<str>>, u64>,
    seen: HashSet<Kind>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Kind {
    grant: Option<Arc<str>>,
    tool: Option<Arc<str>>,
    rule: Option<Arc<str>>,
}

#[derive(Debug)]
struct Tally {
    denials: u64,
    /// The row that will stand for those beyond the first ten.
    last: Option<Draft>,
    /// When it began, so that rows come out in a stable order.
    order: usize,
}

/// What to do with a denial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Coalesced {
    /// Write this row.
    Row(Box<Draft>),
    /// Nothing now: it is counted.
    Counted,
}

impl Coalescer {
    /// Takes a denial. Call [`Coalescer::due`] first: it ends the minute before.
    pub fn denied(&mut self, mut draft: Draft) -> Coalesced {
        let kind = self.kind(&mut draft);
        let order = self.kinds.len();
        let tally = self.kinds.entry(kind).or_insert(Tally { denials: 0, last: None, order });
        tally.denials += 1;
        if tally.denials <= ROWS {
            return Coalesced::Row(Box::new(draft));
        }
        // The calls differ, so what tells them apart is left out.
        draft.count = Some(tally.denials - ROWS);
        draft.call_id = None;
        draft.agent_session = None;
        draft.argument_keys = None;
        draft.arguments = None;
        tally.last = Some(draft);
        Coalesced::Counted
    }

    fn kind(&mut self, draft: &mut Draft) -> Kind {
        let grant = draft.grant.clone();
        let kind = |draft: &Draft| Kind {
            grant: draft.grant.clone(),
            tool: draft.tool.clone(),
            rule: draft.rule.clone(),
        };
        let full = kind(draft);
        if self.seen.contains(&full) {
            return full;
        }
        let kinds = self.of_grant.entry(grant).or_default();
        if *kinds < KINDS {
            *kinds += 1;
            self.seen.insert(full.clone());
            return full;
        }
        draft.tool = None;
        kind(draft)
    }

    /// The rows of the minute before, once `now` is in a later one. A clock that steps back ends
    /// nothing.
    pub fn due(&mut self, now: Timestamp) -> Vec<Draft> {
        let minute = now.as_second().div_euclid(60);
        if minute <= self.minute {
            return Vec::new();
        }
        self.minute = minute;
        self.flush(now)
    }

    /// The rows of the current minute, before its end: at a stop.
    pub fn flush(&mut self, now: Timestamp) -> Vec<Draft> {
        self.of_grant.clear();
        self.seen.clear();
        let mut tallies: Vec<Tally> = self.kinds.drain().map(|(_, tally)| tally).collect();
        tallies.sort_by_key(|tally| tally.order);
        let rows = tallies.into_iter().filter_map(|tally| tally.last);
        rows.map(|row| Draft { time: now, ..row }).collect()
    }

    /// Whether anything waits for the end of the minute.
    pub fn is_waiting(&self) -> bool {
        self.kinds.values().any(|tally| tally.last.is_some())
    }
}
