//! Coalesces repeated denials into few rows.
//!
//! For each (grant, method, tool, rule), the first ten denials per minute are rows; further ones
//! are counted and become one row when the minute ends. A grant gets at most a thousand such rows
//! per minute, including rows with a count; all its other denials become one more row with their
//! count. Minutes are those of the Unix clock.
//!
//! Invariant: no denial is lost. Rows and counts of a minute add up to its denials.
//! Invariant: memory is bounded. Names come from agents, so they are held only in pending rows, of
//! which a grant has at most a thousand; kinds are distinguished by a hash.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use jiff::Timestamp;

use crate::Draft;

/// Rows per kind of denial and minute.
const ROWS: u64 = 10;
/// Rows per grant and minute, without the one that counts the excess.
const ROWS_OF_GRANT: u64 = 1_000;

/// Counts the denials of the current minute.
#[derive(Debug, Default)]
pub struct Coalescer {
    minute: i64,
    hasher: RandomState,
    grants: HashMap<Option<Arc<str>>, GrantTally>,
    /// The number of pending rows, which gives their order.
    order: usize,
}

/// The denials of one grant.
#[derive(Debug, Default)]
struct GrantTally {
    /// Rows that were written or are pending.
    rows: u64,
    /// By the hash of (method, tool, rule).
    kinds: HashMap<u128, Tally>,
    /// Denials beyond a thousand rows.
    beyond: Option<PendingRow>,
}

#[derive(Debug, Default)]
struct Tally {
    denials: u64,
    waiting: Option<PendingRow>,
}

/// A pending row that represents counted denials.
#[derive(Debug)]
struct PendingRow {
    row: Box<Draft>,
    count: u64,
    order: usize,
}

/// How to record a denial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Coalesced {
    /// Write this row.
    Row(Box<Draft>),
    /// Nothing now: the denial was counted.
    Counted,
}

impl Coalescer {
    /// Adds a denial. Call [`Coalescer::due`] first: it ends the previous minute.
    pub fn denied(&mut self, draft: Draft) -> Coalesced {
        let kind = self.kind(&draft);
        let of_grant = self.grants.entry(draft.grant.clone()).or_default();
        let room = of_grant.rows < ROWS_OF_GRANT;
        let known = of_grant.kinds.contains_key(&kind);
        if !known && !room {
            // Fields that differ between calls are omitted.
            let beyond = Draft { tool: None, rule: None, method: None, ..draft };
            count(&mut of_grant.beyond, beyond, &mut self.order);
            return Coalesced::Counted;
        }
        let tally = of_grant.kinds.entry(kind).or_default();
        tally.denials += 1;
        if tally.denials <= ROWS && room {
            of_grant.rows += 1;
            return Coalesced::Row(Box::new(draft));
        }
        if tally.waiting.is_some() || room {
            of_grant.rows += u64::from(tally.waiting.is_none());
            count(&mut tally.waiting, draft, &mut self.order);
        } else {
            let beyond = Draft { tool: None, rule: None, method: None, ..draft };
            count(&mut of_grant.beyond, beyond, &mut self.order);
        }
        Coalesced::Counted
    }

    fn kind(&self, draft: &Draft) -> u128 {
        let kind = (&draft.method, &draft.tool, &draft.rule);
        let (low, high) = (self.hasher.hash_one(kind), self.hasher.hash_one((1_u8, kind)));
        u128::from(low) | u128::from(high) << 64
    }

    /// The rows of the previous minute, once `now` is in a later one. A backward clock step ends
    /// nothing.
    pub fn due(&mut self, now: Timestamp) -> Vec<Draft> {
        let minute = now.as_second().div_euclid(60);
        if minute <= self.minute {
            return Vec::new();
        }
        self.minute = minute;
        self.flush(now)
    }

    /// The rows of the current minute before its end: at shutdown.
    pub fn flush(&mut self, now: Timestamp) -> Vec<Draft> {
        let grants = self.grants.drain().map(|(_, of_grant)| of_grant);
        let mut waiting: Vec<PendingRow> = grants
            .flat_map(|GrantTally { kinds, beyond, .. }| {
                kinds.into_values().filter_map(|tally| tally.waiting).chain(beyond)
            })
            .collect();
        self.order = 0;
        waiting.sort_by_key(|waiting| waiting.order);
        let row = |PendingRow { row, count, .. }| Draft { time: now, count: Some(count), ..*row };
        waiting.into_iter().map(row).collect()
    }

    /// Whether a row is pending.
    pub fn is_waiting(&self) -> bool {
        self.grants.values().any(|of_grant| {
            of_grant.beyond.is_some()
                || of_grant.kinds.values().any(|tally| tally.waiting.is_some())
        })
    }
}

/// Adds a denial to a pending row. Fields that differ between calls are omitted.
fn count(waiting: &mut Option<PendingRow>, mut draft: Draft, order: &mut usize) {
    if let Some(waiting) = waiting {
        waiting.count += 1;
        return;
    }
    draft.call_id = None;
    draft.agent_session = None;
    draft.argument_keys = None;
    draft.arguments = None;
    *waiting = Some(PendingRow { row: Box::new(draft), count: 1, order: *order });
    *order += 1;
}
