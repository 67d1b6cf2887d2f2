//! The pace: one slow clock for all calls, so that a short call needs no timer of its own.
//!
//! Whether a call is short or long is seen at the next beats, not to the millisecond. A timer of
//! its own would cost every call a wake of the runtime's timer; the pace beats only while calls
//! come.
//!
//! Invariant: without calls nothing beats, and nothing wakes the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;

const BEAT: Duration = Duration::from_millis(50);
/// After so many beats without a call it rests.
const CALM: u32 = 20;

/// Beats while somebody listens.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    beat: Notify,
    /// Beats since the last call.
    calm: AtomicU32,
    resting: AtomicBool,
    rouse: Notify,
}

impl Pace {
    /// Starts it; it ends with the last reference.
    pub(crate) fn start() -> Arc<Self> {
        let pace = Arc::new(Self::default());
        let weak = Arc::downgrade(&pace);
        tokio::spawn(async move {
            while let Some(pace) = weak.upgrade() {
                pace.rest_if_calm().await;
                drop(pace);
                sleep(BEAT).await;
                let Some(pace) = weak.upgrade() else { return };
                pace.calm.fetch_add(1, Ordering::SeqCst);
                pace.beat.notify_waiters();
            }
        });
        pace
    }

    /// Between one beat and two.
    pub(crate) async fn a_while(&self) {
        self.calm.store(0, Ordering::SeqCst);
        if self.resting.load(Ordering::SeqCst) {
            self.rouse.notify_one();
        }
        self.beat.notified().await;
        self.beat.notified().await;
    }

    async fn rest_if_calm(&self) {
        self.resting.store(true, Ordering::SeqCst);
        // Looked at after saying so: a call sees that it has to rouse us, or we see the call.
        if self.calm.load(Ordering::SeqCst) >= CALM {
            self.rouse.notified().await;
        }
        self.resting.store(false, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, timeout};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_while_is_between_one_beat_and_two() {
        let pace = Pace::start();
        for _ in 0..100 {
            let start = Instant::now();
            pace.a_while().await;
            let elapsed = start.elapsed();
            assert!(
                elapsed > BEAT && elapsed <= BEAT * 2 + Duration::from_millis(2),
                "{elapsed:?}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_rests_without_calls_and_comes_back() {
        let pace = Pace::start();
        sleep(BEAT * (CALM + 2)).await;
        let silence = timeout(Duration::from_hours(1), pace.beat.notified()).await;
        assert!(silence.is_err(), "it beats for nobody");
        timeout(Duration::from_secs(1), pace.a_while()).await.expect("it was not roused");
    }
}
