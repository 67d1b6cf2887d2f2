//! The wire format of a session socket: each text frame is one JSON-RPC object.
//!
//! Invariant: `params` and payloads are kept as raw bytes. Tested by the table below; how the
//! machine answers is tested in `machine/tests/`.

use std::borrow::Cow;

use bytes::Bytes;
use toolgate_json::object::{Member, members};
use toolgate_json::{quote, text};
use toolgate_mcp::{code, write};

use crate::error::FrameError;

/// A message of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame<'a> {
    /// Expects a response.
    Request {
        /// The raw id: a string, an integer or `null`.
        id: &'a str,
        /// The method.
        method: Cow<'a, str>,
        /// The raw params, if present.
        params: Option<&'a str>,
    },
    /// Expects no response.
    Notification {
        /// The method.
        method: Cow<'a, str>,
        /// The raw params, if present.
        params: Option<&'a str>,
    },
    /// A response.
    Response {
        /// The raw id.
        id: &'a str,
        /// The raw result, or the raw error.
        payload: Result<&'a str, &'a str>,
    },
}

impl<'a> Frame<'a> {
    /// Parses a frame.
    pub fn parse(json: &'a str) -> Result<Self, FrameError> {
        let members = members(json).map_err(|error| without_values(&error))?;
        let one = |key: &'static str| one(&members, key);
        match one("jsonrpc")? {
            Some(version) if text(version).is_some_and(|version| version == "2.0") => {}
            _ => return Err(FrameError::Version),
        }
        let id = one("id")?;
        if let Some(id) = id
            && !is_id(id)
        {
            return Err(FrameError::Id);
        }
        let params = one("params")?.filter(|params| *params != "null");
        match (one("method")?, one("result")?, one("error")?) {
            (Some(method), None, None) => {
                let method = text(method).ok_or(FrameError::Method)?;
                Ok(match id {
                    Some(id) => Self::Request { id, method, params },
                    None => Self::Notification { method, params },
                })
            }
            (None, Some(_), Some(_)) => Err(FrameError::ResultAndError),
            (None, None, None) => Err(FrameError::Empty),
            (Some(_), ..) => Err(FrameError::MethodAndResult),
            (None, result, error) => {
                let id = id.ok_or(FrameError::MissingId)?;
                let payload = match (result, error) {
                    (Some(result), _) => Ok(result),
                    (None, error) => Err(error.unwrap_or("null")),
                };
                Ok(Self::Response { id, payload })
            }
        }
    }
}

/// The message of serde_json without values, which must not be in messages or logs.
fn without_values(error: &serde_json::Error) -> FrameError {
    if error.is_data() { FrameError::NotAnObject } else { FrameError::Json(error.to_string()) }
}

fn one<'a>(members: &[Member<'a>], key: &'static str) -> Result<Option<&'a str>, FrameError> {
    let mut found = members.iter().filter(|member| member.is(key));
    let first = found.next().map(|member| member.value);
    match found.next() {
        None => Ok(first),
        Some(_) => Err(FrameError::DuplicateKey(key)),
    }
}

fn is_id(raw: &str) -> bool {
    match raw.as_bytes().first() {
        Some(b'"') => text(raw).is_some(),
        Some(b'-' | b'0'..=b'9') => !raw.contains(['.', 'e', 'E']),
        _ => raw == "null",
    }
}

/// The response to a frame that cannot be parsed.
pub(crate) fn parse_error(what: &FrameError) -> Bytes {
    write::error(None, code::PARSE_ERROR, &format!("parse error: {what}"), None)
}

/// The frame that carries a call.
pub(crate) fn tool_call(wire: &str, name: &str, arguments: &str) -> Bytes {
    let params = format!(r#"{{"name":{},"arguments":{arguments}}}"#, quote(name));
    write::request(quote(wire).as_str(), "tool.call", Some(&params))
}

/// Asks the client to stop working on a call. The id is derived from the id of the call, which is
/// cancelled at most once.
pub(crate) fn tool_cancel(wire: &str, reason: &str) -> Bytes {
    let params = format!(r#"{{"id":{},"reason":{}}}"#, quote(wire), quote(reason));
    let id = quote(&format!("{OWN_CANCEL}{wire}"));
    write::request(id.as_str(), "tool.cancel", Some(&params))
}

/// Asks the program to exit.
pub(crate) fn session_shutdown(number: u64, reason: &str, grace_ms: u128) -> Bytes {
    let params = format!(r#"{{"reason":{},"grace_ms":{grace_ms}}}"#, quote(reason));
    let id = quote(&format!("{OWN_SHUTDOWN}{number}"));
    write::request(id.as_str(), "session.shutdown", Some(&params))
}

/// Whether a response belongs to a request that expects none.
pub(crate) fn is_unawaited(id: &str) -> bool {
    id.starts_with(OWN_CANCEL) || id.starts_with(OWN_SHUTDOWN)
}

const OWN_CANCEL: &str = "cancel-";
const OWN_SHUTDOWN: &str = "shutdown-";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_kinds_are_distinguished() {
        let cases = [
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, "request 1 ping -"),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, "request null ping -"),
            (r#"{"jsonrpc":"2.0","id":"а","method":"p","params":null}"#, "request \"а\" p -"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"p","params":[1],"x":{}}"#, "request 1 p [1]"),
            (
                r#" {"jsonrpc":"2.0","method":"p","params":{"a":1e999}} "#,
                "notification p {\"a\":1e999}",
            ),
            (r#"{"jsonrpc":"2.0","id":"1","result":null}"#, "result \"1\" null"),
            (r#"{"jsonrpc":"2.0","id":"1","error":{"code":1}}"#, "error \"1\" {\"code\":1}"),
            (r#"{"jsonrpc":"2.0","id":null,"error":{}}"#, "error null {}"),
            (r#"{"jsonrpc":"2.0","result":1}"#, "refused a response needs the `id` of its request"),
            (r#"{"jsonrpc":"2.0","id":1}"#, "refused has none of `method`, `result` and `error`"),
            (
                r#"{"jsonrpc":"2.0","id":1,"result":1,"error":1}"#,
                "refused has both `result` and `error`; send one of them",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"p","result":1}"#,
                "refused has `method` beside `result` or `error`; send one of them",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1.5,"method":"p"}"#,
                "refused `id` must be a string, an integer or null",
            ),
            (
                r#"{"jsonrpc":"2.0","id":{},"method":"p"}"#,
                "refused `id` must be a string, an integer or null",
            ),
            (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, "refused `method` must be a string"),
            (r#"{"jsonrpc":"1.0","id":1,"method":"p"}"#, "refused `jsonrpc` must be \"2.0\""),
            (r#"{"id":1,"method":"p"}"#, "refused `jsonrpc` must be \"2.0\""),
            (
                r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"p"}"#,
                "refused the key `id` occurs twice; send it once",
            ),
        ];
        for (json, expected) in cases {
            let params = |params: Option<&str>| params.unwrap_or("-").to_owned();
            let shown = match Frame::parse(json) {
                Ok(Frame::Request { id, method, params: p }) => {
                    format!("request {id} {method} {}", params(p))
                }
                Ok(Frame::Notification { method, params: p }) => {
                    format!("notification {method} {}", params(p))
                }
                Ok(Frame::Response { id, payload: Ok(result) }) => format!("result {id} {result}"),
                Ok(Frame::Response { id, payload: Err(error) }) => format!("error {id} {error}"),
                Err(what) => format!("refused {what}"),
            };
            assert_eq!(shown, expected, "{json}");
        }
        for json in ["", "x", "1", "[]", "[{}]", "{", r#"{"jsonrpc":"2.0","id":1,"method":"p"}x"#] {
            assert!(Frame::parse(json).is_err(), "{json}");
        }
    }

    #[test]
    fn our_own_frames() {
        assert_eq!(
            tool_call("mgr-1-0a", "Найти", r#"{"Имя":1.0}"#),
            r#"{"jsonrpc":"2.0","id":"mgr-1-0a","method":"tool.call","params":{"name":"Найти","arguments":{"Имя":1.0}}}"#
        );
        assert_eq!(
            tool_cancel("mgr-1-0a", "timeout"),
            r#"{"jsonrpc":"2.0","id":"cancel-mgr-1-0a","method":"tool.cancel","params":{"id":"mgr-1-0a","reason":"timeout"}}"#
        );
        assert_eq!(
            session_shutdown(3, "idle", 5000),
            r#"{"jsonrpc":"2.0","id":"shutdown-3","method":"session.shutdown","params":{"reason":"idle","grace_ms":5000}}"#
        );
        assert_eq!(
            parse_error(&FrameError::Id),
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error: `id` must be a string, an integer or null"}}"#
        );
    }
}
