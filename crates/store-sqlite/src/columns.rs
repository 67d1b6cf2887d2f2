//! Reads rows and their columns.
//!
//! Invariant: a column that cannot be decoded is an error, never a default.

use std::sync::Arc;

use jiff::Timestamp;
use rusqlite::{Connection, Row};
use toolgate_store::StoreError;

use crate::error::{OrStoreError as _, damaged};
use crate::time::timestamp;

pub(crate) fn all<T>(
    connection: &Connection,
    sql: &str,
    values: &[&dyn rusqlite::ToSql],
    read: impl Fn(&Row<'_>) -> Option<T>,
) -> Result<Vec<T>, StoreError> {
    let mut statement = connection.prepare_cached(sql).or_store_error()?;
    let mut rows = statement.query(values).or_store_error()?;
    let mut list = Vec::new();
    while let Some(row) = rows.next().or_store_error()? {
        list.push(read(row).ok_or_else(|| damaged("settings"))?);
    }
    Ok(list)
}

pub(crate) fn text(row: &Row<'_>, place: usize) -> Option<Arc<str>> {
    row.get(place).ok()
}

/// An absent time is valid; an undecodable one is not.
#[expect(clippy::option_option, reason = "absent and undecodable are different")]
pub(crate) fn time(row: &Row<'_>, place: usize) -> Option<Option<Timestamp>> {
    match row.get::<_, Option<i64>>(place).ok()? {
        None => Some(None),
        Some(micros) => timestamp(micros).map(Some),
    }
}
