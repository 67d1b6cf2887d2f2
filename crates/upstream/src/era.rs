//! Eras: which protocols a server speaks, with a handshake (legacy) or without (modern).
//!
//! Each client is served in its own era where the server has both, so a server may be known to
//! speak both. What it was heard to refuse is remembered too, until what is left fails.
//!
//! Invariant: nothing is concluded from silence of a connection that could not be made.

use std::sync::atomic::{AtomicU8, Ordering};

/// With or without a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// Protocols up to 2025-11-25, which have sessions.
    Sessionful,
    /// 2026-07-28, which has none.
    Sessionless,
}

/// Which of the two a server is known not to speak.
#[derive(Debug, Default)]
pub(crate) struct Eras(AtomicU8);

impl Era {
    fn bit(self) -> u8 {
        match self {
            Self::Sessionful => 1,
            Self::Sessionless => 2,
        }
    }

    fn other(self) -> Self {
        match self {
            Self::Sessionful => Self::Sessionless,
            Self::Sessionless => Self::Sessionful,
        }
    }
}

impl Eras {
    /// Which one to try first for somebody who would rather have `wanted`.
    pub(crate) fn first(&self, wanted: Era) -> Era {
        let refused = self.0.load(Ordering::Relaxed);
        if refused == wanted.bit() { wanted.other() } else { wanted }
    }

    /// The server speaks it.
    pub(crate) fn speaks(&self, era: Era) {
        self.0.fetch_and(!era.bit(), Ordering::Relaxed);
    }

    /// The server does not speak it, or does not answer those who do. The other one is to be tried
    /// again, whatever it was heard to say of that before.
    pub(crate) fn refuses(&self, era: Era) {
        self.0.store(era.bit(), Ordering::Relaxed);
    }

    /// Nobody could speak with it, so anything may be.
    pub(crate) fn forget(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_refused_is_not_tried_first() {
        let eras = Eras::default();
        assert_eq!(eras.first(Era::Sessionless), Era::Sessionless);
        eras.refuses(Era::Sessionless);
        assert_eq!(
            (eras.first(Era::Sessionless), eras.first(Era::Sessionful)),
            (Era::Sessionful, Era::Sessionful)
        );
        eras.refuses(Era::Sessionful);
        assert_eq!(
            (eras.first(Era::Sessionless), eras.first(Era::Sessionful)),
            (Era::Sessionless, Era::Sessionless)
        );
        eras.speaks(Era::Sessionful);
        assert_eq!(
            (eras.first(Era::Sessionless), eras.first(Era::Sessionful)),
            (Era::Sessionless, Era::Sessionful)
        );
    }
}
