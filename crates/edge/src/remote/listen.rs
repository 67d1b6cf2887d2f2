//! The server's own stream: what it says without being asked.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use hyper::body::Incoming;
use tokio::time::{Instant, sleep};

use super::RemoteChannel;
use super::events::{Events, Item, LONGEST_PAUSE, Place};
use super::exchange::Content;
use super::failure;

const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// What a GET for a stream brought.
pub(super) enum Opened {
    Stream(Incoming),
    /// It may work later; why it did not now.
    Later(String),
    /// There is no such stream, and why.
    Never(String),
}

impl RemoteChannel {
    /// Returns only when the server has no stream of its own.
    pub(super) async fn listen_for_good(&self) {
        let mut place = Place::default();
        let mut backoff = FIRST_PAUSE;
        loop {
            let since = Instant::now();
            let mut heard = false;
            match self.open(&place).await {
                Opened::Stream(body) => {
                    heard = self.hear(Events::new(body, self.max_body), &mut place).await;
                }
                Opened::Later(why) => tracing::debug!(server = self.server, "not listening: {why}"),
                Opened::Never(why) => {
                    tracing::debug!(server = self.server, "nothing to listen to: {why}");
                    return;
                }
            }
            if heard || since.elapsed() > LONGEST_PAUSE {
                backoff = FIRST_PAUSE;
                sleep(place.pause()).await;
            } else {
                sleep(place.retry().map_or(backoff, |_| place.pause().max(backoff))).await;
                backoff = (backoff * 2).min(LONGEST_PAUSE);
            }
        }
    }

    /// Reads a stream to its end; whether anything came.
    async fn hear(&self, mut events: Events, place: &mut Place) -> bool {
        let mut heard = false;
        loop {
            match events.next(place).await {
                Ok(Some(item)) => {
                    heard = true;
                    if let Item::Message(data) = item {
                        self.inbox.message(data);
                    }
                }
                Ok(None) => return heard,
                Err(unread) => {
                    let why = self.unread(&unread);
                    tracing::debug!(server = self.server, "its own stream broke: {why}");
                    return heard;
                }
            }
        }
    }

    /// Opens a stream, from `place` on if it has been read before.
    pub(super) async fn open(&self, place: &Place) -> Opened {
        let headers = self.headers.stream(place.last_event());
        let response = match self.request(Method::GET, headers, Bytes::new()).await {
            Ok(response) => response,
            Err(error) => {
                return Opened::Later(failure::no_response(&self.origin, &error).to_string());
            }
        };
        let status = response.status();
        if status.is_success() {
            return match Content::of(&response) {
                Content::Events => Opened::Stream(response.into_body()),
                _ => Opened::Never(format!("`{}` sent no event stream", self.server)),
            };
        }
        let why = format!("`{}` answered HTTP {} to a GET", self.server, status.as_u16());
        let passing = status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED;
        if passing || matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS)
        {
            return Opened::Later(why);
        }
        Opened::Never(why)
    }
}
