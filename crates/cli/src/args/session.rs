//! Arguments of `toolgate session`.

use clap::Subcommand;

use super::admin::ShownListArgs;
use super::audit::{DataArgs, OneOutput};

#[derive(Debug, clap::Args)]
pub(crate) struct SessionArgs {
    #[command(subcommand)]
    pub(crate) verb: SessionVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionVerb {
    /// List connected sessions, and sockets that have not registered
    List(ShownListArgs),
    /// Create a token for programs that dial in, and print how to use it
    ///
    /// The token is not stored: it is active once it is in the environment of `toolgate serve` and
    /// referred to in toolgate.yaml.
    Token(SessionTokenArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct SessionTokenArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: OneOutput,
}
