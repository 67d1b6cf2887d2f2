//! The call that created a task, until the task ends.
//!
//! The agent has its answer; the ticket of the call stays open, so that limits on calls in flight
//! hold and what the result gives or ends is recorded.
//!
//! Invariant: the ticket is finished once: when the task is heard to have ended, when its time is up,
//! when the process that ran it is gone, or when toolgate stops.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use toolgate_audit::{Effect, Outcome};
use toolgate_json::peek;
use toolgate_store::{Completion, Ticket};

use crate::admit::{Admission, Wanted};
use crate::contained::contained;
use crate::store_timeout::finish_in_time;
use crate::task_book::Heard;

/// How long a call waits for a task whose server gave it no time.
const UNLIMITED: Duration = Duration::from_hours(1);
/// How long a call waits for a task at most.
const LONGEST: Duration = Duration::from_hours(24);

/// A task that a call has created.
#[derive(Debug)]
pub struct Made {
    /// The server's own id.
    pub own: String,
    /// What the server said of it.
    pub first: Heard,
    /// What is told of it from now on.
    pub heard: mpsc::UnboundedReceiver<Heard>,
    /// Cancelled when the process that runs it is gone; none if it may outlive the connection.
    pub gone: Option<CancellationToken>,
    /// How long a call that creates no task may take.
    pub shortest: Duration,
}

/// A call whose task has not ended.
struct Open {
    admission: Arc<Admission>,
    wanted: Arc<Wanted>,
    ticket: Ticket,
    watched: bool,
    completed: bool,
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
    let (stopping, tracker) = (book.stopping.clone(), book.open.clone());
    let (admission, watched) = (Arc::clone(admission), wanted.watches_result());
    tracker.spawn(async move {
        let (label, server) = (Arc::clone(&wanted.sender.grant.label), Arc::clone(&wanted.server));
        let own = made.own.clone();
        let open =
            Open { admission: Arc::clone(&admission), wanted, ticket, watched, completed: false };
        // The task leaves the book after a panic too.
        contained(move || open.run(made, began, stopping)).await;
        admission.tasks.close(&label, &server, &own);
    });
}

impl Open {
    async fn run(mut self, made: Made, began: Instant, stopping: CancellationToken) {
        let Made { first, mut heard, gone, shortest, .. } = made;
        let mut until = Instant::now() + time_of(&first, shortest).unwrap_or(UNLIMITED);
        let longest = Instant::now() + LONGEST;
        let mut next = Some(first);
        loop {
            if let Some(news) = next.take() {
                if let Some(time) = time_of(&news, shortest) {
                    until = Instant::now() + time;
                }
                if let Some((outcome, effect)) = self.judge(&news) {
                    return self.finish(outcome, effect, news, began).await;
                }
            }
            let gone = async {
                match &gone {
                    Some(gone) => gone.cancelled().await,
                    None => std::future::pending().await,
                }
            };
            next = tokio::select! {
                biased;
                news = heard.recv() => match news {
                    Some(news) => Some(news),
                    None => break,
                },
                () = stopping.cancelled() => break,
                () = gone => break,
                () = sleep_until(until.min(longest)) => break,
            };
        }
        let (outcome, effect) = if self.completed {
            (Outcome::Ok, Effect::Done)
        } else {
            (Outcome::Unknown, Effect::Unknown)
        };
        self.finish(outcome, effect, Heard::default(), began).await;
    }

    /// How the call has ended by what was heard; none if it has not.
    fn judge(&mut self, news: &Heard) -> Option<(Outcome, Effect)> {
        if let Some(result) = &news.result {
            let is_error = peek(result, &["isError"]).is_ok_and(|value| value == Some("true"));
            let outcome = if is_error { Outcome::ToolError } else { Outcome::Ok };
            return Some((outcome, Effect::Done));
        }
        match news.status.as_deref()? {
            "completed" => {
                self.completed = true;
                // Its result says who owns what; the agent has not fetched it yet.
                (!self.watched).then_some((Outcome::Ok, Effect::Done))
            }
            "failed" => Some((Outcome::ToolError, Effect::Done)),
            "cancelled" => Some((Outcome::Cancelled, Effect::Unknown)),
            _ => None,
        }
    }

    async fn finish(self, outcome: Outcome, effect: Effect, news: Heard, began: Instant) {
        let mut ending = Completion::new(outcome, effect, self.admission.now());
        ending.total_ms = u64::try_from(began.elapsed().as_millis()).ok();
        ending.upstream_ms = ending.total_ms;
        match &news.result {
            Some(result) if self.watched => {
                ending.ownership = self.admission.ownership_of(&self.wanted, result).await;
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

/// How long a task is waited for, by what was said of it. Whoever asks for a short time must not
/// get a place back sooner than by a call that creates no task.
fn time_of(news: &Heard, shortest: Duration) -> Option<Duration> {
    news.ttl_ms.map(|ttl| Duration::from_millis(ttl).clamp(shortest.min(LONGEST), LONGEST))
}
