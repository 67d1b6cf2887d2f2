//! The binary `toolgate`: arguments, verbs and wiring.
//!
//! One file per verb. Only this crate wires: it reads the environment of the process and connects
//! listeners, gateway, store and control.
//!
//! Invariant: stdout carries results and nothing else; logs and messages go to stderr.

use std::process::ExitCode;

mod ad_hoc;
mod admin_client;
mod approval;
mod args;
mod ask;
mod audit;
mod backup;
mod catalog;
mod client;
mod clients;
mod completions;
mod config;
mod config_source;
mod console;
mod data;
mod demo;
mod doctor;
mod exit;
mod explain;
mod freeze;
mod grant;
mod import;
mod listing;
mod local;
mod log;
mod person;
mod policy;
mod print;
mod run;
mod sarif;
mod scan;
mod serve;
mod server;
mod session;
mod status;
mod suggest;
mod table;
mod tool;
mod version;
mod waiting;

use args::Verb;

/// Messages are many small, short-lived allocations, made and freed on different threads: mimalloc
/// is fast for that, and returns memory to the system after a large result.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = match args::parse() {
        Ok(args) => args,
        Err(error) => return exit::usage(&error),
    };
    let done = match args.verb {
        Verb::Serve(args) => serve::run(&args),
        Verb::Run(args) => return run::run(&args),
        Verb::Status(args) => status::run(&args),
        Verb::Console(args) => console::run(&args),
        Verb::Config(args) => config::run(&args),
        Verb::Policy(args) => policy::run(&args),
        Verb::Audit(args) => audit::run(&args),
        Verb::Scan(args) => scan::run(&args),
        Verb::Catalog(args) => catalog::run(&args),
        Verb::Tool(args) => tool::run(&args),
        Verb::Session(args) => session::run(&args),
        Verb::Demo(args) => demo::run(&args),
        Verb::Client(args) => client::run(&args),
        Verb::Import(args) => import::run(&args),
        Verb::Grant(args) => grant::run(&args),
        Verb::Person(args) => person::run(&args),
        Verb::Server(args) => server::run(&args),
        Verb::Approval(args) => approval::run(&args),
        Verb::Freeze(args) => freeze::freeze(&args),
        Verb::Unfreeze(args) => freeze::unfreeze(&args),
        Verb::Local(args) => local::run(&args),
        Verb::Backup(args) => backup::run(&args),
        Verb::Preflight(args) => policy::preflight(&args),
        Verb::Doctor(args) => doctor::run(&args),
        Verb::Completions { shell } => completions::run(shell),
        Verb::Man { write } => completions::man(&write),
        Verb::Explain { code } => explain::run(&code),
        Verb::Version => version::run(),
    };
    exit::code(done)
}
