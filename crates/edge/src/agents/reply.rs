//! The responses that agents receive.

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{Response, StatusCode};
use toolgate_gateway::event_buffer::Rejection;
use toolgate_gateway::{NotOpened, RelayReader};
use toolgate_mcp::{Pieces, code, write};

use super::{empty, head, whole};
use crate::body::{BodyError, ResponseBody};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const PLAIN: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// The status of an answer.
pub(super) fn status(rejection: Option<Rejection>) -> StatusCode {
    match rejection {
        None => StatusCode::OK,
        Some(Rejection::InvalidRequest) => StatusCode::BAD_REQUEST,
        Some(Rejection::UnknownMethod) => StatusCode::NOT_FOUND,
    }
}

/// A JSON body.
pub(super) fn json(status: StatusCode, body: impl Into<Pieces>) -> Response<ResponseBody> {
    let mut response = Response::new(whole(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

/// A JSON body that is relayed while it arrives.
pub(super) fn relayed(answer: RelayReader) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::Relayed(answer));
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

/// A rejection of the whole request, as a JSON-RPC error.
pub(super) fn problem(status: StatusCode, code: i32, why: &str) -> Response<ResponseBody> {
    json(status, write::error(None, code, why, None))
}

/// Too many large bodies at once.
pub(super) fn over_budget() -> Response<ResponseBody> {
    let why = "too many large requests are being read; this one was not processed. Send it again in a \
               second";
    let mut response = problem(StatusCode::SERVICE_UNAVAILABLE, code::INTERNAL_ERROR, why);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// Too many unread answers.
pub(super) fn unread() -> Response<ResponseBody> {
    let why = "too many large answers of your grant are not read yet, so this answer was dropped. The \
               tool may have run: do not assume that nothing happened";
    problem(StatusCode::SERVICE_UNAVAILABLE, code::INTERNAL_ERROR, why)
}

/// The answer to `initialize`, with the id of the agent session it opened.
pub(super) fn with_session(
    mut response: Response<ResponseBody>,
    id: &str,
) -> Response<ResponseBody> {
    if let Ok(id) = HeaderValue::from_str(id) {
        response.headers_mut().insert(head::SESSION, id);
    }
    response
}

/// A notification or an answer was accepted.
pub(super) fn accepted() -> Response<ResponseBody> {
    let mut response = Response::new(empty());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

/// A short text.
pub(super) fn text(status: StatusCode, words: &'static str) -> Response<ResponseBody> {
    let mut response = Response::new(whole(Bytes::from_static(words.as_bytes())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, PLAIN);
    response
}

/// The same for a path that does not exist and a server that is not known.
pub(super) fn nothing_here() -> Response<ResponseBody> {
    let why = "there is no MCP endpoint at this path; all servers are at /mcp, each one at \
               /mcp/<server>, by the names under `servers` in toolgate.yaml";
    problem(StatusCode::NOT_FOUND, code::INVALID_REQUEST, why)
}

/// The token is missing or unknown.
pub(super) fn unauthorized() -> Response<ResponseBody> {
    let why = "missing or unknown token; send `Authorization: Bearer <token of a grant>`";
    let mut response = problem(StatusCode::UNAUTHORIZED, code::INVALID_REQUEST, why);
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

/// An HTTP method that is not supported.
pub(super) fn not_allowed() -> Response<ResponseBody> {
    let why = "only POST, GET and DELETE are supported here";
    let mut response = problem(StatusCode::METHOD_NOT_ALLOWED, code::INVALID_REQUEST, why);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST, GET, DELETE"));
    response
}

/// An HTTP method that protocol 2026-07-28 does not use.
pub(super) fn only_post() -> Response<ResponseBody> {
    let why = "protocol 2026-07-28 has no sessions: only POST is supported";
    let mut response = problem(StatusCode::METHOD_NOT_ALLOWED, code::INVALID_REQUEST, why);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
    response
}

/// The gateway is shutting down.
pub(super) fn stopping() -> Response<ResponseBody> {
    let why = "toolgate is stopping; try again in a moment";
    problem(StatusCode::SERVICE_UNAVAILABLE, code::INTERNAL_ERROR, why)
}

/// Why no agent session was opened.
pub(super) fn not_opened(why: NotOpened) -> Response<ResponseBody> {
    match why {
        NotOpened::Answer(answer) => json(StatusCode::OK, answer),
        NotOpened::UnknownServer => nothing_here(),
        NotOpened::TooMany(max) => {
            let why = format!(
                "there are {max} agent sessions already, which is the limit \
                 (`agent_sessions.max` in toolgate.yaml); end one or try again later"
            );
            problem(StatusCode::SERVICE_UNAVAILABLE, code::INTERNAL_ERROR, &why)
        }
        NotOpened::TooManyOfGrant(max) => {
            let why = format!(
                "your grant has {max} agent sessions already, which is the limit for one grant \
                 (`agent_sessions.per_grant` in toolgate.yaml); end one or try again later"
            );
            problem(StatusCode::TOO_MANY_REQUESTS, code::INTERNAL_ERROR, &why)
        }
        NotOpened::Stopping => stopping(),
        NotOpened::NoIds => {
            let why = "no agent session id could be generated; see the log of toolgate";
            problem(StatusCode::INTERNAL_SERVER_ERROR, code::INTERNAL_ERROR, why)
        }
    }
}

/// Why a body was not read.
pub(super) fn body_error(why: &BodyError, limit: usize) -> Response<ResponseBody> {
    let (status, why) = match why {
        BodyError::TooLarge => (
            StatusCode::PAYLOAD_TOO_LARGE,
            format!(
                "the body is larger than {limit} bytes (`limits.body` in toolgate.yaml); it was \
                 not processed"
            ),
        ),
        BodyError::OverBudget => return over_budget(),
        BodyError::Stalled => (StatusCode::REQUEST_TIMEOUT, "the body stalled".to_owned()),
        BodyError::TooSlow => (
            StatusCode::REQUEST_TIMEOUT,
            "the body did not arrive in time (`limits.body_read` in toolgate.yaml); it was not \
             processed"
                .to_owned(),
        ),
        BodyError::Broken => (StatusCode::BAD_REQUEST, "the body was cut off".to_owned()),
    };
    problem(status, code::INVALID_REQUEST, &why)
}
