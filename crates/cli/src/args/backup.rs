//! Arguments of `toolgate backup` and `toolgate preflight`.

use std::path::PathBuf;

use super::policy::arguments;
use super::{AsAgentArgs, DataArgs, OneOutput};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example: toolgate backup /backup/toolgate-2026-11-18")]
pub(crate) struct BackupArgs {
    /// The folder to create; it must not exist
    #[arg(value_name = "DIR")]
    pub(crate) to: PathBuf,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 every tool can be called; 10 one is denied; 11 one waits for a \
                        person; 12 one is unknown or quarantined (the highest of them); 2 an error; \
                        64 wrong usage
Example: toolgate preflight files__read_file files__write_file --grant ci"
)]
pub(crate) struct PreflightArgs {
    /// The tools, by the names that agents see on `/mcp`
    #[arg(value_name = "TOOL", required = true)]
    pub(crate) tools: Vec<String>,
    /// The grant, by label or id [default: the grant of TOOLGATE_TOKEN or --token-file, else calls
    /// without a token]
    #[arg(long, value_name = "GRANT", conflicts_with_all = ["as_grant", "token_file"])]
    pub(crate) grant: Option<String>,
    /// The arguments of the calls, a JSON object; with --grant
    #[arg(long, value_name = "JSON", default_value = "{}", value_parser = arguments)]
    pub(crate) args: String,
    #[command(flatten)]
    pub(crate) agent: AsAgentArgs,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: OneOutput,
}
