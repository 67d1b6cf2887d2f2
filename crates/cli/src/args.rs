//! What can be typed.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

mod admin;
mod audit;
mod demo;
mod doctor;
mod import;
mod policy;
mod session;
mod tool;

pub(crate) use admin::{
    AdminArgs, FreezeArgs, FreezeVerb, GrantArgs, GrantCreateArgs, GrantVerb, ListOutput,
    LocalArgs, LocalVerb, PersonArgs, PersonCreateArgs, PersonVerb, ServerAddArgs, ServerArgs,
    ServerVerb, UnfreezeArgs,
};
pub(crate) use audit::{
    AuditArgs, AuditVerb, DataArgs, ListArgs, OneOutput, RowsOutput, ShowArgs, TailArgs, VerifyArgs,
};
pub(crate) use demo::{DemoArgs, DemoVerb, OneCArgs};
pub(crate) use doctor::DoctorArgs;
pub(crate) use import::ImportArgs;
pub(crate) use policy::{
    CheckArgs, ExplainArgs, ExplainOutput, FmtArgs, PolicyArgs, PolicyCheckOutput,
    PolicyImportArgs, PolicyVerb, TestArgs, TestOutput,
};
pub(crate) use session::{SessionArgs, SessionTokenArgs, SessionVerb};
pub(crate) use tool::{AsAgentArgs, ToolArgs, ToolCallArgs, ToolListArgs, ToolShowArgs, ToolVerb};

/// The gate between AI agents and every MCP tool they may use
#[derive(Debug, Parser)]
#[command(name = "toolgate", version, propagate_version = true, disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Run the gateway
    ///
    /// Works with nothing configured: it makes its data folder, listens on loopback and says what
    /// to paste into your MCP client.
    Serve(ServeArgs),
    /// Check a configuration file, or print its JSON Schema
    Config(ConfigArgs),
    /// Check, test, explain, format and import policies
    Policy(PolicyArgs),
    /// Verify and read the audit, with or without a running gateway
    Audit(AuditArgs),
    /// List, show and call tools as an agent would
    Tool(ToolArgs),
    /// List programs that have dialled in, and make tokens for them
    Session(SessionArgs),
    /// Play a program that dials in, to see sessions work
    Demo(DemoArgs),
    /// Take over another program's configuration, and the tools that it knows
    Import(ImportArgs),
    /// Make, list, rotate and revoke grants: the tokens of agents
    Grant(GrantArgs),
    /// Make, list, rotate and revoke people: the tokens of the admin API
    Person(PersonArgs),
    /// Add, list, remove and test servers
    Server(ServerArgs),
    /// Stop a grant, a server, a session, or everything: calls are refused until `unfreeze`
    Freeze(FreezeArgs),
    /// End a freeze
    Unfreeze(UnfreezeArgs),
    /// Take calls without a token again
    Local(LocalArgs),
    /// Look for what is wrong with this installation, and say what to do
    ///
    /// Exits with 1 if something is.
    Doctor(DoctorArgs),
    /// Print the version
    Version,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    /// Configuration file [default: ./toolgate.yaml if it exists]
    #[arg(long, value_name = "FILE", env = "TOOLGATE_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Data folder [default: $XDG_DATA_HOME/toolgate or ~/.local/share/toolgate]
    #[arg(long, value_name = "DIR", env = "TOOLGATE_DATA")]
    pub(crate) data: Option<PathBuf>,
    /// Policy for calls without a token, in the document's own mode [default: the built-in
    /// `recommended` policy in shadow mode]
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,
    /// Print one line of JSON to stdout when all listeners are bound
    #[arg(long)]
    pub(crate) ready_json: bool,
    /// How to write the log
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) log: LogFormat,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(crate) verb: ConfigVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigVerb {
    /// Say everything that is wrong with a configuration file
    Check {
        /// The file
        #[arg(value_name = "FILE", default_value = "toolgate.yaml", env = "TOOLGATE_CONFIG")]
        file: PathBuf,
        /// How to write the findings
        #[arg(short, long, value_name = "FORMAT", default_value = "text")]
        output: CheckOutput,
    },
    /// Print the JSON Schema of toolgate.yaml, for editors
    Schema,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    Text,
    /// One JSON object a line
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckOutput {
    /// For people, to stderr
    Text,
    /// One JSON object, to stdout
    Json,
}
