//! Streams of events to an agent.

use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use tokio::time::timeout;
use toolgate_gateway::event_buffer::Next;
use toolgate_gateway::sessionless_clients::SessionlessStream;
use toolgate_gateway::{Attached, EventId};
use toolgate_mcp::{Version, sse};

use crate::body::ResponseBody;

/// How often an idle stream sends a comment, so that either end notices a dead connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// After how many milliseconds an agent resumes a stream that was interrupted.
const RETRY: u64 = 1_000;
const NO_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Streams what `attached` reads. Agents of `version` 2025-11-25 receive an empty event first, so
/// that they have an id to resume with.
pub(super) fn reply(attached: Attached, version: Option<Version>) -> Response<ResponseBody> {
    let primed = version.is_some_and(|version| version >= Version::V2025_11_25);
    let events = stream::unfold(State { attached, prime: primed, over: false }, next);
    respond(ResponseBody::Events(Box::pin(events)))
}

/// Streams the messages of a sessionless request. Such a stream cannot be resumed: if the client
/// disconnects, the stream is dropped, and the request with it.
pub(super) fn sessionless(messages: SessionlessStream) -> Response<ResponseBody> {
    let events = stream::unfold(messages, |mut messages| async move {
        let event = match timeout(KEEP_ALIVE, messages.next()).await {
            Err(_) => sse::comment("alive"),
            Ok(message) => sse::event(None, None, &message?),
        };
        Some((event, messages))
    });
    respond(ResponseBody::Events(Box::pin(events)))
}

fn respond(events: ResponseBody) -> Response<ResponseBody> {
    let mut response = Response::new(events);
    *response.status_mut() = StatusCode::OK;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(NO_BUFFERING, HeaderValue::from_static("no"));
    response
}

struct State {
    attached: Attached,
    prime: bool,
    over: bool,
}

async fn next(mut state: State) -> Option<(Bytes, State)> {
    if state.over {
        return None;
    }
    let stream = state.attached.number();
    if std::mem::take(&mut state.prime) {
        let beginning = EventId { stream, event: 0 };
        return Some((sse::prime(&beginning.to_string(), Some(RETRY)), state));
    }
    let event = match timeout(KEEP_ALIVE, state.attached.next()).await {
        Err(_) => sse::comment("alive"),
        Ok(Next::Event(event, body)) => {
            let id = EventId { stream, event };
            sse::event(Some(&id.to_string()), None, &body)
        }
        Ok(Next::Pause(retry)) => {
            state.over = true;
            let wait = retry.unwrap_or(Duration::from_secs(1));
            sse::retry(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX))
        }
        Ok(Next::Gap) => {
            tracing::warn!("agent disconnected: it reads its stream too slowly");
            return None;
        }
        Ok(Next::End) => return None,
    };
    Some((event, state))
}
