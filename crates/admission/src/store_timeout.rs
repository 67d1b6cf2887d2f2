//! Patience: how long a call waits for the store.
//!
//! A disk that hangs or is full must not make agents hang with it.
//!
//! Invariant: what is admitted after nobody waited any more is never sent, and recorded so; its
//! counters are given back.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};
use toolgate_audit::{Effect, Outcome};
use toolgate_store::{AdmitOutcome, Completion, NotAudited, StoreError, StoreErrorKind, Ticket};

use crate::environment::Clock;

/// How long a call waits to be admitted, refused, or told that its end is written.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// What the store answers, if it does so in time. It may write while it is being asked.
pub(crate) async fn in_time(
    ask: impl FnOnce() -> Pin<Box<dyn Future<Output = Result<AdmitOutcome, NotAudited>> + Send>>,
    clock: &Arc<dyn Clock>,
) -> Result<AdmitOutcome, NotAudited> {
    let until = Instant::now() + PATIENCE;
    let mut answer = ask();
    if Instant::now() < until
        && let Ok(answer) = timeout_at(until, &mut answer).await
    {
        return answer;
    }
    let clock = Arc::clone(clock);
    tokio::spawn(async move {
        if let Ok(AdmitOutcome::Admitted(admitted)) = answer.await {
            let (_never_used, ticket) = admitted.split();
            let mut ending = Completion::new(Outcome::Unavailable, Effect::NotStarted, clock.now());
            ending.error_code = Some("not_audited".into());
            ticket.finish(ending);
        }
    });
    Err(too_slow())
}

/// Tells how a call, or a leg of it, ended, and waits until that is written. It is written in the
/// end also if nobody waits for it any more.
pub async fn finish_in_time(ticket: Ticket, ending: Completion) -> Result<(), NotAudited> {
    written_in_time(async { ticket.finish_written(ending).await.map(drop) }).await
}

/// Waits until something is written.
pub async fn written_in_time(
    written: impl Future<Output = Result<(), NotAudited>>,
) -> Result<(), NotAudited> {
    timeout(PATIENCE, written).await.unwrap_or_else(|_| Err(too_slow()))
}

fn too_slow() -> NotAudited {
    let why = format!("the store has not answered for {} s", PATIENCE.as_secs());
    NotAudited(StoreError::new(StoreErrorKind::Busy, why))
}
