//! Time as the machine is told it.

use std::time::Duration;

/// Milliseconds since the Unix epoch. The driver takes the wall clock once, at start, and adds
/// what a monotonic clock has measured since, so that a session's life does not follow a clock
/// that somebody sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Millis(pub u64);

impl Millis {
    /// This long later.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)))
    }

    /// How long ago `earlier` was; zero if it is not earlier.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// Whole seconds since `earlier`.
    pub(crate) fn secs_since(self, earlier: Self) -> u64 {
        self.since(earlier).as_secs()
    }
}
