//! The reading side: its own connection on a reader thread.

use rusqlite::{Connection, OptionalExtension as _, Row as Columns, params};
use toolgate_audit::{CallId, ChainHead, Checkpoint, Hash, Row};
use toolgate_policy::{Amount, Claim, Period, Taken, Unavailable, Usage};
use toolgate_store::{
    ApprovalQuery, Document, DueNotice, HeldCall, PendingApprovals, PolicyVersion, RowQuery,
    Snapshot, StoreError, StoreStatus, StoredApproval, backend::BackendReader,
};

use crate::{
    approvals,
    error::{OrStoreError as _, damaged},
    open_calls,
    row::{self, to_head},
    row_filter::RowFilter,
    setup, sql,
    time::{mark, timestamp},
    usage::SqliteUsage,
};

/// A connection that reads.
pub(crate) struct SqliteReader(pub(crate) Connection);

impl BackendReader for SqliteReader {
    fn snapshot(&mut self) -> Result<Snapshot, StoreError> {
        let transaction = self.0.transaction().or_store_error()?;
        let snapshot = setup::snapshot(&transaction)?;
        transaction.finish().or_store_error()?;
        Ok(snapshot)
    }

    fn policy_versions(&mut self, name: &str) -> Result<Vec<PolicyVersion>, StoreError> {
        setup::policy_versions(&self.0, name)
    }

    fn documents(&mut self, space: &str) -> Result<Vec<Document>, StoreError> {
        setup::documents(&self.0, space)
    }

    fn rows(&mut self, page: &RowQuery) -> Result<Vec<Row>, StoreError> {
        let filter = RowFilter::new(&self.0, page)?;
        self.list(&filter.rows(page), &filter.values())
    }

    fn count_rows(&mut self, query: &RowQuery) -> Result<u64, StoreError> {
        let filter = RowFilter::new(&self.0, query)?;
        let mut statement = self.0.prepare_cached(&filter.count()).or_store_error()?;
        let values = filter.values();
        let count: i64 = statement.query_row(&*values, |row| row.get(0)).or_store_error()?;
        Ok(u64::try_from(count).unwrap_or_default())
    }

    fn call_rows(&mut self, call: CallId) -> Result<Vec<Row>, StoreError> {
        self.list(sql::ROWS_CALL, params![call.0])
    }

    fn checkpoints(&mut self) -> Result<Vec<Checkpoint>, StoreError> {
        checkpoints(&self.0)
    }

    fn status(&mut self) -> Result<StoreStatus, StoreError> {
        let transaction = self.0.transaction().or_store_error()?;
        let at: i64 = transaction.query_row(sql::STATE, [], |row| row.get(0)).or_store_error()?;
        let status = StoreStatus {
            head: head(&transaction)?,
            checkpoint: last_checkpoint(&transaction)?,
            mark: mark(at),
            open: open_calls::count(&transaction)?,
        };
        transaction.finish().or_store_error()?;
        Ok(status)
    }

    fn approval(&mut self, id: &str) -> Result<Option<StoredApproval>, StoreError> {
        approvals::one(&self.0, sql::APPROVAL_GET, &[&id])
    }

    fn approvals(&mut self, query: &ApprovalQuery) -> Result<Vec<StoredApproval>, StoreError> {
        approvals::select(&self.0, query)
    }

    fn last_consumed(&mut self, like: &HeldCall) -> Result<Option<StoredApproval>, StoreError> {
        approvals::last_consumed(&self.0, like)
    }

    fn pending_approvals(&mut self) -> Result<PendingApprovals, StoreError> {
        approvals::pending(&self.0)
    }

    fn due_deliveries(
        &mut self,
        now: jiff::Timestamp,
        limit: usize,
    ) -> Result<Vec<DueNotice>, StoreError> {
        approvals::deliveries(&self.0, now, limit)
    }

    fn mark(&mut self) -> Result<jiff::Timestamp, StoreError> {
        self.0.query_row(sql::STATE, [], |row| row.get(0)).or_store_error().map(mark)
    }

    fn usage(&self) -> &dyn Usage {
        self
    }
}

impl SqliteReader {
    fn list(&self, sql: &str, values: &[&dyn rusqlite::ToSql]) -> Result<Vec<Row>, StoreError> {
        let mut statement = self.0.prepare_cached(sql).or_store_error()?;
        let mut columns = statement.query(values).or_store_error()?;
        let mut rows = Vec::new();
        while let Some(next) = columns.next().or_store_error()? {
            rows.push(row::stored(next).row().map_err(|_| damaged("audit"))?);
        }
        Ok(rows)
    }
}

impl Usage for SqliteReader {
    fn used(&self, counter: &str, period: Period) -> Result<Amount, Unavailable> {
        SqliteUsage(&self.0).used(counter, period)
    }
    fn taken(&self, counter: &str, after: jiff::Timestamp) -> Result<Vec<Taken>, Unavailable> {
        SqliteUsage(&self.0).taken(counter, after)
    }
    fn in_flight(&self, counter: &str) -> Result<u64, Unavailable> {
        SqliteUsage(&self.0).in_flight(counter)
    }
    fn last_admitted(&self, call: &str) -> Result<Option<jiff::Timestamp>, Unavailable> {
        SqliteUsage(&self.0).last_admitted(call)
    }
    fn owns(&self, claim: &Claim<'_>) -> Result<bool, Unavailable> {
        SqliteUsage(&self.0).owns(claim)
    }
}

/// The head of the chain.
pub(crate) fn head(connection: &Connection) -> Result<ChainHead, StoreError> {
    let mut statement = connection.prepare_cached(sql::HEAD).or_store_error()?;
    let last = statement
        .query_row([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?)))
        .optional()
        .or_store_error()?;
    last.map_or(Ok(ChainHead::default()), |(seq, hash)| to_head(seq, &hash))
}

/// The last checkpoint.
pub(crate) fn last_checkpoint(connection: &Connection) -> Result<Option<Checkpoint>, StoreError> {
    let mut statement = connection.prepare_cached(sql::CHECKPOINT_LAST).or_store_error()?;
    let last = statement.query_row([], |row| Ok(checkpoint(row))).optional().or_store_error()?;
    last.transpose()
}

/// Every checkpoint.
pub(crate) fn checkpoints(connection: &Connection) -> Result<Vec<Checkpoint>, StoreError> {
    let mut statement = connection.prepare_cached(sql::CHECKPOINT_ALL).or_store_error()?;
    let mut rows = statement.query([]).or_store_error()?;
    let mut all = Vec::new();
    while let Some(row) = rows.next().or_store_error()? {
        all.push(checkpoint(row)?);
    }
    Ok(all)
}

/// One checkpoint.
pub(crate) fn checkpoint(row: &Columns<'_>) -> Result<Checkpoint, StoreError> {
    let read = || {
        let seq = u64::try_from(row.get::<_, i64>(0).ok()?).ok()?;
        let hash = Hash(row.get::<_, Vec<u8>>(1).ok()?.try_into().ok()?);
        let time = timestamp(row.get(2).ok()?)?;
        let signature = row.get::<_, Vec<u8>>(3).ok()?.try_into().ok()?;
        Some(Checkpoint { seq, hash, time, signature })
    };
    read().ok_or_else(|| damaged("checkpoint"))
}
