//! Arguments of `toolgate client`.

use std::path::PathBuf;

use clap::Subcommand;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use toolgate_clients::McpClient;

use super::{DataArgs, ListOutput};

#[derive(Debug, clap::Args)]
pub(crate) struct ClientArgs {
    #[command(subcommand)]
    pub(crate) verb: ClientVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ClientVerb {
    /// Write toolgate into the configuration of an MCP client
    ///
    /// Shows the difference and asks. Comments, order, line ends and mode of the file stay, and a
    /// backup is kept. No gateway needs to run.
    Connect(ConnectArgs),
    /// Remove toolgate from the configuration of an MCP client
    Disconnect(DisconnectArgs),
    /// List MCP clients: which are installed, and which are connected
    List(ClientListArgs),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  toolgate client connect cursor
  toolgate client connect claude-desktop --grant desk --yes
  toolgate client connect codex --server files --dry-run")]
pub(crate) struct ConnectArgs {
    #[command(flatten)]
    pub(crate) edit: EditArgs,
    /// Connect to this server alone, under its own names [default: all servers]
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,
    /// Address of the gateway for agents [default: the gateway that runs on the data folder, else
    /// `listen.mcp`]
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Create a grant with this label for the client, and write its token; the file becomes readable
    /// for its owner alone
    #[arg(long, value_name = "LABEL", conflicts_with = "print")]
    pub(crate) grant: Option<String>,
    /// The policy of the new grant
    #[arg(long, value_name = "NAME", default_value = "recommended")]
    pub(crate) policy: String,
    /// Print the entry to paste, and write nothing
    #[arg(long, conflicts_with_all = ["yes", "dry_run"])]
    pub(crate) print: bool,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DisconnectArgs {
    #[command(flatten)]
    pub(crate) edit: EditArgs,
}

/// An edit of a client's file.
#[derive(Debug, clap::Args)]
pub(crate) struct EditArgs {
    /// The client
    #[arg(value_name = "CLIENT", value_parser = client())]
    pub(crate) client: McpClient,
    /// The file to edit [default: the client's file for all projects]
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// The name of the entry
    #[arg(long, value_name = "NAME", default_value = "toolgate")]
    pub(crate) name: String,
    /// Write without asking
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) yes: bool,
    /// Show the difference, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ClientListArgs {
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: ListOutput,
}

fn client() -> impl clap::builder::TypedValueParser<Value = McpClient> {
    let ids = PossibleValuesParser::new(McpClient::ALL.map(McpClient::id));
    ids.map(|id| McpClient::of_id(&id).unwrap_or(McpClient::ClaudeCode))
}
