//! Calls: an agent's request while it runs.
//!
//! Invariant: a call runs to its end even if the agent disconnects: dropping a [`Call`] moves its work
//! to a task.
//! Invariant: the tracker counts a call until it has ended, so that a stop waits for it.

use std::pin::pin;
use std::sync::Arc;

use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use toolgate_admission::contained::Work;
use toolgate_upstream::event_buffer::{Attending, Begun, EventBuffer, First};

use crate::downstream::coarse_timer::CoarseTimer;

/// A running request.
pub struct Call {
    buffer: Arc<EventBuffer>,
    /// Polled while the first answer is awaited, so that a short call needs no task.
    work: Option<(Work, TaskTrackerToken)>,
    tasks: TaskTracker,
    timer: Arc<CoarseTimer>,
    /// The connection waits for the first message.
    _attending: Attending,
}

impl Call {
    pub(crate) fn new(
        buffer: Arc<EventBuffer>,
        work: Work,
        tasks: &TaskTracker,
        timer: &Arc<CoarseTimer>,
    ) -> Self {
        let (work, attending) = (Some((work, tasks.token())), buffer.attend());
        let (tasks, timer) = (tasks.clone(), Arc::clone(timer));
        Self { buffer, work, tasks, timer, _attending: attending }
    }

    /// Waits for the answer for 50 to 100 ms. After that, or if another message comes first, the call
    /// is read as a stream.
    pub async fn first(&mut self) -> First {
        let (buffer, timer) = (Arc::clone(&self.buffer), Arc::clone(&self.timer));
        tokio::select! {
            biased;
            first = self.working(buffer.first()) => first,
            () = timer.wait() => First::Stream,
        }
    }

    /// The same, without waiting for the rest of an answer that has begun.
    pub async fn begun(&mut self) -> Begun {
        let (buffer, timer) = (Arc::clone(&self.buffer), Arc::clone(&self.timer));
        tokio::select! {
            biased;
            begun = self.working(buffer.begun()) => begun,
            () = timer.wait() => buffer.no_longer(),
        }
    }

    /// Waits for `seen` and runs the work meanwhile.
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
