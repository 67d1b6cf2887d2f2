//! HTTP+SSE, the transport of protocol 2024-11-05.
//!
//! A GET opens the only stream, on which all messages of the server arrive; its first event names
//! the endpoint for messages. A POST there is answered with a status only; the answer arrives on
//! the stream and is matched by its id.
//!
//! Invariant: losing the stream is losing the channel; the inbox receives `closed` once, after the
//! last message. If the gateway itself closes the channel, the inbox is not notified.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode, Uri};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use toolgate_gateway::channel::{Inbox, Outbound, SendError};

use super::checked::Checked;
use super::endpoint::EndpointError;
use super::events::{Events, Item, StreamPosition};
use super::listen::StreamOpening;
use super::{RemoteChannel, body, endpoint, failure};

/// How long the first event may take.
pub(super) const PATIENT: Duration = Duration::from_secs(10);
/// The same if the transport is only guessed: a stream without an endpoint may be anything, and an
/// agent waits for the first rejection.
pub(super) const GUESSING: Duration = Duration::from_secs(3);
/// How much of the body of a status is read, and how long that may take.
const REMARK: usize = 64 * 1024;
const REMARKING: Duration = Duration::from_secs(5);

/// Why the stream of the legacy transport was not opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum LegacyError {
    #[error("{0}")]
    NoStream(String),
    #[error("`{server}` {why}")]
    Endpoint { server: String, why: EndpointError },
    #[error("`{server}` sent a message before its endpoint")]
    MessageFirst { server: String },
    #[error("`{server}` ended its stream without an endpoint")]
    NoEndpoint { server: String },
    #[error("`{server}` named no endpoint within {limit:?}")]
    TimedOut { server: String, limit: Duration },
}

impl RemoteChannel {
    /// Opens the stream and receives the endpoint.
    pub(super) async fn open_legacy(&self, limit: Duration) -> Result<(), LegacyError> {
        let opening = async {
            let mut events = match self.open(&StreamPosition::default()).await {
                StreamOpening::Stream(body) => Events::new(body, self.max_body),
                StreamOpening::Later(why) | StreamOpening::Never(why) => {
                    return Err(LegacyError::NoStream(why));
                }
            };
            let named = self.first_event(&mut events).await?;
            let server = self.server.clone();
            let endpoint = endpoint::resolve(&self.url, &named)
                .map_err(|why| LegacyError::Endpoint { server, why })?;
            Ok((events, endpoint))
        };
        let (events, endpoint) = timeout(limit, opening)
            .await
            .map_err(|_| LegacyError::TimedOut { server: self.server.clone(), limit })??;
        if self.endpoint.set(endpoint).is_ok() {
            let stream = Stream {
                events,
                server: self.server.clone(),
                origin: self.origin.clone(),
                max_event: self.max_body,
                inbox: Arc::clone(&self.inbox),
                closing: self.closing.clone(),
            };
            tokio::spawn(stream.run());
        }
        Ok(())
    }

    async fn first_event(&self, events: &mut Events) -> Result<Bytes, LegacyError> {
        loop {
            match events.next(&mut StreamPosition::default()).await {
                Ok(Some(Item::Endpoint(named))) => return Ok(named),
                Ok(Some(Item::PositionOnly)) => {}
                Ok(Some(Item::Message(_))) => {
                    return Err(LegacyError::MessageFirst { server: self.server.clone() });
                }
                Ok(None) => {
                    return Err(LegacyError::NoEndpoint { server: self.server.clone() });
                }
                Err(error) => return Err(LegacyError::NoStream(self.read_error(&error))),
            }
        }
    }

    /// Sends a message; its answer arrives on the stream.
    pub(super) async fn post_legacy(
        &self,
        endpoint: &Uri,
        message: Outbound,
    ) -> Result<(), SendError> {
        let (headers, _) = self.headers.post();
        let body = Checked::new(message.body().clone(), message.final_check().cloned());
        let response = self
            .request_to(endpoint, Method::POST, headers, body)
            .await
            .map_err(|error| failure::no_response(&self.origin, &error))?;
        let status = response.status();
        // Read, so that the connection can be reused.
        let body = body::beginning(response.into_body(), REMARK, REMARKING).await;
        match status {
            status if status.is_success() => Ok(()),
            // The endpoint is the session.
            StatusCode::NOT_FOUND => Err(SendError::SessionLost),
            status => Err(SendError::Refused { status: failure::classified(status), body }),
        }
    }
}

/// The stream of one channel, read by a task of its own.
struct Stream {
    events: Events,
    server: String,
    origin: String,
    max_event: usize,
    inbox: Arc<dyn Inbox>,
    closing: CancellationToken,
}

impl Stream {
    /// Delivers messages until the stream or the channel ends.
    async fn run(mut self) {
        let closing = self.closing.clone();
        if let Some(why) = closing.run_until_cancelled(self.read_to_end()).await {
            self.inbox.closed(&why);
            // Afterwards, so that waiting requests receive the reason first.
            closing.cancel();
        }
    }

    /// Reads the stream to its end; returns why it ended.
    async fn read_to_end(&mut self) -> String {
        let mut position = StreamPosition::default();
        loop {
            match self.events.next(&mut position).await {
                Ok(Some(Item::Message(data))) => {
                    self.inbox.message(data);
                }
                Ok(Some(Item::Endpoint(_) | Item::PositionOnly)) => {}
                Ok(None) => return format!("`{}` ended its stream", self.server),
                Err(error) => {
                    return failure::read_error(&self.server, &self.origin, self.max_event, &error);
                }
            }
        }
    }
}
