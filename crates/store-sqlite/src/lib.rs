//! A store in SQLite: one file in the data folder, which several processes on one machine may open.
//!
//! [`open()`] creates or opens a data folder and returns a [`toolgate_store::Engine`] for it.
//! [`AuditReader`] reads and [`verify()`] verifies the audit of a folder, with or without a running
//! gateway.
//!
//! Invariant: every write is one `BEGIN IMMEDIATE` that reads counters and the head of the chain
//! from the database. Nothing that affects a decision is cached between transactions.
//! Invariant: SQLite's own files are never opened or closed by hand, because closing one releases
//! the locks of the whole process. The exception is the `-wal` file, which is opened once to sync
//! it; SQLite never locks it.
//!
//! Start reading at [`open()`], then `write` (one transaction), `sync` (durability), `owner` (which
//! processes are running), `open_calls` (which calls have not ended). Statements are in `sql/`, the
//! schema in `sql/migrations/`.

mod approvals;
mod audit;
mod backup;
mod columns;
mod error;
mod keys;
mod open_calls;
mod owner;
mod read;
mod readonly;
mod row;
mod row_filter;
mod schema;
mod setup;
mod sql;
mod sync;
mod time;
mod usage;
mod verify;
mod write;

use std::{fmt, path::Path, sync::Arc, time::Instant};

use jiff::Timestamp;
use toolgate_audit::{ArgumentHashKey, PublicKey};
use toolgate_store::{CheckpointSchedule, Engine, EngineSettings, OnCheckpoint, StoreError};

pub use audit::AuditReader;
pub use backup::{PendingMigration, backup, pending_migration};
pub use readonly::ReadOnlyStore;
pub use schema::VERSION as SCHEMA_VERSION;
pub use sync::{MonotonicClock, SyncFile};
pub use toolgate_audit::Durability;
pub use verify::{public_key, verify, verify_by};

/// Random bytes provided by the caller.
pub struct Randomness {
    /// Identifies this process among those that share the folder; never reused.
    pub owner: u64,
    /// The key that signs checkpoints, if the folder does not have one yet.
    pub signing: [u8; 32],
    /// The key that hashes arguments, if the folder does not have one yet.
    pub hashing: [u8; 32],
}

/// Options for opening a folder.
pub struct OpenOptions {
    /// How durable intents are.
    pub durability: Durability,
    /// Random bytes.
    pub randomness: Randomness,
    /// When checkpoints are signed.
    pub due: CheckpointSchedule,
    /// Receives every checkpoint after it is written.
    pub on_checkpoint: Option<Box<OnCheckpoint>>,
    /// Syncs a file; tests install a slow or failing disk here.
    pub sync: Arc<SyncFile>,
    /// Measures how long data waits to be synced.
    pub clock: Arc<MonotonicClock>,
}

/// An open data folder.
#[derive(Debug)]
pub struct OpenedFolder {
    /// The store.
    pub store: Engine,
    /// The key that hashes arguments.
    pub secret: ArgumentHashKey,
    /// The key that verifies checkpoints.
    pub public_key: PublicKey,
}

/// Opens a data folder; creates it if it does not exist. Before it returns, calls left open by an
/// exited process have their `unknown` row; calls of running processes are not changed.
pub fn open(
    folder: &Path,
    options: OpenOptions,
    now: Timestamp,
) -> Result<OpenedFolder, StoreError> {
    let OpenOptions { durability, randomness, due, on_checkpoint, sync, clock } = options;
    keys::make_folder(folder)?;
    backup::before_migration(folder, now)?;
    let (signer, secret) = keys::read_or_make(folder, &randomness)?;
    let public_key = signer.public_key();
    let backend = write::SqliteBackend::open(folder, durability, randomness.owner, sync, clock)?;
    let settings = EngineSettings { signer: Some(signer), due, on_checkpoint };
    let store = Engine::start(backend, settings, now)?;
    Ok(OpenedFolder { store, secret, public_key })
}

impl OpenOptions {
    /// Default options.
    pub fn new(durability: Durability, randomness: Randomness) -> Self {
        Self {
            durability,
            randomness,
            due: CheckpointSchedule::default(),
            on_checkpoint: None,
            sync: Arc::new(sync::fdatasync),
            clock: Arc::new(Instant::now),
        }
    }
}

impl fmt::Debug for OpenOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenOptions").field("durability", &self.durability).finish_non_exhaustive()
    }
}

impl fmt::Debug for Randomness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Randomness")
    }
}
