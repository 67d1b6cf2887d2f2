//! What can be typed after `toolgate audit`.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Subcommand, ValueEnum};
use toolgate_audit::{Decision, UnknownValue};

#[derive(Debug, clap::Args)]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    pub(crate) verb: AuditVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditVerb {
    /// Check every row, the chain and the signed checkpoints
    ///
    /// Exits with 1 and names the first bad row if the audit is broken, with 2 if there is none or
    /// it cannot be read.
    Verify(VerifyArgs),
    /// List rows, oldest first
    List(ListArgs),
    /// Tell the story of one call
    Show(ShowArgs),
    /// Show the last 20 rows, and go on with --follow
    Tail(TailArgs),
}

#[derive(Debug, clap::Args)]
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
    /// Checkpoints that were written elsewhere (`audit.checkpoints.file`), to be checked too
    #[arg(long, value_name = "FILE")]
    pub(crate) checkpoints: Option<PathBuf>,
    /// Public key to check signatures by, instead of the data folder's own: 64 hex digits, base64,
    /// a file that holds it, or the fingerprint (`sha256:…`) that the first start has printed
    #[arg(long, value_name = "PUBLIC_KEY")]
    pub(crate) key: Option<String>,
    /// How to write the result
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: OneOutput,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Only rows after this one
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    pub(crate) after: u64,
    /// At most so many rows, up to 1000
    #[arg(long, value_name = "N", default_value_t = 100,
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) limit: u16,
    /// Only rows of the grant with this label
    #[arg(long, value_name = "LABEL")]
    pub(crate) grant: Option<String>,
    /// Only rows of this tool
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Only rows with this decision
    #[arg(long, value_name = "WORD", value_parser = decision())]
    pub(crate) decision: Option<Decision>,
    /// How to write the rows
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: RowsOutput,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// The call's id, or its beginning
    #[arg(value_name = "CALL")]
    pub(crate) call: String,
    /// What `serve --policy` was given, to say on which line of it the rule stands
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,
    /// How to write the story
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: OneOutput,
}

#[derive(Debug, clap::Args)]
pub(crate) struct TailArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Go on with rows as they are written, until interrupted
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// How to write the rows
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
    /// One row a line
    Jsonl,
}

fn decision() -> impl clap::builder::TypedValueParser<Value = Decision> {
    let words = Decision::ALL.iter().map(|decision| decision.as_str());
    PossibleValuesParser::new(words)
        .try_map(|word| Decision::parse(&word).map_err(|UnknownValue| std::fmt::Error))
}
