//! Arguments of `toolgate catalog`.

use std::path::PathBuf;

use clap::Subcommand;

use super::{DataArgs, ListOutput, OneOutput};

#[derive(Debug, clap::Args)]
pub(crate) struct CatalogArgs {
    #[command(subcommand)]
    pub(crate) verb: CatalogVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CatalogVerb {
    /// Find servers and tools by words: names, purposes, classes, labels
    ///
    /// Without a word it lists all servers. Servers of an imported registry are found too.
    Search(CatalogSearchArgs),
    /// Show a server, or one of its tools: what it does, its class and why, what could go wrong, the
    /// recommended rule, the attack patterns that apply
    Show(CatalogShowArgs),
    /// Import a dump of an MCP registry (`server.json`, or an answer of `/v0/servers`)
    ///
    /// Its servers are found by `catalog search`. They are not scanned: the descriptions are those of
    /// their authors.
    Import(CatalogImportArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct CatalogSearchArgs {
    /// Words that must all occur
    #[arg(value_name = "WORD")]
    pub(crate) words: Vec<String>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: ListOutput,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CatalogShowArgs {
    /// The server, by its name or its package
    #[arg(value_name = "SERVER")]
    pub(crate) server: String,
    /// One of its tools
    #[arg(value_name = "TOOL")]
    pub(crate) tool: Option<String>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: OneOutput,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CatalogImportArgs {
    /// The dump: one server, a list of them, or an object with `servers`
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}
