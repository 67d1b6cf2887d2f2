//! How often something may be said in a span of time.
//!
//! Invariant: takes the time as an argument, so that it can be tested without waiting.

use std::time::Duration;

use tokio::time::Instant;

/// So many in every span; the rest is counted.
#[derive(Debug)]
pub(super) struct Allowance {
    most: u32,
    span: Duration,
    since: Instant,
    used: u32,
    left_out: u64,
}

impl Allowance {
    pub(super) fn new(most: u32, span: Duration, now: Instant) -> Self {
        Self { most, span, since: now, used: 0, left_out: 0 }
    }

    /// Whether one more may be said in this span.
    pub(super) fn take(&mut self) -> bool {
        let may = self.used < self.most;
        if may {
            self.used += 1;
        } else {
            self.left_out += 1;
        }
        may
    }

    /// Starts a new span if the old one is over, and says how many the old one left out.
    pub(super) fn renew(&mut self, now: Instant) -> u64 {
        if now.duration_since(self.since) < self.span {
            return 0;
        }
        self.since = now;
        self.used = 0;
        self.settle()
    }

    /// How many were left out since this was last asked.
    pub(super) fn settle(&mut self) -> u64 {
        std::mem::take(&mut self.left_out)
    }

    /// When the span ends, if something was left out that people should hear of then.
    pub(super) fn due(&self) -> Option<Instant> {
        (self.left_out > 0).then(|| self.since + self.span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_counted_and_told_once() {
        let start = Instant::now();
        let span = Duration::from_secs(1);
        let mut allowance = Allowance::new(2, span, start);
        assert_eq!([true, true, false, false, false], std::array::from_fn(|_| allowance.take()));
        assert_eq!(allowance.due(), Some(start + span));
        assert_eq!(allowance.renew(start + span / 2), 0, "the span is not over");
        assert!(!allowance.take());
        assert_eq!(allowance.renew(start + span), 4);
        assert_eq!(allowance.due(), None);
        assert!(allowance.take());
        assert_eq!(allowance.settle(), 0);
    }
}
