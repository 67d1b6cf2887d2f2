//! Which calls are open: admitted and not ended.
//!
//! A process knows its own open calls, and all of them can be found in the rows of the audit. So
//! nothing is written for an open call until it has been open for two ticks; then it is inserted
//! into the table `open`, so that finding it never requires reading many rows. Open calls that are
//! not in this table are in the rows from [`OpenCallMarks::since`] of their process on. Spans
//! record which process wrote which intents: a new span starts when another process begins to
//! admit.
//!
//! Invariant: whenever a process exits, each of its open calls is in `open`, or in one of its own
//! spans at its `since` or later.

use std::collections::HashMap;

use rusqlite::{Connection, params, types::ValueRef};
use toolgate_audit::{CallId, Outcome, RowKind};
use toolgate_store::StoreError;

use crate::{error::OrStoreError as _, sql};

/// What this process has published about its open calls.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OpenCallMarks {
    /// Open calls that are not in `open` are at this row or later; `None` before the first call.
    pub(crate) since: Option<u64>,
    /// The number of ticks so far.
    pub(crate) ticks: u64,
}

/// The number of open calls of all processes.
pub(crate) fn count(connection: &Connection) -> Result<u64, StoreError> {
    let value = |sql: &str| -> Result<Option<i64>, StoreError> {
        let mut statement = connection.prepare_cached(sql).or_store_error()?;
        statement.query_row([], |row| row.get(0)).or_store_error()
    };
    let mut count = value(sql::OPEN_COUNT)?.unwrap_or_default();
    if let Some(since) = value(sql::OWNER_SINCE)? {
        let mut known = connection.prepare_cached(sql::OPEN_FIND).or_store_error()?;
        for call in in_rows(connection, since)?.into_keys() {
            let found: i64 = known.query_row(params![call.0], |row| row.get(0)).or_store_error()?;
            count += i64::from(found == 0);
        }
    }
    Ok(u64::try_from(count).unwrap_or_default())
}

/// Intents from this row on whose call has not ended.
pub(crate) fn in_rows(
    connection: &Connection,
    since: i64,
) -> Result<HashMap<CallId, i64>, StoreError> {
    let mut statement = connection.prepare_cached(sql::OPEN_ROWS).or_store_error()?;
    let mut rows = statement.query([since]).or_store_error()?;
    let mut open = HashMap::new();
    while let Some(row) = rows.next().or_store_error()? {
        // `verify` reports rows that were tampered with.
        let ValueRef::Blob(call) = row.get_ref(2).or_store_error()? else { continue };
        let Ok(call) = call.try_into().map(CallId) else { continue };
        let word = |column| match row.get_ref(column) {
            Ok(ValueRef::Text(text)) => text,
            _ => &[],
        };
        if word(1) == RowKind::Intent.as_str().as_bytes() {
            open.insert(call, row.get(0).or_store_error()?);
        } else if word(1) == RowKind::Outcome.as_str().as_bytes()
            && word(3) != Outcome::InputRequired.as_str().as_bytes()
        {
            open.remove(&call);
        }
    }
    Ok(open)
}

/// The first row of each span and its process, ascending.
pub(crate) fn spans(connection: &Connection) -> Result<Vec<(i64, i64)>, StoreError> {
    let mut statement = connection.prepare_cached(sql::SPAN_ALL).or_store_error()?;
    let spans = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).or_store_error()?;
    spans.collect::<Result<_, _>>().or_store_error()
}
