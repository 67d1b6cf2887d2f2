//! Arguments of `toolgate policy`.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Subcommand, ValueEnum};
use jiff::Timestamp;
use thiserror::Error;
use toolgate_json::canonical;
use toolgate_policy::Class;

use super::admin::{AdminArgs, ShownListArgs};
use super::audit::{DataArgs, OneOutput};

#[derive(Debug, clap::Args)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    pub(crate) verb: PolicyVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyVerb {
    /// List the policies of toolgate.yaml and of the store
    List(ShownListArgs),
    /// Print a policy's document
    #[command(disable_version_flag = true)]
    Show(PolicyShowArgs),
    /// Store a policy and make it active
    ///
    /// The document is checked and its `tests` are run first. Each apply makes a new version;
    /// `policy rollback` makes an earlier one active again.
    Apply(PolicyApplyArgs),
    /// Remove a policy that no grant uses
    ///
    /// Its versions stay in the store: `policy rollback` brings it back.
    Remove(PolicyNameArgs),
    /// Make an earlier version of a policy active again
    Rollback(PolicyRollbackArgs),
    /// Show what a document would change: decisions by grant and tool, and counters that start again
    ///
    /// Decisions are compared for a call without arguments and before anything was used. Nothing is
    /// stored. Exits with 0 without differences and with 1 if there are some.
    Plan(PolicyPlanArgs),
    /// Check policies, and print every error and warning
    ///
    /// Exits with 1 if a document has an error, with 0 if it has only warnings.
    Check(CheckArgs),
    /// Run a policy's own `tests` with a virtual clock
    ///
    /// Exits with 1 if a test fails or the document is not valid, and names every rule that no
    /// test reached.
    Test(TestArgs),
    /// Explain the decision of a policy about a call
    ///
    /// Nothing is sent, counted or recorded. Exits with 0 whatever the verdict is.
    Explain(Box<ExplainArgs>),
    /// Format a policy; comments and meaning stay the same
    Fmt(FmtArgs),
    /// Convert an Intercept file into a policy; differences are listed on stderr
    Import(PolicyImportArgs),
    /// Print the JSON Schema of policies, for editors
    Schema,
}

#[derive(Debug, clap::Args)]
pub(crate) struct PolicyShowArgs {
    /// The policy
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// This version instead of the active one
    #[arg(long, value_name = "N")]
    pub(crate) version: Option<u64>,
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    /// `table` prints the document alone
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: OneOutput,
}

#[derive(Debug, clap::Args)]
pub(crate) struct PolicyApplyArgs {
    /// The document; `-` is stdin
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The policy's name [default: the file's name without its extension]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    /// How to write the result
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: OneOutput,
}

#[derive(Debug, clap::Args)]
pub(crate) struct PolicyNameArgs {
    /// The policy
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct PolicyRollbackArgs {
    /// The policy
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The version to make active [default: the one before the active one]
    #[arg(long, value_name = "VERSION")]
    pub(crate) to: Option<u64>,
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    /// How to write the result
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: OneOutput,
}

#[derive(Debug, clap::Args)]
pub(crate) struct PolicyPlanArgs {
    /// The new document; `-` is stdin
    #[arg(value_name = "NEW")]
    pub(crate) file: PathBuf,
    /// The policy that it would replace [default: the only policy of toolgate.yaml and the store]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: OneOutput,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// The policies; `-` is stdin
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Check tool names against the tools that this grant (id or label) can reach
    #[arg(long, value_name = "GRANT")]
    pub(crate) grant: Option<String>,
    /// Check tool names against the tools of the gateway that runs on this data folder
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Check tool names against the tools of the gateway with this admin API
    #[arg(long, value_name = "URL")]
    pub(crate) admin: Option<String>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: PolicyCheckOutput,
}

#[derive(Debug, clap::Args)]
pub(crate) struct TestArgs {
    /// Policy files; `-` is stdin
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: TestOutput,
    /// Write the results to this file instead of stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) write: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ExplainArgs {
    /// The policy; `-` is stdin [default: the built-in policy `recommended`]
    #[arg(long, value_name = "FILE", conflicts_with = "of_grant")]
    pub(crate) policy: Option<PathBuf>,
    /// The policy of this grant (id or label), with what the grant has used so far
    ///
    /// Uses the running gateway; if none runs on the data folder, the folder and the configuration
    /// are read.
    #[arg(long = "grant", value_name = "GRANT", conflicts_with_all = ["label", "identity"])]
    pub(crate) of_grant: Option<String>,
    /// Resolve the tool's name with the gateway that runs on this data folder, or with the folder
    ///
    /// With --grant: where the grant is [default: the variable TOOLGATE_DATA, else
    /// $XDG_DATA_HOME/toolgate or ~/.local/share/toolgate].
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Resolve the tool's name with the gateway with this admin API
    ///
    /// With --grant: where the grant is [default: the variable TOOLGATE_ADMIN, else the gateway that
    /// runs on the data folder]. The token is read from the variable TOOLGATE_ADMIN_TOKEN, else from
    /// `admin.token` of the data folder.
    #[arg(long, value_name = "URL")]
    pub(crate) admin: Option<String>,
    /// Configuration file, for its `data` [default: ./toolgate.yaml if it exists]
    #[arg(long, value_name = "FILE", env = "TOOLGATE_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// The tool, by its own name or as `server/tool`
    ///
    /// With --grant, --data or --admin: a name that agents see on `/mcp`, such as `server__tool`.
    #[arg(long)]
    pub(crate) tool: String,
    /// The arguments, a JSON object
    #[arg(long, value_name = "JSON", default_value = "{}", value_parser = arguments)]
    pub(crate) args: String,
    /// The server [default: `test`, as in a policy's `tests`]
    #[arg(long)]
    pub(crate) server: Option<String>,
    /// The tool's risk class [default: by the first word of its name]
    #[arg(long, ignore_case = true, value_parser = class())]
    pub(crate) class: Option<Class>,
    /// Value of `grant.label`
    #[arg(long, value_name = "TEXT", default_value = "test", help_heading = FACTS)]
    pub(crate) label: String,
    /// Value of `identity.name`
    #[arg(long, value_name = "NAME", help_heading = FACTS)]
    pub(crate) identity: Option<String>,
    /// An entry of `identity.groups`; may be given several times
    #[arg(long = "group", value_name = "NAME", requires = "identity", help_heading = FACTS)]
    pub(crate) groups: Vec<String>,
    /// Value of `client.name`
    #[arg(long, value_name = "NAME", help_heading = FACTS)]
    pub(crate) client: Option<String>,
    /// Value of `session.kind`
    #[arg(long, value_name = "KIND", help_heading = FACTS)]
    pub(crate) session_kind: Option<String>,
    /// Value of `session.infobase_name`
    #[arg(long, value_name = "NAME", help_heading = FACTS)]
    pub(crate) session_infobase: Option<String>,
    /// Value of `session.host_id`
    #[arg(long, value_name = "ID", help_heading = FACTS)]
    pub(crate) session_host: Option<String>,
    /// Time of the call, such as `2026-01-05T12:00:00Z` [default: now]
    #[arg(long, value_name = "TIME", value_parser = instant, help_heading = FACTS)]
    pub(crate) at: Option<Timestamp>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: ExplainOutput,
}

impl ExplainArgs {
    /// The gateway and the folder that are meant. The variables alone do not ask for a gateway; with
    /// one of the options they say which.
    pub(crate) fn gateway(&self) -> AdminArgs {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let data = self.data.clone().or_else(|| variable("TOOLGATE_DATA").map(Into::into));
        // A folder that was named is not another gateway's.
        let other = || variable("TOOLGATE_ADMIN").filter(|_| self.data.is_none());
        let admin = self.admin.clone().or_else(|| other()?.into_string().ok());
        AdminArgs { admin, data: DataArgs { config: self.config.clone(), data } }
    }
}

/// Facts of a call that conditions can use.
const FACTS: &str = "Facts of the call";

#[derive(Debug, clap::Args)]
pub(crate) struct FmtArgs {
    /// The policy; `-` is stdin
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Write nothing; exit with 1 if formatting would change the file
    #[arg(long, conflicts_with = "write")]
    pub(crate) check: bool,
    /// Write the result back to the file instead of stdout
    #[arg(long)]
    pub(crate) write: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct PolicyImportArgs {
    /// The Intercept file; `-` is stdin
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Write the policy to this file instead of stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) write: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PolicyCheckOutput {
    /// For people: position, source line, hint
    #[value(alias = "text")]
    Table,
    /// One JSON object, or an array of them for several files
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TestOutput {
    /// For people
    #[value(alias = "text")]
    Table,
    /// One JSON object
    Json,
    /// JUnit XML, for CI
    Junit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExplainOutput {
    /// For people
    #[value(alias = "table")]
    Text,
    /// One JSON object
    Json,
}

fn class() -> impl clap::builder::TypedValueParser<Value = Class> {
    let words = PossibleValuesParser::new(Class::ALL.map(Class::as_str));
    words.map(|word| Class::parse(&word.to_lowercase()).unwrap_or_default())
}

/// Why an argument is not valid.
#[derive(Debug, Error)]
pub(super) enum Invalid {
    #[error("not JSON: {0}")]
    NotJson(#[from] serde_json::Error),
    #[error("the arguments of a call are a JSON object, such as `{{\"path\": \"a.txt\"}}`")]
    NotAnObject,
    #[error("a key occurs twice, a string is not Unicode, or it is nested deeper than 128 levels")]
    Ambiguous,
    #[error("write a time such as `2026-01-05T12:00:00Z`")]
    NotATime,
}

/// A JSON object that the gateway would accept: no duplicate key, no lone surrogate.
pub(super) fn arguments(text: &str) -> Result<String, Invalid> {
    serde_json::from_str::<serde::de::IgnoredAny>(text)?;
    if !text.trim_start().starts_with('{') {
        return Err(Invalid::NotAnObject);
    }
    canonical(text).map(|_| text.to_owned()).map_err(|_| Invalid::Ambiguous)
}

fn instant(text: &str) -> Result<Timestamp, Invalid> {
    text.parse().map_err(|_| Invalid::NotATime)
}
