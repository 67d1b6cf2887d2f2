//! The pipeline of a call: prepare, admit, send, record, answer.
//!
//! Calls to servers, to programs that dial in and to built-ins take this path; they differ in how
//! they are sent ([`Delivery`]).
//!
//! Invariant: an admitted call gets its outcome row, whether or not anyone waits for it. A panic
//! ends the call and nothing else: the ticket that it drops records `unknown`, and the delivery
//! that it drops answers the agent.
//! Invariant: a result that gives or ends ownership is recorded before the agent receives it.
//!
//! Start at [`run`].

use std::pin::pin;
use std::sync::Arc;

use tokio::time::Instant;
use toolgate_policy::Outcome as Ownership;
use toolgate_store::failpoint::{Failpoint, reach};
use toolgate_store::{Completion, Permit, Ticket};

use crate::admit::{Admission, Wanted};
use crate::contained::{Work, contained};
use crate::ended::{Ended, Withheld};
use crate::multi_round::{self, AuditedCall, Rounds};
use crate::recheck::Recheck;
use crate::refused::Refused;
use crate::store_timeout::finish_in_time;
use crate::task_call::keep;

/// How one call is sent.
///
/// A delivery owns the answer that the agent is owed. If it is dropped before it has answered, it
/// answers with an error.
pub trait Delivery: Send {
    /// Whether the call goes to a peer whose time is recorded apart.
    const HAS_PEER: bool = true;

    /// Answers a call that was not admitted.
    fn refuse(self, refused: &Refused);

    /// Sends the call and waits for its end. By then the agent has its answer, unless that is
    /// withheld.
    fn send(self, sending: Sending<'_>) -> impl Future<Output = Ended> + Send;
}

/// An admitted call that is about to be sent.
pub struct Sending<'c> {
    /// What decided it.
    pub admission: &'c Arc<Admission>,
    /// The call.
    pub wanted: &'c Arc<Wanted>,
    /// The right to send it.
    pub permit: Permit,
    /// To be asked immediately before it is written.
    pub recheck: Recheck,
}

/// Runs a call to its end.
///
/// `prepare` does what comes before admission: it completes the description of the call and says
/// how it is sent, or answers and returns `None`. `rounds` is the other end of a call that may take
/// several requests of its client.
pub fn run<P, D>(
    admission: &Arc<Admission>,
    wanted: Wanted,
    rounds: Option<Rounds>,
    prepare: impl FnOnce(Arc<Admission>, Arc<Wanted>) -> P + Send + 'static,
) -> Work
where
    P: Future<Output = Option<(D, Arc<Wanted>)>> + Send,
    D: Delivery,
{
    let admission = Arc::clone(admission);
    contained(move || {
        let began = Instant::now();
        let preparing = prepare(Arc::clone(&admission), Arc::new(wanted));
        call(admission, preparing, rounds, began)
    })
}

async fn call<D: Delivery>(
    admission: Arc<Admission>,
    preparing: impl Future<Output = Option<(D, Arc<Wanted>)>>,
    mut rounds: Option<Rounds>,
    began: Instant,
) {
    let Some((delivery, wanted)) = preparing.await else { return };
    let recheck = Recheck::of(&admission, &wanted);
    let (permit, ticket) = match admission.admit(&wanted).await {
        Ok(admitted) => admitted.split(),
        Err(refused) => return delivery.refuse(&refused),
    };
    reach(Failpoint::BeforeSend);
    let sent = Instant::now();
    let mut audited = AuditedCall::new(&admission, &wanted, ticket);
    let ended = {
        let sending = Sending { admission: &admission, wanted: &wanted, permit, recheck };
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
    let Some((ticket, wanted)) = audited.last_round(rounds).await else { return };
    let times = Times { began, sent: D::HAS_PEER.then_some(sent) };
    finish(&admission, wanted, ticket, ended, times).await;
}

/// When a call came, and when it was sent to its peer.
struct Times {
    began: Instant,
    sent: Option<Instant>,
}

async fn finish(
    admission: &Arc<Admission>,
    wanted: Arc<Wanted>,
    ticket: Ticket,
    ended: Ended,
    times: Times,
) {
    if let Some(made) = ended.task {
        if let Some(withheld) = ended.withheld {
            withheld.release();
        }
        // The call is in flight until its task ends.
        return keep(admission, wanted, ticket, *made, times.began);
    }
    let mut ending = Completion::new(ended.outcome, ended.effect, admission.now());
    ending.error_code = ended.code.map(Into::into);
    (ending.message, ending.stays_counted) = (ended.message, ended.stays_counted);
    let elapsed = |since: Instant| u64::try_from(since.elapsed().as_millis()).ok();
    ending.upstream_ms = times.sent.and_then(elapsed);
    ending.total_ms = elapsed(times.began);
    let Some(withheld) = ended.withheld else { return ticket.finish(ending) };
    ending.ownership = admission.ownership_of(&wanted, &withheld.result).await;
    record_first(ticket, ending, withheld).await;
}

/// Ownership is recorded before the agent can use what it owns.
async fn record_first(ticket: Ticket, ending: Completion, withheld: Withheld) {
    let recorded = if ending.ownership == Ownership::default() {
        ticket.finish(ending);
        Ok(())
    } else {
        finish_in_time(ticket, ending).await
    };
    if let Err(error) = recorded {
        tracing::error!(%error, "ownership of a result is not recorded yet; until then it has no owner");
    }
    withheld.release();
}
