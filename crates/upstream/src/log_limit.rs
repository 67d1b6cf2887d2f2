//! Sparing: how often something that may happen without end is said.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// How many times in a row it is said.
const AT_ONCE: u32 = 10;
/// How soon it may be said again after that.
const PAUSE: Duration = Duration::from_mins(1);

/// Ten times a minute at most.
#[derive(Debug, Default)]
pub(crate) struct Sparing(Mutex<(Option<Instant>, u32)>);

impl Sparing {
    /// Whether it may be said now.
    pub(crate) fn may_say(&self, now: Instant) -> bool {
        let mut state = self.0.lock();
        let (since, said) = &mut *state;
        if since.is_none_or(|since| now.saturating_duration_since(since) >= PAUSE) {
            (*since, *said) = (Some(now), 0);
        }
        *said += 1;
        *said <= AT_ONCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn ten_times_a_minute() {
        let (sparing, now) = (Sparing::default(), Instant::now());
        let said = |at| (0..100).filter(|_| sparing.may_say(at)).count();
        assert_eq!(said(now), 10);
        assert_eq!(said(now + PAUSE / 2), 0);
        assert_eq!(said(now + PAUSE), 10);
    }
}
