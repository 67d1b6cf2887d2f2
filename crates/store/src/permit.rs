//! The permit: the value without which no call can be sent.
//!
//! [`crate::Store::admit`] returns an [`Admitted`] once the intent is committed. It splits into a
//! [`Permit`], which the sender consumes, and a [`Ticket`], which stays with the task that waits
//! for the answer and records the outcome.
//!
//! Invariant: only this crate makes them, none can be cloned, so one intent sends at most once.
//! Invariant: every admitted call gets an outcome row. A ticket that is dropped writes `unknown`; the
//! call of a ticket that is [left](Ticket::leave) ends when its task does.

use std::{fmt, sync::Arc};

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use toolgate_audit::{CallId, Decision, Draft, truncate};
use toolgate_policy::Verdict;

use crate::{Completion, NotAudited, Settled, reply};

/// A call whose counters are taken and whose intent row is written.
#[derive(Debug)]
#[must_use = "an admitted call must be sent or ended"]
pub struct Admitted {
    permit: Permit,
    ticket: Ticket,
    seq: u64,
    verdict: Box<Verdict>,
}

/// The right to send one call, once.
#[derive(Debug)]
#[must_use = "a permit is consumed by sending"]
pub struct Permit {
    call_id: CallId,
}

/// The duty to record how a call ended.
#[must_use = "dropping a ticket records `unknown`"]
pub struct Ticket {
    /// Taken when the outcome is recorded.
    call: Option<Box<Draft>>,
    outcomes: Arc<dyn OutcomeSink>,
}

/// Receives the outcomes of tickets.
pub(crate) trait OutcomeSink: Send + Sync {
    /// Records the outcome now or later.
    fn finish(&self, finish: Finish);

    /// Keeps the call open until then, also when this process ends first.
    fn continue_as_task(&self, call: CallId, task: Box<str>, until: Timestamp);
}

/// The end of a call.
pub(crate) struct Finish {
    pub(crate) intent: Box<Draft>,
    /// `None` if the ticket was dropped.
    pub(crate) completion: Option<Completion>,
    pub(crate) reply: Option<reply::Sender<Settled, NotAudited>>,
}

impl Admitted {
    pub(crate) fn new(
        call_id: CallId,
        intent: Draft,
        seq: u64,
        verdict: Box<Verdict>,
        outcomes: Arc<dyn OutcomeSink>,
    ) -> Self {
        let ticket = Ticket { call: Some(Box::new(intent)), outcomes };
        Self { permit: Permit { call_id }, ticket, seq, verdict }
    }

    /// The id of the call.
    pub fn call_id(&self) -> CallId {
        self.permit.call_id
    }

    /// Sequence number of the intent row.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// The decision that its intent row records.
    pub fn decision(&self) -> Decision {
        let recorded = self.ticket.call.as_ref().and_then(|intent| intent.decision);
        recorded.unwrap_or(Decision::Allow)
    }

    /// The verdict of the policy.
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// Splits into the right to send and the duty to record the outcome.
    pub fn split(self) -> (Permit, Ticket) {
        (self.permit, self.ticket)
    }
}

impl Permit {
    /// The call that it permits.
    pub fn call_id(&self) -> CallId {
        self.call_id
    }
}

impl Ticket {
    /// Records the outcome with the next group; the agent's answer does not wait for it.
    pub fn finish(mut self, completion: Completion) {
        self.send(Some(completion), None);
    }

    /// Records the outcome and waits until it is written: for results that assign or end owned ids,
    /// and for those that end a round.
    pub fn finish_written(
        mut self,
        completion: Completion,
    ) -> BoxFuture<'static, Result<Settled, NotAudited>> {
        let (reply, answered) = futures_channel::oneshot::channel();
        self.send(Some(completion), Some(reply));
        reply::receive(answered, NotAudited)
    }

    /// The call continues as `task` at its server, which may outlive this process. Until then the
    /// call stays open; [`crate::Store::end_task`] ends it in another process.
    pub fn continue_as_task(&self, task: &str, until: Timestamp) {
        if let Some(call_id) = self.call.as_ref().and_then(|intent| intent.call_id) {
            self.outcomes.continue_as_task(call_id, task.into(), until);
        }
    }

    /// Writes no outcome: this process ends, and the task of the call does not.
    pub fn leave(mut self) {
        self.call = None;
    }

    fn send(
        &mut self,
        completion: Option<Completion>,
        reply: Option<reply::Sender<Settled, NotAudited>>,
    ) {
        let completion = completion.map(|mut completion| {
            for text in [&mut completion.error_code, &mut completion.message].into_iter().flatten()
            {
                if let Some(short) = truncate(text) {
                    *text = short;
                }
            }
            completion
        });
        if let Some(intent) = self.call.take() {
            // If the writer has stopped, the next start finds the intent and records `unknown`.
            self.outcomes.finish(Finish { intent, completion, reply });
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.send(None, None);
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let call_id = self.call.as_ref().and_then(|intent| intent.call_id);
        f.debug_tuple("Ticket").field(&call_id).finish()
    }
}
