//! The budget of a decision: how much its conditions may look at.
//!
//! Arguments come from agents, so what conditions cost is bounded: a decision makes at most
//! [`COMPARISONS`]. One is taken for each condition and for each element of a list that one looks
//! at, and one more for each KiB of text that is searched for it.
//!
//! Invariant: a budget that is spent stays spent, and what is asked for then is an error, which
//! denies. It depends on document and arguments alone, never on a clock.

use std::cell::Cell;

use crate::json::Malformed;

/// The most comparisons of one decision.
pub(crate) const COMPARISONS: u32 = 100_000;
/// So many bytes of text cost as much as a comparison.
const TEXT: usize = 1_024;

/// Why a condition without budget has no truth.
pub(crate) const OVER: &str = "takes more than 100,000 comparisons";

/// What is left of it.
#[derive(Debug)]
pub(crate) struct Budget {
    left: Cell<u32>,
    spent: Cell<bool>,
}

impl Default for Budget {
    fn default() -> Self {
        Self { left: Cell::new(COMPARISONS), spent: Cell::new(false) }
    }
}

impl Budget {
    /// One comparison more.
    #[inline]
    pub(crate) fn compare(&self) -> Result<(), Malformed> {
        self.take(1)
    }

    /// So many bytes of text are looked at.
    #[inline]
    pub(crate) fn look_at(&self, bytes: usize) -> Result<(), Malformed> {
        if bytes < TEXT { self.take(0) } else { self.take(bytes / TEXT) }
    }

    /// Whether it was not enough.
    pub(crate) fn is_spent(&self) -> bool {
        self.spent.get()
    }

    fn take(&self, comparisons: usize) -> Result<(), Malformed> {
        let wanted = u32::try_from(comparisons).unwrap_or(u32::MAX);
        match self.left.get().checked_sub(wanted) {
            Some(left) if !self.spent.get() => {
                self.left.set(left);
                Ok(())
            }
            _ => {
                self.spent.set(true);
                Err(Malformed)
            }
        }
    }
}
