//! Selects rows of the audit with SQL.
//!
//! A filter that is not set is left out of the statement, so that SQLite can use the partial indexes
//! on the columns that select few rows. Times are not indexed: checkpoints tell where to start.

use jiff::SignedDuration;
use rusqlite::{Connection, ToSql, types::Value};
use toolgate_audit::{Decision, RowKind};
use toolgate_store::{MAX_ROWS, RowQuery, StoreError};

use crate::{error::OrStoreError as _, row::number, sql, time::micros};

/// Kinds that are not in the index on `kind`, because most rows are of these kinds.
const COMMON: &str = "kind NOT IN ('intent', 'outcome', 'denied')";

/// How much earlier than a time rows are read, in case the clock was set back between two
/// checkpoints.
const SLACK: SignedDuration = SignedDuration::from_hours(1);

/// The conditions of a statement and the values of their parameters.
pub(crate) struct RowFilter {
    conditions: String,
    values: Vec<Value>,
}

impl RowFilter {
    pub(crate) fn new(connection: &Connection, query: &RowQuery) -> Result<Self, StoreError> {
        let mut filter = Self { conditions: String::new(), values: Vec::new() };
        let mut after = number(query.after);
        if let Some(since) = query.since {
            let then = micros(since.saturating_sub(SLACK).unwrap_or(since));
            let mut statement = connection.prepare_cached(sql::ROWS_SINCE).or_store_error()?;
            let last: i64 = statement.query_row([then], |row| row.get(0)).or_store_error()?;
            after = after.max(last);
            filter.add("time >= ", Some(micros(since)));
        }
        filter.add("seq > ", Some(after));
        filter.add("seq < ", query.before.map(number));
        filter.add("time < ", query.until.map(micros));
        filter.add("grant = ", query.grant.clone());
        filter.add("tool = ", query.tool.clone());
        filter.add("decision = ", query.decision.map(Decision::as_str).map(str::to_owned));
        filter.add("person = ", query.person.clone());
        filter.add("server = ", query.server.clone());
        filter.add("session_id = ", query.session.clone());
        filter.add("error_code = ", query.code.clone());
        filter.add("kind = ", query.kind.map(RowKind::as_str).map(str::to_owned));
        let is_common = [RowKind::Intent, RowKind::Outcome, RowKind::Denied];
        if query.kind.is_some_and(|kind| !is_common.contains(&kind)) {
            filter.conditions.push_str(" AND ");
            filter.conditions.push_str(COMMON);
        }
        Ok(filter)
    }

    fn add(&mut self, condition: &str, value: Option<impl Into<Value>>) {
        let Some(value) = value else { return };
        self.conditions.push_str(if self.values.is_empty() { "WHERE " } else { " AND " });
        self.values.push(value.into());
        self.conditions.push_str(condition);
        self.conditions.push('?');
        self.conditions.push_str(&self.values.len().to_string());
    }

    /// The statement that reads the rows of a query.
    pub(crate) fn rows(&self, query: &RowQuery) -> String {
        let order = if query.newest_first { "DESC" } else { "ASC" };
        let limit = query.limit.min(MAX_ROWS);
        format!("{}{} ORDER BY seq {order} LIMIT {limit}", sql::ROWS_SELECT, self.conditions)
    }

    /// The statement that counts the rows.
    pub(crate) fn count(&self) -> String {
        format!("SELECT count(*) FROM audit {}", self.conditions)
    }

    /// The values of the parameters.
    pub(crate) fn values(&self) -> Vec<&dyn ToSql> {
        self.values.iter().map(|value| value as &dyn ToSql).collect()
    }
}
