//! Reading the audit of a folder from outside, with or without a running gateway.
//!
//! Invariant: the connection is read-only; nothing is written and no process is kept waiting.

use std::{fmt, path::Path};

use rusqlite::params;
use toolgate_audit::{CallId, Row};
use toolgate_store::{Fault, Page, backend::Reader as _};

use crate::{
    fault::{OrFault as _, damaged},
    read::{self, Reading},
    schema, sql,
};

/// The audit of a data folder, for reading.
pub struct Audit(Reading);

impl Audit {
    /// Opens the audit of a folder; `None` if the folder has none.
    pub fn open(folder: &Path) -> Result<Option<Self>, Fault> {
        if !schema::file(folder).exists() {
            return Ok(None);
        }
        Ok(Some(Self(Reading(schema::open_outside(folder)?))))
    }

    /// Rows, ascending; at most 1,000.
    pub fn rows(&mut self, page: &Page) -> Result<Vec<Row>, Fault> {
        self.0.rows(page)
    }

    /// All rows of one call, ascending.
    pub fn story(&mut self, call: CallId) -> Result<Vec<Row>, Fault> {
        self.0.story(call)
    }

    /// The first two calls whose ids lie between these, both included.
    pub fn calls_between(&self, first: CallId, last: CallId) -> Result<Vec<CallId>, Fault> {
        let mut statement = self.0.0.prepare_cached(sql::CALL_BETWEEN).or_fault()?;
        let mut rows = statement.query(params![first.0, last.0]).or_fault()?;
        let mut calls = Vec::new();
        while let Some(row) = rows.next().or_fault()? {
            let id: Vec<u8> = row.get(0).or_fault()?;
            calls.push(CallId(id.try_into().map_err(|_| damaged("audit"))?));
        }
        Ok(calls)
    }

    /// Place of the last row; 0 before the first.
    pub fn last(&self) -> Result<u64, Fault> {
        read::head(&self.0.0).map(|head| head.seq)
    }

    /// How many checkpoints stand at or before this place.
    pub fn checkpoints_until(&mut self, seq: u64) -> Result<usize, Fault> {
        let all = self.0.checkpoints()?;
        Ok(all.iter().filter(|checkpoint| checkpoint.seq <= seq).count())
    }
}

impl fmt::Debug for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Audit")
    }
}
