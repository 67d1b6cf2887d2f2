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
use toolgate_store::{Completion, Permit, Ticket};

use crate::admit::{Admission, Held, NotAdmitted};
use crate::call_context::CallContext;
use crate::contained::{Work, contained};
use crate::ended::{Ended, Withheld};
use crate::holds::{HeldCaller, Waited};
use crate::multi_round::{self, AuditedCall, Rounds};
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

    /// The call as it is now, after it has waited for a person: the definition of its tool may have
    /// changed.
    fn renewed(&self, context: &Arc<CallContext>) -> Arc<CallContext> {
        Arc::clone(context)
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
        let preparing = prepare(Arc::clone(&admission), Arc::new(context));
        call(admission, preparing, rounds, began)
    })
}

async fn call<D: Delivery>(
    admission: Arc<Admission>,
    preparing: impl Future<Output = Option<(D, Arc<CallContext>)>>,
    mut rounds: Option<Rounds>,
    began: Instant,
) {
    let Some((mut delivery, mut context)) = preparing.await else { return };
    let metrics = admission.metrics().of(&context.server);
    let mut hold_began = None;
    let (admitted, recheck) = loop {
        let recheck = Recheck::of(&admission, &context);
        let asked = Instant::now();
        let admitted = admission.admit_or_hold(&context).await;
        metrics.decided(asked.elapsed());
        let refused = match admitted {
            Ok(admitted) => break (admitted, recheck),
            Err(NotAdmitted::Refused(refused)) => *refused,
            Err(NotAdmitted::Held(held)) => {
                let began = *hold_began.get_or_insert_with(Instant::now);
                let held = hold(&admission, &context, &held, began, &mut delivery).await;
                let Some(refused) = held else {
                    context = delivery.renewed(&context);
                    continue;
                };
                refused
            }
        };
        metrics.refused(&refused);
        return delivery.refuse(&refused);
    };
    let recheck = recheck.with_lifted_hold(admitted.verdict().lifted.is_some());
    let counted = metrics.admitted(admitted.decision());
    let (permit, ticket) = admitted.split();
    reach(Failpoint::BeforeSend);
    let sent = Instant::now();
    let mut audited = AuditedCall::new(&admission, &context, ticket);
    let ended = {
        let sending = Sending { admission: &admission, context: &context, permit, recheck };
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
    finish(&admission, context, ticket, ended, times).await;
}

/// Waits for a person. `None` if the call is to be decided again; otherwise how it is refused.
async fn hold<D: Delivery>(
    admission: &Arc<Admission>,
    context: &Arc<CallContext>,
    held: &Held,
    began: Instant,
    delivery: &mut D,
) -> Option<Refused> {
    let asks = held.verdict.hold.as_ref();
    let wait = asks.and_then(|asks| asks.wait).map_or(0, Window::as_seconds);
    let until = began + Duration::from_secs(u64::from(wait));
    if until <= Instant::now() {
        return Some(admission.unanswered(context, held).await);
    }
    let times = (began, until);
    let waited =
        Box::pin(admission.holds().wait(admission.store(), &held.approval, times, delivery)).await;
    match waited {
        Waited::Changed => None,
        Waited::Expired => Some(admission.expired(context, held).await),
        Waited::TimedOut | Waited::Gone | Waited::Stopping => {
            Some(admission.unanswered(context, held).await)
        }
    }
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
