//! What can be typed after `toolgate doctor`.

use super::admin::AdminArgs;
use super::audit::OneOutput;

#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    /// Take the clock of this machine as it is now, after it was ahead: windows of limits move with
    /// it and keep what was counted; the audit has a row of it
    #[arg(long)]
    pub(crate) accept_clock: bool,
    /// How to write the findings
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: OneOutput,
}
