//! Requests of protocol 2026-07-28: each describes itself, in its body and in its headers.
//!
//! Invariant: a request whose headers and body differ is rejected, so that a proxy that inspects
//! headers has seen what is executed.

use http::header::{HeaderMap, HeaderName};
use http::{Response, StatusCode};
use toolgate_gateway::channel::Heads;
use toolgate_gateway::event_buffer::First;
use toolgate_gateway::sessionless_clients::{Client, NotStarted, Started};
use toolgate_mcp::sessionless::annotations::PREFIX;
use toolgate_mcp::sessionless::{Heads as Repeated, Objection, VERSION, is_sessionless, judge};
use toolgate_mcp::{Incoming as Body, Message, Request, code, write};

use super::head::PROTOCOL_VERSION;
use super::reply::{self, json, problem};
use super::{Inner, Target, stream};
use crate::body::ResponseBody;

const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const SESSION: HeaderName = HeaderName::from_static("toolgate-session");
/// How long a client's own name for its session may be.
const MAX_SESSION: usize = 128;

/// Whether the headers name this protocol.
pub(super) fn is_named(headers: &HeaderMap) -> bool {
    headers.get(PROTOCOL_VERSION).is_some_and(|version| version == VERSION)
}

impl Inner {
    /// The response to a message of this protocol; `None` if it is of another one.
    pub(super) async fn sessionless(
        &self,
        to: &Target,
        headers: &HeaderMap,
        message: &Body<'_>,
    ) -> Option<Response<ResponseBody>> {
        let named = if is_named(headers) { Some(VERSION) } else { None };
        let params = match message {
            Body::One(Message::Request(request)) => request.params,
            Body::One(Message::Notification(notification)) => notification.params,
            Body::One(Message::Response(_)) | Body::Batch(_) => None,
        };
        if !is_sessionless(named, params) {
            return None;
        }
        Some(match message {
            Body::One(Message::Request(request)) => {
                self.sessionless_request(to, headers, request).await
            }
            // Closing the stream cancels; a notification of the same is accepted and ignored.
            Body::One(Message::Notification(_)) => reply::accepted(),
            Body::One(Message::Response(_)) | Body::Batch(_) => {
                let why = "protocol 2026-07-28 has only single requests and notifications";
                problem(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, why)
            }
        })
    }

    async fn sessionless_request(
        &self,
        to: &Target,
        headers: &HeaderMap,
        request: &Request<'_>,
    ) -> Response<ResponseBody> {
        let judged = heads(headers).and_then(|heads| judge(&heads, request));
        let claims = match judged {
            Ok(claims) => claims,
            Err(objection) => return refuse(&objection, request.id),
        };
        let session = match session(headers) {
            Ok(session) => session,
            Err(why) => {
                let error = write::error(Some(request.id), code::INVALID_REQUEST, why, None);
                return json(StatusCode::BAD_REQUEST, error);
            }
        };
        let parameters = match parameters(headers) {
            Ok(parameters) => parameters,
            Err(objection) => return refuse(&objection, request.id),
        };
        let client = Client { claims: &claims, session, parameters: Some(&parameters) };
        let started =
            self.gateway.sessionless_request(&to.endpoint, &to.caller, &client, request).await;
        let mut call = match started {
            Ok(Started::Call(call)) => call,
            Ok(Started::Stream(going)) => return stream::sessionless(going),
            Ok(Started::Answer(answer, rejection)) => {
                return json(reply::status(rejection), answer);
            }
            Err(NotStarted::NotOpened(why)) => return reply::not_opened(why),
            Err(NotStarted::Refused(refusal)) => {
                return json(StatusCode::BAD_REQUEST, toolgate_gateway::refused(&refusal));
            }
        };
        match call.first().await {
            First::Answer(answer, rejection) => json(reply::status(rejection), answer),
            First::Stream => stream::sessionless(call.stream()),
        }
    }
}

fn refuse(objection: &Objection, id: &str) -> Response<ResponseBody> {
    let Objection { code, message, data } = objection;
    let status = match *code {
        code::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        _ => StatusCode::BAD_REQUEST,
    };
    json(status, write::error(Some(id), *code, message, data.as_deref()))
}

/// The headers that must agree with the body.
fn heads(headers: &HeaderMap) -> Result<Repeated<'_>, Objection> {
    Ok(Repeated {
        version: one(headers, &PROTOCOL_VERSION)?,
        method: one(headers, &METHOD)?,
        name: one(headers, &NAME)?,
    })
}

/// The headers that repeat arguments. They are compared with the arguments where the tool is known.
fn parameters(headers: &HeaderMap) -> Result<Heads, Objection> {
    let named = headers.keys().filter(|name| name.as_str().starts_with(PREFIX));
    let values = named.map(|name| {
        let value = one(headers, name)?.unwrap_or_default();
        Ok((name.as_str().to_owned().into(), value.to_owned()))
    });
    values.collect()
}

/// The only value of a header. With two, one reader may use the first and another the last.
fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Objection> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().map(http::HeaderValue::to_str).transpose();
    match (value, values.next()) {
        (Ok(value), None) => Ok(value),
        _ => Err(Objection {
            code: code::HEADER_MISMATCH,
            message: format!("the header {name} must be sent once, in visible ASCII"),
            data: None,
        }),
    }
}

/// The client's own name for its session.
fn session(headers: &HeaderMap) -> Result<Option<&str>, &'static str> {
    let why = "the header Toolgate-Session must be sent once at most, with 1 to 128 visible ASCII \
               characters";
    let mut values = headers.get_all(SESSION).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let value = value.to_str().map_err(|_| why)?;
    let is_fine = !value.is_empty()
        && value.len() <= MAX_SESSION
        && value.bytes().all(|byte| byte.is_ascii_graphic());
    if is_fine && values.next().is_none() { Ok(Some(value)) } else { Err(why) }
}
