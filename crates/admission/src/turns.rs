//! Turns: work that takes long is done off the runtime's threads, a little at a time, and no grant
//! keeps another from its turn.
//!
//! Invariant: one grant does one such piece of work at a time, so whoever else waits comes next.
//! Invariant: what waits is bounded: each waiting call holds its arguments.

use std::collections::HashMap;
use std::num::NonZero;
use std::sync::Arc;
use std::thread::available_parallelism;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;

/// Most pieces of work of one grant that wait or run.
const WAITING: usize = 64;

/// Gives turns. Grants are few, so their gates are kept.
#[derive(Debug)]
pub(crate) struct Turns {
    all: Arc<Semaphore>,
    grants: Mutex<HashMap<Arc<str>, Gate>>,
}

#[derive(Debug, Clone)]
struct Gate {
    /// Who may wait.
    places: Arc<Semaphore>,
    /// Who may work.
    turn: Arc<Semaphore>,
}

/// The right of a grant to do one piece of work.
pub(crate) struct Turn {
    _place: OwnedSemaphorePermit,
    _turn: OwnedSemaphorePermit,
}

/// Why work was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoTurn {
    /// Too much of this grant waits already.
    TooMany,
    /// The work failed by a mistake.
    Failed,
}

impl Default for Turns {
    fn default() -> Self {
        let cores = available_parallelism().map_or(1, NonZero::get);
        let all = Arc::new(Semaphore::new((cores / 2).max(1)));
        Self { all, grants: Mutex::default() }
    }
}

impl Turns {
    /// Does the work when it is the turn of the grant.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        grant: &Arc<str>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, NoTurn> {
        let turn = self.of(grant).await?;
        let all = Arc::clone(&self.all).acquire_owned().await.map_err(|_| NoTurn::Failed)?;
        // The work goes on if nobody waits for it any more, and so do its turns.
        let done = spawn_blocking(move || {
            let _turns = (turn, all);
            work()
        });
        done.await.map_err(|_| NoTurn::Failed)
    }

    /// Waits until no other work of the grant is done.
    pub(crate) async fn of(&self, grant: &Arc<str>) -> Result<Turn, NoTurn> {
        let gate = self.grants.lock().entry(Arc::clone(grant)).or_default().clone();
        let place = gate.places.try_acquire_owned().map_err(|_| NoTurn::TooMany)?;
        let turn = gate.turn.acquire_owned().await.map_err(|_| NoTurn::Failed)?;
        Ok(Turn { _place: place, _turn: turn })
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self { places: Arc::new(Semaphore::new(WAITING)), turn: Arc::new(Semaphore::new(1)) }
    }
}

impl NoTurn {
    /// Why, in words.
    pub(crate) fn why(self) -> &'static str {
        match self {
            NoTurn::TooMany => "too many large calls of this grant wait",
            NoTurn::Failed => "the call could not be examined",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One grant has taken all the places it can get; another one's work is next.
    #[tokio::test]
    async fn a_grant_that_floods_holds_up_itself() {
        let turns = Arc::new(Turns::default());
        let (greedy, other): (Arc<str>, Arc<str>) = ("greedy".into(), "other".into());
        let first = turns.of(&greedy).await.unwrap();
        let flood: Vec<_> = (0..WAITING - 1)
            .map(|_| {
                let (turns, greedy) = (Arc::clone(&turns), Arc::clone(&greedy));
                tokio::spawn(async move { turns.run(&greedy, || ()).await })
            })
            .collect();
        while turns.grants.lock().get(&greedy).unwrap().places.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(turns.run(&greedy, || 1).await, Err(NoTurn::TooMany));
        assert_eq!(turns.run(&other, || 2).await, Ok(2));
        drop(first);
        for one in flood {
            assert_eq!(one.await.unwrap(), Ok(()));
        }
        assert_eq!(turns.run(&greedy, || 3).await, Ok(3));
        let failed: Result<(), _> = turns.run(&greedy, || panic!("on purpose")).await;
        assert_eq!(failed, Err(NoTurn::Failed));
        assert_eq!(turns.run(&greedy, || 4).await, Ok(4));
    }
}
