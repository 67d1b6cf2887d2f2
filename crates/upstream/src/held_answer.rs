//! Answers that the agent may see only after their outcome row is written.

use std::sync::Arc;

use toolgate_admission::store_timeout::finish_in_time;
use toolgate_mcp::Pieces;
use toolgate_policy::Outcome as Ownership;
use toolgate_store::{Ending, Ticket};

use crate::event_buffer::EventBuffer;

/// An answer that is held until its row is written.
#[derive(Debug)]
pub struct HeldAnswer {
    /// The complete message.
    pub answer: Pieces,
    /// Where to deliver it.
    pub buffer: Arc<EventBuffer>,
    /// The raw result.
    pub result: String,
}

/// Records ownership before the agent can use the result, then delivers the answer.
pub async fn record_first(ticket: Ticket, ending: Ending, held: HeldAnswer) {
    let nothing = ending.ownership == Ownership::default();
    let written = if nothing {
        ticket.finish(ending);
        Ok(())
    } else {
        finish_in_time(ticket, ending).await
    };
    if let Err(error) = written {
        tracing::error!(%error, "ownership of a result not recorded; no grant owns its objects until it is");
    }
    held.buffer.answer(held.answer, None);
}
