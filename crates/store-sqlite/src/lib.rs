//! A store in SQLite: one file in the data folder, which several processes of one machine may open.
//!
//! [`open()`] makes or opens a data folder and gives a [`toolgate_store::Engine`] over it;
//! [`AuditReader`] reads and [`verify()`] checks the audit of a folder, with or without a running gateway.
//!
//! Invariant: every write is one `BEGIN IMMEDIATE` that reads counters and the head of the chain
//! from the database. Nothing that decides is remembered from one transaction to the next.
//! Invariant: SQLite's own files are never opened or closed by hand, for closing one drops the
//! locks of the whole process; the `-wal` file is, once, to sync it: SQLite never locks that one.
//!
//! Start reading at [`open()`], then `write` (one transaction), `sync` (durability), `owner` (which
//! processes live), `open_calls` (which calls have not ended). Statements are in `sql/`, the schema in `sql/migrations/`.

mod audit;
mod error;
mod keys;
mod open_calls;
mod owner;
mod read;
mod readonly;
mod row;
mod schema;
mod setup;
mod sql;
mod sync;
mod time;
mod usage;
mod verify;
mod write;

use std::{fmt, path::Path, sync::Arc};

use jiff::Timestamp;
use toolgate_audit::{ArgumentHashKey, PublicKey};
use toolgate_store::{CheckpointSchedule, Engine, EngineSettings, OnCheckpoint, StoreError};

pub use audit::AuditReader;
pub use readonly::ReadOnlyStore;
pub use schema::VERSION as SCHEMA_VERSION;
pub use sync::SyncFile;
pub use verify::{public_key, verify, verify_by};

/// How safe an intent is before its call is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// It has reached the operating system: survives the end of the process, and is synced within
    /// 100 ms. When that lags more than 5 s, nothing is admitted.
    #[default]
    Process,
    /// It is on the disk: survives a power cut.
    Power,
}

/// Random bytes, from the caller.
pub struct Randomness {
    /// Names this process among those that share the folder; never used twice.
    pub owner: u64,
    /// The key that signs checkpoints, if the folder has none yet.
    pub signing: [u8; 32],
    /// The key of hashed arguments, if the folder has none yet.
    pub hashing: [u8; 32],
}

/// What a folder is opened with.
pub struct OpenOptions {
    /// How safe intents are.
    pub durability: Durability,
    /// Random bytes.
    pub randomness: Randomness,
    /// When checkpoints are signed.
    pub due: CheckpointSchedule,
    /// Gets every checkpoint that is written.
    pub on_checkpoint: Option<Box<OnCheckpoint>>,
    /// Makes sure of what was written to a file; tests put a slow or failing disk here.
    pub sync: Arc<SyncFile>,
}

/// An open data folder.
#[derive(Debug)]
pub struct OpenedFolder {
    /// The store.
    pub store: Engine,
    /// The key of hashed arguments.
    pub secret: ArgumentHashKey,
    /// The key that checkpoints are verified with.
    pub public_key: PublicKey,
}

/// Opens a data folder, and makes it if there is none. Before it returns, calls that a dead
/// process left open have their `unknown` row; calls of living processes are left alone.
pub fn open(
    folder: &Path,
    options: OpenOptions,
    now: Timestamp,
) -> Result<OpenedFolder, StoreError> {
    let OpenOptions { durability, randomness, due, on_checkpoint, sync } = options;
    keys::make_folder(folder)?;
    let (signer, secret) = keys::read_or_make(folder, &randomness)?;
    let public_key = signer.public_key();
    let backend = write::SqliteBackend::open(folder, durability, randomness.owner, sync)?;
    let settings = EngineSettings { signer: Some(signer), due, on_checkpoint };
    let store = Engine::start(backend, settings, now)?;
    Ok(OpenedFolder { store, secret, public_key })
}

impl OpenOptions {
    /// The usual options.
    pub fn new(durability: Durability, randomness: Randomness) -> Self {
        Self {
            durability,
            randomness,
            due: CheckpointSchedule::default(),
            on_checkpoint: None,
            sync: Arc::new(sync::fdatasync),
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
