//! Calls: an agent's request while it runs.
//!
//! Invariant: a call runs to its end even if whoever waits for it goes away (the agent hung up):
//! dropping a [`Call`] leaves its work to a task of its own.
//! Invariant: until it has ended a call is counted by the tracker, so that a stop waits for it.

use std::pin::pin;
use std::sync::Arc;

use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use toolgate_admission::contained::Work;
use toolgate_upstream::event_buffer::{Begun, EventBuffer, First};

use crate::downstream::coarse_timer::Pace;

/// A request on its way.
pub struct Call {
    buffer: Arc<EventBuffer>,
    /// Polled by whoever waits for the first answer, which spares a task for short calls.
    work: Option<(Work, TaskTrackerToken)>,
    tasks: TaskTracker,
    pace: Arc<Pace>,
}

impl Call {
    pub(crate) fn new(
        buffer: Arc<EventBuffer>,
        work: Work,
        tasks: &TaskTracker,
        pace: &Arc<Pace>,
    ) -> Self {
        let work = Some((work, tasks.token()));
        Self { buffer, work, tasks: tasks.clone(), pace: Arc::clone(pace) }
    }

    /// Waits for the answer, but only a while (50 to 100 ms): then, or when something else comes
    /// first, it is to be read as a stream.
    pub async fn first(&mut self) -> First {
        let (buffer, pace) = (Arc::clone(&self.buffer), Arc::clone(&self.pace));
        tokio::select! {
            biased;
            first = self.working(buffer.first()) => first,
            () = pace.a_while() => First::Stream,
        }
    }

    /// The same, but not waiting for the rest of an answer that has begun.
    pub async fn begun(&mut self) -> Begun {
        let (buffer, pace) = (Arc::clone(&self.buffer), Arc::clone(&self.pace));
        tokio::select! {
            biased;
            begun = self.working(buffer.begun()) => begun,
            () = pace.a_while() => buffer.no_longer(),
        }
    }

    /// Waits for `seen`, and works meanwhile.
    async fn working<T>(&mut self, seen: impl Future<Output = T>) -> T {
        let mut seen = pin!(seen);
        if let Some((work, _)) = &mut self.work {
            tokio::select! {
                biased;
                () = work => self.work = None,
                seen = &mut seen => return seen,
            }
        }
        seen.await
    }

    pub(crate) fn buffer(&self) -> &Arc<EventBuffer> {
        &self.buffer
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if let Some((work, token)) = self.work.take()
            && tokio::runtime::Handle::try_current().is_ok()
        {
            self.tasks.spawn(async move {
                work.await;
                drop(token);
            });
        }
    }
}
