//! Eras: which protocols a server speaks, with sessions or without.
//!
//! Each client is served in its own era if the server supports both, so a server may be known to
//! speak both. A refused era is remembered until the other one fails too.
//!
//! Invariant: a connection that could not be made shows nothing about eras.

use std::sync::atomic::{AtomicU8, Ordering};

/// With or without sessions and a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// Protocols up to 2025-11-25, which have sessions.
    Sessionful,
    /// 2026-07-28, which has no sessions.
    Sessionless,
}

/// Which era a server is known to refuse.
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
    /// Which era to try first for a client that prefers `wanted`.
    pub(crate) fn first(&self, wanted: Era) -> Era {
        let refused = self.0.load(Ordering::Relaxed);
        if refused == wanted.bit() { wanted.other() } else { wanted }
    }

    /// The server accepted this era.
    pub(crate) fn speaks(&self, era: Era) {
        self.0.fetch_and(!era.bit(), Ordering::Relaxed);
    }

    /// The server refused this era, or does not answer in it. The other one is tried again, even if
    /// it was refused before.
    pub(crate) fn refuses(&self, era: Era) {
        self.0.store(era.bit(), Ordering::Relaxed);
    }

    /// No connection succeeded: nothing is known of either era.
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
