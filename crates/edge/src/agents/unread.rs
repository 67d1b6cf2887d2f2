//! The memory of answers that agents have not read yet.

use std::future::ready;
use std::sync::Arc;

use futures_util::StreamExt as _;
use http::Response;

use super::{Inner, reply};
use crate::body::ResponseBody;
use crate::memory_budget::SMALL;

impl Inner {
    /// Reserves memory for the response until the agent has read it. Without memory a response is
    /// replaced by an error, and a stream ends.
    pub(super) fn within_budget(
        &self,
        grant: &Arc<str>,
        largest: usize,
        response: Response<ResponseBody>,
    ) -> Response<ResponseBody> {
        let (parts, body) = response.into_parts();
        let body = match body {
            ResponseBody::Whole(pieces) if pieces.len() <= SMALL => ResponseBody::Whole(pieces),
            ResponseBody::Whole(pieces) => {
                let Some(pieces) = self.unread.reserve_answer(grant, largest, pieces) else {
                    tracing::warn!(%grant, "too many unread answers; dropping one");
                    return reply::unread();
                };
                ResponseBody::Whole(pieces.into_iter().collect())
            }
            ResponseBody::Events(events) => {
                let (budget, grant) = (Arc::clone(&self.unread), Arc::clone(grant));
                ResponseBody::Events(Box::pin(events.scan((), move |(), event| {
                    if event.len() <= SMALL {
                        return ready(Some(event));
                    }
                    let event = budget
                        .reserve_answer(&grant, largest, [event])
                        .and_then(|mut event| event.pop());
                    if event.is_none() {
                        tracing::warn!(%grant, "too many unread answers; ending a stream");
                    }
                    ready(event)
                })))
            }
            relayed @ ResponseBody::Relayed(_) => relayed,
        };
        Response::from_parts(parts, body)
    }
}
