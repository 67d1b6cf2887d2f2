//! Reads the setup and the counters of a data folder without opening a store.
//!
//! Invariant: the connection is read-only; it writes nothing and blocks no process.

use std::{fmt, path::Path};

use jiff::Timestamp;
use toolgate_policy::Usage;
use toolgate_store::{Document, Snapshot, StoreError, backend::BackendReader as _};

use crate::{read::SqliteReader, schema};

/// A data folder, read-only.
pub struct ReadOnlyStore(SqliteReader);

impl ReadOnlyStore {
    /// Opens a folder; `None` if it has no database.
    pub fn open(folder: &Path) -> Result<Option<Self>, StoreError> {
        if !schema::exists(folder)? {
            return Ok(None);
        }
        Ok(Some(Self(SqliteReader(schema::open_read_only(folder)?))))
    }

    /// See [`toolgate_store::Store::snapshot`].
    pub fn snapshot(&mut self) -> Result<Snapshot, StoreError> {
        self.0.snapshot()
    }

    /// See [`toolgate_store::Store::documents`].
    pub fn documents(&mut self, space: &str) -> Result<Vec<Document>, StoreError> {
        self.0.documents(space)
    }

    /// The high-water mark of the clock.
    pub fn mark(&mut self) -> Result<Timestamp, StoreError> {
        self.0.mark()
    }

    /// See [`toolgate_store::Store::read_usage`].
    pub fn read_usage<T>(
        &mut self,
        now: Timestamp,
        read: impl FnOnce(&dyn Usage, Timestamp) -> T,
    ) -> Result<T, StoreError> {
        let now = now.max(self.0.mark()?);
        Ok(read(&self.0, now))
    }
}

impl fmt::Debug for ReadOnlyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReadOnlyStore")
    }
}
