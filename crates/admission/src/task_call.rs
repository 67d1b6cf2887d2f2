//! The call that created a task, until the task ends.
//!
//! The agent has its answer. The ticket of the call stays open, so that limits on calls in flight
//! hold and the ids that the result assigns or ends are recorded. A task that can outlive this process
//! keeps its call open in the store as well: the next process ends the call when it learns that the
//! task has ended ([`Admission::task_updated`]), or when its time is up.
//!
//! Invariant: the ticket is finished once: when the task has ended, when its time is up, when the
//! process that ran it is gone, or when toolgate stops and the task stops with it.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use serde_json::json;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use toolgate_audit::{Effect, Outcome};
use toolgate_store::{Completion, Ticket};

use crate::admit::Admission;
use crate::call_context::CallContext;
use crate::contained::contained;
use crate::store_timeout::finish_in_time;
use crate::task_book::TaskUpdate;

pub use crate::task_book::CreatedTask;

/// How long a call waits for a task without a `ttl`.
const UNLIMITED: Duration = Duration::from_hours(1);
/// The maximum time that a call waits for a task.
const LONGEST: Duration = Duration::from_hours(24);
/// The store is updated only if the end moves by at least this much.
const LATER: Duration = Duration::from_mins(1);

/// A call whose task has not ended.
struct OpenCall {
    admission: Arc<Admission>,
    ticket: Ticket,
    /// The call, if its result must be recorded before the agent sees it.
    watched: Option<Arc<CallContext>>,
    completed: bool,
    /// The name of the task in the store; `None` if the task ends with this process.
    kept_as: Option<String>,
    /// How long the store keeps the call open.
    kept_until: Option<Instant>,
}

/// How the wait for a task ended.
enum Waited {
    Ended(Outcome, Effect, TaskUpdate),
    /// Its time is up, or the process that ran it is gone.
    Over,
    /// toolgate stops.
    Stopped,
}

/// Keeps the call open until its task ends. The agent does not wait for this.
pub fn keep_open(
    admission: &Arc<Admission>,
    context: Arc<CallContext>,
    ticket: Ticket,
    made: CreatedTask,
    began: Instant,
) {
    let book = &admission.tasks;
    let (label, server) = (Arc::clone(&context.sender.grant.label), Arc::clone(&context.server));
    let own = made.tracked.as_ref().map(|(own, _)| own.clone());
    let (open_task, stopping) = (book.open_task(&label), book.stopping.clone());
    let tracker = book.open.clone();
    let outlives = made.gone.is_none();
    let kept_as =
        outlives.then(|| own.as_ref().map_or_else(String::new, |own| name(&label, &server, own)));
    let open = OpenCall {
        admission: Arc::clone(admission),
        ticket,
        // The arguments of other calls, which may be large, are no longer needed.
        watched: context.watches_result().then_some(context),
        completed: false,
        kept_as,
        kept_until: None,
    };
    tracker.spawn(async move {
        let admission = Arc::clone(&open.admission);
        // Also after a panic the task is closed.
        contained(move || open.run(made, began, stopping)).await;
        if let Some(own) = own {
            admission.tasks.close(&label, &server, &own);
        }
        drop(open_task);
    });
}

/// The name of a grant's task in the store.
fn name(grant: &str, server: &str, own: &str) -> String {
    json!([grant, server, own]).to_string()
}

impl Admission {
    /// An agent session of a grant has received an update about a task. A call of an earlier process
    /// that created the task ends with it.
    pub fn task_updated(
        &self,
        (grant, session): (&str, u64),
        server: &str,
        own: &str,
        update: &TaskUpdate,
    ) {
        if self.tasks.update((grant, session), server, own, update) {
            return;
        }
        if let Some((outcome, effect)) = update.ending(false) {
            let ending = Completion::new(outcome, effect, self.now());
            self.store().end_task(&name(grant, server, own), ending);
        }
    }
}

impl OpenCall {
    async fn run(mut self, made: CreatedTask, began: Instant, stopping: CancellationToken) {
        match self.wait(made, stopping).await {
            Waited::Ended(outcome, effect, update) => {
                self.finish(outcome, effect, update, began).await;
            }
            Waited::Over | Waited::Stopped if self.completed => {
                self.finish(Outcome::Ok, Effect::Done, TaskUpdate::default(), began).await;
            }
            Waited::Stopped if self.kept_as.is_some() => self.ticket.leave(),
            Waited::Over | Waited::Stopped => {
                let (outcome, effect) = (Outcome::Unknown, Effect::Unknown);
                self.finish(outcome, effect, TaskUpdate::default(), began).await;
            }
        }
    }

    async fn wait(&mut self, made: CreatedTask, stopping: CancellationToken) -> Waited {
        let CreatedTask { first, tracked, gone, shortest } = made;
        let mut updates = tracked.map(|(_, updates)| updates);
        let mut until = Instant::now() + time_of(&first, shortest).unwrap_or(UNLIMITED);
        let longest = Instant::now() + LONGEST;
        let mut next = Some(first);
        loop {
            if let Some(update) = next.take() {
                if let Some(time) = time_of(&update, shortest) {
                    until = Instant::now() + time;
                }
                self.completed |= update.is_completed();
                if let Some((outcome, effect)) = update.ending(self.watched.is_some()) {
                    return Waited::Ended(outcome, effect, update);
                }
            }
            self.keep_until(until.min(longest));
            let gone = async {
                match &gone {
                    Some(gone) => gone.cancelled().await,
                    None => pending().await,
                }
            };
            let update = async {
                match &mut updates {
                    Some(updates) => updates.recv().await,
                    None => pending().await,
                }
            };
            let update = tokio::select! {
                biased;
                update = update => update,
                () = stopping.cancelled() => return Waited::Stopped,
                () = gone => return Waited::Over,
                () = sleep_until(until.min(longest)) => return Waited::Over,
            };
            match update {
                Some(update) => next = Some(update),
                // No further updates will arrive; the time of the task ends it.
                None => updates = None,
            }
        }
    }

    /// Has the store keep the call open until then, if the task can outlive this process.
    fn keep_until(&mut self, until: Instant) {
        let Some(name) = &self.kept_as else { return };
        if self.kept_until.is_some_and(|kept| until < kept + LATER) {
            return;
        }
        let left = SignedDuration::try_from(until.saturating_duration_since(Instant::now()));
        let then = left.ok().and_then(|left| self.admission.now().checked_add(left).ok());
        if let Some(then) = then {
            self.ticket.continue_as_task(name, then);
            self.kept_until = Some(until);
        }
    }

    async fn finish(self, outcome: Outcome, effect: Effect, update: TaskUpdate, began: Instant) {
        let mut ending = Completion::new(outcome, effect, self.admission.now());
        ending.total_ms = u64::try_from(began.elapsed().as_millis()).ok();
        ending.upstream_ms = ending.total_ms;
        match (&update.result, &self.watched) {
            (Some(result), Some(context)) => {
                ending.ownership = self.admission.ownership_of(context, result).await;
                if let Err(error) = finish_in_time(self.ticket, ending).await {
                    tracing::error!(%error, "ownership of a task's result not recorded yet");
                }
            }
            _ => self.ticket.finish(ending),
        }
        // The agent may see the result now.
        drop(update.recorded);
    }
}

/// How long the call waits for its task after an update. A task with a short `ttl` must not end its
/// call sooner than the timeout of an ordinary call.
fn time_of(update: &TaskUpdate, shortest: Duration) -> Option<Duration> {
    update.ttl_ms.map(|ttl| Duration::from_millis(ttl).clamp(shortest.min(LONGEST), LONGEST))
}
