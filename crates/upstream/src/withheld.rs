//! Answers that the agent may see only after their row is written.

use std::sync::Arc;

use toolgate_admission::store_timeout::finish_in_time;
use toolgate_mcp::Pieces;
use toolgate_policy::Outcome as Ownership;
use toolgate_store::{Completion, Ticket};

use crate::event_buffer::Outlet;

/// An answer that waits for its row.
#[derive(Debug)]
pub struct Withheld {
    /// The whole message.
    pub answer: Pieces,
    /// Where it goes.
    pub outlet: Arc<Outlet>,
    /// The raw result.
    pub result: String,
}

/// Who owns what must be known before the agent can use it.
pub async fn record_first(ticket: Ticket, ending: Completion, withheld: Withheld) {
    let nothing = ending.ownership == Ownership::default();
    let written = if nothing {
        ticket.finish(ending);
        Ok(())
    } else {
        finish_in_time(ticket, ending).await
    };
    if let Err(error) = written {
        tracing::error!(%error, "who owns what a result gave is not written; until it is, it belongs to nobody");
    }
    withheld.outlet.answer(withheld.answer, None);
}
