//! Patience: how long a call waits for the store.
//!
//! A disk that hangs must not make agents hang with it.
//!
//! Invariant: what is admitted after nobody waited any more is never sent, and recorded so; its
//! counters are given back.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use toolgate_audit::{Effect, Outcome};
use toolgate_store::{Answer, Ending, Fault, FaultKind, NotAudited};

use crate::admission::Clock;
use crate::channel::BoxFuture;

/// How long a call waits to be admitted.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// What the store answers, if it does so in time. It may write while it is being asked.
pub(crate) async fn in_time(
    ask: impl FnOnce() -> BoxFuture<'static, Result<Answer, NotAudited>>,
    clock: &Arc<dyn Clock>,
) -> Result<Answer, NotAudited> {
    let until = Instant::now() + PATIENCE;
    let mut answer = ask();
    if Instant::now() < until
        && let Ok(answer) = timeout_at(until, &mut answer).await
    {
        return answer;
    }
    let clock = Arc::clone(clock);
    tokio::spawn(async move {
        if let Ok(Answer::Admitted(admitted)) = answer.await {
            let (_never_used, ticket) = admitted.split();
            let mut ending = Ending::new(Outcome::Unavailable, Effect::NotStarted, clock.now());
            ending.error_code = Some("not_audited".into());
            ticket.finish(ending);
        }
    });
    let why = format!("the store has not answered for {} s", PATIENCE.as_secs());
    Err(NotAudited(Fault::new(FaultKind::Busy, why)))
}
