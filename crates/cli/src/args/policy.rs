//! What can be typed after `toolgate policy`.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Subcommand, ValueEnum};
use jiff::Timestamp;
use toolgate_json::canonical;
use toolgate_policy::Class;

use super::admin::AdminArgs;

#[derive(Debug, clap::Args)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    pub(crate) verb: PolicyVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyVerb {
    /// Say everything that is wrong or doubtful in policies
    ///
    /// Exits with 1 if a document has an error; warnings alone leave it at 0.
    Check(CheckArgs),
    /// Run a policy's own `tests` with a virtual clock
    ///
    /// Exits with 1 if a test fails or the document is not valid, and names every rule that no
    /// test reached.
    Test(TestArgs),
    /// Say what a policy makes of a call, and why
    ///
    /// Nothing is used up and nothing is owned when the call is made. Exits with 0 whatever the
    /// verdict is.
    Explain(Box<ExplainArgs>),
    /// Format a policy: one layout, every comment kept, meaning untouched
    Fmt(FmtArgs),
    /// Turn an Intercept file into a policy; what changes is listed on stderr
    Import(PolicyImportArgs),
    /// Print the JSON Schema of policies, for editors
    Schema,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// The policies; `-` is stdin
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// How to write the problems
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: PolicyCheckOutput,
}

#[derive(Debug, clap::Args)]
pub(crate) struct TestArgs {
    /// The policy; `-` is stdin
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// How to write the results
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
    /// Asks the running gateway; if none runs on the data folder, the folder and the configuration
    /// are read.
    #[arg(long = "grant", value_name = "GRANT", conflicts_with_all = ["label", "identity"])]
    pub(crate) of_grant: Option<String>,
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    /// The tool called, by its own name or as `server/tool`
    #[arg(long)]
    pub(crate) tool: String,
    /// The arguments, a JSON object
    #[arg(long, value_name = "JSON", default_value = "{}", value_parser = arguments)]
    pub(crate) args: String,
    /// The server called [default: `test`, as in a policy's `tests`]
    #[arg(long)]
    pub(crate) server: Option<String>,
    /// The tool's risk class [default: by the first word of its name]
    #[arg(long, ignore_case = true, value_parser = class())]
    pub(crate) class: Option<Class>,
    /// What `grant.label` is
    #[arg(long, value_name = "TEXT", default_value = "test", help_heading = FACTS)]
    pub(crate) label: String,
    /// What `identity.name` is
    #[arg(long, value_name = "NAME", help_heading = FACTS)]
    pub(crate) identity: Option<String>,
    /// What `identity.groups` has; may be repeated
    #[arg(long = "group", value_name = "NAME", requires = "identity", help_heading = FACTS)]
    pub(crate) groups: Vec<String>,
    /// What `client.name` is
    #[arg(long, value_name = "NAME", help_heading = FACTS)]
    pub(crate) client: Option<String>,
    /// What `session.kind` is
    #[arg(long, value_name = "KIND", help_heading = FACTS)]
    pub(crate) session_kind: Option<String>,
    /// What `session.infobase_name` is
    #[arg(long, value_name = "NAME", help_heading = FACTS)]
    pub(crate) session_infobase: Option<String>,
    /// What `session.host_id` is
    #[arg(long, value_name = "ID", help_heading = FACTS)]
    pub(crate) session_host: Option<String>,
    /// When the call is made, as in `2026-01-05T12:00:00Z` [default: now]
    #[arg(long, value_name = "TIME", value_parser = instant, help_heading = FACTS)]
    pub(crate) at: Option<Timestamp>,
    /// How to write the explanation
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: ExplainOutput,
}

/// Facts of a call that conditions can ask for.
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
    /// For people: place, source line, hint
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

/// A JSON object as a gateway would take it: no key twice, no lone surrogate.
fn arguments(text: &str) -> Result<String, String> {
    if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(text) {
        return Err(format!("not JSON: {error}"));
    }
    if !text.trim_start().starts_with('{') {
        return Err("the arguments of a call are a JSON object".to_owned());
    }
    match canonical(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => {
            Err("a key stands twice, a text is no Unicode, or it is nested deeper than 128 levels"
                .to_owned())
        }
    }
}

fn instant(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|_| "write a time such as `2026-01-05T12:00:00Z`".to_owned())
}
