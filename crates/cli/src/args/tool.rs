//! Arguments of `toolgate tool`.

use std::path::PathBuf;

use clap::Subcommand;

use super::{AdminArgs, DataArgs, OneOutput, RowsOutput};

#[derive(Debug, clap::Args)]
pub(crate) struct ToolArgs {
    #[command(subcommand)]
    pub(crate) verb: ToolVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ToolVerb {
    /// List the tools that an agent sees
    List(ToolListArgs),
    /// Show one tool: its description and its arguments
    Show(ToolShowArgs),
    /// Approve the definition of a quarantined tool (role admin)
    ///
    /// Review it first: `toolgate tool show --diff SERVER/TOOL`. If the definition has another
    /// fingerprint by then, nothing is approved.
    Approve(ToolApproveArgs),
    /// Call a tool as an agent would: decided by policy, counted and audited
    ///
    /// Exits with 1 if the result is an error of the tool or a refusal of the gateway.
    Call(ToolCallArgs),
}

/// The endpoint, and the token to use.
#[derive(Debug, clap::Args)]
pub(crate) struct AsAgentArgs {
    /// Use this server alone, under its own names [default: all servers]
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,
    /// Address of the gateway for agents [default: the gateway that runs on the data folder]
    #[arg(long, value_name = "URL", env = "TOOLGATE_URL")]
    pub(crate) url: Option<String>,
    /// File with the token of a grant [default: the variable TOOLGATE_TOKEN, if it is set]
    #[arg(long, value_name = "FILE", conflicts_with = "as_grant")]
    pub(crate) token_file: Option<PathBuf>,
    /// Act as this grant, by label or id, with the admin's token instead of the grant's
    ///
    /// The policy and the limits of the grant apply. The audit records the person and `via: cli`.
    #[arg(long = "as", value_name = "GRANT")]
    pub(crate) as_grant: Option<String>,
    /// Address of the admin API, for --as [default: the gateway that runs on the data folder]
    #[arg(long, value_name = "URL", env = "TOOLGATE_ADMIN")]
    pub(crate) admin: Option<String>,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ToolListArgs {
    #[command(flatten)]
    pub(crate) agent: AsAgentArgs,
    /// Output format; JSON has the definitions as their servers send them
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: RowsOutput,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ToolShowArgs {
    /// The tool's name, as in `tool list`; with --diff, `SERVER/TOOL`
    #[arg(value_name = "TOOL")]
    pub(crate) tool: String,
    /// Compare its newest definition with the approved one, word by word
    ///
    /// Invisible characters are drawn. Needs the role viewer, not a grant.
    #[arg(long, conflicts_with_all = ["as_grant", "url", "token_file", "server"])]
    pub(crate) diff: bool,
    #[command(flatten)]
    pub(crate) agent: AsAgentArgs,
    /// Output format; JSON has the definition as its server sends it
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: OneOutput,
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: toolgate tool approve files/read_file --fingerprint 2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"
)]
pub(crate) struct ToolApproveArgs {
    /// The server and the tool's own name
    #[arg(value_name = "SERVER/TOOL")]
    pub(crate) tool: String,
    /// The fingerprint of the definition that you have reviewed
    #[arg(long, value_name = "HEX")]
    pub(crate) fingerprint: String,
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  toolgate tool call files__read_file '{\"path\": \"a.txt\"}'\n  toolgate tool call files__read_file '{\"path\": \"a.txt\"}' --as laptop"
)]
pub(crate) struct ToolCallArgs {
    /// The tool's name, as in `tool list`
    #[arg(value_name = "TOOL")]
    pub(crate) tool: String,
    /// Its arguments, a JSON object; `-` reads them from stdin
    #[arg(value_name = "ARGUMENTS", default_value = "{}")]
    pub(crate) arguments: String,
    #[command(flatten)]
    pub(crate) agent: AsAgentArgs,
    /// Output format; JSON has the result as it arrived
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: OneOutput,
}
