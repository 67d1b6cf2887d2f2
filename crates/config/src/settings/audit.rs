//! `audit`: durability of rows, and their content.

use std::path::PathBuf;
use std::time::Duration;

use crate::reader::{Reader, section};
use crate::value::{Period, Syslog, Text, Whole, within, words};

/// The audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditConfig {
    /// When an intent row is durable.
    pub durability: Durability,
    /// What rows contain of arguments.
    pub arguments: AuditArguments,
    /// A checkpoint is signed after this many rows at the latest.
    pub checkpoint_rows: u64,
    /// A checkpoint is signed after this time at the latest.
    pub checkpoint_every: Duration,
    /// A file to which checkpoints are also written.
    pub checkpoint_file: Option<PathBuf>,
    /// A syslog daemon to which checkpoints are also sent.
    pub checkpoint_syslog: Option<Syslog>,
}

words! {
    /// When an intent row is durable.
    pub enum Durability {
        /// It has reached the operating system: survives a killed process.
        Process = "process",
        /// It has reached the disk: survives a power cut.
        Power = "power",
        /// No rows at all, for measuring.
        Off = "off",
    }
}

words! {
    /// What rows contain of arguments.
    pub enum AuditArguments {
        /// Only the names of arguments.
        Keys = "keys",
        /// Values at paths that active policies name.
        Facts = "facts",
        /// A keyed hash of each value.
        Hashed = "hashed",
        /// Everything.
        Full = "full",
    }
}

section! {
    /// The audit log.
    #[schemars(rename = "Audit")]
    struct RawAudit {
        /// Durability of a row before its call is sent: `process` (survives kill -9), `power` (survives a power cut), `off` (no rows; for measurements).
        #[schemars(extend("default" = "process"))]
        durability: Durability,
        /// Arguments in audit rows: `keys` (names only), `facts` (also values that policies use), `hashed`, `full`.
        #[schemars(extend("default" = "keys"))]
        arguments: AuditArguments,
        /// When checkpoints are signed.
        checkpoints: RawCheckpoints,
    }
}

section! {
    /// When checkpoints are signed (whichever comes first), and where copies of them go.
    #[schemars(rename = "Checkpoints")]
    struct RawCheckpoints {
        /// Number of rows after which a checkpoint is signed.
        #[schemars(extend("default" = 1000))]
        rows: Whole,
        /// Time after which a checkpoint is signed.
        #[schemars(extend("default" = "60s"))]
        every: Period,
        /// File to which each checkpoint is also appended, one line of JSON each; best on another disk or machine.
        file: Text,
        /// Syslog daemon to which each checkpoint is also sent (RFC 5424): `local`, the absolute path of a socket, or `udp://ADDRESS:514`; best one that logs on another machine.
        syslog: Syslog,
    }
}

impl RawAudit {
    pub(crate) fn lower(self, reader: &mut Reader<'_>) -> AuditConfig {
        let checkpoints = self.checkpoints.map(|at| at.value).unwrap_or_default();
        let (rows, every) = ((Whole(1), Whole(1_000_000)), (Period::secs(1), Period::days(1)));
        AuditConfig {
            durability: self.durability.map_or(Durability::Process, |at| at.value),
            arguments: self.arguments.map_or(AuditArguments::Keys, |at| at.value),
            checkpoint_rows: within(checkpoints.rows, rows, Whole(1000), reader).0,
            checkpoint_every: within(checkpoints.every, every, Period::secs(60), reader).0,
            checkpoint_file: checkpoints.file.map(|at| reader.path(at.value.0)),
            checkpoint_syslog: checkpoints.syslog.map(|at| at.value),
        }
    }
}
