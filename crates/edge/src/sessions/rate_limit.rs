//! Rate limit of one socket.
//!
//! Answers to calls cost nothing. Everything else costs by number and by size, so that a program that
//! sends too much waits, and no other does.

use std::time::Duration;

use tokio::time::Instant;

/// Frames that may arrive at once.
const BURST: f64 = 200.0;
/// Frames per second.
const RATE: f64 = 50.0;
/// How many bytes cost as much as one frame.
const BYTES: usize = 16 * 1024;
/// The longest delay: shorter than the time after which an idle socket is closed.
const LONGEST: Duration = Duration::from_secs(5);

/// What one socket may still send.
#[derive(Debug)]
pub(super) struct RateLimit {
    left: f64,
    since: Instant,
}

impl RateLimit {
    pub(super) fn new(now: Instant) -> Self {
        Self { left: BURST, since: now }
    }

    /// Charges a frame of `bytes`; returns the delay before the next one is read.
    pub(super) fn charge(&mut self, bytes: usize, now: Instant) -> Option<Duration> {
        let earned = now.saturating_duration_since(self.since).as_secs_f64() * RATE;
        self.since = now;
        let price = 1 + bytes / BYTES;
        // The price is at most some thousands.
        let price = f64::from(u32::try_from(price).unwrap_or(u32::MAX));
        self.left = (self.left + earned).min(BURST) - price;
        let debt = -self.left;
        (debt > 0.0).then(|| Duration::from_secs_f64(debt / RATE).min(LONGEST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_that_sends_too_much_waits() {
        let start = Instant::now();
        let mut limit = RateLimit::new(start);
        for _ in 0..200 {
            assert_eq!(limit.charge(100, start), None);
        }
        let wait = limit.charge(100, start).unwrap();
        assert!(wait > Duration::ZERO && wait < Duration::from_secs(1));
        let later = start + Duration::from_mins(1);
        assert_eq!(limit.charge(100, later), None, "the debt is paid");
        assert_eq!(limit.charge(16 * 1024 * 1024, later), Some(LONGEST));
    }
}
