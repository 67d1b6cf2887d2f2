//! Multi-round calls: a call that takes several requests of its client is admitted and recorded as
//! one.
//!
//! In protocol 2026-07-28 a server that needs input ends a request, and the call continues with the
//! next one. The client side reports that here ([`ClientRounds`]); the pipeline
//! (`audited_call.rs`) ends the round in the audit and has the next one decided.
//!
//! Invariant: between two rounds nothing that the client sends reaches the server.

use tokio::sync::{mpsc, oneshot};
use toolgate_store::Permit;

use crate::call_context::Sender;
use crate::clearance::Heads;
use crate::refused::Refused;

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
    Continue(Sender, oneshot::Sender<NextRound>),
}

/// The permit of the next round; none if the call waits for a person, and nothing is sent yet.
pub type NextRound = Result<Option<Permit>, Refused>;

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
    pub async fn next_round(&self, sender: Sender) -> Option<NextRound> {
        let (send, decided) = oneshot::channel();
        self.steps.send(Step::Continue(sender, send)).ok()?;
        decided.await.ok()
    }

    /// Continues with a server that keeps no state of the call.
    pub fn retry(&self, retry: Retry) {
        drop(self.retries.send(retry));
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
