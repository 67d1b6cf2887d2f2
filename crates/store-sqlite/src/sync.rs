//! Durability `process`: a background thread syncs the WAL every 100 ms, so that no call waits for
//! the disk and a power failure loses at most that much.
//!
//! The thread also checkpoints the WAL, which would otherwise block the writer.

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
/// If syncing lags more than this, no call is admitted.
const MAX_LAG: Duration = Duration::from_secs(5);
/// The WAL is checkpointed when it is longer than this.
const LONG: u64 = 4 << 20;

/// Syncs a file to the disk.
pub type SyncFile = dyn Fn(&File) -> io::Result<()> + Send + Sync;

/// The default: `fdatasync`.
pub(crate) fn fdatasync(file: &File) -> io::Result<()> {
    file.sync_data()
}

/// Reads a monotonic clock.
pub type MonotonicClock = dyn Fn() -> Instant + Send + Sync;

/// State shared by the writer and the thread.
pub(crate) struct SyncMonitor {
    state: Mutex<State>,
    changed: Condvar,
    clock: Arc<MonotonicClock>,
}

#[derive(Debug, Default)]
struct State {
    /// Since when unsynced data waits.
    waiting: Option<Instant>,
    /// Since when the data being synced has waited.
    syncing: Option<Instant>,
    ended: bool,
}

impl SyncMonitor {
    pub(crate) fn new(clock: Arc<MonotonicClock>) -> Self {
        Self { state: Mutex::default(), changed: Condvar::new(), clock }
    }

    /// Reports that data was written.
    pub(crate) fn written(&self) {
        let mut state = self.state.lock();
        if state.waiting.is_none() {
            state.waiting = Some((self.clock)());
            self.changed.notify_one();
        }
    }

    /// How long the oldest unsynced data has waited.
    pub(crate) fn lag(&self) -> Duration {
        let state = self.state.lock();
        // Data being synced has waited longer than data that waits.
        let oldest = state.syncing.or(state.waiting);
        oldest.map(|since| (self.clock)().saturating_duration_since(since)).unwrap_or_default()
    }

    /// Fails if syncing lags.
    pub(crate) fn may_admit(&self) -> Result<(), StoreError> {
        let lag = self.lag();
        if lag > MAX_LAG {
            let message = format!("data has not been synced for {} s", lag.as_secs());
            return Err(StoreError::new(StoreErrorKind::Lagging, message));
        }
        Ok(())
    }

    /// Ends the thread.
    pub(crate) fn end(&self) {
        self.state.lock().ended = true;
        self.changed.notify_one();
    }

    /// Waits for a write, then a little longer for more. `false` when the thread must end.
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
            // The data stays unsynced since the first write, until a sync succeeds.
            state.waiting = since;
        }
    }
}

/// The sync thread.
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
        let mut checkpointer: Option<Connection> = None;
        loop {
            let goes_on = self.watch.wait();
            let result = self.sync_log(&mut log);
            self.watch.synced(&result);
            if !goes_on {
                return;
            }
            let length = log.as_ref().and_then(|log| log.metadata().ok());
            if length.is_some_and(|log| log.len() > LONG) {
                self.write_back(&mut checkpointer);
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

    /// Never blocks. If it fails, the writer eventually does it.
    fn write_back(&self, checkpointer: &mut Option<Connection>) {
        if checkpointer.is_none() {
            *checkpointer = schema::open_checkpointer(&self.folder).ok();
        }
        if let Some(connection) = checkpointer {
            let done = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
            if done.is_err() {
                *checkpointer = None;
            }
        }
    }
}
