//! Arguments of verbs that use the admin API.

use clap::{Subcommand, ValueEnum};

use super::audit::{DataArgs, OneOutput};

#[derive(Debug, clap::Args)]
pub(crate) struct AdminArgs {
    /// Address of the admin API [default: the gateway that runs on the data folder]
    ///
    /// The token is read from the variable TOOLGATE_ADMIN_TOKEN, else from `admin.token` of the data
    /// folder.
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
    /// One item per line
    Jsonl,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ShownListArgs {
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: ListOutput,
}

/// A grant or a person.
#[derive(Debug, clap::Args)]
pub(crate) struct HolderArgs {
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    /// Id, or label or name
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Output format
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
    /// Create a grant and print its token, once
    ///
    /// The first grant ends local mode: calls without a token are refused from then on.
    Create(GrantCreateArgs),
    /// List grants
    List(ShownListArgs),
    /// Change the policy, the reach or the expiry of a grant; what is not given stays
    ///
    /// Takes effect with the next request. A grant of toolgate.yaml is changed there.
    Update(GrantUpdateArgs),
    /// Replace the token of a grant and print the new one, once; the old one stops working at once
    Rotate(HolderArgs),
    /// Revoke a grant, from its next request on
    Revoke(RevokeArgs),
    /// End the revocation of a grant of toolgate.yaml
    Restore(RevokeArgs),
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: toolgate grant create laptop --policy recommended --server files --expires 2027-01-01"
)]
pub(crate) struct GrantCreateArgs {
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    /// Its label; a label is never used twice
    #[arg(value_name = "LABEL")]
    pub(crate) label: String,
    /// Its policy; without one every call is denied
    #[arg(long, value_name = "NAME")]
    pub(crate) policy: Option<String>,
    /// A server it may reach; may be given several times [default: all]
    #[arg(long = "server", value_name = "NAME")]
    pub(crate) servers: Vec<String>,
    /// Sessions it may reach, such as `infobase_name=trade_*`; KEY is infobase_name, kind or
    /// session_id; may be given several times [default: all]
    #[arg(long = "session", value_name = "KEY=GLOB")]
    pub(crate) sessions: Vec<String>,
    /// The identity on whose behalf the agent acts
    #[arg(long, value_name = "NAME")]
    pub(crate) identity: Option<String>,
    /// A group of that identity; may be given several times
    #[arg(long = "group", value_name = "NAME", requires = "identity")]
    pub(crate) groups: Vec<String>,
    /// Expiry date (the token stops working at 00:00 UTC on this day) or time
    #[arg(long, value_name = "DATE")]
    pub(crate) expires: Option<String>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: OneOutput,
}

#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
#[group(id = "change", required = true, multiple = true, args = [
    "policy", "no_policy", "servers", "all_servers", "sessions", "all_sessions", "expires", "no_expiry",
])]
pub(crate) struct GrantUpdateArgs {
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    /// The grant, by label or id
    #[arg(value_name = "LABEL|ID")]
    pub(crate) id: String,
    /// Its policy
    #[arg(long, value_name = "NAME", conflicts_with = "no_policy")]
    pub(crate) policy: Option<String>,
    /// Remove its policy; every call is denied
    #[arg(long)]
    pub(crate) no_policy: bool,
    /// A server it may reach; may be given several times and replaces the list
    #[arg(long = "server", value_name = "NAME", conflicts_with = "all_servers")]
    pub(crate) servers: Vec<String>,
    /// It may reach all servers
    #[arg(long)]
    pub(crate) all_servers: bool,
    /// Sessions it may reach, as in `grant create`; may be given several times and replaces the list
    #[arg(long = "session", value_name = "KEY=GLOB", conflicts_with = "all_sessions")]
    pub(crate) sessions: Vec<String>,
    /// It may reach all sessions
    #[arg(long)]
    pub(crate) all_sessions: bool,
    /// Expiry date (the token stops working at 00:00 UTC on this day) or time
    #[arg(long, value_name = "DATE", conflicts_with = "no_expiry")]
    pub(crate) expires: Option<String>,
    /// Its token does not expire
    #[arg(long)]
    pub(crate) no_expiry: bool,
    /// Output format
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
    /// Create a person and print the token, once
    Create(PersonCreateArgs),
    /// List people
    List(ShownListArgs),
    /// Replace the token of a person and print the new one, once; the old one stops working at once
    Rotate(HolderArgs),
    /// Revoke a person's token
    Revoke(RevokeArgs),
}

/// The roles of people.
const ROLES: [&str; 4] = ["viewer", "approver", "policy_manager", "admin"];

#[derive(Debug, clap::Args)]
pub(crate) struct PersonCreateArgs {
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    /// The name; a name is never used twice
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// A role; may be given several times
    #[arg(long = "role", value_name = "ROLE", required = true, value_parser = ROLES)]
    pub(crate) roles: Vec<String>,
    /// A group; may be given several times
    #[arg(long = "group", value_name = "NAME")]
    pub(crate) groups: Vec<String>,
    /// Expiry date (the token stops working at 00:00 UTC on this day) or time
    #[arg(long, value_name = "DATE")]
    pub(crate) expires: Option<String>,
    /// Output format
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
    /// Secrets are references: `env:NAME` or `file:PATH`, never values.
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
#[command(
    override_usage = "toolgate server add [OPTIONS] <NAME> -- <COMMAND>...\n       toolgate server add [OPTIONS] <NAME> --url <URL>",
    after_help = "Examples:\n  toolgate server add files -- npx -y @modelcontextprotocol/server-filesystem .\n  toolgate server add tracker --url https://example.com/mcp --header X-Api-Key=env:TRACKER_KEY"
)]
#[group(id = "target", required = true, multiple = false, args = ["url", "command"])]
pub(crate) struct ServerAddArgs {
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    /// Its name
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Address of a streamable HTTP or legacy SSE server
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// A header of every request; may be given several times
    #[arg(long = "header", value_name = "NAME=REFERENCE", requires = "url")]
    pub(crate) headers: Vec<String>,
    /// A variable of its environment; may be given several times
    #[arg(long = "env", value_name = "NAME=REFERENCE", requires = "command")]
    pub(crate) env: Vec<String>,
    /// The program and its arguments, after `--`; it runs in the current folder
    #[arg(value_name = "COMMAND", last = true)]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:\n  toolgate freeze --all --reason \"incident 42\"\n  toolgate freeze --grant laptop\n  toolgate unfreeze --grant laptop"
)]
#[group(id = "frozen", required = true, multiple = false, args = ["grant", "server", "session", "all"])]
pub(crate) struct FreezeArgs {
    #[command(subcommand)]
    pub(crate) verb: Option<FreezeVerb>,
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    /// A grant, by label or id
    #[arg(long, value_name = "LABEL|ID")]
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
    /// The reason, for the audit and `freeze list`
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Output format
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
    /// The freeze of a grant, by label or id
    #[arg(long, value_name = "LABEL|ID")]
    pub(crate) grant: Option<String>,
    /// The freeze of a server, by name; `sessions` is all sessions
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,
    /// The freeze of a session, by id
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// The freeze of everything
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
    /// Accept calls without a token again, from every user and program on this machine
    Enable(AdminArgs),
}
