//! What can be typed after `session`.

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
    /// List programs that have dialled in, and sockets on which nobody has registered
    List(ShownListArgs),
    /// Make a token for programs that dial in, and print what to do with it
    ///
    /// Nothing is kept: the token is in force once it is in the environment of `toolgate serve` and
    /// named in toolgate.yaml.
    Token(SessionTokenArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct SessionTokenArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// How to write the result
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: OneOutput,
}
