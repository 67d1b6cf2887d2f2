//! The zoo: MCP servers that misbehave, each in one way and otherwise well.
//!
//! Every animal shakes hands (2025-11-25 and older), lists its tools and answers `tools/call echo`
//! with its `text`, so that it can be attached like any server; what it does besides is in
//! [`Animal`]. `answer` holds what is right, `habits` what each animal makes of it, `live` the life
//! over stdio, [`endless`] the animal that speaks HTTP.
//!
//! `toolgate-zoo ANIMAL [--amount N]` is the zoo as a process. A test binary with a `main` of its
//! own can be its animals itself: see [`main_if_asked`].
//!
//! Invariant: without `--amount` an animal is harmless to the machine that it runs on.

mod answer;
pub mod endless;
mod habits;
mod live;
mod stubborn;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::io::{self, Write as _, stderr, stdin, stdout};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};

pub(crate) use self::answer::{Heard, Mind};
pub use self::habits::LIE;

/// A kind of misbehaviour, and what `--amount` is to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Animal {
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
#[command(name = "toolgate-zoo")]
struct Words {
    /// Which one
    animal: Animal,
    /// How much of it; what it counts is the animal's matter
    #[arg(long)]
    amount: Option<u64>,
}

/// The first word with which a test binary is asked to be an animal.
pub const ASKED: &str = "be-an-animal";
/// What the child of a stubborn one is called.
const GRANDCHILD: &str = "grandchild";

// === impl Animal ===

impl Animal {
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

/// Is an animal if the first word of the command line is [`ASKED`]; the others say which. Then this
/// returns when the animal has died.
pub fn main_if_asked() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    (words.next()? == ASKED).then(|| main(words))
}

/// The whole program, with the words of its command line.
pub fn main(words: impl Iterator<Item = OsString>) -> ExitCode {
    let mut words = words.peekable();
    if words.peek().is_some_and(|word| word == GRANDCHILD) {
        return stubborn::stay().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    let words = match Words::try_parse_from(std::iter::once("toolgate-zoo".into()).chain(words)) {
        Ok(words) => words,
        Err(error) => {
            // Nobody is left to be told that nobody can be told.
            drop(error.print());
            return ExitCode::from(64);
        }
    };
    let amount = words.amount.unwrap_or_else(|| words.animal.usual_amount());
    match run(words.animal, amount) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            drop(writeln!(stderr(), "{error}"));
            ExitCode::FAILURE
        }
    }
}

fn run(animal: Animal, amount: u64) -> io::Result<u8> {
    if animal.listens() {
        let endless = endless::Endless::start(Duration::from_millis(amount))?;
        writeln!(stdout(), "{}", serde_json::json!({ "url": endless.url() }))?;
        // Until it is killed.
        loop {
            std::thread::park();
        }
    }
    if animal == Animal::Stubborn {
        stubborn::dig_in()?;
    }
    let code = live::live(animal, amount, stdin(), stdout(), stderr())?;
    if animal == Animal::Stubborn {
        stubborn::stay()?;
    }
    Ok(code)
}
