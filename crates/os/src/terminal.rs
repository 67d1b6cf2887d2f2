//! The terminal: its width, and its keys one by one, without Enter.

use std::io::{self, stdin, stdout};

use rustix::io::{Errno, read};
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr,
    tcgetwinsize, tcsetattr,
};

/// The columns of standard output; `None` if it is not a terminal.
pub fn width() -> Option<usize> {
    tcgetwinsize(stdout()).ok().map(|size| usize::from(size.ws_col))
}

/// Standard input, key by key: what is typed is not shown, and Ctrl-C is a key.
///
/// Invariant: the terminal has its settings back when this is dropped.
#[derive(Debug)]
pub struct Keys {
    before: Termios,
}

impl Keys {
    /// Fails if standard input is not a terminal.
    pub fn open() -> io::Result<Self> {
        let before = tcgetattr(stdin())?;
        let mut keys = before.clone();
        keys.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        // A read returns after a tenth of a second if no key was pressed.
        keys.special_codes[SpecialCodeIndex::VMIN] = 0;
        keys.special_codes[SpecialCodeIndex::VTIME] = 1;
        tcsetattr(stdin(), OptionalActions::Now, &keys)?;
        Ok(Self { before })
    }

    /// The next byte; `None` if nothing is typed within a tenth of a second.
    pub fn next(&self) -> io::Result<Option<u8>> {
        let mut byte = [0];
        match read(stdin(), &mut byte) {
            Ok(0) | Err(Errno::INTR) => Ok(None),
            Ok(_) => Ok(Some(byte[0])),
            Err(error) => Err(error.into()),
        }
    }

    /// Discards what was typed and is not read yet.
    pub fn discard(&self) -> io::Result<()> {
        Ok(tcflush(stdin(), QueueSelector::IFlush)?)
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        // A terminal that is gone needs no settings.
        let _restored = tcsetattr(stdin(), OptionalActions::Now, &self.before);
    }
}
