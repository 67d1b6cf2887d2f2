//! Which calls are open: admitted, and not ended.
//!
//! A process knows its own, and the rows of the audit tell of all. So nothing is written for a call
//! that it is open, unless it still is when time has passed twice: then it goes to the table `open`,
//! so that nobody ever has to read many rows to find it. What is neither there nor ended stands in
//! the rows from [`Marks::since`] of its process on, and whose an intent is, is told by spans: one
//! is written when another process begins to admit.
//!
//! Invariant: whenever the process ends, each of its open calls is in `open`, or in a span of its
//! own at its `since` or later.

use std::collections::HashMap;

use rusqlite::{Connection, params, types::ValueRef};
use toolgate_audit::{CallId, Kind, Outcome};
use toolgate_store::Fault;

use crate::{fault::OrFault as _, row::number, sql, write::Writing};

/// What this process has told others of its open calls.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Marks {
    /// Those not in `open` stand at this place or later; none before the first call.
    since: Option<u64>,
    /// How often time has passed.
    pub(crate) ticks: u64,
}

impl Writing<'_> {
    /// A call begins at this place.
    pub(crate) fn begin(&mut self, seq: u64) -> Result<(), Fault> {
        let (place, me) = (number(seq), self.owner.id);
        if !self.is_last_owner {
            self.execute(sql::SPAN_ADD, &[&place, &me])?;
            self.is_last_owner = true;
        }
        if self.marks.since.is_none() {
            self.execute(sql::OWNER_PUT, &[&me, &place])?;
            self.marks.since = Some(seq);
        }
        Ok(())
    }

    /// Time has passed: calls that were open the last time go to `open`, and the others are young.
    pub(crate) fn note_open(&mut self) -> Result<(), Fault> {
        let Some(before) = self.marks.since else { return Ok(()) };
        let mut since = self.head.saturating_add(1);
        for (_, receipt) in &self.opened {
            since = since.min(receipt.seq);
        }
        let receipts = self.receipts;
        for (call, receipt) in receipts {
            if receipt.noted || self.settled.contains(call) || self.noted.contains(call) {
                continue;
            }
            if receipt.ticks < self.marks.ticks {
                let (seq, me) = (number(receipt.seq), self.owner.id);
                self.execute(sql::OPEN_ADD, &[&call.0, &me, &seq])?;
                self.noted.push(*call);
            } else {
                since = since.min(receipt.seq);
            }
        }
        self.marks.ticks += 1;
        if since != before {
            self.execute(sql::OWNER_PUT, &[&self.owner.id, &number(since)])?;
            self.marks.since = Some(since);
        }
        Ok(())
    }

    /// Calls that dead processes left open go to `open`.
    pub(crate) fn bring_to_light(&mut self) -> Result<(), Fault> {
        let mut statement = self.connection.prepare_cached(sql::OWNER_OTHERS).or_fault()?;
        let others = statement
            .query_map([self.owner.id], |row| Ok((row.get(0)?, row.get(1)?)))
            .or_fault()?;
        let others: Vec<(i64, i64)> = others.collect::<Result<_, _>>().or_fault()?;
        for (id, since) in others.into_iter().filter(|(id, _)| self.owner.is_dead(*id)) {
            let spans = spans(self.connection)?;
            for (call, seq) in in_rows(self.connection, since)? {
                let after = spans.partition_point(|(first, _)| *first <= seq);
                let span = after.checked_sub(1).and_then(|last| spans.get(last));
                if span.is_some_and(|(_, owner)| *owner == id) {
                    self.execute(sql::OPEN_ADD, &[&call.0, &id, &seq])?;
                }
            }
            self.execute(sql::OWNER_END, &[&id])?;
        }
        Ok(())
    }
}

/// How many calls are open, of whichever process.
pub(crate) fn count(connection: &Connection) -> Result<u64, Fault> {
    let value = |sql: &str| -> Result<Option<i64>, Fault> {
        let mut statement = connection.prepare_cached(sql).or_fault()?;
        statement.query_row([], |row| row.get(0)).or_fault()
    };
    let mut count = value(sql::OPEN_COUNT)?.unwrap_or_default();
    if let Some(since) = value(sql::OWNER_SINCE)? {
        let mut known = connection.prepare_cached(sql::OPEN_FIND).or_fault()?;
        for call in in_rows(connection, since)?.into_keys() {
            let found: i64 = known.query_row(params![call.0], |row| row.get(0)).or_fault()?;
            count += i64::from(found == 0);
        }
    }
    Ok(u64::try_from(count).unwrap_or_default())
}

/// Intents from a place on whose call has not ended.
fn in_rows(connection: &Connection, since: i64) -> Result<HashMap<CallId, i64>, Fault> {
    let mut statement = connection.prepare_cached(sql::OPEN_ROWS).or_fault()?;
    let mut rows = statement.query([since]).or_fault()?;
    let mut open = HashMap::new();
    while let Some(row) = rows.next().or_fault()? {
        // A row that was tampered with is for `verify` to tell of.
        let ValueRef::Blob(call) = row.get_ref(2).or_fault()? else { continue };
        let Ok(call) = call.try_into().map(CallId) else { continue };
        let word = |column| match row.get_ref(column) {
            Ok(ValueRef::Text(text)) => text,
            _ => &[],
        };
        if word(1) == Kind::Intent.as_str().as_bytes() {
            open.insert(call, row.get(0).or_fault()?);
        } else if word(1) == Kind::Outcome.as_str().as_bytes()
            && word(3) != Outcome::InputRequired.as_str().as_bytes()
        {
            open.remove(&call);
        }
    }
    Ok(open)
}

/// Where whose intents begin, ascending.
fn spans(connection: &Connection) -> Result<Vec<(i64, i64)>, Fault> {
    let mut statement = connection.prepare_cached(sql::SPAN_ALL).or_fault()?;
    let spans = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).or_fault()?;
    spans.collect::<Result<_, _>>().or_fault()
}
