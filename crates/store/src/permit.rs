//! The permit: the value without which nothing can be sent.
//!
//! [`crate::Store::admit`] gives an [`Admitted`] once the intent is committed. It comes apart into
//! a [`Permit`], which whoever sends must be given and consumes, and a [`Ticket`], which stays with
//! whoever waits for the answer and writes the outcome.
//!
//! Invariant: only this crate makes them, none can be cloned, so one intent sends at most once.
//! Invariant: every admitted call gets an outcome row. A ticket that is dropped writes `unknown`.

use std::{fmt, sync::Arc};

use futures_util::future::BoxFuture;
use toolgate_audit::{CallId, Draft, truncate};
use toolgate_policy::Verdict;

use crate::{Completion, NotAudited, Settled, reply};

/// A call whose counters are taken and whose intent is written.
#[derive(Debug)]
#[must_use = "a call that was admitted is to be sent, or ended"]
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

/// The duty to say how a call ended.
#[must_use = "dropping a ticket writes `unknown`"]
pub struct Ticket {
    /// Taken out when the outcome is given.
    call: Option<Box<Draft>>,
    outcomes: Arc<dyn Outcomes>,
}

/// Where tickets send outcomes to be written.
pub(crate) trait Outcomes: Send + Sync {
    /// Writes the outcome, or sees to it that it is written later.
    fn finish(&self, finish: Finish);
}

/// The end of a call.
pub(crate) struct Finish {
    pub(crate) intent: Box<Draft>,
    /// `None`: its ticket was dropped.
    pub(crate) completion: Option<Completion>,
    pub(crate) reply: Option<reply::Sender<Settled, NotAudited>>,
}

impl Admitted {
    pub(crate) fn new(
        call_id: CallId,
        intent: Draft,
        seq: u64,
        verdict: Box<Verdict>,
        outcomes: Arc<dyn Outcomes>,
    ) -> Self {
        let ticket = Ticket { call: Some(Box::new(intent)), outcomes };
        Self { permit: Permit { call_id }, ticket, seq, verdict }
    }

    /// The call.
    pub fn call_id(&self) -> CallId {
        self.permit.call_id
    }

    /// Place of the intent row.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// What the policy said.
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// The right to send, and the duty to tell the outcome.
    pub fn split(self) -> (Permit, Ticket) {
        (self.permit, self.ticket)
    }
}

impl Permit {
    /// The call it is for.
    pub fn call_id(&self) -> CallId {
        self.call_id
    }
}

impl Ticket {
    /// Tells the outcome. It is written with the next group; the agent's answer need not wait.
    pub fn finish(mut self, completion: Completion) {
        self.send(Some(completion), None);
    }

    /// Tells the outcome and waits until it is written: for results that yield or end owned ids,
    /// and for those that end a round.
    pub fn finish_written(
        mut self,
        completion: Completion,
    ) -> BoxFuture<'static, Result<Settled, NotAudited>> {
        let (reply, answered) = futures_channel::oneshot::channel();
        self.send(Some(completion), Some(reply));
        reply::receive(answered, NotAudited)
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
            // If the writer is gone, the next start finds the intent and writes `unknown`.
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
