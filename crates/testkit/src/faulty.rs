//! The zoo: MCP servers that misbehave, each in one way and otherwise well.
//!
//! Every server shakes hands (2025-11-25 and older), lists its tools and answers `tools/call echo`
//! with its `text`, so that it can be attached like any server; what it does besides is in
//! [`FaultyServer`]. `answer` holds what is right, `behaviour` what each server makes of it, `live` the transcript
//! over stdio, [`endless`] the server that speaks HTTP.
//!
//! `toolgate-faulty SERVER [--amount N]` is the zoo as a process. A test binary with a `main` of its
//! own can be its servers itself: see [`main_if_child`].
//!
//! Invariant: without `--amount` a server is harmless to the machine that it runs on.

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

/// A kind of misbehaviour, and what `--amount` is to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FaultyServer {
    /// Does everything right.
    Healthy,
    /// Answers what has come together in another order; amount: the seed.
    Shuffling,
    /// The same, and speaks protocol 2026-07-28 only.
    ShufflingNewer,
    /// Answers everything late; amount: milliseconds.
    Slow,
    /// Says one byte at a time; amount: milliseconds between two.
    Dripping,
    /// Never answers.
    Silent,
    /// Dies before it has said anything.
    CrashAtStart,
    /// Dies when it is called.
    CrashMidCall,
    /// Dies after the first half of an answer to a call.
    CrashHalfAnswer,
    /// Prints things that are no messages around every one that is.
    Garbage,
    /// Says too much on stderr before it answers its first call; amount: bytes.
    StderrFlood,
    /// Answers calls with a very long line; amount: bytes.
    LongLine,
    /// HTTP: answers with event streams that never end; amount: milliseconds between two events.
    EndlessSse,
    /// Answers ids that nobody has used before the one that it was asked with.
    WrongIds,
    /// Answers everything twice.
    Twice,
    /// Answers the ids around the one that it was asked with.
    OtherIds,
    /// Says all the time that its list has changed; amount: notifications at once.
    ListChangedStorm,
    /// Has very many tools; amount: how many.
    ManyTools,
    /// Has another list whenever it is read.
    ChangingList,
    /// Ignores SIGTERM and the end of its input, and has a child that does too.
    Stubborn,
}

/// MCP servers that misbehave
#[derive(Parser)]
#[command(name = "toolgate-faulty")]
struct Args {
    /// Which one
    server: FaultyServer,
    /// How much of it; what it counts is the server's matter
    #[arg(long)]
    amount: Option<u64>,
}

/// The first word with which a test binary is asked to be a server.
pub const CHILD_ARGUMENT: &str = "be-a-faulty-server";
/// What the child of a stubborn one is called.
const GRANDCHILD: &str = "grandchild";

// === impl FaultyServer ===

impl FaultyServer {
    /// All of them.
    pub fn all() -> &'static [Self] {
        Self::value_variants()
    }

    /// The name by which the command line knows it.
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Whether it listens instead of speaking over stdio.
    pub fn listens(self) -> bool {
        self == Self::EndlessSse
    }

    /// How much of it, if nobody says.
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

/// Is a server if the first word of the command line is [`CHILD_ARGUMENT`]; the others say which. Then this
/// returns when the server has died.
pub fn main_if_child() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    (words.next()? == CHILD_ARGUMENT).then(|| main(words))
}

/// The whole program, with the words of its command line.
pub fn main(words: impl Iterator<Item = OsString>) -> ExitCode {
    let mut words = words.peekable();
    if words.peek().is_some_and(|word| word == GRANDCHILD) {
        return stubborn::run_forever().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    let words = match Args::try_parse_from(std::iter::once("toolgate-faulty".into()).chain(words)) {
        Ok(words) => words,
        Err(error) => {
            // Nobody is left to be told that nobody can be told.
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
        // Until it is killed.
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
