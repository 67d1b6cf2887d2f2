//! Multi-round calls: a call that takes several requests of its client is admitted and recorded as
//! one.
//!
//! In protocol 2026-07-28 a call that needs an answer of its client ends a request and continues
//! with the next one. The side of the client reports that here ([`Legs`]); the pipeline
//! ([`AuditedCall`]) ends the round in the audit and has the next one decided.
//!
//! Invariant: between two rounds nothing that the client sends reaches the server.

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
pub type Rounds = mpsc::UnboundedReceiver<Step>;

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

/// The other end of a call in several rounds.
pub struct MultiRound {
    /// Its rounds, for the pipeline.
    pub rounds: Rounds,
    /// What the link needs of it.
    pub newer: Newer,
}

/// What only a request of protocol 2026-07-28 has.
pub struct Newer {
    /// Its client's next requests, which go on with it.
    pub retries: mpsc::UnboundedReceiver<Retry>,
    /// Its `Mcp-Param-*` headers.
    pub heads: Heads,
}

/// An admitted call, and the duty to record how each round of it ended.
pub(crate) struct AuditedCall<'a> {
    /// Decides its next requests.
    admission: &'a Admission,
    /// The call, as its last request was decided.
    wanted: Arc<Wanted>,
    /// `None` between two rounds.
    ticket: Option<Ticket>,
}

/// The two ends of one call, which came with these `Mcp-Param-*` headers.
pub fn legs(heads: Heads) -> (Legs, MultiRound) {
    let (tell, rounds) = mpsc::unbounded_channel();
    let (retry, retries) = mpsc::unbounded_channel();
    let newer = Newer { retries, heads };
    (Legs { steps: tell, retries: retry }, MultiRound { rounds, newer })
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

// === impl AuditedCall ===

impl<'a> AuditedCall<'a> {
    pub(crate) fn new(admission: &'a Admission, wanted: &Arc<Wanted>, ticket: Ticket) -> Self {
        Self { admission, wanted: Arc::clone(wanted), ticket: Some(ticket) }
    }

    /// Does what a step demands.
    pub(crate) async fn take(&mut self, step: Step) {
        match step {
            Step::Asks(done) => {
                if let Some(ticket) = self.ticket.take() {
                    let (outcome, now) = (Outcome::InputRequired, self.admission.now());
                    let ending = Completion::new(outcome, Effect::Unknown, now);
                    // The next leg finds the call only if this is written by then.
                    if let Err(error) = finish_in_time(ticket, ending).await {
                        tracing::error!(%error, "the end of a round is not recorded yet");
                    }
                }
                if done.send(()).is_err() {
                    tracing::trace!("the client is gone");
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

    /// Waits for the round that learns how the call ended; `None` if it never comes.
    pub(crate) async fn last_round(
        mut self,
        mut rounds: Option<Rounds>,
    ) -> Option<(Ticket, Arc<Wanted>)> {
        while self.ticket.is_none() {
            let step = rounds.as_mut()?.recv().await?;
            self.take(step).await;
        }
        Some((self.ticket?, self.wanted))
    }
}

/// The next step; never, if the call has one round.
pub(crate) async fn next(rounds: &mut Option<Rounds>) -> Step {
    if let Some(all) = rounds
        && let Some(step) = all.recv().await
    {
        return step;
    }
    std::future::pending().await
}
