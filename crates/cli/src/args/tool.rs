//! What can be typed after `toolgate tool`.

use std::path::PathBuf;

use clap::Subcommand;

use super::{DataArgs, OneOutput, RowsOutput};

#[derive(Debug, clap::Args)]
pub(crate) struct ToolArgs {
    #[command(subcommand)]
    pub(crate) verb: ToolVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ToolVerb {
    /// List the tools that an agent sees
    List(ToolListArgs),
    /// Show one tool: what it does and which arguments it takes
    Show(ToolShowArgs),
    /// Call a tool as an agent would: decided by policy, counted and audited
    ///
    /// Exits with 1 if the tool, or the gateway in its place, answered with an error.
    Call(ToolCallArgs),
}

/// Which endpoint to ask, and as whom.
#[derive(Debug, clap::Args)]
pub(crate) struct AsAgentArgs {
    /// Ask this server alone, under its own names [default: all of them]
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,
    /// Address of the gateway for agents [default: the one that runs from the data folder]
    #[arg(long, value_name = "URL", env = "TOOLGATE_URL")]
    pub(crate) url: Option<String>,
    /// File that holds the token of a grant [default: the variable TOOLGATE_TOKEN, if it is set]
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ToolListArgs {
    #[command(flatten)]
    pub(crate) agent: AsAgentArgs,
    /// How to write the tools; JSON has them as their servers describe them
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: RowsOutput,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ToolShowArgs {
    /// The tool's name, as `tool list` has it
    #[arg(value_name = "TOOL")]
    pub(crate) tool: String,
    #[command(flatten)]
    pub(crate) agent: AsAgentArgs,
    /// How to write the tool; JSON has it as its server describes it
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: OneOutput,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ToolCallArgs {
    /// The tool's name, as `tool list` has it
    #[arg(value_name = "TOOL")]
    pub(crate) tool: String,
    /// Its arguments, a JSON object; `-` reads them from stdin
    #[arg(value_name = "ARGUMENTS", default_value = "{}")]
    pub(crate) arguments: String,
    #[command(flatten)]
    pub(crate) agent: AsAgentArgs,
    /// How to write the result; JSON has it as it came
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: OneOutput,
}
