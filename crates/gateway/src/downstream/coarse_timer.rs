//! A coarse timer for all calls, so that a short call needs no timer of its own.
//!
//! Whether a call is short is decided at the next ticks, not to the millisecond. Separate timers would
//! wake the runtime's timer for every call; this one ticks only while calls arrive.
//!
//! Invariant: without calls it does not tick, and nothing wakes the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;

const TICK: Duration = Duration::from_millis(50);
/// After this many ticks without a call it pauses.
const IDLE_TICKS: u32 = 20;

/// Ticks while calls wait.
#[derive(Debug, Default)]
pub(crate) struct CoarseTimer {
    tick: Notify,
    /// Ticks since the last call.
    idle: AtomicU32,
    paused: AtomicBool,
    resume: Notify,
}

impl CoarseTimer {
    /// Starts the timer; it ends with the last reference.
    pub(crate) fn start() -> Arc<Self> {
        let timer = Arc::new(Self::default());
        let weak = Arc::downgrade(&timer);
        tokio::spawn(async move {
            while let Some(timer) = weak.upgrade() {
                timer.pause_if_idle().await;
                drop(timer);
                sleep(TICK).await;
                let Some(timer) = weak.upgrade() else { return };
                timer.idle.fetch_add(1, Ordering::SeqCst);
                timer.tick.notify_waiters();
            }
        });
        timer
    }

    /// Waits between one and two ticks.
    pub(crate) async fn wait(&self) {
        self.idle.store(0, Ordering::SeqCst);
        if self.paused.load(Ordering::SeqCst) {
            self.resume.notify_one();
        }
        self.tick.notified().await;
        self.tick.notified().await;
    }

    async fn pause_if_idle(&self) {
        self.paused.store(true, Ordering::SeqCst);
        // Read after `paused` is set: either a call sees `paused`, or this sees the call.
        if self.idle.load(Ordering::SeqCst) >= IDLE_TICKS {
            self.resume.notified().await;
        }
        self.paused.store(false, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, timeout};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_wait_takes_between_one_and_two_ticks() {
        let timer = CoarseTimer::start();
        for _ in 0..100 {
            let start = Instant::now();
            timer.wait().await;
            let elapsed = start.elapsed();
            assert!(
                elapsed > TICK && elapsed <= TICK * 2 + Duration::from_millis(2),
                "{elapsed:?}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_pauses_without_calls_and_resumes() {
        let timer = CoarseTimer::start();
        sleep(TICK * (IDLE_TICKS + 2)).await;
        let silence = timeout(Duration::from_hours(1), timer.tick.notified()).await;
        assert!(silence.is_err(), "it ticks without calls");
        timeout(Duration::from_secs(1), timer.wait()).await.expect("it did not resume");
    }
}
