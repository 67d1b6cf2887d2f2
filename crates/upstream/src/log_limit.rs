//! Rate limit for repeated log messages.
//!
//! Invariant: takes the time as an argument, so that tests need not wait.
//! Start at [`LogLimit::allows`].

use std::time::Duration;

use tokio::time::Instant;

/// Allows so many messages in every span of time and counts the rest.
#[derive(Debug)]
pub struct LogLimit {
    most: u32,
    span: Duration,
    since: Instant,
    used: u32,
    suppressed: u64,
}

impl LogLimit {
    /// At most `most` messages in every `span`; the first span starts at `now`.
    pub fn new(most: u32, span: Duration, now: Instant) -> Self {
        Self { most, span, since: now, used: 0, suppressed: 0 }
    }

    /// Whether a message may be logged now.
    pub fn allows(&mut self, now: Instant) -> bool {
        self.renew(now);
        self.take()
    }

    /// Whether one more message may be logged in the current span.
    pub fn take(&mut self) -> bool {
        let allowed = self.used < self.most;
        if allowed {
            self.used += 1;
        } else {
            self.suppressed += 1;
        }
        allowed
    }

    /// Starts a new span if the old one is over. Returns how many messages the old one suppressed.
    pub fn renew(&mut self, now: Instant) -> u64 {
        if now.saturating_duration_since(self.since) < self.span {
            return 0;
        }
        self.since = now;
        self.used = 0;
        self.take_suppressed()
    }

    /// How many messages were suppressed since the last call.
    pub fn take_suppressed(&mut self) -> u64 {
        std::mem::take(&mut self.suppressed)
    }

    /// When the span ends, if it suppressed messages that should be reported then.
    pub fn due(&self) -> Option<Instant> {
        (self.suppressed > 0).then(|| self.since + self.span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suppressed_messages_are_counted_and_reported_once() {
        let start = Instant::now();
        let span = Duration::from_secs(1);
        let mut limit = LogLimit::new(2, span, start);
        assert_eq!([true, true, false, false, false], std::array::from_fn(|_| limit.take()));
        assert_eq!(limit.due(), Some(start + span));
        assert_eq!(limit.renew(start + span / 2), 0, "the span is not over");
        assert!(!limit.take());
        assert_eq!(limit.renew(start + span), 4);
        assert_eq!(limit.due(), None);
        assert!(limit.take());
        assert_eq!(limit.take_suppressed(), 0);
    }

    #[test]
    fn ten_times_a_minute() {
        let (minute, now) = (Duration::from_mins(1), Instant::now());
        let mut limit = LogLimit::new(10, minute, now);
        let mut allowed = |at| (0..100).filter(|_| limit.allows(at)).count();
        assert_eq!(allowed(now), 10);
        assert_eq!(allowed(now + minute / 2), 0);
        assert_eq!(allowed(now + minute), 10);
    }
}
