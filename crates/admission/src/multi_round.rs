//! Legs: a call that takes several requests of its client, admitted and written down as one.
//!
//! In protocol 2026-07-28 a call that needs an answer of its client ends a request and goes on with
//! the next one. Whoever talks to the client says so here ([`Legs`]), and whoever forwards the call
//! ([`Ticking`]) ends the leg in the audit and has the next one decided.
//!
//! Invariant: between two legs nothing that the client says reaches the server.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use toolgate_audit::{Effect, Outcome};
use toolgate_store::{Completion, Permit, Ticket};

use crate::admit::{Admission, Sender, Wanted};
use crate::clearance::Heads;
use crate::refused::Refused;
use crate::store_timeout::finish_in_time;

/// What of `params` belongs to one round.
pub const OF_ROUND: [&str; 3] = ["requestState", "inputResponses", "_meta"];

/// The client's end.
#[derive(Debug)]
pub struct Legs {
    steps: mpsc::UnboundedSender<Step>,
    retries: mpsc::UnboundedSender<Retry>,
}

/// The other end.
pub type Steps = mpsc::UnboundedReceiver<Step>;

/// What happens between legs.
pub enum Step {
    /// The leg has ended with a question to the client.
    Asks(oneshot::Sender<()>),
    /// The client goes on with the call.
    GoesOn(Sender, oneshot::Sender<Result<Permit, Refused>>),
}

/// The next request of a client, which goes on with a call.
#[derive(Debug)]
pub struct Retry {
    /// The whole message.
    pub raw: String,
    /// What clears it.
    pub permit: Permit,
}

/// What only a request of protocol 2026-07-28 has.
pub struct Newer {
    /// Its client's next requests, which go on with it.
    pub retries: mpsc::UnboundedReceiver<Retry>,
    /// Its `Mcp-Param-*` headers.
    pub heads: Heads,
}

/// A call that was admitted, and the duty to say how each leg of it ended.
pub struct Ticking {
    /// What decides its next requests.
    pub admission: Arc<Admission>,
    /// The call, as its last request was decided.
    pub wanted: Arc<Wanted>,
    /// None between two legs.
    pub ticket: Option<Ticket>,
}

/// The two ends of one call, which came with these `Mcp-Param-*` headers.
pub fn legs(heads: Heads) -> (Legs, (Steps, Newer)) {
    let (tell, steps) = mpsc::unbounded_channel();
    let (retry, retries) = mpsc::unbounded_channel();
    (Legs { steps: tell, retries: retry }, (steps, Newer { retries, heads }))
}

// === impl Legs ===

impl Legs {
    /// Ends the leg; true once that is written down. False if the call is over.
    pub async fn end(&self) -> bool {
        let (tell, done) = oneshot::channel();
        self.steps.send(Step::Asks(tell)).is_ok() && done.await.is_ok()
    }

    /// Has the next leg decided; its permit. None if the call is over.
    pub async fn go_on(&self, sender: Sender) -> Option<Result<Permit, Refused>> {
        let (tell, decided) = oneshot::channel();
        self.steps.send(Step::GoesOn(sender, tell)).ok()?;
        decided.await.ok()
    }
}

impl Legs {
    /// Goes on with a server that has forgotten the call but for what this brings it.
    pub fn retry(&self, retry: Retry) {
        drop(self.retries.send(retry));
    }
}

// === impl Ticking ===

impl Ticking {
    /// Does what a step demands.
    pub async fn take(&mut self, step: Step) {
        match step {
            Step::Asks(done) => {
                if let Some(ticket) = self.ticket.take() {
                    let (outcome, now) = (Outcome::InputRequired, self.admission.now());
                    let ending = Completion::new(outcome, Effect::Unknown, now);
                    // The next leg finds the call only if this is written by then.
                    if let Err(error) = finish_in_time(ticket, ending).await {
                        tracing::error!(%error, "the end of a leg is not written yet");
                    }
                }
                if done.send(()).is_err() {
                    tracing::trace!("whoever asked is gone");
                }
            }
            Step::GoesOn(sender, decided) => {
                let wanted = Arc::new(Wanted { sender, ..Wanted::clone(&self.wanted) });
                let admitted = self.admission.admit_next(&wanted).await;
                drop(decided.send(admitted.map(|admitted| {
                    let (permit, ticket) = admitted.split();
                    self.wanted = wanted;
                    self.ticket = Some(ticket);
                    permit
                })));
            }
        }
    }

    /// Waits for the leg that is to hear how the call ended; none if it never comes.
    pub async fn last_leg(mut self, steps: Option<Steps>) -> Option<(Ticket, Arc<Wanted>)> {
        let mut steps = steps;
        while self.ticket.is_none() {
            let step = steps.as_mut()?.recv().await?;
            self.take(step).await;
        }
        Some((self.ticket?, self.wanted))
    }
}

/// The next step; never, if there are no legs.
pub async fn next(steps: &mut Option<Steps>) -> Step {
    if let Some(all) = steps
        && let Some(step) = all.recv().await
    {
        return step;
    }
    std::future::pending().await
}
