//! Rate limit for repeated log messages.
//!
//! Invariant: the time is an argument, so that tests need not wait.

use std::time::Duration;

use tokio::time::Instant;

/// Allows a number of messages in each period and counts the rest.
#[derive(Debug)]
pub struct LogLimit {
    max: u32,
    period: Duration,
    since: Instant,
    used: u32,
    suppressed: u64,
}

impl LogLimit {
    /// Allows `max` messages in each `period`.
    pub fn new(max: u32, period: Duration, now: Instant) -> Self {
        Self { max, period, since: now, used: 0, suppressed: 0 }
    }

    /// Whether one more message may be logged in this period.
    pub fn allow(&mut self) -> bool {
        let allowed = self.used < self.max;
        if allowed {
            self.used += 1;
        } else {
            self.suppressed += 1;
        }
        allowed
    }

    /// Starts a new period if the current one is over. Returns how many messages it suppressed.
    pub fn renew(&mut self, now: Instant) -> u64 {
        if now.saturating_duration_since(self.since) < self.period {
            return 0;
        }
        self.since = now;
        self.used = 0;
        self.take_suppressed()
    }

    /// How many messages were suppressed since the last report.
    pub fn take_suppressed(&mut self) -> u64 {
        std::mem::take(&mut self.suppressed)
    }

    /// When the period ends, if it has suppressed messages to report then.
    pub fn due(&self) -> Option<Instant> {
        (self.suppressed > 0).then(|| self.since + self.period)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suppressed_messages_are_counted_and_reported_once() {
        let start = Instant::now();
        let period = Duration::from_secs(1);
        let mut limit = LogLimit::new(2, period, start);
        assert_eq!([true, true, false, false, false], std::array::from_fn(|_| limit.allow()));
        assert_eq!(limit.due(), Some(start + period));
        assert_eq!(limit.renew(start + period / 2), 0, "the period is not over");
        assert!(!limit.allow());
        assert_eq!(limit.renew(start + period), 4);
        assert_eq!(limit.due(), None);
        assert!(limit.allow());
        assert_eq!(limit.take_suppressed(), 0);
    }
}
