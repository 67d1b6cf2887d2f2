//! What can be typed after `session`.

use clap::Subcommand;

use super::admin::ShownListArgs;

#[derive(Debug, clap::Args)]
pub(crate) struct SessionArgs {
    #[command(subcommand)]
    pub(crate) verb: SessionVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionVerb {
    /// List programs that have dialled in, and sockets on which nobody has registered
    List(ShownListArgs),
}
