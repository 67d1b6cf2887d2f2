//! The events of a response body, and the position in a stream to resume from.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use toolgate_mcp::sse::{Decoder, Event};

use super::body::{self, ReadError};

/// The longest pause before a reconnect, whatever the server sends.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// A server that sends `retry: 0` and disconnects must not cause a busy loop.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
const USUAL_PAUSE: Duration = Duration::from_secs(1);

/// How far a stream has been read; it outlives the connection.
#[derive(Debug, Default)]
pub(super) struct StreamPosition {
    last_event: Option<String>,
    retry: Option<Duration>,
}

impl StreamPosition {
    /// The id to resume after.
    pub(super) fn last_event(&self) -> Option<&str> {
        self.last_event.as_deref()
    }

    /// The pause that the server asked for.
    pub(super) fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// How long to wait before reconnecting.
    pub(super) fn pause(&self) -> Duration {
        self.retry.unwrap_or(USUAL_PAUSE).clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
    }

    fn pass(&mut self, event: &mut Event) {
        if let Some(id) = event.id.take() {
            self.last_event = Some(id).filter(|id| !id.is_empty());
        }
        if let Some(retry) = event.retry {
            self.retry = Some(Duration::from_millis(retry));
        }
    }
}

/// One event, reduced to what matters.
#[derive(Debug)]
pub(super) enum Item {
    Message(Bytes),
    /// The endpoint for messages, over HTTP+SSE.
    Endpoint(Bytes),
    /// An event that only moved the [`StreamPosition`].
    PositionOnly,
}

/// Reads events from a body.
#[derive(Debug)]
pub(super) struct Events {
    body: Incoming,
    decoder: Decoder,
    ready: VecDeque<Event>,
    too_large: bool,
}

impl Events {
    /// `max_event` is the size of the largest event.
    pub(super) fn new(body: Incoming, max_event: usize) -> Self {
        let ready = VecDeque::new();
        Self { body, decoder: Decoder::new(max_event), ready, too_large: false }
    }

    /// The next event; `None` at the end of the stream. Cancel-safe.
    pub(super) async fn next(
        &mut self,
        position: &mut StreamPosition,
    ) -> Result<Option<Item>, ReadError> {
        loop {
            if let Some(mut event) = self.ready.pop_front() {
                position.pass(&mut event);
                return Ok(Some(match event.event.as_deref() {
                    _ if event.data.is_empty() => Item::PositionOnly,
                    None | Some("message") => Item::Message(event.data),
                    Some("endpoint") => Item::Endpoint(event.data),
                    Some(_) => Item::PositionOnly,
                }));
            }
            if self.too_large {
                return Err(ReadError::TooLarge);
            }
            let Some(chunk) = body::next(&mut self.body).await? else { return Ok(None) };
            let ready = &mut self.ready;
            let pushed = self.decoder.push(&chunk, &mut |event| ready.push_back(event));
            self.too_large = pushed.is_err();
        }
    }
}
