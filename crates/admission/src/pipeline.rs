//! The pipeline of a call: prepare, admit, send, record, answer.
//!
//! Calls to servers, to programs that dial in and to built-ins take this path; they differ in how
//! they are sent ([`Delivery`]).
//!
//! Invariant: an admitted call gets its outcome row, even if its agent is gone. A panic ends the call
//! and nothing else: the dropped ticket records `unknown`, and the dropped delivery answers the
//! agent.
//! Invariant: a result that assigns or ends an owned id is recorded before the agent receives it.
//!
//! Start at [`run`].

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use toolgate_policy::{Outcome as Ownership, Window};
use toolgate_store::failpoint::{Failpoint, reach};
use toolgate_store::{Admitted, Completion, Permit, Ticket};

use crate::admit::{Admission, Held, NotAdmitted};
use crate::audited_call::AuditedCall;
use crate::call_context::CallContext;
use crate::contained::{Work, contained};
use crate::ended::{Ended, Withheld};
use crate::holds::{HeldCaller, HeldWait, Waited};
use crate::in_band::{self, Recorded};
use crate::metrics::OpenCall;
use crate::multi_round::{self, Rounds};
use crate::recheck::Recheck;
use crate::refused::Refused;
use crate::store_timeout::finish_in_time;
use crate::task_call::keep_open;

/// How one call is sent.
///
/// A delivery owns the answer to the agent. If it is dropped before it has answered, it answers with
/// an error.
pub trait Delivery: HeldCaller {
    /// Whether the call goes to a peer whose time is recorded separately.
    const HAS_PEER: bool = true;

    /// Answers a call that was not admitted.
    fn refuse(self, refused: &Refused);

    /// The call as it is now, after it has waited for a person: the definition of its tool or its
    /// session may have changed. An error refuses it, and is recorded.
    fn renewed(
        &mut self,
        admission: &Admission,
        context: &Arc<CallContext>,
    ) -> impl Future<Output = Result<Arc<CallContext>, Refused>> + Send {
        let (_, context) = (admission, Arc::clone(context));
        async move { Ok(context) }
    }

    /// Sends the call and waits for its end. The agent is answered by then, unless the answer is
    /// withheld.
    fn send(self, sending: Sending<'_>) -> impl Future<Output = Ended> + Send;
}

/// An admitted call that is about to be sent.
pub struct Sending<'c> {
    /// The admission that decided it.
    pub admission: &'c Arc<Admission>,
    /// The call.
    pub context: &'c Arc<CallContext>,
    /// The right to send it.
    pub permit: Permit,
    /// Checks the call again immediately before the write.
    pub recheck: Recheck,
}

/// Runs a call to its end.
///
/// `prepare` runs before admission: it completes the description of the call and returns how it is
/// sent, or answers and returns `None`. `rounds` belongs to a call that may take several requests of
/// its client.
pub fn run<P, D>(
    admission: &Arc<Admission>,
    context: CallContext,
    rounds: Option<Rounds>,
    prepare: impl FnOnce(Arc<Admission>, Arc<CallContext>) -> P + Send + 'static,
) -> Work
where
    P: Future<Output = Option<(D, Arc<CallContext>)>> + Send,
    D: Delivery,
{
    let admission = Arc::clone(admission);
    contained(move || {
        let began = Instant::now();
        let preparing = Box::pin(prepare(Arc::clone(&admission), Arc::new(context)));
        call(admission, preparing, rounds, began)
    })
}

/// A call that waits for a person must be small: what it does before and after is boxed.
async fn call<D: Delivery>(
    admission: Arc<Admission>,
    preparing: impl Future<Output = Option<(D, Arc<CallContext>)>> + Unpin,
    mut rounds: Option<Rounds>,
    began: Instant,
) {
    let Some((mut delivery, mut context)) = preparing.await else { return };
    let metrics = admission.metrics().of(&context.server);
    let mut hold_began = None;
    let (admitted, recheck) = loop {
        let recheck = Recheck::of(&admission, &context);
        let asked = Instant::now();
        let admitted = Box::pin(admission.admit_or_hold(&context)).await;
        metrics.decided(asked.elapsed());
        let refused = match admitted {
            Ok(admitted) => break (admitted, recheck),
            Err(NotAdmitted::Refused(refused)) => *refused,
            Err(NotAdmitted::Held(mut held)) => {
                // It keeps the access of now alive, and a new one is made after the wait.
                drop(recheck);
                let began = hold_began.get_or_insert_with(Instant::now);
                let waits = (began, &mut rounds);
                let end = hold(&admission, &mut held, waits, &mut delivery).await;
                match Box::pin(after_hold(&admission, &context, &held, end, &mut delivery)).await {
                    Ok(renewed) => {
                        context = renewed;
                        continue;
                    }
                    Err(refused) => refused,
                }
            }
        };
        metrics.refused(&refused);
        return delivery.refuse(&refused);
    };
    let recheck = recheck.with_lifted_hold(admitted.verdict().lifted.is_some());
    let counted = metrics.admitted(admitted.decision());
    Box::pin(send(
        &admission,
        &context,
        delivery,
        Go { admitted, recheck, counted, rounds, began },
    ))
    .await;
}

/// An admitted call, before it is sent.
struct Go {
    admitted: Admitted,
    recheck: Recheck,
    counted: OpenCall,
    rounds: Option<Rounds>,
    began: Instant,
}

/// Sends an admitted call, and records its rounds and its end.
async fn send<D: Delivery>(
    admission: &Arc<Admission>,
    context: &Arc<CallContext>,
    delivery: D,
    Go { admitted, recheck, counted, mut rounds, began }: Go,
) {
    let (permit, ticket) = admitted.split();
    reach(Failpoint::BeforeSend);
    let sent = Instant::now();
    let mut audited = AuditedCall::new(admission, context, ticket);
    let ended = {
        let sending = Sending { admission, context, permit, recheck };
        let mut sending = pin!(delivery.send(sending));
        loop {
            tokio::select! {
                biased;
                ended = &mut sending => break ended,
                step = multi_round::next(&mut rounds) => audited.take(step).await,
            }
        }
    };
    reach(Failpoint::AfterAnswer);
    let Some((ticket, context)) = audited.last_round(rounds).await else {
        return counted.abandoned();
    };
    let times = Times { began, sent: D::HAS_PEER.then_some(sent) };
    counted.ended(&ended, began.elapsed(), times.sent.map(|sent| sent.elapsed()));
    finish(admission, context, ticket, ended, times).await;
}

/// How the wait of a held call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HoldEnd {
    /// The call is decided again.
    Again,
    /// No person has answered in time, or the agent waits no more.
    Unanswered,
    /// No person can answer.
    Unanswerable,
    /// The approval has expired.
    Expired,
}

/// Waits for a person.
async fn hold<D: Delivery>(
    admission: &Arc<Admission>,
    held: &mut Held,
    (began, rounds): (&mut Instant, &mut Option<Rounds>),
    delivery: &mut D,
) -> HoldEnd {
    let asks = held.verdict.hold.as_ref();
    let wait = asks.and_then(|asks| asks.wait).map_or(0, Window::as_seconds);
    let wait = Duration::from_secs(u64::from(wait));
    if began.elapsed() >= wait {
        return HoldEnd::Unanswered;
    }
    let Some(_place) = admission.holds().place(&held.approval) else {
        return HoldEnd::Unanswered;
    };
    let question = in_band::ask(&held.approval, delivery);
    if question.is_none() && held.has_no_answerer() {
        return HoldEnd::Unanswerable;
    }
    // They are in the store, and the call has its own.
    held.approval.arguments = None;
    let mut waits = HeldWait { began: *began, wait, question, rounds };
    loop {
        let waiting =
            admission.holds().wait(admission.store(), &held.approval, &mut waits, delivery);
        let waited = waiting.await;
        *began = waits.began;
        match waited {
            Waited::Changed => return HoldEnd::Again,
            Waited::Expired => return HoldEnd::Expired,
            Waited::Answered(answer) => {
                match Box::pin(admission.answer_in_band(&held.approval, answer)).await {
                    Recorded::Answered => return HoldEnd::Again,
                    Recorded::Ignored => {}
                    Recorded::DeclinedTooLate => return HoldEnd::Unanswered,
                }
            }
            Waited::TimedOut | Waited::Gone | Waited::Stopping => return HoldEnd::Unanswered,
        }
    }
}

/// The call as it is to be decided again, or how it is refused.
async fn after_hold<D: Delivery>(
    admission: &Arc<Admission>,
    context: &Arc<CallContext>,
    held: &Held,
    end: HoldEnd,
    delivery: &mut D,
) -> Result<Arc<CallContext>, Refused> {
    Err(match end {
        HoldEnd::Again => return delivery.renewed(admission, context).await,
        HoldEnd::Unanswered => admission.unanswered(context, held).await,
        HoldEnd::Unanswerable => admission.unanswerable(context, held).await,
        HoldEnd::Expired => admission.expired(context, held).await,
    })
}

/// When a call was received, and when it was sent to its peer.
struct Times {
    began: Instant,
    sent: Option<Instant>,
}

async fn finish(
    admission: &Arc<Admission>,
    context: Arc<CallContext>,
    ticket: Ticket,
    ended: Ended,
    times: Times,
) {
    if let Some(made) = ended.task {
        if let Some(withheld) = ended.withheld {
            withheld.release();
        }
        // The call is in flight until its task ends.
        return keep_open(admission, context, ticket, *made, times.began);
    }
    let mut ending = Completion::new(ended.outcome, ended.effect, admission.now());
    ending.error_code = ended.code.map(Into::into);
    (ending.message, ending.stays_counted) = (ended.message, ended.stays_counted);
    let elapsed = |since: Instant| u64::try_from(since.elapsed().as_millis()).ok();
    ending.upstream_ms = times.sent.and_then(elapsed);
    ending.total_ms = elapsed(times.began);
    let Some(withheld) = ended.withheld else { return ticket.finish(ending) };
    ending.ownership = admission.ownership_of(&context, &withheld.result).await;
    record_first(ticket, ending, withheld).await;
}

/// Records ownership before the agent receives the ids.
async fn record_first(ticket: Ticket, ending: Completion, withheld: Withheld) {
    let recorded = if ending.ownership == Ownership::default() {
        ticket.finish(ending);
        Ok(())
    } else {
        finish_in_time(ticket, ending).await
    };
    if let Err(error) = recorded {
        tracing::error!(%error, "ownership of a result not recorded yet; until then its ids have no owner");
    }
    withheld.release();
}
