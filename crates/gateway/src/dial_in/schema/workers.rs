//! Those who check arguments: a few threads beside those that serve connections.
//!
//! Invariant: no grant and no session has all of them at once, so that others always find one.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// How many arguments are checked at once.
const WORKERS: usize = 4;
/// How many of them may be those of one grant, or for one session.
const SHARE: usize = 2;
/// How long a call waits for its turn.
const PATIENCE: Duration = Duration::from_secs(5);
/// From how many on shares that are not used are forgotten.
const SWEEP: usize = 1_024;

/// The workers.
pub(super) struct Workers {
    all: Arc<Semaphore>,
    shares: Mutex<HashMap<Box<str>, Weak<Semaphore>>>,
}

/// The right to check one call's arguments.
pub(super) struct Turn {
    _own: [OwnedSemaphorePermit; 3],
    _shares: [Arc<Semaphore>; 2],
}

impl Default for Workers {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(WORKERS)), shares: Mutex::default() }
    }
}

impl Workers {
    /// Waits for a turn; none if it takes too long.
    pub(super) async fn turn(&self, grant: &str, session: &str) -> Option<Turn> {
        let shares = [self.share(&format!("g {grant}")), self.share(&format!("s {session}"))];
        let [of_grant, of_session] = shares.clone();
        let turn = async {
            let own = [
                of_grant.acquire_owned().await.ok()?,
                of_session.acquire_owned().await.ok()?,
                Arc::clone(&self.all).acquire_owned().await.ok()?,
            ];
            Some(Turn { _own: own, _shares: shares })
        };
        timeout(PATIENCE, turn).await.ok()?
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
        let greedy = [workers.turn("g", "a").await, workers.turn("g", "b").await];
        assert!(greedy.iter().all(Option::is_some));
        assert!(workers.turn("g", "c").await.is_none(), "a third one of the same grant");
        let others = [workers.turn("h", "a").await, workers.turn("i", "b").await];
        assert!(others.iter().all(Option::is_some));
        drop(greedy);
        assert!(workers.turn("j", "c").await.is_some());
    }
}
