//! Checks the head of an agent's request.

use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use toolgate_mcp::{Version, code, sessionless};

use super::reply::problem;
use crate::body::ResponseBody;

/// The header that carries the agent session's id.
pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// Headers of MCP begin with this; each has one value.
const MCP: &str = "mcp-";
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The relevant headers of a request.
#[derive(Debug)]
pub(super) struct Head<'a> {
    pub(super) session: Option<&'a str>,
    /// The protocol version header.
    pub(super) version: Option<&'a HeaderValue>,
    pub(super) last_event_id: Option<&'a HeaderValue>,
    /// A header of MCP that was sent more than once.
    repeated: Option<&'a HeaderName>,
}

type Refused = Box<Response<ResponseBody>>;

impl<'a> Head<'a> {
    /// The head of a POST: JSON in, JSON or events out.
    pub(super) fn of_post(headers: &'a HeaderMap) -> Result<Self, Refused> {
        if !is_json(headers) {
            let why = "the Content-Type must be application/json";
            return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, why);
        }
        if !(accepts_the_usual(headers)
            || accepts(headers, "application", "json") && accepts(headers, "text", "event-stream"))
        {
            let why = "the Accept header must list application/json and text/event-stream";
            return refuse(StatusCode::NOT_ACCEPTABLE, why);
        }
        Ok(Self::of(headers))
    }

    /// The head of a GET: events out.
    pub(super) fn of_get(headers: &'a HeaderMap) -> Result<Self, Refused> {
        if !accepts(headers, "text", "event-stream") {
            let why = "the Accept header must list text/event-stream";
            return refuse(StatusCode::NOT_ACCEPTABLE, why);
        }
        Self::of_delete(headers)
    }

    /// The head of a DELETE.
    pub(super) fn of_delete(headers: &'a HeaderMap) -> Result<Self, Refused> {
        let head = Self::of(headers);
        head.has_handshake()?;
        Ok(head)
    }

    /// Checks that the version, if named, is one with a handshake.
    pub(super) fn has_handshake(&self) -> Result<(), Refused> {
        if let Some(name) = self.repeated {
            let why =
                format!("the header {name} must be sent once; nothing of this request was used");
            return refuse(StatusCode::BAD_REQUEST, &why);
        }
        let named = self.version.map(|version| version.to_str().ok().and_then(Version::parse));
        if named == Some(None) {
            let known = Version::ALL.map(Version::as_str).join(", ");
            let why = format!(
                "this MCP-Protocol-Version is not supported here; known are {known} and, for \
                 requests that describe themselves, {}",
                sessionless::VERSION
            );
            return refuse(StatusCode::BAD_REQUEST, &why);
        }
        Ok(())
    }

    fn of(headers: &'a HeaderMap) -> Self {
        let session = headers.get(SESSION).and_then(|value| value.to_str().ok());
        let version = headers.get(PROTOCOL_VERSION);
        // Most requests repeat nothing.
        let repeats = headers.len() != headers.keys_len();
        let mut named = headers.keys().filter(|name| repeats && name.as_str().starts_with(MCP));
        let repeated = named.find(|name| headers.get_all(*name).iter().nth(1).is_some());
        Self { session, version, last_event_id: headers.get(LAST_EVENT_ID), repeated }
    }
}

/// The token of an Authorization header, if there is one; an error if it is not a bearer token.
pub(super) fn bearer(headers: &HeaderMap) -> Result<Option<&str>, ()> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let (scheme, token) = value.to_str().ok().and_then(|value| value.split_once(' ')).ok_or(())?;
    let token = token.trim_matches(' ');
    let known = scheme.eq_ignore_ascii_case("bearer") && !token.is_empty();
    if known && values.next().is_none() { Ok(Some(token)) } else { Err(()) }
}

fn refuse<T>(status: StatusCode, why: &str) -> Result<T, Refused> {
    Err(Box::new(problem(status, code::INVALID_REQUEST, why)))
}

fn is_json(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return false };
    let Ok(value) = value.to_str() else { return false };
    let essence = value.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}

/// All common clients send one of these, so most requests need no closer look.
fn accepts_the_usual(headers: &HeaderMap) -> bool {
    const USUAL: [&str; 3] =
        ["application/json, text/event-stream", "text/event-stream, application/json", "*/*"];
    let mut values = headers.get_all(ACCEPT).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => USUAL.iter().any(|usual| value == usual),
        _ => false,
    }
}

/// Whether the agent accepts that media type. Without an Accept header it accepts everything.
fn accepts(headers: &HeaderMap, kind: &str, sub: &str) -> bool {
    if !headers.contains_key(ACCEPT) {
        return true;
    }
    headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|range| matches(range, kind, sub))
}

fn matches(range: &str, kind: &str, sub: &str) -> bool {
    let mut parts = range.split(';');
    let Some((k, s)) = parts.next().and_then(|essence| essence.trim().split_once('/')) else {
        return false;
    };
    let refused = parts.any(|parameter| {
        let quality = parameter.trim().strip_prefix("q=");
        quality.and_then(|q| q.parse::<f32>().ok()).is_some_and(|q| q <= 0.0)
    });
    let fits = |pattern: &str, word: &str| pattern == "*" || pattern.eq_ignore_ascii_case(word);
    !refused && fits(k, kind) && fits(s, sub)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn tokens() {
        type Token<'a> = Result<Option<&'a str>, ()>;
        let cases: &[(&[(&str, &str)], Token<'_>)] = &[
            (&[], Ok(None)),
            (&[("authorization", "Bearer abc")], Ok(Some("abc"))),
            (&[("authorization", "bearer  abc ")], Ok(Some("abc"))),
            (&[("authorization", "Basic abc")], Err(())),
            (&[("authorization", "Bearer")], Err(())),
            (&[("authorization", "Bearer ")], Err(())),
            (&[("authorization", "")], Err(())),
            (&[("authorization", "Bearer a"), ("authorization", "Bearer a")], Err(())),
        ];
        for (pairs, expected) in cases {
            assert_eq!(bearer(&headers(pairs)), *expected, "{pairs:?}");
        }
    }

    #[test]
    fn heads_of_posts() {
        const BOTH: (&str, &str) = ("accept", "application/json, text/event-stream");
        const JSON: (&str, &str) = ("content-type", "application/json");
        let cases: &[(&[(&str, &str)], u16)] = &[
            (&[JSON, BOTH], 200),
            (&[("content-type", "Application/JSON; charset=utf-8"), BOTH], 200),
            (&[JSON], 200),
            (&[JSON, ("accept", "*/*")], 200),
            (&[JSON, ("accept", "application/*"), ("accept", "text/*;q=0.1")], 200),
            (&[JSON, ("accept", "application/json")], 406),
            (&[JSON, ("accept", "text/event-stream")], 406),
            (&[JSON, ("accept", "application/json, text/event-stream;q=0")], 406),
            (&[JSON, ("accept", "text/html")], 406),
            (&[BOTH], 415),
            (&[("content-type", "text/plain"), BOTH], 415),
            (&[("content-type", "application/json-seq"), BOTH], 415),
            (&[("content-type", "application/x-www-form-urlencoded"), BOTH], 415),
            (&[JSON, JSON, BOTH], 415),
            (&[JSON, BOTH, ("mcp-protocol-version", "2025-11-25")], 200),
            (&[JSON, BOTH, ("mcp-protocol-version", "2024-11-05")], 200),
            (&[JSON, BOTH, ("mcp-protocol-version", "1999-01-01")], 400),
            (
                &[
                    JSON,
                    BOTH,
                    ("mcp-protocol-version", "2025-11-25"),
                    ("mcp-protocol-version", "2025-11-25"),
                ],
                400,
            ),
            (&[JSON, BOTH, ("mcp-name", "a"), ("mcp-name", "b")], 400),
            (&[JSON, BOTH, ("mcp-param-x", "a"), ("mcp-param-x", "b")], 400),
        ];
        for (pairs, status) in cases {
            let headers = headers(pairs);
            let judged = Head::of_post(&headers).and_then(|head| head.has_handshake());
            let got = judged.map_or_else(|r| r.status().as_u16(), |()| 200);
            assert_eq!(got, *status, "{pairs:?}");
        }
    }
}
