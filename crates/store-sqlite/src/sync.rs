//! Durability `process`: a thread of its own syncs the log every 100 ms, so that no call waits for
//! the disk and no power cut takes more than that.
//!
//! It also writes the log back into the database, which would hold up the writer.

use std::{
    fs::File,
    io,
    path::PathBuf,
    sync::Arc,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};
use rusqlite::Connection;
use toolgate_store::{StoreError, StoreErrorKind};

use crate::{Durability, schema};

const EVERY: Duration = Duration::from_millis(100);
/// When syncing lags more than this, nothing is admitted.
const MAX_LAG: Duration = Duration::from_secs(5);
/// The log is written back when it is longer than this.
const LONG: u64 = 4 << 20;

/// Makes sure of what was written to a file.
pub type SyncFile = dyn Fn(&File) -> io::Result<()> + Send + Sync;

/// What the disk is asked to do.
pub(crate) fn fdatasync(file: &File) -> io::Result<()> {
    file.sync_data()
}

/// What the writer and the thread tell each other.
#[derive(Debug, Default)]
pub(crate) struct SyncMonitor {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Since when something waits to be synced.
    waiting: Option<Instant>,
    /// Since when what is being synced now has waited.
    syncing: Option<Instant>,
    ended: bool,
}

impl SyncMonitor {
    /// Something was written.
    pub(crate) fn written(&self) {
        let mut state = self.state.lock();
        if state.waiting.is_none() {
            state.waiting = Some(Instant::now());
            self.changed.notify_one();
        }
    }

    /// Refuses when syncing lags.
    pub(crate) fn may_admit(&self) -> Result<(), StoreError> {
        let state = self.state.lock();
        // What is being synced has waited longer than what waits.
        let oldest = state.syncing.or(state.waiting);
        match oldest.map(|since| since.elapsed()) {
            Some(lag) if lag > MAX_LAG => {
                let message = format!("what was written is not synced for {} s", lag.as_secs());
                Err(StoreError::new(StoreErrorKind::Lagging, message))
            }
            _ => Ok(()),
        }
    }

    /// Ends the thread.
    pub(crate) fn end(&self) {
        self.state.lock().ended = true;
        self.changed.notify_one();
    }

    /// Waits until something was written, then a little for more. `false` at the end.
    fn wait(&self) -> bool {
        let mut state = self.state.lock();
        while state.waiting.is_none() && !state.ended {
            self.changed.wait(&mut state);
        }
        if !state.ended {
            self.changed.wait_for(&mut state, EVERY);
        }
        state.syncing = state.waiting.take();
        !state.ended
    }

    fn synced(&self, result: &io::Result<()>) {
        let mut state = self.state.lock();
        let since = state.syncing.take();
        if result.is_err() {
            // It counts as unsynced from the beginning, until a sync succeeds.
            state.waiting = since;
        }
    }
}

/// The thread.
pub(crate) struct Syncer {
    pub(crate) folder: PathBuf,
    pub(crate) durability: Durability,
    pub(crate) watch: Arc<SyncMonitor>,
    pub(crate) sync: Arc<SyncFile>,
}

impl Syncer {
    pub(crate) fn start(self) -> Result<JoinHandle<()>, StoreError> {
        let spawned = thread::Builder::new().name("store-syncer".to_owned()).spawn(|| self.run());
        spawned.map_err(|error| StoreError::new(StoreErrorKind::Internal, error.to_string()))
    }

    fn run(self) {
        let mut log: Option<File> = None;
        let mut sweeper: Option<Connection> = None;
        loop {
            let goes_on = self.watch.wait();
            let result = self.sync_log(&mut log);
            self.watch.synced(&result);
            if !goes_on {
                return;
            }
            let length = log.as_ref().and_then(|log| log.metadata().ok());
            if length.is_some_and(|log| log.len() > LONG) {
                self.write_back(&mut sweeper);
            }
        }
    }

    fn sync_log(&self, log: &mut Option<File>) -> io::Result<()> {
        let log = match log {
            Some(log) => log,
            none => none.insert(File::open(schema::wal(&self.folder))?),
        };
        match self.durability {
            Durability::Process => (self.sync)(log),
            Durability::Power => Ok(()),
        }
    }

    /// Without waiting for anybody. If it fails, the writer does it in the end.
    fn write_back(&self, sweeper: &mut Option<Connection>) {
        if sweeper.is_none() {
            *sweeper = schema::open_sweeper(&self.folder).ok();
        }
        if let Some(connection) = sweeper {
            let done = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
            if done.is_err() {
                *sweeper = None;
            }
        }
    }
}
