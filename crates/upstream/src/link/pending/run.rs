//! Sending a pending request and waiting for its end, within its timeout.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use toolgate_admission::clearance::{Clearance, Closed};
use toolgate_admission::ended::Ended;
use toolgate_mcp::{method, write};

use super::Pending;
use crate::failure::Failure;
use crate::link::Link;

/// How long questions of a server may suspend the timeout of a request, in total.
const QUESTIONS: Duration = Duration::from_hours(1);

// === impl Pending ===

impl Pending {
    /// Sends it and waits for its end. By then everything for the agent, at least a failure, is in
    /// its event buffer.
    pub(crate) async fn run(mut self, clearance: Clearance) -> Ended {
        let (link, limit) = (Arc::clone(&self.unanswered.link), self.limit);
        let session = link.waiting.session_of(self.unanswered.number);
        let delivered = tokio::select! {
            biased;
            delivered = link.deliver(&mut self, clearance) => delivered.map_err(Some),
            () = link.expiry(limit, session) => Err(None),
        };
        let number = self.unanswered.number;
        let failure = match delivered {
            Ok(ended) => return ended,
            Err(failure) => failure.unwrap_or_else(|| link.too_late(number, limit)),
        };
        let failure = if self.written { failure.of_written() } else { failure };
        let timed_out = matches!(failure, Failure::Timeout { .. });
        let still_runs = link.waiting.fail(number, &failure, &link.server);
        if timed_out && still_runs {
            let params = format!(r#"{{"requestId":{number},"reason":"timeout"}}"#);
            let body = write::notification(method::CANCELLED, Some(&params));
            link.forward_cleared(body, Closed::CANCELLED).await;
        }
        self.answer.try_recv().ok().and_then(Result::ok).unwrap_or_else(|| failure.ended())
    }
}

// === impl Link ===

impl Link {
    /// The timeout of a request. It is suspended while the server waits for the agent (a person may
    /// be typing an answer); on a shared server, only for agents that are asked.
    async fn expiry(&self, limit: Duration, session: Option<u64>) {
        let longest = Instant::now() + QUESTIONS;
        loop {
            sleep(limit).await;
            let asked = self.server_requests.load(Ordering::Relaxed) > 0;
            let asks_it = || session.is_some_and(|session| self.waiting.is_asking(session));
            if !asked || (self.is_shared() && !asks_it()) || Instant::now() >= longest {
                return;
            }
        }
    }

    fn too_late(&self, number: u64, limit: Duration) -> Failure {
        if self.waiting.is_sent(number) {
            Failure::Timeout { after: limit }
        } else {
            Failure::unavailable(format!("it was not ready within {limit:?}"))
        }
    }
}
