//! Arguments of `toolgate scan`.

use std::path::PathBuf;

use clap::ValueEnum;
use toolgate_catalog::Level;

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("what").required(true).args(["url", "command", "config"]))]
pub(crate) struct ScanArgs {
    /// The URL of an MCP server (streamable HTTP, or HTTP+SSE of 2024-11-05)
    #[arg(value_name = "URL")]
    pub(crate) url: Option<String>,
    /// The command that starts an MCP server on stdio, after `--`
    #[arg(value_name = "CMD", last = true)]
    pub(crate) command: Vec<String>,
    /// The configuration of an MCP client (`mcpServers` or `servers`): every server in it is scanned
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// A header for the URL, its value as a reference: "Authorization: env:TOKEN"
    #[arg(long = "header", value_name = "NAME: REFERENCE", requires = "url")]
    pub(crate) headers: Vec<String>,
    /// How to print the result
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: ScanOutput,
    /// Exit with 1 if a tool has this level or a higher one
    #[arg(long, value_name = "LEVEL")]
    pub(crate) fail_on: Option<FailOn>,
    /// Write the recommended policy to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) write: Option<PathBuf>,
    /// Replace the file of `--write` if it exists
    #[arg(long, requires = "write")]
    pub(crate) force: bool,
    /// Report only what changed since this result of `scan -o json`; exit with 1 if anything did
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScanOutput {
    /// For people
    Table,
    /// One JSON object
    Json,
    /// SARIF 2.1.0, for code scanning services
    Sarif,
    /// For pull requests
    Markdown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// Write and above
    Medium,
    /// Execute and above
    High,
    /// Destructive and Financial
    Critical,
}

impl FailOn {
    pub(crate) fn level(self) -> Level {
        match self {
            FailOn::Medium => Level::Medium,
            FailOn::High => Level::High,
            FailOn::Critical => Level::Critical,
        }
    }
}
