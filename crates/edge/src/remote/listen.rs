//! The server's own stream, for messages that belong to no request.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use hyper::body::Incoming;
use tokio::time::{Instant, sleep};

use super::RemoteChannel;
use super::events::{Events, Item, LONGEST_PAUSE, StreamPosition};
use super::exchange::Content;
use super::failure;

const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The result of a GET for a stream.
pub(super) enum StreamOpening {
    Stream(Incoming),
    /// It failed for this reason and may work later.
    Later(String),
    /// There is no such stream, for this reason.
    Never(String),
}

impl RemoteChannel {
    /// Reads the server's own stream; returns only if there is none.
    pub(super) async fn listen_until_closed(&self) {
        let mut position = StreamPosition::default();
        let mut backoff = FIRST_PAUSE;
        loop {
            let since = Instant::now();
            let mut received = false;
            match self.open(&position).await {
                StreamOpening::Stream(body) => {
                    received =
                        self.read_stream(Events::new(body, self.max_body), &mut position).await;
                }
                StreamOpening::Later(why) => {
                    tracing::debug!(server = self.server, "server stream not opened: {why}");
                }
                StreamOpening::Never(why) => {
                    tracing::debug!(server = self.server, "server has no stream of its own: {why}");
                    return;
                }
            }
            if received || since.elapsed() > LONGEST_PAUSE {
                backoff = FIRST_PAUSE;
                sleep(position.pause()).await;
            } else {
                sleep(position.retry().map_or(backoff, |_| position.pause().max(backoff))).await;
                backoff = (backoff * 2).min(LONGEST_PAUSE);
            }
        }
    }

    /// Reads a stream to its end; returns whether an event arrived.
    async fn read_stream(&self, mut events: Events, position: &mut StreamPosition) -> bool {
        let mut received = false;
        loop {
            match events.next(position).await {
                Ok(Some(item)) => {
                    received = true;
                    if let Item::Message(data) = item {
                        self.inbox.message(data);
                    }
                }
                Ok(None) => return received,
                Err(error) => {
                    let why = self.read_error(&error);
                    tracing::debug!(server = self.server, "server stream broken: {why}");
                    return received;
                }
            }
        }
    }

    /// Opens a stream, resuming at `position`.
    pub(super) async fn open(&self, position: &StreamPosition) -> StreamOpening {
        let headers = self.headers.stream(position.last_event());
        let response = match self.request(Method::GET, headers, Bytes::new()).await {
            Ok(response) => response,
            Err(error) => {
                return StreamOpening::Later(
                    failure::no_response(&self.origin, &error).to_string(),
                );
            }
        };
        let status = response.status();
        if status.is_success() {
            return match Content::of(&response) {
                Content::Events => StreamOpening::Stream(response.into_body()),
                _ => StreamOpening::Never(format!("`{}` sent no event stream", self.server)),
            };
        }
        let why = format!("`{}` answered HTTP {} to a GET", self.server, status.as_u16());
        let passing = status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED;
        if passing || matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS)
        {
            return StreamOpening::Later(why);
        }
        StreamOpening::Never(why)
    }
}
