//! Arguments of `toolgate doctor`.

use std::path::PathBuf;

use super::admin::AdminArgs;
use super::audit::OneOutput;

#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    /// Accept the current time after the clock was ahead: windows of limits move with it and keep
    /// their counts; recorded in the audit
    #[arg(long)]
    pub(crate) accept_clock: bool,
    /// Do not start or contact servers
    #[arg(long)]
    pub(crate) no_servers: bool,
    /// Also write what was found, without secrets, to this tar archive
    #[arg(long, value_name = "FILE")]
    pub(crate) bundle: Option<PathBuf>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: OneOutput,
    /// The same as `-o json`
    #[arg(long, conflicts_with = "output")]
    pub(crate) json: bool,
}
