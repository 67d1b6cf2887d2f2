//! How long a call waits for the store. A disk that hangs or is full must not make agents hang.
//!
//! Invariant: a call that is admitted after the timeout is never sent; its outcome is recorded, and
//! its counters are refunded.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};
use toolgate_audit::{Effect, Outcome};
use toolgate_store::{AdmitOutcome, Completion, NotAudited, StoreError, StoreErrorKind, Ticket};

use crate::environment::Clock;

/// How long a call waits to be admitted, refused, or recorded.
pub const STORE_TIMEOUT: Duration = Duration::from_secs(10);

/// Admits a call, if the store answers in time. `admit` may write before it returns its future.
pub(crate) async fn admit_in_time(
    admit: impl FnOnce() -> Pin<Box<dyn Future<Output = Result<AdmitOutcome, NotAudited>> + Send>>,
    clock: &Arc<dyn Clock>,
) -> Result<AdmitOutcome, NotAudited> {
    let until = Instant::now() + STORE_TIMEOUT;
    let mut outcome = admit();
    if Instant::now() < until
        && let Ok(outcome) = timeout_at(until, &mut outcome).await
    {
        return outcome;
    }
    let clock = Arc::clone(clock);
    tokio::spawn(async move {
        if let Ok(AdmitOutcome::Admitted(admitted)) = outcome.await {
            let (_never_used, ticket) = admitted.split();
            let mut ending = Completion::new(Outcome::Unavailable, Effect::NotStarted, clock.now());
            ending.error_code = Some("not_audited".into());
            ticket.finish(ending);
        }
    });
    Err(too_slow())
}

/// Records how a call, or a round of it, ended, and waits until that is written. After the timeout
/// it is still written.
pub async fn finish_in_time(ticket: Ticket, ending: Completion) -> Result<(), NotAudited> {
    written_in_time(async { ticket.finish_written(ending).await.map(drop) }).await
}

/// Waits until something is written.
pub async fn written_in_time(
    written: impl Future<Output = Result<(), NotAudited>>,
) -> Result<(), NotAudited> {
    timeout(STORE_TIMEOUT, written).await.unwrap_or_else(|_| Err(too_slow()))
}

fn too_slow() -> NotAudited {
    let why = format!("the store has not answered for {} s", STORE_TIMEOUT.as_secs());
    NotAudited(StoreError::new(StoreErrorKind::Busy, why))
}
