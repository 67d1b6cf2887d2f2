//! Arguments of `toolgate audit`.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

use super::audit_filter::FilterArgs;

#[derive(Debug, clap::Args)]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    pub(crate) verb: AuditVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditVerb {
    /// Check every row, the chain and the signed checkpoints
    ///
    /// Exits with 1 and names the first bad row if the audit is broken, with 2 if it does not exist
    /// or cannot be read.
    Verify(VerifyArgs),
    /// List rows, newest first; with --after oldest first
    List(ListArgs),
    /// Show what happened to one call
    Show(ShowArgs),
    /// Show the last 20 rows; with --follow also new ones
    Tail(TailArgs),
    /// Export rows, oldest first, as JSON Lines or CSV
    Export(ExportArgs),
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct DataArgs {
    /// Configuration file, for its `data` [default: ./toolgate.yaml if it exists]
    #[arg(long, value_name = "FILE", env = "TOOLGATE_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Data folder [default: $XDG_DATA_HOME/toolgate or ~/.local/share/toolgate]
    #[arg(long, value_name = "DIR", env = "TOOLGATE_DATA")]
    pub(crate) data: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Also check against the checkpoints in this file (`audit.checkpoints.file`)
    #[arg(long, value_name = "FILE")]
    pub(crate) checkpoints: Option<PathBuf>,
    /// Public key for signatures, instead of the data folder's own: 64 hex digits, base64, a file
    /// that contains it, or the fingerprint (`sha256:…`) that the first start printed
    #[arg(long, value_name = "PUBLIC_KEY")]
    pub(crate) key: Option<String>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: OneOutput,
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  toolgate audit list --since 2h --kind denied\n  toolgate audit list --grant laptop --code rate_limited -o jsonl"
)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Only rows after this one, oldest first
    #[arg(long, value_name = "SEQ")]
    pub(crate) after: Option<u64>,
    /// Only rows before this one
    #[arg(long, value_name = "SEQ")]
    pub(crate) before: Option<u64>,
    /// At most so many rows, up to 1000
    #[arg(long, value_name = "N", default_value_t = 100,
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) limit: u16,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: RowsOutput,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// The call's id, or its beginning as `audit list` shows it
    #[arg(value_name = "CALL")]
    pub(crate) call: String,
    /// The file of `serve --policy`, to print the line of the rule
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: OneOutput,
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: toolgate audit export --since 2026-11-01 -o csv --excel --write november.csv"
)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// For Excel: a byte order mark, and an apostrophe before cells that start with = + - @, a tab
    /// or a carriage return, which Excel would run as formulas
    #[arg(long)]
    pub(crate) excel: bool,
    /// Write to this file instead of stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) write: Option<PathBuf>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "jsonl")]
    pub(crate) output: ExportOutput,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportOutput {
    /// One row per line
    Jsonl,
    /// Comma-separated values (RFC 4180) with a header
    Csv,
}

#[derive(Debug, clap::Args)]
pub(crate) struct TailArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Print new rows as they are written, until interrupted
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: RowsOutput,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OneOutput {
    /// For people
    Table,
    /// One JSON object
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RowsOutput {
    /// For people
    Table,
    /// One JSON object
    Json,
    /// One row per line
    Jsonl,
}
