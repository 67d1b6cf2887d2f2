//! Command line arguments.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

use crate::log::LogFormat;
use crate::version::VERSION;

mod admin;
mod approval;
mod audit;
mod audit_filter;
mod backup;
mod catalog;
mod client;
mod console;
mod demo;
mod doctor;
#[cfg(test)]
mod documented;
mod examples;
mod import;
mod policy;
#[cfg(test)]
mod reference;
mod run;
mod scan;
mod session;
#[cfg(test)]
mod shell;
mod status;
mod tool;

pub(crate) use admin::{
    AdminArgs, FreezeArgs, FreezeVerb, GrantArgs, GrantCreateArgs, GrantUpdateArgs, GrantVerb,
    HolderArgs, ListOutput, LocalArgs, LocalVerb, PersonArgs, PersonCreateArgs, PersonVerb,
    RevokeArgs, ServerAddArgs, ServerArgs, ServerVerb, ShownListArgs, UnfreezeArgs,
};
pub(crate) use approval::{
    ApprovalAnswerArgs, ApprovalArgs, ApprovalListArgs, ApprovalShowArgs, ApprovalVerb,
    ApprovalWatchArgs,
};
pub(crate) use audit::{
    AuditArgs, AuditVerb, DataArgs, ExportArgs, ExportOutput, ListArgs, OneOutput, RowsOutput,
    ShowArgs, TailArgs, VerifyArgs,
};
pub(crate) use backup::{BackupArgs, PreflightArgs};
pub(crate) use catalog::{
    CatalogArgs, CatalogImportArgs, CatalogSearchArgs, CatalogShowArgs, CatalogVerb,
};
pub(crate) use client::{
    ClientArgs, ClientListArgs, ClientVerb, ConnectArgs, DisconnectArgs, EditArgs,
};
pub(crate) use console::ConsoleArgs;
pub(crate) use demo::{DemoArgs, DemoServer, DemoVerb, OneCArgs};
pub(crate) use doctor::DoctorArgs;
pub(crate) use examples::{command, parse};
pub(crate) use import::ImportArgs;
pub(crate) use policy::{
    CheckArgs, ExplainArgs, ExplainOutput, FmtArgs, PolicyApplyArgs, PolicyArgs, PolicyCheckOutput,
    PolicyImportArgs, PolicyNameArgs, PolicyPlanArgs, PolicyRollbackArgs, PolicyShowArgs,
    PolicyVerb, TestArgs, TestOutput,
};
pub(crate) use run::RunArgs;
pub(crate) use scan::{ScanArgs, ScanOutput};
pub(crate) use session::{SessionArgs, SessionTokenArgs, SessionVerb};
pub(crate) use status::StatusArgs;
pub(crate) use tool::{
    AsAgentArgs, ToolApproveArgs, ToolArgs, ToolCallArgs, ToolListArgs, ToolShowArgs, ToolVerb,
};

/// A gateway with policies between AI agents and MCP tools
#[derive(Debug, Parser)]
#[command(
    name = "toolgate",
    version = VERSION,
    propagate_version = true,
    after_help = EXIT_CODES
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

const EXIT_CODES: &str = "\
Exit codes: 0 success; 1 a finding (invalid policy, broken audit, denied call, differences); \
2 an error; 64 wrong usage";

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Run the gateway
    ///
    /// Needs no configuration: it creates its data folder, listens on loopback and prints what to
    /// paste into your MCP client.
    Serve(ServeArgs),
    /// Put toolgate in place of one MCP server: a stdio bridge for a client's configuration
    ///
    /// Every call is decided, counted and audited in the data folder, beside a gateway that runs on it.
    /// The audit shows these calls as those of the grant `stdio`. Ends as the server ends.
    Run(RunArgs),
    /// Show the state of the running gateway on one screen, and what needs attention
    Status(StatusArgs),
    /// Open the console in a browser: prints a link that signs you in once, within 60 seconds
    Console(ConsoleArgs),
    /// Check a configuration file, or print its JSON Schema
    Config(ConfigArgs),
    /// Check, test, explain, format and import policies
    Policy(PolicyArgs),
    /// Read, export and verify the audit, with or without a running gateway
    Audit(AuditArgs),
    /// List, show and call tools, as an agent would
    Tool(ToolArgs),
    /// Judge the risk of the tools of MCP servers, and write a policy for them
    ///
    /// Connects to a URL, starts a command, or does so with every server of an MCP client's
    /// configuration; lists the tools and calls none.
    Scan(ScanArgs),
    /// Look up public MCP servers: their tools, risks and recommended rules
    Catalog(CatalogArgs),
    /// List connected sessions, and create tokens for them
    Session(SessionArgs),
    /// See every control fire: starts servers, 1C sessions, an agent and a gateway of its own
    ///
    /// Uses a temporary folder and free ports, and removes both at the end. Nothing needs to be
    /// installed.
    Demo(DemoArgs),
    /// Write toolgate into the configuration of MCP clients
    Client(ClientArgs),
    /// Import the configuration and the tools of another program
    Import(ImportArgs),
    /// Create, list, change, rotate and revoke grants: the tokens of agents
    Grant(GrantArgs),
    /// Create, list, rotate and revoke people: the tokens of the admin API
    Person(PersonArgs),
    /// Add, list, remove and test servers
    Server(ServerArgs),
    /// List, show, approve and deny calls that wait for a person
    Approval(ApprovalArgs),
    /// Stop a grant, a server, a session, or everything: calls are refused until `unfreeze`
    Freeze(FreezeArgs),
    /// End a freeze
    Unfreeze(UnfreezeArgs),
    /// Accept calls without a token again
    Local(LocalArgs),
    /// Copy the data folder, also while a gateway runs on it
    Backup(BackupArgs),
    /// Check that tools can be called, for CI and cron: exits with 0, 10, 11 or 12
    ///
    /// Nothing is called and nothing is counted.
    Preflight(PreflightArgs),
    /// Check this installation, and print how to fix what is wrong
    ///
    /// Exits with 1 if a check fails.
    Doctor(DoctorArgs),
    /// Print a script that completes words in your shell
    Completions {
        /// The shell
        #[arg(value_name = "SHELL")]
        shell: clap_complete::Shell,
    },
    /// Write manual pages, one per verb
    Man {
        /// The folder for the pages
        #[arg(long, value_name = "DIR")]
        write: PathBuf,
    },
    /// Explain an error code of agents (`rate_limited`), policies (`TG0103`) or configurations
    /// (`TG1007`)
    Explain {
        /// The code
        #[arg(value_name = "CODE")]
        code: String,
    },
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
    /// Check the configuration and the data folder, print what a start would migrate, and exit
    #[arg(long, conflicts_with = "ready_json")]
    pub(crate) dry_run: bool,
    /// Print one line of JSON to stdout when all listeners are bound
    #[arg(long)]
    pub(crate) ready_json: bool,
    /// Format of the log
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
    /// Check a configuration file, and print every problem
    Check {
        /// The file
        #[arg(value_name = "FILE", conflicts_with = "config")]
        file: Option<PathBuf>,
        /// The file, as other verbs take it [default: the variable TOOLGATE_CONFIG, else
        /// ./toolgate.yaml]
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// Output format
        #[arg(short, long, value_name = "FORMAT", default_value = "text")]
        output: CheckOutput,
    },
    /// Print the JSON Schema of toolgate.yaml, for editors
    Schema,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckOutput {
    /// For people, to stderr
    Text,
    /// One JSON object, to stdout
    Json,
}
