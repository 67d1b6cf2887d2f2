//! A data folder seen from outside: what people set up, and what has been used.
//!
//! Invariant: the connection is read-only; nothing is written and no process is kept waiting.

use std::{fmt, path::Path};

use jiff::Timestamp;
use toolgate_policy::Usage;
use toolgate_store::{Fault, Kept, Snapshot, backend::Reader as _};

use crate::{read::Reading, schema};

/// A data folder, for reading.
pub struct Outside(Reading);

impl Outside {
    /// Opens a folder; `None` if nothing was ever kept in it.
    pub fn open(folder: &Path) -> Result<Option<Self>, Fault> {
        if !schema::file(folder).exists() {
            return Ok(None);
        }
        Ok(Some(Self(Reading(schema::open_outside(folder)?))))
    }

    /// See [`toolgate_store::Store::snapshot`].
    pub fn snapshot(&mut self) -> Result<Snapshot, Fault> {
        self.0.snapshot()
    }

    /// See [`toolgate_store::Store::kept`].
    pub fn kept(&mut self, space: &str) -> Result<Vec<Kept>, Fault> {
        self.0.kept(space)
    }

    /// The latest time that anything was counted at.
    pub fn mark(&mut self) -> Result<Timestamp, Fault> {
        self.0.mark()
    }

    /// See [`toolgate_store::Store::look`].
    pub fn look<T>(
        &mut self,
        now: Timestamp,
        look: impl FnOnce(&dyn Usage, Timestamp) -> T,
    ) -> Result<T, Fault> {
        let now = now.max(self.0.mark()?);
        Ok(look(&self.0, now))
    }
}

impl fmt::Debug for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Outside")
    }
}
