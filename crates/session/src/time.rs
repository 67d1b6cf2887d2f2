//! Time as reported to the machine.

use std::time::Duration;

/// Milliseconds since the Unix epoch. The driver reads the wall clock once, at start, and adds the
/// elapsed monotonic time, so that changes of the wall clock do not affect sessions.
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
