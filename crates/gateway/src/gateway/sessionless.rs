//! Requests of protocol 2026-07-28: each is served by the implicit agent session of its client.

use std::sync::Arc;

use toolgate_admission::access::Grant;
use toolgate_admission::call_request::CallRequest;
use toolgate_mcp::{Refusal, Request};
use toolgate_upstream::rewrite::refused;

use super::{Gateway, NotOpened};
use crate::downstream::endpoint::Endpoint;
use crate::downstream::size_limits::TooLong;
use crate::sessionless::{Client, Started, start};

/// Why a request was not started.
#[derive(Debug)]
pub enum NotStarted {
    /// There is no implicit agent session for its client.
    NotOpened(NotOpened),
    /// It is rejected.
    Refused(Refusal),
}

impl Gateway {
    /// Starts a request of a client without an agent session.
    pub async fn sessionless_request(
        &self,
        endpoint: &Endpoint,
        caller: &Arc<Grant>,
        client: &Client<'_>,
        request: &Request<'_>,
    ) -> Result<Started, NotStarted> {
        let request = CallRequest::read(request).map_err(NotStarted::Refused)?;
        if let Some(long) = TooLong::of(&request, !endpoint.is_one()) {
            let (admission, via) = (self.admission(), endpoint.via(caller));
            long.record(admission, caller, &via, request.method).await;
            return Ok(Started::Answer(refused(&long.refusal(Some(request.id))), None));
        }
        let implicit = self.implicit(endpoint, caller, client).map_err(NotStarted::NotOpened)?;
        start(&implicit, client, request).await.map_err(NotStarted::Refused)
    }
}
