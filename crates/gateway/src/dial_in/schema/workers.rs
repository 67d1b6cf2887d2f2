//! Limits concurrent checks of arguments, which run beside the threads that serve connections.
//!
//! Invariant: no grant and no session uses all workers at once.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// The maximum number of concurrent checks.
const WORKERS: usize = 4;
/// The maximum of one grant, or for one session.
const SHARE: usize = 2;
/// How long a call waits for a worker.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Unused shares are removed from this number on.
const SWEEP: usize = 1_024;

/// The workers.
pub(super) struct Workers {
    all: Arc<Semaphore>,
    shares: Mutex<HashMap<Box<str>, Weak<Semaphore>>>,
}

/// The right to check the arguments of one call.
pub(super) struct Slot {
    _own: [OwnedSemaphorePermit; 3],
    _shares: [Arc<Semaphore>; 2],
}

impl Default for Workers {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(WORKERS)), shares: Mutex::default() }
    }
}

impl Workers {
    /// Waits for a worker; `None` after the timeout.
    pub(super) async fn slot(&self, grant: &str, session: &str) -> Option<Slot> {
        let shares = [self.share(&format!("g {grant}")), self.share(&format!("s {session}"))];
        let [of_grant, of_session] = shares.clone();
        let slot = async {
            let own = [
                of_grant.acquire_owned().await.ok()?,
                of_session.acquire_owned().await.ok()?,
                Arc::clone(&self.all).acquire_owned().await.ok()?,
            ];
            Some(Slot { _own: own, _shares: shares })
        };
        timeout(TIMEOUT, slot).await.ok()?
    }

    fn share(&self, key: &str) -> Arc<Semaphore> {
        let mut shares = self.shares.lock();
        if let Some(share) = shares.get(key).and_then(Weak::upgrade) {
            return share;
        }
        if shares.len() >= SWEEP {
            shares.retain(|_, share| share.strong_count() > 0);
        }
        let share = Arc::new(Semaphore::new(SHARE));
        shares.insert(key.into(), Arc::downgrade(&share));
        share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_grant_or_session_leaves_room_for_others() {
        let workers = Workers::default();
        let greedy = [workers.slot("g", "a").await, workers.slot("g", "b").await];
        assert!(greedy.iter().all(Option::is_some));
        assert!(workers.slot("g", "c").await.is_none(), "a third one of the same grant");
        let others = [workers.slot("h", "a").await, workers.slot("i", "b").await];
        assert!(others.iter().all(Option::is_some));
        drop(greedy);
        assert!(workers.slot("j", "c").await.is_some());
    }
}
