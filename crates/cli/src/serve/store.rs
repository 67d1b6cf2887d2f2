//! The store of `serve`: SQLite in the data folder, or memory with `durability: off`.

use std::path::Path;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use toolgate_audit::ArgumentHashKey;
use toolgate_config::AuditConfig;
use toolgate_gateway::{ArgumentRecording, Clock};
use toolgate_store::{CheckpointSchedule, Engine, EngineSettings, MemoryBackend, Store};
use toolgate_store_sqlite::{OpenOptions, Randomness};

use super::{checkpoints, random};

/// The wall clock.
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// Opens the store; also returns the key of hashed arguments.
pub(crate) fn open(
    folder: &Path,
    audit: &AuditConfig,
) -> anyhow::Result<(Arc<dyn Store>, ArgumentHashKey)> {
    let now = Timestamp::now();
    let Some(durability) = audit.durability else {
        tracing::warn!(
            "`audit.durability` is off: NO audit rows are written, and limits are reset by a restart"
        );
        let engine = Engine::inline(MemoryBackend::without_rows(), EngineSettings::default(), now)?;
        return Ok((Arc::new(engine), ArgumentHashKey(random::bytes()?)));
    };
    let randomness = Randomness {
        owner: u64::from_be_bytes(random::bytes()?),
        signing: random::bytes()?,
        hashing: random::bytes()?,
    };
    let every = SignedDuration::try_from(audit.checkpoint_every)?;
    let mut options = OpenOptions::new(durability, randomness);
    options.due = CheckpointSchedule { rows: audit.checkpoint_rows, every };
    options.on_checkpoint = checkpoints::copies(audit)?;
    let opened = toolgate_store_sqlite::open(folder, options, now)?;
    Ok((Arc::new(opened.store), opened.secret))
}

/// How arguments are recorded.
pub(crate) fn recording(audit: &AuditConfig, secret: &ArgumentHashKey) -> ArgumentRecording {
    ArgumentRecording { mode: audit.arguments, secret: secret.clone() }
}
