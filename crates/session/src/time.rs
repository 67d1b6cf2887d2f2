//! Time as reported to the machine.

use std::time::Duration;

use jiff::Timestamp;

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

    /// The time as a timestamp; the latest one if it is beyond that.
    pub(crate) fn timestamp(self) -> Timestamp {
        let millis = i64::try_from(self.0).unwrap_or(i64::MAX);
        Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX)
    }

    /// The time in RFC 3339, in whole seconds.
    pub(crate) fn rfc3339(self) -> String {
        Self(self.0 / 1000 * 1000).timestamp().to_string()
    }

    /// Whole seconds since `earlier`.
    pub(crate) fn secs_since(self, earlier: Self) -> u64 {
        self.since(earlier).as_secs()
    }
}
