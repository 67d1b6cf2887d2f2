//! Arguments of `toolgate approval`.

use clap::Subcommand;

use super::{AdminArgs, ListOutput, OneOutput};

#[derive(Debug, clap::Args)]
pub(crate) struct ApprovalArgs {
    #[command(subcommand)]
    pub(crate) verb: ApprovalVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ApprovalVerb {
    /// List calls that wait for a person
    List(ApprovalListArgs),
    /// Show one approval: its arguments, the grant's recent calls, its limits, and what differs from the last approved call
    Show(ApprovalShowArgs),
    /// Approve a call: it is sent once
    Approve(ApprovalAnswerArgs),
    /// Deny a call; the agent is told the reason
    Deny(ApprovalDenyArgs),
    /// Watch pending approvals and answer each with one key
    ///
    /// On a terminal it shows one approval at a time: `a` approves it, `d` denies it, `n` shows the next one, `q` quits. A new approval rings the bell. Without a terminal it prints one line for each approval that begins or stops to wait.
    Watch(ApprovalWatchArgs),
    /// End a standing exception
    Revoke(ApprovalRevokeArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct ApprovalListArgs {
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    /// Standing exceptions: similar calls that pass for a while
    #[arg(long, conflicts_with_all = ["state", "all"])]
    pub(crate) standing: bool,
    /// Approvals in every state, not only pending ones
    #[arg(long, conflicts_with = "state")]
    pub(crate) all: bool,
    /// Approvals in this state: pending, approved, denied, expired, consumed
    #[arg(long, value_name = "STATE")]
    pub(crate) state: Option<String>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: ListOutput,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ApprovalShowArgs {
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    /// Id of the approval
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: OneOutput,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ApprovalAnswerArgs {
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    /// Id of the approval
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// The reason, for the audit
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Also let similar calls of this grant pass for so long: `1h`
    #[arg(long, value_name = "TIME")]
    pub(crate) similar: Option<String>,
    /// Path at which the arguments of similar calls must be equal (`args.to`); all of them if not given
    #[arg(long, value_name = "PATH", requires = "similar")]
    pub(crate) keep: Vec<String>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: OneOutput,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ApprovalDenyArgs {
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    /// Id of the approval
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// The reason, for the audit and the agent
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: OneOutput,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ApprovalWatchArgs {
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    /// Command for `sh` that runs for each new approval; it gets `TOOLGATE_APPROVAL_ID`, `_GRANT`, `_IDENTITY`, `_SERVER`, `_SESSION`, `_TOOL`, `_CLASS` and `_EXPIRES` in its environment, and the approval as JSON on its stdin
    #[arg(long, value_name = "CMD")]
    pub(crate) exec: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ApprovalRevokeArgs {
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    /// Id of the standing exception
    #[arg(value_name = "ID")]
    pub(crate) id: String,
}
