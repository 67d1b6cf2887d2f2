//! A fair queue: long work runs off the runtime's threads, one piece per grant at a time.
//!
//! Invariant: a grant has at most one piece of work running, so the work of another grant comes next.
//! Invariant: waiting work is bounded, because each waiting call holds its arguments.

use std::collections::HashMap;
use std::num::NonZero;
use std::sync::Arc;
use std::thread::available_parallelism;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;

/// The maximum number of pieces of work of one grant that wait or run.
const MAX_WAITING: usize = 64;

/// Runs work in turn. There are few grants, so their lanes are kept.
#[derive(Debug)]
pub(crate) struct FairQueue {
    threads: Arc<Semaphore>,
    lanes: Mutex<HashMap<Arc<str>, Lane>>,
}

/// The work of one grant.
#[derive(Debug, Clone)]
struct Lane {
    waiting: Arc<Semaphore>,
    running: Arc<Semaphore>,
}

/// The right of a grant to run one piece of work.
pub(crate) struct Slot {
    _waiting: OwnedSemaphorePermit,
    _running: OwnedSemaphorePermit,
}

/// Why work was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotRun {
    /// Too much work of this grant waits already.
    #[error("too many large calls of this grant wait")]
    QueueFull,
    /// The work panicked.
    #[error("the call could not be examined")]
    Panicked,
}

impl Default for FairQueue {
    fn default() -> Self {
        let cores = available_parallelism().map_or(1, NonZero::get);
        let threads = Arc::new(Semaphore::new((cores / 2).max(1)));
        Self { threads, lanes: Mutex::default() }
    }
}

impl FairQueue {
    /// Runs the work when it is the grant's turn.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        grant: &Arc<str>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, NotRun> {
        let slot = self.slot(grant).await?;
        let threads = Arc::clone(&self.threads).acquire_owned();
        let thread = threads.await.map_err(|_| NotRun::Panicked)?;
        // If the caller stops waiting, the work continues and keeps its slot.
        let done = spawn_blocking(move || {
            let _held = (slot, thread);
            work()
        });
        done.await.map_err(|_| NotRun::Panicked)
    }

    /// Waits until no other work of the grant runs.
    pub(crate) async fn slot(&self, grant: &Arc<str>) -> Result<Slot, NotRun> {
        let lane = self.lanes.lock().entry(Arc::clone(grant)).or_default().clone();
        let waiting = lane.waiting.try_acquire_owned().map_err(|_| NotRun::QueueFull)?;
        let running = lane.running.acquire_owned().await.map_err(|_| NotRun::Panicked)?;
        Ok(Slot { _waiting: waiting, _running: running })
    }
}

impl Default for Lane {
    fn default() -> Self {
        let (waiting, running) = (Semaphore::new(MAX_WAITING), Semaphore::new(1));
        Self { waiting: Arc::new(waiting), running: Arc::new(running) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One grant has filled its lane; the work of another grant is next.
    #[tokio::test]
    async fn a_grant_that_floods_delays_only_itself() {
        let queue = Arc::new(FairQueue::default());
        let (greedy, other): (Arc<str>, Arc<str>) = ("greedy".into(), "other".into());
        let first = queue.slot(&greedy).await.unwrap();
        let flood: Vec<_> = (0..MAX_WAITING - 1)
            .map(|_| {
                let (queue, greedy) = (Arc::clone(&queue), Arc::clone(&greedy));
                tokio::spawn(async move { queue.run(&greedy, || ()).await })
            })
            .collect();
        while queue.lanes.lock().get(&greedy).unwrap().waiting.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(queue.run(&greedy, || 1).await, Err(NotRun::QueueFull));
        assert_eq!(queue.run(&other, || 2).await, Ok(2));
        drop(first);
        for one in flood {
            assert_eq!(one.await.unwrap(), Ok(()));
        }
        assert_eq!(queue.run(&greedy, || 3).await, Ok(3));
        let failed: Result<(), _> = queue.run(&greedy, || panic!("on purpose")).await;
        assert_eq!(failed, Err(NotRun::Panicked));
        assert_eq!(queue.run(&greedy, || 4).await, Ok(4));
    }
}
