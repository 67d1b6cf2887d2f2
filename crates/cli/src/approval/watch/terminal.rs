//! Keys from the terminal, one by one, without the person pressing Enter.

use std::cell::Cell;
use std::io;
use std::time::{Duration, Instant};

use toolgate_os::terminal::Keys;

use super::view::Key;

/// How long a person needs at least to see what a key would answer.
const GLANCE: Duration = Duration::from_millis(400);

pub(super) struct Terminal {
    keys: Keys,
    /// Answers before that are discarded.
    answers_from: Cell<Instant>,
}

impl Terminal {
    pub(super) fn open() -> io::Result<Self> {
        Ok(Self { keys: Keys::open()?, answers_from: Cell::new(Instant::now()) })
    }

    /// The next key; `None` if none was pressed within this time.
    pub(super) fn key(&self, within: Duration) -> io::Result<Option<Key>> {
        let until = Instant::now() + within;
        loop {
            match self.keys.next()?.map(Key::of) {
                None => {}
                Some(Key::Approve | Key::Deny) if Instant::now() < self.answers_from.get() => {}
                key => return Ok(key),
            }
            if Instant::now() >= until {
                return Ok(None);
            }
        }
    }

    /// Discards what was typed, and the answers of the next moment: something else is shown now.
    pub(super) fn discard(&self) {
        if let Err(error) = self.keys.discard() {
            tracing::debug!(%error, "the input of the terminal cannot be flushed");
        }
        self.answers_from.set(Instant::now() + GLANCE);
    }
}
