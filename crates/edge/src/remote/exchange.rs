//! One message to a server and its response.
//!
//! Invariant: an exchange that expects an answer succeeds only after its inbox returned
//! [`Progress::Answered`].

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use hyper::body::Incoming;
use tokio::time::timeout;
use toolgate_gateway::channel::{Inbox, Outbound, Progress, SendError};

use super::RemoteChannel;
use super::body::{self, ReadError};
use super::checked::Checked;
use super::events::{Events, Item, StreamPosition};
use super::failure;
use super::listen::StreamOpening;

/// How much of a rejection is kept, and how long it may take to arrive.
const REFUSAL: usize = 64 * 1024;
const REFUSING: Duration = Duration::from_secs(5);
/// How long a stream may continue after the answer before its connection is closed.
const WINDING_UP: Duration = Duration::from_secs(1);
/// How many times in a row a stream may be resumed without bringing an event.
const MAX_EMPTY_RESUMES: u32 = 5;

impl RemoteChannel {
    /// Sends a message over streamable HTTP.
    pub(super) async fn exchange(
        &self,
        message: Outbound,
        inbox: Arc<dyn Inbox>,
    ) -> Result<(), SendError> {
        let (is_sessionless, expects_answer) =
            (!message.heads().is_empty(), message.expects_answer());
        let (headers, session) = if is_sessionless {
            (self.headers.post_with(message.heads()), None)
        } else {
            self.headers.post()
        };
        let body = Checked::new(message.body().clone(), message.final_check().cloned());
        let response = self
            .request_to(&self.url, Method::POST, headers, body)
            .await
            .map_err(|error| failure::no_response(&self.origin, &error))?;
        if !response.status().is_success() {
            return Err(self.refused(response, session).await);
        }
        if !is_sessionless {
            self.headers.adopt(session.as_ref(), response.headers());
        }
        match Content::of(&response) {
            Content::Nothing if expects_answer => {
                Err(self.lost("accepted the request but sent no answer"))
            }
            Content::Json => self.whole(response, expects_answer, &inbox).await,
            Content::Events => self.follow(response, expects_answer, inbox).await,
            Content::Other if expects_answer => {
                let kind = content_type(response.headers()).unwrap_or("no content type");
                Err(self.lost(&format!("answered with `{kind}` instead of JSON or events")))
            }
            Content::Nothing | Content::Other => Ok(()),
        }
    }

    /// An answer as one body.
    async fn whole(
        &self,
        response: Response<Incoming>,
        expects_answer: bool,
        inbox: &Arc<dyn Inbox>,
    ) -> Result<(), SendError> {
        let collected =
            body::collect(response.into_body(), self.max_body, &self.buffers, inbox.as_ref()).await;
        let (body, held) = collected.map_err(|error| SendError::Lost(self.read_error(&error)))?;
        let progress = if body.is_empty() { Progress::Expecting } else { inbox.message(body) };
        if let (Some(held), Progress::Answered) = (held, progress) {
            held.release();
        }
        if expects_answer && progress == Progress::Expecting {
            return Err(self.lost("sent a response without the answer"));
        }
        Ok(())
    }

    /// An answer at the end of a stream, which the server may interrupt.
    async fn follow(
        &self,
        response: Response<Incoming>,
        expects_answer: bool,
        inbox: Arc<dyn Inbox>,
    ) -> Result<(), SendError> {
        let mut position = StreamPosition::default();
        let mut events = Events::new(response.into_body(), self.max_body);
        if !expects_answer {
            wind_up(events, position, inbox);
            return Ok(());
        }
        let mut tries = 0;
        loop {
            match self.read(&mut events, &mut position, &inbox, &mut tries).await? {
                Ended::Answered => {
                    wind_up(events, position, inbox);
                    return Ok(());
                }
                Ended::Early(why) => {
                    events = self.resume(&position, &inbox, &mut tries, why).await?;
                }
            }
        }
    }

    async fn read(
        &self,
        events: &mut Events,
        position: &mut StreamPosition,
        inbox: &Arc<dyn Inbox>,
        tries: &mut u32,
    ) -> Result<Ended, SendError> {
        loop {
            match events.next(position).await {
                Ok(Some(item)) => {
                    *tries = 0;
                    if let Item::Message(data) = item
                        && inbox.message(data) == Progress::Answered
                    {
                        return Ok(Ended::Answered);
                    }
                }
                Ok(None) => {
                    let why = format!("`{}` ended its stream before the answer", self.server);
                    return Ok(Ended::Early(why));
                }
                Err(error @ ReadError::Broken(_)) => {
                    return Ok(Ended::Early(self.read_error(&error)));
                }
                Err(error @ (ReadError::TooLarge | ReadError::NotAMessage)) => {
                    return Err(SendError::Lost(self.read_error(&error)));
                }
            }
        }
    }

    /// Resumes an interrupted stream.
    async fn resume(
        &self,
        position: &StreamPosition,
        inbox: &Arc<dyn Inbox>,
        tries: &mut u32,
        mut why: String,
    ) -> Result<Events, SendError> {
        if position.last_event().is_none() {
            return Err(SendError::Lost(why));
        }
        while *tries < MAX_EMPTY_RESUMES {
            *tries += 1;
            inbox.paused(position.retry());
            // An agent that is back expects the rest at once.
            if timeout(position.pause(), inbox.resumed()).await.is_ok() {
                tracing::trace!("agent is back; resuming its stream");
            }
            match self.open(position).await {
                StreamOpening::Stream(body) => return Ok(Events::new(body, self.max_body)),
                StreamOpening::Later(reason) => why = reason,
                StreamOpening::Never(reason) => return Err(SendError::Lost(reason)),
            }
        }
        Err(SendError::Lost(format!("{why}; resumed {MAX_EMPTY_RESUMES} times without result")))
    }

    async fn refused(
        &self,
        response: Response<Incoming>,
        session: Option<HeaderValue>,
    ) -> SendError {
        let status = response.status();
        let body = body::beginning(response.into_body(), REFUSAL, REFUSING).await;
        if let Some(session) = session
            && (status == StatusCode::NOT_FOUND
                || (status == StatusCode::BAD_REQUEST && blames_session(&body)))
        {
            self.headers.forget(&session);
            return SendError::SessionLost;
        }
        SendError::Refused { status: failure::classified(status), body }
    }

    fn lost(&self, what: &str) -> SendError {
        SendError::Lost(format!("`{}` {what}", self.server))
    }

    pub(super) fn read_error(&self, error: &ReadError) -> String {
        failure::read_error(&self.server, &self.origin, self.max_body, error)
    }
}

/// How a stream ended.
enum Ended {
    Answered,
    Early(String),
}

/// The content of a successful response.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Content {
    Nothing,
    Json,
    Events,
    Other,
}

impl Content {
    pub(super) fn of(response: &Response<Incoming>) -> Self {
        if matches!(response.status(), StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Self::Nothing;
        }
        match content_type(response.headers()) {
            Some(kind) if kind.eq_ignore_ascii_case("application/json") => Self::Json,
            Some(kind) if kind.eq_ignore_ascii_case("text/event-stream") => Self::Events,
            _ => Self::Other,
        }
    }
}

/// The content type without its parameters.
pub(super) fn content_type(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    value.split(';').next().map(str::trim)
}

/// Keeps reading for a moment, so that the connection can be reused, without delaying the answer.
fn wind_up(mut events: Events, mut position: StreamPosition, inbox: Arc<dyn Inbox>) {
    match events.next(&mut position).now_or_never() {
        Some(Ok(None) | Err(_)) => return,
        Some(Ok(Some(Item::Message(data)))) => {
            inbox.message(data);
        }
        Some(Ok(Some(Item::Endpoint(_) | Item::PositionOnly))) | None => {}
    }
    tokio::spawn(async move {
        let rest = async {
            while let Ok(Some(item)) = events.next(&mut position).await {
                if let Item::Message(data) = item {
                    inbox.message(data);
                }
            }
        };
        if timeout(WINDING_UP, rest).await.is_err() {
            tracing::trace!("stream continues after its answer; closing the connection");
        }
    });
}

/// Some servers answer 400 instead of 404 if they have lost the session.
fn blames_session(body: &Bytes) -> bool {
    let Ok(answer) = serde_json::from_slice::<serde_json::Value>(body) else { return false };
    let code = answer.pointer("/error/code").and_then(serde_json::Value::as_i64);
    let message = answer.pointer("/error/message").and_then(serde_json::Value::as_str);
    code == Some(-32000)
        || message.is_some_and(|message| message.to_ascii_lowercase().contains("session"))
}
