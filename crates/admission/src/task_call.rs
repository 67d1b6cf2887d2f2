//! The call that created a task, until the task ends.
//!
//! The agent has its answer. The ticket of the call stays open, so that limits on calls in flight
//! hold and what the result gives or ends is recorded. A task that can outlive this process keeps its
//! call open in the store as well: the next process ends the call when it learns that the task has
//! ended ([`Admission::hear_of_task`]), or when its time is up.
//!
//! Invariant: the ticket is finished once: when the task has ended, when its time is up, when the
//! process that ran it is gone, or when toolgate stops and the task stops with it.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use toolgate_audit::{Effect, Outcome};
use toolgate_store::{Completion, Ticket};

use crate::admit::{Admission, Wanted};
use crate::contained::contained;
use crate::store_timeout::finish_in_time;
use crate::task_book::Heard;

/// How long a call waits for a task whose server gave it no time.
const UNLIMITED: Duration = Duration::from_hours(1);
/// How long a call waits for a task at most.
const LONGEST: Duration = Duration::from_hours(24);
/// The store learns of a later end only if it is later by this much.
const LATER: Duration = Duration::from_mins(1);

/// A task that a call has created.
#[derive(Debug)]
pub struct Made {
    /// The server's own id and what is told about the task from now on; `None` if the task has no
    /// id that the agent could use, so that only its time ends it.
    pub followed: Option<(String, mpsc::UnboundedReceiver<Heard>)>,
    /// What the server told about it when it was created.
    pub first: Heard,
    /// Cancelled when the process that runs it is gone; none if it may outlive the connection.
    pub gone: Option<CancellationToken>,
    /// How long a call that creates no task may take.
    pub shortest: Duration,
}

/// A call whose task has not ended.
struct Open {
    admission: Arc<Admission>,
    ticket: Ticket,
    /// The call, if its result must be recorded before the agent sees it.
    watched: Option<Arc<Wanted>>,
    completed: bool,
    /// The name of the task in the store; `None` if the task ends with this process.
    kept_as: Option<String>,
    /// How long the store keeps the call open.
    kept_until: Option<Instant>,
}

/// How the wait for a task ended.
enum Waited {
    Ended(Outcome, Effect, Heard),
    /// Its time is up, or the process that ran it is gone.
    Over,
    /// toolgate stops.
    Stopped,
}

/// Keeps the call open until its task ends. Nothing of the agent's waits for this.
pub fn keep(
    admission: &Arc<Admission>,
    wanted: Arc<Wanted>,
    ticket: Ticket,
    made: Made,
    began: Instant,
) {
    let book = &admission.tasks;
    let (label, server) = (Arc::clone(&wanted.sender.grant.label), Arc::clone(&wanted.server));
    let own = made.followed.as_ref().map(|(own, _)| own.clone());
    let (place, stopping, tracker) = (book.place(&label), book.stopping.clone(), book.open.clone());
    let outlives = made.gone.is_none();
    let kept_as =
        outlives.then(|| own.as_ref().map_or_else(String::new, |own| name(&label, &server, own)));
    let open = Open {
        admission: Arc::clone(admission),
        ticket,
        // The arguments of other calls are not needed any more; they may be large.
        watched: wanted.watches_result().then_some(wanted),
        completed: false,
        kept_as,
        kept_until: None,
    };
    tracker.spawn(async move {
        let admission = Arc::clone(&open.admission);
        // The task leaves the book after a panic too.
        contained(move || open.run(made, began, stopping)).await;
        if let Some(own) = own {
            admission.tasks.close(&label, &server, &own);
        }
        drop(place);
    });
}

/// The name of a grant's task in the store.
fn name(grant: &str, server: &str, own: &str) -> String {
    json!([grant, server, own]).to_string()
}

impl Admission {
    /// An agent session of a grant has learned something about a task. A call of an earlier process
    /// that created the task ends with it.
    pub fn hear_of_task(
        &self,
        (grant, session): (&str, u64),
        server: &str,
        own: &str,
        heard: &Heard,
    ) {
        if self.tasks.hear((grant, session), server, own, heard) {
            return;
        }
        if let Some((outcome, effect)) = heard.ending(false) {
            let ending = Completion::new(outcome, effect, self.now());
            self.store().end_task(&name(grant, server, own), ending);
        }
    }
}

impl Open {
    async fn run(mut self, made: Made, began: Instant, stopping: CancellationToken) {
        match self.wait(made, stopping).await {
            Waited::Ended(outcome, effect, news) => self.finish(outcome, effect, news, began).await,
            Waited::Over | Waited::Stopped if self.completed => {
                self.finish(Outcome::Ok, Effect::Done, Heard::default(), began).await;
            }
            Waited::Stopped if self.kept_as.is_some() => self.ticket.leave(),
            Waited::Over | Waited::Stopped => {
                let (outcome, effect) = (Outcome::Unknown, Effect::Unknown);
                self.finish(outcome, effect, Heard::default(), began).await;
            }
        }
    }

    async fn wait(&mut self, made: Made, stopping: CancellationToken) -> Waited {
        let Made { first, followed, gone, shortest } = made;
        let mut heard = followed.map(|(_, heard)| heard);
        let mut until = Instant::now() + time_of(&first, shortest).unwrap_or(UNLIMITED);
        let longest = Instant::now() + LONGEST;
        let mut next = Some(first);
        loop {
            if let Some(news) = next.take() {
                if let Some(time) = time_of(&news, shortest) {
                    until = Instant::now() + time;
                }
                self.completed |= news.is_completed();
                if let Some((outcome, effect)) = news.ending(self.watched.is_some()) {
                    return Waited::Ended(outcome, effect, news);
                }
            }
            self.keep_until(until.min(longest));
            let gone = async {
                match &gone {
                    Some(gone) => gone.cancelled().await,
                    None => pending().await,
                }
            };
            let news = async {
                match &mut heard {
                    Some(heard) => heard.recv().await,
                    None => pending().await,
                }
            };
            let news = tokio::select! {
                biased;
                news = news => news,
                () = stopping.cancelled() => return Waited::Stopped,
                () = gone => return Waited::Over,
                () = sleep_until(until.min(longest)) => return Waited::Over,
            };
            match news {
                Some(news) => next = Some(news),
                // Nothing more will be told about the task; its time ends it.
                None => heard = None,
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

    async fn finish(self, outcome: Outcome, effect: Effect, news: Heard, began: Instant) {
        let mut ending = Completion::new(outcome, effect, self.admission.now());
        ending.total_ms = u64::try_from(began.elapsed().as_millis()).ok();
        ending.upstream_ms = ending.total_ms;
        match (&news.result, &self.watched) {
            (Some(result), Some(wanted)) => {
                ending.ownership = self.admission.ownership_of(wanted, result).await;
                if let Err(error) = finish_in_time(self.ticket, ending).await {
                    tracing::error!(%error, "who owns what a task gave is not recorded yet");
                }
            }
            _ => self.ticket.finish(ending),
        }
        // The agent may see the result now.
        drop(news.recorded);
    }
}

/// How long the call waits for its task, by what was told about it. A task with a short time must
/// not give a place back sooner than a call that creates no task.
fn time_of(news: &Heard, shortest: Duration) -> Option<Duration> {
    news.ttl_ms.map(|ttl| Duration::from_millis(ttl).clamp(shortest.min(LONGEST), LONGEST))
}
