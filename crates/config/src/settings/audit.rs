//! `audit`: durability of rows, and their content.

use std::path::PathBuf;
use std::time::Duration;

use toolgate_audit::{ArgumentMode, Durability};

use crate::reader::{Reader, section};
use crate::value::{Keyword, Period, Syslog, Text, Whole, Word, within};

/// The audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditConfig {
    /// How durable an intent row is before its call is sent; `None` writes no rows at all.
    pub durability: Option<Durability>,
    /// What rows contain of arguments.
    pub arguments: ArgumentMode,
    /// A checkpoint is signed after this many rows at the latest.
    pub checkpoint_rows: u64,
    /// A checkpoint is signed after this time at the latest.
    pub checkpoint_every: Duration,
    /// A file to which checkpoints are also written.
    pub checkpoint_file: Option<PathBuf>,
    /// A syslog daemon to which checkpoints are also sent.
    pub checkpoint_syslog: Option<Syslog>,
}

impl AuditConfig {
    /// The durability as the file spells it.
    pub fn durability_name(&self) -> &'static str {
        match self.durability {
            Some(Durability::Process) => "process",
            Some(Durability::Power) => "power",
            None => "off",
        }
    }
}

impl Keyword for Option<Durability> {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("process", Some(Durability::Process)),
        ("power", Some(Durability::Power)),
        ("off", None),
    ];
}

impl Keyword for ArgumentMode {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("keys", Self::Keys),
        ("facts", Self::Facts),
        ("hashed", Self::Hashed),
        ("full", Self::Full),
    ];
}

section! {
    /// The audit log.
    #[schemars(rename = "Audit")]
    struct RawAudit {
        /// Durability of a row before its call is sent: `process` (survives kill -9), `power` (survives a power cut), `off` (no rows; for measurements).
        #[schemars(extend("default" = "process"))]
        durability: Word<Option<Durability>>,
        /// Arguments in audit rows: `keys` (names only), `facts` (also values that policies use), `hashed`, `full`.
        #[schemars(extend("default" = "keys"))]
        arguments: Word<ArgumentMode>,
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
            durability: self.durability.map_or(Some(Durability::default()), |at| at.value.0),
            arguments: self.arguments.map(|at| at.value.0).unwrap_or_default(),
            checkpoint_rows: within(checkpoints.rows, rows, Whole(1000), reader).0,
            checkpoint_every: within(checkpoints.every, every, Period::secs(60), reader).0,
            checkpoint_file: checkpoints.file.map(|at| reader.path(at.value.0)),
            checkpoint_syslog: checkpoints.syslog.map(|at| at.value),
        }
    }
}
