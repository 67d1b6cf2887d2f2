//! The store of `serve`: SQLite in the data folder, or memory where nothing is to be kept.

use std::path::Path;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use toolgate_audit::{ArgumentHashKey, ArgumentMode};
use toolgate_config::{AuditArguments, AuditConfig, Durability};
use toolgate_gateway::{Clock, Writing};
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

/// Opens the store; with it comes the key of hashed arguments.
pub(crate) fn open(
    folder: &Path,
    audit: &AuditConfig,
) -> anyhow::Result<(Arc<dyn Store>, ArgumentHashKey)> {
    let now = Timestamp::now();
    let durability = match audit.durability {
        Durability::Process => toolgate_store_sqlite::Durability::Process,
        Durability::Power => toolgate_store_sqlite::Durability::Power,
        Durability::Off => {
            tracing::warn!(
                "`audit.durability` is off: NOTHING is written down, and limits are forgotten at \
                 a restart"
            );
            let engine =
                Engine::inline(MemoryBackend::without_rows(), EngineSettings::default(), now)?;
            return Ok((Arc::new(engine), ArgumentHashKey(random::bytes()?)));
        }
    };
    let randomness = Randomness {
        owner: u64::from_be_bytes(random::bytes()?),
        signing: random::bytes()?,
        hashing: random::bytes()?,
    };
    let every = SignedDuration::try_from(audit.checkpoint_every)?;
    let mut options = OpenOptions::new(durability, randomness);
    options.due = CheckpointSchedule { rows: audit.checkpoint_rows, every };
    options.on_checkpoint = checkpoints::elsewhere(audit)?;
    let opened = toolgate_store_sqlite::open(folder, options, now)?;
    Ok((Arc::new(opened.store), opened.secret))
}

/// What of arguments is written down.
pub(crate) fn writing(audit: &AuditConfig, secret: &ArgumentHashKey) -> Writing {
    let mode = match audit.arguments {
        AuditArguments::Keys => ArgumentMode::Keys,
        AuditArguments::Facts => ArgumentMode::Facts,
        AuditArguments::Hashed => ArgumentMode::Hashed,
        AuditArguments::Full => ArgumentMode::Full,
    };
    Writing { mode, secret: secret.clone() }
}
