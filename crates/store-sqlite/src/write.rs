//! The writing side: one transaction at a time.

mod counters;
mod open_calls;
mod transaction;

use std::{
    cell::RefCell,
    collections::HashMap,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    thread::JoinHandle,
};

use rusqlite::Connection;
use toolgate_audit::CallId;
use toolgate_store::{
    Backend, StoreError, StoreErrorKind, SyncLag,
    backend::{BackendReader, TransactionBody},
    failpoint::{Failpoint, reach},
};

use self::{counters::Receipt, transaction::SqliteTransaction};
use crate::{
    Durability, SyncFile,
    error::damaged,
    open_calls::OpenCallMarks,
    owner::Owner,
    read::SqliteReader,
    schema,
    sql::execute,
    sync::{MonotonicClock, SyncMonitor, Syncer},
};

/// A database opened for writing.
pub(crate) struct SqliteBackend {
    folder: PathBuf,
    durability: Durability,
    /// `None` after a failure that a new connection may fix.
    connection: Option<Connection>,
    owner: Owner,
    watch: Arc<SyncMonitor>,
    syncer: Option<JoinHandle<()>>,
    /// What the open calls of this process took, for refunds.
    receipts: HashMap<CallId, Receipt>,
    marks: OpenCallMarks,
}

impl SqliteBackend {
    pub(crate) fn open(
        folder: &Path,
        durability: Durability,
        owner: u64,
        sync: Arc<SyncFile>,
        clock: Arc<MonotonicClock>,
    ) -> Result<Self, StoreError> {
        let owner = Owner::new(folder, owner)?;
        let connection = Some(schema::open(folder, durability)?);
        let watch = Arc::new(SyncMonitor::new(clock));
        let folder = folder.to_owned();
        let thread = (folder.clone(), Arc::clone(&watch));
        let syncer = Syncer { folder: thread.0, durability, watch: thread.1, sync }.start()?;
        let (syncer, receipts, marks) = (Some(syncer), HashMap::new(), OpenCallMarks::default());
        Ok(Self { folder, durability, connection, owner, watch, syncer, receipts, marks })
    }

    fn connection(&mut self) -> Result<&Connection, StoreError> {
        if self.connection.is_none() {
            self.connection = Some(schema::open(&self.folder, self.durability)?);
        }
        self.connection.as_ref().ok_or_else(|| damaged("database"))
    }

    fn run(&mut self, work: &mut TransactionBody<'_>) -> Result<(), StoreError> {
        self.connection()?;
        let connection = self.connection.as_ref().ok_or_else(|| damaged("database"))?;
        execute(connection, "BEGIN IMMEDIATE", &[])?;
        let mut transaction = SqliteTransaction {
            connection,
            owner: &self.owner,
            watch: &self.watch,
            receipts: &self.receipts,
            opened: Vec::new(),
            settled: Vec::new(),
            noted: Vec::new(),
            marks: self.marks,
            is_last_owner: false,
            head: 0,
            told: 0,
            counter: RefCell::new(None),
            wrote: false,
            approvals: 0,
        };
        work(&mut transaction)?;
        transaction.extend_story()?;
        let SqliteTransaction { opened, settled, noted, marks, wrote, .. } = transaction;
        reach(Failpoint::BeforeCommit);
        execute(connection, "COMMIT", &[])?;
        reach(Failpoint::AfterCommit);
        if wrote {
            self.watch.written();
        }
        self.marks = marks;
        self.receipts.extend(opened);
        for call in noted {
            if let Some(receipt) = self.receipts.get_mut(&call) {
                receipt.noted = true;
            }
        }
        for call in settled {
            self.receipts.remove(&call);
        }
        Ok(())
    }
}

impl Backend for SqliteBackend {
    fn transact(&mut self, work: &mut TransactionBody<'_>) -> Result<(), StoreError> {
        let result = self.run(work);
        if let Err(fault) = &result {
            let connection = self.connection.take_if(|connection| {
                // Some failures have already rolled back.
                let stuck =
                    !connection.is_autocommit() && connection.execute_batch("ROLLBACK").is_err();
                stuck || !matches!(fault.kind, StoreErrorKind::Full | StoreErrorKind::Busy)
            });
            drop(connection);
        }
        result
    }

    fn is_quick(&self) -> bool {
        match self.durability {
            Durability::Process => true,
            Durability::Power => false,
        }
    }

    fn sync_lag(&self) -> Option<Box<SyncLag>> {
        let watch = Arc::clone(&self.watch);
        Some(Box::new(move || watch.lag()))
    }

    fn reader(&self) -> Result<Box<dyn BackendReader>, StoreError> {
        Ok(Box::new(SqliteReader(schema::open_reader(&self.folder)?)))
    }
}

impl Drop for SqliteBackend {
    fn drop(&mut self) {
        self.watch.end();
        // The thread may have the database open too, and the last connection to close checkpoints
        // the WAL.
        drop(self.syncer.take().map(JoinHandle::join));
    }
}

impl fmt::Debug for SqliteBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteBackend").field("folder", &self.folder).finish_non_exhaustive()
    }
}
