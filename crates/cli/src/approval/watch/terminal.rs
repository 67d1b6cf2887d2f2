//! Keys from the terminal, one by one, without the person pressing Enter.
//!
//! Invariant: the terminal has its settings back when this is dropped.

use std::cell::Cell;
use std::io::{self, stdin};
use std::time::{Duration, Instant};

use rustix::io::{Errno, read};
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr,
    tcsetattr,
};

use super::view::Key;

/// How long a person needs at least to see what a key would answer.
const GLANCE: Duration = Duration::from_millis(400);

pub(super) struct Terminal {
    before: Termios,
    /// Answers before that are discarded.
    answers_from: Cell<Instant>,
}

impl Terminal {
    pub(super) fn open() -> io::Result<Self> {
        let before = tcgetattr(stdin())?;
        let mut keys = before.clone();
        keys.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        // A read returns after a tenth of a second if no key was pressed.
        keys.special_codes[SpecialCodeIndex::VMIN] = 0;
        keys.special_codes[SpecialCodeIndex::VTIME] = 1;
        tcsetattr(stdin(), OptionalActions::Now, &keys)?;
        Ok(Self { before, answers_from: Cell::new(Instant::now()) })
    }

    /// The next key; `None` if none was pressed within this time.
    pub(super) fn key(&self, within: Duration) -> io::Result<Option<Key>> {
        let until = Instant::now() + within;
        let mut byte = [0];
        loop {
            match read(stdin(), &mut byte) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => match byte.map(Key::of) {
                    [Key::Approve | Key::Deny] if Instant::now() < self.answers_from.get() => {}
                    [key] => return Ok(Some(key)),
                },
                Err(error) => return Err(error.into()),
            }
            if Instant::now() >= until {
                return Ok(None);
            }
        }
    }

    /// Discards what was typed, and the answers of the next moment: something else is shown now.
    pub(super) fn discard(&self) {
        if let Err(error) = tcflush(stdin(), QueueSelector::IFlush) {
            tracing::debug!(%error, "the input of the terminal cannot be flushed");
        }
        self.answers_from.set(Instant::now() + GLANCE);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if let Err(error) = tcsetattr(stdin(), OptionalActions::Now, &self.before) {
            tracing::debug!(%error, "the terminal keeps its settings");
        }
    }
}
