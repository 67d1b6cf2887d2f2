//! The envelope of a JSON-RPC message, borrowed from the body it came in.
//!
//! [`parse_agent`] accepts only messages that every parser reads alike, so that no server reads
//! something that the policy did not see. [`parse_server`] checks the envelope
//! alone and skips over the payload once, whatever its size.
//!
//! Invariant: no value is read into a type of its own and written out again; `raw`, `id`, `params`
//! and payloads are slices of the body.
//! Invariant: no input makes this recurse. Tested by `envelope/tests.rs`, `tests/` and
//! `fuzz/fuzz_targets/envelope.rs`.

mod members;
mod owned;
mod skim;

use std::borrow::Cow;
use std::cell::Cell;

use toolgate_json::edit::offset;
use toolgate_json::peek::LARGE;
use toolgate_json::strict::{self, Fault};
use toolgate_json::{peek, text, too_deep};

pub(crate) use self::members::is_id;
use self::members::{Elements, Members};
pub use self::owned::OwnedRequest;
use crate::limits::Limits;
use crate::refusal::Refusal;
use crate::{code, method};

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message<'a> {
    /// Expects an answer.
    Request(Request<'a>),
    /// Expects no answer.
    Notification(Notification<'a>),
    /// Is an answer.
    Response(Response<'a>),
}

/// A message with a method and an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request<'a> {
    /// The whole message.
    pub raw: &'a str,
    /// The id as it is spelled: a JSON string or number.
    pub id: &'a str,
    /// The method's name, unescaped.
    pub method: Cow<'a, str>,
    /// The raw `params`.
    pub params: Option<&'a str>,
}

/// A message with a method and no id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification<'a> {
    /// The whole message.
    pub raw: &'a str,
    /// The method's name, unescaped.
    pub method: Cow<'a, str>,
    /// The raw `params`.
    pub params: Option<&'a str>,
}

/// A message with a result or an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response<'a> {
    /// The whole message.
    pub raw: &'a str,
    /// The id as it is spelled; only a server's error may have none, or null.
    pub id: Option<&'a str>,
    /// The result or the error.
    pub payload: Payload<'a>,
    /// Whether the result has `isError: true`, if that was found while the message was parsed.
    pub is_error: Option<bool>,
}

/// The raw answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payload<'a> {
    /// The value of `result`.
    Result(&'a str),
    /// The value of `error`.
    Error(&'a str),
}

/// The content of one body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Incoming<'a> {
    /// A single message.
    One(Message<'a>),
    /// A batch (2025-03-26), each message validated by itself; never empty.
    Batch(Vec<Result<Message<'a>, Refusal>>),
}

/// Parses a body of an agent, strictly.
pub fn parse_agent<'a>(body: &'a [u8], limits: &Limits) -> Result<Incoming<'a>, Refusal> {
    Source { body: utf8(body)?, limits, sender: Sender::Agent, lacks_id: Cell::new(false) }.read()
}

/// Parses a body of a server: only the envelope is validated.
pub fn parse_server<'a>(body: &'a [u8], limits: &Limits) -> Result<Incoming<'a>, Refusal> {
    Source { body: utf8(body)?, limits, sender: Sender::Server, lacks_id: Cell::new(false) }.read()
}

/// Keys of the envelope that no other key may imitate.
const ENVELOPE: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

fn utf8(body: &[u8]) -> Result<&str, Refusal> {
    let text = simdutf8::basic::from_utf8(body).map_err(|_| {
        // The quick check does not find the position.
        let at = std::str::from_utf8(body).map_or_else(|error| error.valid_up_to(), str::len);
        let message = format!("not UTF-8 at byte {at}; send JSON as UTF-8");
        Refusal::new(code::PARSE_ERROR, message)
    })?;
    if text.starts_with('\u{feff}') {
        let message = "a byte order mark precedes the JSON; leave it out";
        return Err(Refusal::new(code::PARSE_ERROR, message));
    }
    Ok(text)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sender {
    Agent,
    Server,
}

/// A body and how it is parsed.
struct Source<'a, 'l> {
    body: &'a str,
    limits: &'l Limits,
    sender: Sender,
    /// A message was a request without an id.
    lacks_id: Cell<bool>,
}

impl<'a> Source<'a, '_> {
    fn read(&self) -> Result<Incoming<'a>, Refusal> {
        let raw = self.body.trim_matches([' ', '\t', '\n', '\r']);
        match raw.as_bytes().first() {
            Some(b'{') => self.message(self.body, raw, self.limits.depth).map(Incoming::One),
            Some(b'[') => self.batch().map(Incoming::Batch),
            _ => Err(match serde_json::from_str::<serde::de::IgnoredAny>(self.body) {
                Ok(_) => Refusal::new(code::INVALID_REQUEST, "a message must be a JSON object"),
                Err(error) => Refusal::syntax(&error),
            }),
        }
    }

    fn batch(&self) -> Result<Vec<Result<Message<'a>, Refusal>>, Refusal> {
        let refuse = |message: String| Err(Refusal::new(code::INVALID_REQUEST, message));
        let max = self.limits.batch;
        let elements = match Elements::read(self.body, max) {
            Ok(Some(elements)) if elements.is_empty() => {
                return refuse("a batch must hold at least one message".to_owned());
            }
            Ok(Some(elements)) => elements,
            Ok(None) => return refuse(format!("a batch may hold {max} messages; send fewer")),
            Err(error) => return Err(Refusal::syntax(&error)),
        };
        let depth = self.limits.depth.saturating_sub(1);
        let messages = elements.into_iter().map(|raw| self.element(raw, depth)).collect();
        // Its sender expects an effect and no answer; the whole batch is rejected.
        if self.lacks_id.get() {
            return refuse(format!("{LACKS_ID}; the whole batch is rejected"));
        }
        Ok(messages)
    }

    fn element(&self, raw: &'a str, depth: usize) -> Result<Message<'a>, Refusal> {
        if raw.starts_with('{') {
            return self.message(raw, raw, depth);
        }
        let what = "each message of a batch must be a JSON object".to_owned();
        Err(self.refusal(code::INVALID_REQUEST, &Fault { at: raw, what }))
    }

    /// Reads the object `raw` out of `json`, which is either the same or, so that line and column in
    /// an error are the sender's, the whole body.
    fn message(&self, json: &'a str, raw: &'a str, depth: usize) -> Result<Message<'a>, Refusal> {
        let skims = self.sender == Sender::Server && json.len() >= LARGE;
        let members = match skims.then(|| skim::skim(json)).flatten() {
            Some(members) => members,
            None => Members::read(json).map_err(|error| Refusal::syntax(&error))?,
        };
        self.judge(raw, &members, depth)
            .map_err(|refusal| Refusal { id: members.request_id().map(str::to_owned), ..refusal })
    }

    fn judge(
        &self,
        raw: &'a str,
        members: &Members<'a>,
        depth: usize,
    ) -> Result<Message<'a>, Refusal> {
        let invalid = |fault: Fault<'a>| self.refusal(code::INVALID_REQUEST, &fault);
        if let Some(fault) = members.fault() {
            return Err(self.refusal(code::INVALID_REQUEST, fault));
        }
        if self.sender == Sender::Agent
            && let Some(at) = lacks_id(members)
        {
            self.lacks_id.set(true);
            let null = if members.id.is_some() { ", a string or a number, not null" } else { "" };
            return Err(invalid(Fault { at, what: format!("{LACKS_ID}{null}") }));
        }
        let message = classify(raw, members, self.sender).map_err(invalid)?;
        if self.sender == Sender::Agent {
            if let (Message::Request(request), Some(at)) = (&message, members.method)
                && method::is_notification(&request.method)
            {
                let what = "a notification has no `id`; leave it out".to_owned();
                return Err(invalid(Fault { at, what }));
            }
            if let Some(at) = too_deep(raw, depth) {
                let what = format!("nests deeper than {} levels", self.limits.depth);
                return Err(invalid(Fault { at, what }));
            }
            if let Message::Request(Request { method, .. })
            | Message::Notification(Notification { method, .. }) = &message
            {
                self.strict(method, members)?;
            }
        }
        Ok(message)
    }

    /// Checks that need the method.
    fn strict(&self, method: &str, members: &Members<'a>) -> Result<(), Refusal> {
        if let (Some(what), Some(at)) = (method::fault(method), members.method) {
            return Err(self.refusal(code::METHOD_NOT_FOUND, &Fault { at, what }));
        }
        let Some(keys) = method::strict_keys(method) else { return Ok(()) };
        if let Some(params) = members.params {
            let invalid = |fault: Fault<'_>| self.refusal(code::INVALID_PARAMS, &fault);
            strict::check(params, keys).map_err(invalid)?;
            if let Some((part, keys)) = method::strict_part(method)
                && let Some(part) = peek(params, &[part])?
            {
                strict::check(part, keys).map_err(invalid)?;
            }
        }
        for value in members.others() {
            strict::check(value, &[])
                .map_err(|fault| self.refusal(code::INVALID_REQUEST, &fault))?;
        }
        Ok(())
    }

    fn refusal(&self, code: i32, fault: &Fault<'_>) -> Refusal {
        let at = offset(self.body, fault.at).unwrap_or_default();
        Refusal::new(code, format!("{} (at byte {at})", fault.what))
    }
}

const LACKS_ID: &str =
    "a request needs an `id`; only methods that begin with `notifications/` have none";

/// The method of a message that is not a notification and whose id is missing or null.
fn lacks_id<'a>(members: &Members<'a>) -> Option<&'a str> {
    let at = members.method.filter(|_| matches!(members.id, None | Some("null")))?;
    let name = text(at)?;
    (!method::is_notification(&name)).then_some(at)
}

/// Distinguishes request, notification and response by their members.
fn classify<'a>(
    raw: &'a str,
    members: &Members<'a>,
    sender: Sender,
) -> Result<Message<'a>, Fault<'a>> {
    let fault = |at: &'a str, what: &str| Fault { at, what: what.to_owned() };
    match members.jsonrpc {
        Some(version) if text(version).is_some_and(|version| version == "2.0") => {}
        Some(version) => return Err(fault(version, "`jsonrpc` must be \"2.0\"")),
        None => return Err(fault(raw, "`jsonrpc` is missing; it must be \"2.0\"")),
    }
    let id = id(members.id)?;
    match (members.method, members.result, members.error) {
        (Some(name), None, None) => {
            let name = text(name).ok_or_else(|| fault(name, "`method` must be a string"))?;
            let params = params(members.params, sender)?;
            match id {
                Id::Token(id) => Ok(Message::Request(Request { raw, id, method: name, params })),
                Id::Missing => {
                    Ok(Message::Notification(Notification { raw, method: name, params }))
                }
                Id::Null(at) => Err(fault(at, "`id` must be a string or a number, not null")),
            }
        }
        (None, Some(result), None) => match id {
            Id::Token(id) => Ok(Message::Response(Response {
                raw,
                id: Some(id),
                payload: Payload::Result(result),
                is_error: members.is_error,
            })),
            Id::Missing | Id::Null(_) => Err(fault(raw, "a `result` needs the `id` it answers")),
        },
        (None, None, Some(error)) => match id {
            Id::Missing | Id::Null(_) if sender == Sender::Agent => {
                Err(fault(raw, "an `error` needs the `id` it answers"))
            }
            Id::Token(id) => Ok(Message::Response(Response {
                raw,
                id: Some(id),
                payload: Payload::Error(error),
                is_error: None,
            })),
            Id::Missing | Id::Null(_) => Ok(Message::Response(Response {
                raw,
                id: None,
                payload: Payload::Error(error),
                is_error: None,
            })),
        },
        (None, None, None) => Err(fault(raw, "has none of `method`, `result` and `error`")),
        (Some(at), ..) => {
            Err(fault(at, "has `method` beside `result` or `error`; send one of them"))
        }
        (None, Some(at), Some(_)) => {
            Err(fault(at, "has both `result` and `error`; send one of them"))
        }
    }
}

enum Id<'a> {
    Token(&'a str),
    Null(&'a str),
    Missing,
}

fn id(raw: Option<&str>) -> Result<Id<'_>, Fault<'_>> {
    match raw {
        None => Ok(Id::Missing),
        Some(raw @ "null") => Ok(Id::Null(raw)),
        Some(raw) if members::is_id(raw) => Ok(Id::Token(raw)),
        Some(raw) => Err(Fault { at: raw, what: "`id` must be a string or a number".to_owned() }),
    }
}

/// Some servers send `"params": null`.
fn params(raw: Option<&str>, sender: Sender) -> Result<Option<&str>, Fault<'_>> {
    match raw {
        Some("null") if sender == Sender::Server => Ok(None),
        Some(raw) if !raw.starts_with(['{', '[']) => {
            Err(Fault { at: raw, what: "`params` must be an object or an array".to_owned() })
        }
        other => Ok(other),
    }
}

#[cfg(test)]
mod tests;
