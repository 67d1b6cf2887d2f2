//! A call in the audit: each of its rounds is recorded, and the next one is decided.

use std::sync::Arc;

use toolgate_audit::{Effect, Outcome};
use toolgate_store::{Completion, Ticket};

use crate::admit::Admission;
use crate::call_context::CallContext;
use crate::multi_round::{Rounds, Step};
use crate::store_timeout::finish_in_time;

/// An admitted call, and the duty to record how each round of it ended.
pub(crate) struct AuditedCall<'a> {
    /// Decides its next rounds.
    admission: &'a Admission,
    /// The call, as its last round was decided.
    context: Arc<CallContext>,
    /// `None` between two rounds.
    ticket: Option<Ticket>,
}

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
                    Some(permit)
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
