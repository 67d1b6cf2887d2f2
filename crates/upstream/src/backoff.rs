//! Back-off between attempts that keep failing.

use std::time::Duration;

use tokio::time::Instant;

const LONGEST: Duration = Duration::from_mins(1);

/// Waits of 1 s, 2 s, 4 s … 60 s between failures.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
    not_before: Option<Instant>,
}

impl Backoff {
    pub(crate) fn failed(&mut self, now: Instant) {
        let wait = Duration::from_secs(1 << self.failures.min(6)).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        self.not_before = Some(now + wait);
    }

    /// How long the next attempt must wait; `None` if it need not.
    pub(crate) fn wait(&self, now: Instant) -> Option<Duration> {
        self.not_before?.checked_duration_since(now).filter(|wait| !wait.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waits_double_up_to_a_minute() {
        let now = Instant::now();
        let mut backoff = Backoff::default();
        assert_eq!(backoff.wait(now), None);
        let waits: Vec<u64> = (0..9)
            .map(|_| {
                backoff.failed(now);
                backoff.wait(now).unwrap().as_secs()
            })
            .collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(backoff.wait(now + LONGEST), None);
    }
}
