//! Reads the audit of a data folder, with or without a running gateway.
//!
//! Invariant: the connection is read-only; it writes nothing and blocks no process.

use std::{fmt, path::Path};

use rusqlite::params;
use toolgate_audit::{CallId, Row};
use toolgate_store::{RowQuery, StoreError, backend::BackendReader as _};

use crate::{
    error::{OrStoreError as _, damaged},
    read::{self, SqliteReader},
    schema, sql,
};

/// The audit of a data folder, read-only.
pub struct AuditReader(SqliteReader);

impl AuditReader {
    /// Opens the audit of a folder; `None` if the folder has none.
    pub fn open(folder: &Path) -> Result<Option<Self>, StoreError> {
        if !schema::exists(folder)? {
            return Ok(None);
        }
        Ok(Some(Self(SqliteReader(schema::open_read_only(folder)?))))
    }

    /// See [`toolgate_store::Store::rows`].
    pub fn rows(&mut self, page: &RowQuery) -> Result<Vec<Row>, StoreError> {
        self.0.rows(page)
    }

    /// See [`toolgate_store::Store::count_rows`].
    pub fn count_rows(&mut self, query: &RowQuery) -> Result<u64, StoreError> {
        self.0.count_rows(query)
    }

    /// All rows of one call, ascending.
    pub fn call_rows(&mut self, call: CallId) -> Result<Vec<Row>, StoreError> {
        self.0.call_rows(call)
    }

    /// The first two calls with ids in this inclusive range.
    pub fn calls_between(&self, first: CallId, last: CallId) -> Result<Vec<CallId>, StoreError> {
        let mut statement = self.0.0.prepare_cached(sql::CALL_BETWEEN).or_store_error()?;
        let mut rows = statement.query(params![first.0, last.0]).or_store_error()?;
        let mut calls = Vec::new();
        while let Some(row) = rows.next().or_store_error()? {
            let id: Vec<u8> = row.get(0).or_store_error()?;
            calls.push(CallId(id.try_into().map_err(|_| damaged("audit"))?));
        }
        Ok(calls)
    }

    /// Sequence number of the last row; 0 if there is none.
    pub fn last(&self) -> Result<u64, StoreError> {
        read::head(&self.0.0).map(|head| head.seq)
    }

    /// How many checkpoints are at or before this row.
    pub fn checkpoints_until(&mut self, seq: u64) -> Result<usize, StoreError> {
        let all = self.0.checkpoints()?;
        Ok(all.iter().filter(|checkpoint| checkpoint.seq <= seq).count())
    }
}

impl fmt::Debug for AuditReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AuditReader")
    }
}
