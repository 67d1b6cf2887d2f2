//! What can be typed after verbs that use the admin API.

use clap::{Subcommand, ValueEnum};

use super::audit::{DataArgs, OneOutput};

#[derive(Debug, clap::Args)]
pub(crate) struct AdminArgs {
    /// Address of the admin API [default: of the gateway that runs on the data folder]
    ///
    /// The token is in the variable TOOLGATE_ADMIN_TOKEN, else in `admin.token` of the data folder.
    #[arg(long, value_name = "URL", env = "TOOLGATE_ADMIN")]
    pub(crate) admin: Option<String>,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListOutput {
    /// For people
    Table,
    /// One JSON object
    Json,
    /// One item a line
    Jsonl,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ShownListArgs {
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    /// How to write the list
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: ListOutput,
}

/// Whose token.
#[derive(Debug, clap::Args)]
pub(crate) struct HolderArgs {
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    /// Id, or label or name
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// How to write the result
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: OneOutput,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RevokeArgs {
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    /// Id, or label or name
    #[arg(value_name = "ID")]
    pub(crate) id: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct GrantArgs {
    #[command(subcommand)]
    pub(crate) verb: GrantVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GrantVerb {
    /// Make a grant and show its token, once
    ///
    /// The first grant ends local mode for good: calls without a token are refused from then on.
    Create(GrantCreateArgs),
    /// List grants
    List(ShownListArgs),
    /// Give a grant a new token and show it, once; the old one ends at once
    Rotate(HolderArgs),
    /// Revoke a grant, from its next request on
    Revoke(RevokeArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct GrantCreateArgs {
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    /// Its label, unique for ever
    #[arg(value_name = "LABEL")]
    pub(crate) label: String,
    /// Its policy; without one every call is denied
    #[arg(long, value_name = "NAME")]
    pub(crate) policy: Option<String>,
    /// A server it may reach; may be given several times [default: all]
    #[arg(long = "server", value_name = "NAME")]
    pub(crate) servers: Vec<String>,
    /// Whom it stands for
    #[arg(long, value_name = "NAME")]
    pub(crate) identity: Option<String>,
    /// A group of that identity; may be given several times
    #[arg(long = "group", value_name = "NAME", requires = "identity")]
    pub(crate) groups: Vec<String>,
    /// The day from which (00:00 UTC), or the time from when, its token is worth nothing
    #[arg(long, value_name = "DAY")]
    pub(crate) expires: Option<String>,
    /// How to write the result
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: OneOutput,
}

#[derive(Debug, clap::Args)]
pub(crate) struct PersonArgs {
    #[command(subcommand)]
    pub(crate) verb: PersonVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PersonVerb {
    /// Make a person and show the token, once
    Create(PersonCreateArgs),
    /// List people
    List(ShownListArgs),
    /// Give a person a new token and show it, once; the old one ends at once
    Rotate(HolderArgs),
    /// Revoke a person's token
    Revoke(RevokeArgs),
}

/// What people may be.
const ROLES: [&str; 4] = ["viewer", "approver", "policy_manager", "admin"];

#[derive(Debug, clap::Args)]
pub(crate) struct PersonCreateArgs {
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    /// Their name, unique for ever
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// What they may do; may be given several times
    #[arg(long = "role", value_name = "ROLE", required = true, value_parser = ROLES)]
    pub(crate) roles: Vec<String>,
    /// A group they are in; may be given several times
    #[arg(long = "group", value_name = "NAME")]
    pub(crate) groups: Vec<String>,
    /// The day from which (00:00 UTC), or the time from when, the token is worth nothing
    #[arg(long, value_name = "DAY")]
    pub(crate) expires: Option<String>,
    /// How to write the result
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: OneOutput,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ServerArgs {
    #[command(subcommand)]
    pub(crate) verb: ServerVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServerVerb {
    /// Add a server: a program to start, or an address
    ///
    /// Secrets are given as references: `env:NAME` or `file:PATH`, never as they are.
    Add(ServerAddArgs),
    /// List servers
    List(ShownListArgs),
    /// Remove a server that was added
    Remove(RevokeArgs),
    /// Connect to a server and list its tools
    ///
    /// Exits with 1 if it does not answer.
    Test(HolderArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct ServerAddArgs {
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    /// Its name
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Address of a streamable HTTP or legacy SSE server
    #[arg(
        long,
        value_name = "URL",
        conflicts_with = "command",
        required_unless_present = "command"
    )]
    pub(crate) url: Option<String>,
    /// A header for every request to it; may be given several times
    #[arg(long = "header", value_name = "NAME=REFERENCE", requires = "url")]
    pub(crate) headers: Vec<String>,
    /// A variable of its environment; may be given several times
    #[arg(long = "env", value_name = "NAME=REFERENCE", requires = "command")]
    pub(crate) env: Vec<String>,
    /// The program to start and its arguments, after `--`; it starts in this folder
    #[arg(value_name = "COMMAND", last = true)]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[group(id = "frozen", required = true, multiple = false, args = ["grant", "server", "session", "all"])]
pub(crate) struct FreezeArgs {
    #[command(subcommand)]
    pub(crate) verb: Option<FreezeVerb>,
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    /// A grant, by id or label
    #[arg(long, value_name = "ID")]
    pub(crate) grant: Option<String>,
    /// A server, by name; `sessions` is all sessions
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,
    /// A session, by id
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Everything
    #[arg(long)]
    pub(crate) all: bool,
    /// Why, for the audit
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// How to write the result
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: OneOutput,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FreezeVerb {
    /// List what is frozen
    List(ShownListArgs),
}

#[derive(Debug, clap::Args)]
#[group(id = "ended", required = true, multiple = false, args = ["id", "grant", "server", "session", "all"])]
pub(crate) struct UnfreezeArgs {
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    /// Id of the freeze
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,
    /// Every freeze of a grant, by label
    #[arg(long, value_name = "LABEL")]
    pub(crate) grant: Option<String>,
    /// Every freeze of a server, by name
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,
    /// Every freeze of a session, by id
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Every freeze of everything
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct LocalArgs {
    #[command(subcommand)]
    pub(crate) verb: LocalVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LocalVerb {
    /// Take calls without a token again, from every user and program of this machine
    Enable(AdminArgs),
}
