//! Which calls are open: admitted, and not ended.
//!
//! A process knows its own, and the rows of the audit tell of all. So nothing is written for a call
//! that it is open, unless it still is when time has passed twice: then it goes to the table `open`,
//! so that nobody ever has to read many rows to find it. What is neither there nor ended stands in
//! the rows from [`OpenCallMarks::since`] of its process on, and whose an intent is, is told by spans: one
//! is written when another process begins to admit.
//!
//! Invariant: whenever the process ends, each of its open calls is in `open`, or in a span of its
//! own at its `since` or later.

use std::collections::HashMap;

use rusqlite::{Connection, params, types::ValueRef};
use toolgate_audit::{CallId, Outcome, RowKind};
use toolgate_store::StoreError;

use crate::{error::OrStoreError as _, sql};

/// What this process has told others of its open calls.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OpenCallMarks {
    /// Those not in `open` stand at this place or later; none before the first call.
    pub(crate) since: Option<u64>,
    /// How often time has passed.
    pub(crate) ticks: u64,
}

/// How many calls are open in all processes together.
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

/// Intents from a place on whose call has not ended.
pub(crate) fn in_rows(
    connection: &Connection,
    since: i64,
) -> Result<HashMap<CallId, i64>, StoreError> {
    let mut statement = connection.prepare_cached(sql::OPEN_ROWS).or_store_error()?;
    let mut rows = statement.query([since]).or_store_error()?;
    let mut open = HashMap::new();
    while let Some(row) = rows.next().or_store_error()? {
        // A row that was tampered with is for `verify` to tell of.
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

/// Where whose intents begin, ascending.
pub(crate) fn spans(connection: &Connection) -> Result<Vec<(i64, i64)>, StoreError> {
    let mut statement = connection.prepare_cached(sql::SPAN_ALL).or_store_error()?;
    let spans = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).or_store_error()?;
    spans.collect::<Result<_, _>>().or_store_error()
}
