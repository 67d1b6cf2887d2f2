//! Arguments of `toolgate console`.

use super::admin::AdminArgs;

#[derive(Debug, clap::Args)]
pub(crate) struct ConsoleArgs {
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    /// Only print the link
    #[arg(long)]
    pub(crate) no_open: bool,
}
