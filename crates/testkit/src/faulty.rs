//! Faulty MCP servers: each misbehaves in one way and is otherwise correct.
//!
//! Every server performs the handshake (2025-11-25 and older), lists its tools and answers
//! `tools/call echo` with its `text`, so that it can be attached like any server; [`FaultyServer`]
//! lists the faults. `answer` makes correct answers, `behaviour` applies the fault, `live` runs a
//! server over stdio, [`endless`] is the one over HTTP.
//!
//! `toolgate-faulty SERVER [--amount N]` runs a server as a process. A test binary with its own
//! `main` can run them itself: see [`main_if_child`].
//!
//! Invariant: without `--amount` a server is harmless to its machine.

mod answer;
mod behaviour;
pub mod endless;
mod live;
mod stubborn;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::io::{self, Write as _, stderr, stdin, stdout};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};

pub(crate) use self::answer::{ClientMessage, ServerState};
pub use self::behaviour::FALSE_ANSWER;

/// A fault, and the meaning of `--amount`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FaultyServer {
    /// No fault.
    Healthy,
    /// Answers concurrent requests in another order; amount: the seed.
    Shuffling,
    /// The same, and speaks protocol 2026-07-28 only.
    ShufflingNewer,
    /// Answers everything late; amount: milliseconds.
    Slow,
    /// Sends one byte at a time; amount: milliseconds between two bytes.
    Dripping,
    /// Never answers.
    Silent,
    /// Exits before it sends anything.
    CrashAtStart,
    /// Exits when it is called.
    CrashMidCall,
    /// Exits after the first half of an answer to a call.
    CrashHalfAnswer,
    /// Prints invalid lines around every message.
    Garbage,
    /// Floods stderr before it answers its first call; amount: bytes.
    StderrFlood,
    /// Answers calls with a very long line; amount: bytes.
    LongLine,
    /// HTTP: answers with event streams that never end; amount: milliseconds between two events.
    EndlessSse,
    /// Answers unused ids before the requested one.
    WrongIds,
    /// Answers everything twice.
    Twice,
    /// Answers the ids around the requested one.
    OtherIds,
    /// Sends list_changed notifications continuously; amount: notifications at once.
    ListChangedStorm,
    /// Has very many tools; amount: how many.
    ManyTools,
    /// Returns a different list on every request.
    ChangingList,
    /// Ignores SIGTERM and the end of its input, and has a child that does too.
    Stubborn,
}

/// MCP servers that misbehave
#[derive(Parser)]
#[command(name = "toolgate-faulty")]
struct Args {
    /// The server to run
    server: FaultyServer,
    /// The amount; its meaning depends on the server
    #[arg(long)]
    amount: Option<u64>,
}

/// The first argument that makes a test binary run a faulty server.
pub const CHILD_ARGUMENT: &str = "be-a-faulty-server";
/// The argument for the child of a stubborn server.
const GRANDCHILD: &str = "grandchild";

// === impl FaultyServer ===

impl FaultyServer {
    /// All servers.
    pub fn all() -> &'static [Self] {
        Self::value_variants()
    }

    /// Its name on the command line.
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Whether it uses HTTP instead of stdio.
    pub fn listens(self) -> bool {
        self == Self::EndlessSse
    }

    /// The default amount.
    pub fn usual_amount(self) -> u64 {
        match self {
            Self::Slow => 200,
            Self::Dripping | Self::EndlessSse => 1,
            Self::StderrFlood => 64 * 1024 * 1024,
            Self::LongLine => 700_000,
            Self::ListChangedStorm => 100,
            Self::ManyTools => 100_000,
            _ => 0,
        }
    }
}

/// Runs a server if the first argument is [`CHILD_ARGUMENT`]; the others select it. Returns when
/// the server has exited.
pub fn main_if_child() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    (words.next()? == CHILD_ARGUMENT).then(|| main(words))
}

/// The whole program, with its command-line arguments.
pub fn main(words: impl Iterator<Item = OsString>) -> ExitCode {
    let mut words = words.peekable();
    if words.peek().is_some_and(|word| word == GRANDCHILD) {
        return stubborn::run_forever().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    let words = match Args::try_parse_from(std::iter::once("toolgate-faulty".into()).chain(words)) {
        Ok(words) => words,
        Err(error) => {
            // If printing fails, there is nothing left to do.
            drop(error.print());
            return ExitCode::from(64);
        }
    };
    let amount = words.amount.unwrap_or_else(|| words.server.usual_amount());
    match serve(words.server, amount) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            drop(writeln!(stderr(), "{error}"));
            ExitCode::FAILURE
        }
    }
}

fn serve(server: FaultyServer, amount: u64) -> io::Result<u8> {
    if server.listens() {
        let endless = endless::EndlessServer::start(Duration::from_millis(amount))?;
        writeln!(stdout(), "{}", serde_json::json!({ "url": endless.url() }))?;
        // Runs until it is killed.
        loop {
            std::thread::park();
        }
    }
    if server == FaultyServer::Stubborn {
        stubborn::ignore_sigterm_with_child()?;
    }
    let code = live::live(server, amount, stdin(), stdout(), stderr())?;
    if server == FaultyServer::Stubborn {
        stubborn::run_forever()?;
    }
    Ok(code)
}
