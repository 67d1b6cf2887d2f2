//! Multi-round calls: a call that takes several requests of its client is admitted and recorded as
//! one.
//!
//! In protocol 2026-07-28 a server that needs input ends a request, and the call continues with the
//! next one. The client side reports that here ([`ClientRounds`]); the pipeline ([`AuditedCall`])
//! ends the round in the audit and has the next one decided.
//!
//! Invariant: between two rounds nothing that the client sends reaches the server.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use toolgate_audit::{Effect, Outcome};
use toolgate_store::{Completion, Permit, Ticket};

use crate::admit::Admission;
use crate::call_context::{CallContext, Sender};
use crate::clearance::Heads;
use crate::refused::Refused;
use crate::store_timeout::finish_in_time;

/// The members of `params` that belong to one round.
pub const OF_ROUND: [&str; 3] = ["requestState", "inputResponses", "_meta"];

/// The client's end of a call.
#[derive(Debug)]
pub struct ClientRounds {
    steps: mpsc::UnboundedSender<Step>,
    retries: mpsc::UnboundedSender<Retry>,
}

/// The pipeline's end of a call.
pub type Rounds = mpsc::UnboundedReceiver<Step>;

/// What happens between two rounds.
pub enum Step {
    /// The round has ended: the server requires input.
    InputRequired(oneshot::Sender<()>),
    /// The client continues the call.
    Continue(Sender, oneshot::Sender<Result<Permit, Refused>>),
}

/// The next request of a client, which continues a call.
#[derive(Debug)]
pub struct Retry {
    /// The whole message.
    pub raw: String,
    /// What clears it.
    pub permit: Permit,
}

/// The server's end of a multi-round call.
pub struct MultiRound {
    /// Its rounds, for the pipeline.
    pub rounds: Rounds,
    /// What the link needs.
    pub sessionless: SessionlessParts,
}

/// What only a request of protocol 2026-07-28 has.
pub struct SessionlessParts {
    /// The further requests of its client, which continue it.
    pub retries: mpsc::UnboundedReceiver<Retry>,
    /// Its `Mcp-Param-*` headers; `None` for a transport without headers.
    pub heads: Option<Heads>,
}

/// An admitted call, and the duty to record how each round of it ended.
pub(crate) struct AuditedCall<'a> {
    /// Decides its next rounds.
    admission: &'a Admission,
    /// The call, as its last round was decided.
    context: Arc<CallContext>,
    /// `None` between two rounds.
    ticket: Option<Ticket>,
}

/// The two ends of a call whose first request has these `Mcp-Param-*` headers.
pub fn multi_round(heads: Option<Heads>) -> (ClientRounds, MultiRound) {
    let (steps, rounds) = mpsc::unbounded_channel();
    let (retry, retries) = mpsc::unbounded_channel();
    let sessionless = SessionlessParts { retries, heads };
    (ClientRounds { steps, retries: retry }, MultiRound { rounds, sessionless })
}

// === impl ClientRounds ===

impl ClientRounds {
    /// Ends the round; returns once that is recorded. False if the call has ended.
    pub async fn end_round(&self) -> bool {
        let (send, recorded) = oneshot::channel();
        self.steps.send(Step::InputRequired(send)).is_ok() && recorded.await.is_ok()
    }

    /// Has the next round decided; returns its permit. `None` if the call has ended.
    pub async fn next_round(&self, sender: Sender) -> Option<Result<Permit, Refused>> {
        let (send, decided) = oneshot::channel();
        self.steps.send(Step::Continue(sender, send)).ok()?;
        decided.await.ok()
    }

    /// Continues with a server that keeps no state of the call.
    pub fn retry(&self, retry: Retry) {
        drop(self.retries.send(retry));
    }
}

// === impl AuditedCall ===

impl<'a> AuditedCall<'a> {
    pub(crate) fn new(
        admission: &'a Admission,
        context: &Arc<CallContext>,
        ticket: Ticket,
    ) -> Self {
        Self { admission, context: Arc::clone(context), ticket: Some(ticket) }
    }

    /// Handles a step.
    pub(crate) async fn take(&mut self, step: Step) {
        match step {
            Step::InputRequired(recorded) => {
                if let Some(ticket) = self.ticket.take() {
                    let (outcome, now) = (Outcome::InputRequired, self.admission.now());
                    let ending = Completion::new(outcome, Effect::Unknown, now);
                    // The next round finds the call only after this is written.
                    if let Err(error) = finish_in_time(ticket, ending).await {
                        tracing::error!(%error, "end of a round not recorded yet");
                    }
                }
                if recorded.send(()).is_err() {
                    tracing::trace!("the client is gone");
                }
            }
            Step::Continue(sender, decided) => {
                let context = CallContext { sender, ..CallContext::clone(&self.context) };
                let context = Arc::new(context);
                let admitted = self.admission.admit_next(&context).await;
                drop(decided.send(admitted.map(|admitted| {
                    let (permit, ticket) = admitted.split();
                    self.context = context;
                    self.ticket = Some(ticket);
                    permit
                })));
            }
        }
    }

    /// Waits for the round that records how the call ended; `None` if it never comes.
    pub(crate) async fn last_round(
        mut self,
        mut rounds: Option<Rounds>,
    ) -> Option<(Ticket, Arc<CallContext>)> {
        while self.ticket.is_none() {
            let step = rounds.as_mut()?.recv().await?;
            self.take(step).await;
        }
        Some((self.ticket?, self.context))
    }
}

/// The next step; waits forever if the call has one round.
pub(crate) async fn next(rounds: &mut Option<Rounds>) -> Step {
    if let Some(all) = rounds
        && let Some(step) = all.recv().await
    {
        return step;
    }
    std::future::pending().await
}
