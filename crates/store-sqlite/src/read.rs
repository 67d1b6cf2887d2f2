//! The reading side: its own connection, on the reader's thread.

use rusqlite::{Connection, OptionalExtension as _, Row as Columns, params};
use toolgate_audit::{CallId, Checkpoint, Decision, Hash, Head, Row};
use toolgate_policy::{Amount, Claim, Period, Taken, Unavailable, Usage};
use toolgate_store::{Fault, Kept, Page, Snapshot, Status, backend::Reader};

use crate::{
    fault::{OrFault as _, damaged},
    open_calls,
    row::{self, number, to_head},
    setup, sql,
    time::{mark, timestamp},
    usage::Used,
};

/// At most so many rows at a time.
const PAGE: usize = 1_000;

/// Reads.
pub(crate) struct Reading(pub(crate) Connection);

impl Reader for Reading {
    fn snapshot(&mut self) -> Result<Snapshot, Fault> {
        let transaction = self.0.transaction().or_fault()?;
        let snapshot = setup::snapshot(&transaction)?;
        transaction.finish().or_fault()?;
        Ok(snapshot)
    }

    fn kept(&mut self, space: &str) -> Result<Vec<Kept>, Fault> {
        setup::kept(&self.0, space)
    }

    fn rows(&mut self, page: &Page) -> Result<Vec<Row>, Fault> {
        let decision = page.decision.map(Decision::as_str);
        let limit = number(page.limit.min(PAGE) as u64);
        let values = params![number(page.after), page.grant, page.tool, decision, limit];
        self.list(sql::ROWS_PAGE, values)
    }

    fn story(&mut self, call: CallId) -> Result<Vec<Row>, Fault> {
        self.list(sql::ROWS_CALL, params![call.0])
    }

    fn checkpoints(&mut self) -> Result<Vec<Checkpoint>, Fault> {
        checkpoints(&self.0)
    }

    fn status(&mut self) -> Result<Status, Fault> {
        let transaction = self.0.transaction().or_fault()?;
        let at: i64 = transaction.query_row(sql::STATE, [], |row| row.get(0)).or_fault()?;
        let status = Status {
            head: head(&transaction)?,
            checkpoint: last_checkpoint(&transaction)?,
            mark: mark(at),
            open: open_calls::count(&transaction)?,
        };
        transaction.finish().or_fault()?;
        Ok(status)
    }

    fn mark(&mut self) -> Result<jiff::Timestamp, Fault> {
        self.0.query_row(sql::STATE, [], |row| row.get(0)).or_fault().map(mark)
    }

    fn usage(&self) -> &dyn Usage {
        self
    }
}

impl Reading {
    fn list(&self, sql: &str, values: &[&dyn rusqlite::ToSql]) -> Result<Vec<Row>, Fault> {
        let mut statement = self.0.prepare_cached(sql).or_fault()?;
        let mut columns = statement.query(values).or_fault()?;
        let mut rows = Vec::new();
        while let Some(next) = columns.next().or_fault()? {
            rows.push(row::stored(next).row().map_err(|_| damaged("audit"))?);
        }
        Ok(rows)
    }
}

impl Usage for Reading {
    fn used(&self, counter: &str, period: Period) -> Result<Amount, Unavailable> {
        Used(&self.0).used(counter, period)
    }
    fn taken(&self, counter: &str, after: jiff::Timestamp) -> Result<Vec<Taken>, Unavailable> {
        Used(&self.0).taken(counter, after)
    }
    fn in_flight(&self, counter: &str) -> Result<u64, Unavailable> {
        Used(&self.0).in_flight(counter)
    }
    fn last_admitted(&self, call: &str) -> Result<Option<jiff::Timestamp>, Unavailable> {
        Used(&self.0).last_admitted(call)
    }
    fn owns(&self, claim: &Claim<'_>) -> Result<bool, Unavailable> {
        Used(&self.0).owns(claim)
    }
}

/// The end of the chain.
pub(crate) fn head(connection: &Connection) -> Result<Head, Fault> {
    let mut statement = connection.prepare_cached(sql::HEAD).or_fault()?;
    let last = statement
        .query_row([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?)))
        .optional()
        .or_fault()?;
    last.map_or(Ok(Head::default()), |(seq, hash)| to_head(seq, &hash))
}

/// The last checkpoint.
pub(crate) fn last_checkpoint(connection: &Connection) -> Result<Option<Checkpoint>, Fault> {
    let mut statement = connection.prepare_cached(sql::CHECKPOINT_LAST).or_fault()?;
    let last = statement.query_row([], |row| Ok(checkpoint(row))).optional().or_fault()?;
    last.transpose()
}

/// Every checkpoint.
pub(crate) fn checkpoints(connection: &Connection) -> Result<Vec<Checkpoint>, Fault> {
    let mut statement = connection.prepare_cached(sql::CHECKPOINT_ALL).or_fault()?;
    let mut rows = statement.query([]).or_fault()?;
    let mut all = Vec::new();
    while let Some(row) = rows.next().or_fault()? {
        all.push(checkpoint(row)?);
    }
    Ok(all)
}

/// One checkpoint.
pub(crate) fn checkpoint(row: &Columns<'_>) -> Result<Checkpoint, Fault> {
    let read = || {
        let seq = u64::try_from(row.get::<_, i64>(0).ok()?).ok()?;
        let hash = Hash(row.get::<_, Vec<u8>>(1).ok()?.try_into().ok()?);
        let time = timestamp(row.get(2).ok()?)?;
        let signature = row.get::<_, Vec<u8>>(3).ok()?.try_into().ok()?;
        Some(Checkpoint { seq, hash, time, signature })
    };
    read().ok_or_else(|| damaged("checkpoint"))
}
