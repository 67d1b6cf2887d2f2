//! What servers of older protocols say, as clients of 2026-07-28 know it.
//!
//! Invariant: of an answer only its id, the fields that the newer protocol demands and the codes
//! that it has changed are touched.

use bytes::Bytes;
use toolgate_admission::call_request::CallRequest;
use toolgate_json::{Edit, members, peek, text};
use toolgate_mcp::{
    Incoming, Limits, Message, Notification, Payload, Response, code, method, parse_server,
};

use toolgate_upstream::event_buffer::Rejection;
use toolgate_upstream::log_level::Level;

/// What becomes of the messages of one call.
#[derive(Debug)]
pub(super) enum Shape {
    /// They are ours, and in shape.
    Ours,
    /// They are a server's.
    Passed(Passed),
}

#[derive(Debug)]
pub(super) struct Passed {
    /// The id as the client spelled it.
    id: Box<str>,
    /// Whether the answer has to say for how long it is good.
    cached: bool,
    /// Which log messages the client wants.
    level: Option<Level>,
}

/// Whose answers say for how long they are good.
const CACHED: [&str; 5] = [
    method::TOOLS_LIST,
    method::PROMPTS_LIST,
    method::RESOURCES_LIST,
    method::RESOURCES_TEMPLATES_LIST,
    method::RESOURCES_READ,
];

/// What is said of them: nothing that a server of an older protocol says is good for longer than
/// now, and what one grant sees is not for others.
const GOOD_FOR: &str = r#""ttlMs":0,"cacheScope":"private""#;

impl Shape {
    pub(super) fn passed(request: &CallRequest<'_>, level: Option<Level>) -> Self {
        let cached = CACHED.contains(&request.method);
        Self::Passed(Passed { id: request.id.into(), cached, level })
    }

    /// The id as the client spelled it.
    pub(super) fn id(&self) -> &str {
        match self {
            Self::Ours => "null",
            Self::Passed(passed) => &passed.id,
        }
    }

    /// The answer goes out under another id.
    pub(super) fn rename(&mut self, id: &str) {
        if let Self::Passed(passed) = self {
            passed.id = id.into();
        }
    }

    /// A message as the client is to have it, and whether it rejects the request; `None` if it
    /// is not for the client.
    /// What came from a server of the same protocol (`sessionless`) is in shape.
    pub(super) fn show(
        &self,
        body: &Bytes,
        sessionless: bool,
    ) -> Option<(Bytes, Option<Rejection>)> {
        let Self::Passed(passed) = self else { return Some((body.clone(), None)) };
        match parse_server(body, &Limits::default()) {
            Ok(Incoming::One(Message::Response(response))) => {
                Some(passed.answer(&response, sessionless))
            }
            Ok(Incoming::One(Message::Notification(notification))) => {
                passed.wants(&notification).then(|| (body.clone(), None))
            }
            // Servers ask nothing in this protocol; what they ask is answered elsewhere.
            _ => None,
        }
    }
}

impl Passed {
    fn wants(&self, notification: &Notification<'_>) -> bool {
        match notification.method.as_ref() {
            method::MESSAGE => {
                let said = notification
                    .params
                    .and_then(|params| text(peek(params, &["level"]).ok()??))
                    .and_then(|word| Level::parse(&word));
                match (self.level, said) {
                    (None, _) => false,
                    (Some(wanted), Some(said)) => said >= wanted,
                    (Some(_), None) => true,
                }
            }
            // What is withdrawn is a question, which the client does not know under that id.
            method::ELICITATION_COMPLETE | method::CANCELLED => false,
            _ => true,
        }
    }

    fn answer(&self, response: &Response<'_>, sessionless: bool) -> (Bytes, Option<Rejection>) {
        let as_it_is = || (Bytes::copy_from_slice(response.raw.as_bytes()), None);
        let Some(id) = response.id else { return as_it_is() };
        let Ok(edit) = Edit::new(response.raw).replace(id, &*self.id) else { return as_it_is() };
        let (edit, rejection) = match response.payload {
            Payload::Result(_) if sessionless => (Some(edit), None),
            Payload::Result(result) => (self.complete(edit, result), None),
            Payload::Error(error) => renumber(edit, error),
        };
        edit.map_or_else(as_it_is, |edit| (edit.finish(), rejection))
    }

    /// Says that this is all, and for how long it is good.
    fn complete<'a>(&self, edit: Edit<'a>, result: &'a str) -> Option<Edit<'a>> {
        let [kind, ttl] = members(result, ["resultType", "ttlMs"]).ok()?;
        let mut said = Vec::new();
        if kind.is_none() {
            said.push(r#""resultType":"complete""#);
        }
        if self.cached && ttl.is_none() {
            said.push(GOOD_FOR);
        }
        if said.is_empty() || !result.starts_with('{') {
            return Some(edit);
        }
        edit.insert_raw(result, &said.join(",")).ok()
    }
}

/// Error codes as this protocol defines them, and the errors that reject the request itself.
fn renumber<'a>(edit: Edit<'a>, error: &'a str) -> (Option<Edit<'a>>, Option<Rejection>) {
    let raw = peek(error, &["code"]).ok().flatten();
    let number = raw.and_then(|raw| raw.parse().ok());
    let (new, rejection) = match number {
        Some(code::RESOURCE_NOT_FOUND) => (Some(code::INVALID_PARAMS), None),
        // Nobody who speaks this protocol knows what to do with it.
        Some(code::URL_ELICITATION_REQUIRED) => (Some(code::INTERNAL_ERROR), None),
        Some(code::METHOD_NOT_FOUND) => (None, Some(Rejection::UnknownMethod)),
        Some(code::HEADER_MISMATCH | code::MISSING_CAPABILITY | code::UNSUPPORTED_VERSION) => {
            (None, Some(Rejection::InvalidRequest))
        }
        _ => (None, None),
    };
    let edit = match (raw, new) {
        (Some(raw), Some(new)) => edit.replace(raw, new.to_string()).ok(),
        _ => Some(edit),
    };
    (edit, rejection)
}

#[cfg(test)]
mod tests {
    use toolgate_mcp::parse_agent;

    use super::*;

    fn shape(method: &str, level: Option<Level>) -> Shape {
        let raw = format!(r#"{{"jsonrpc":"2.0","id":"a","method":"{method}"}}"#);
        match parse_agent(raw.as_bytes(), &Limits::default()) {
            Ok(Incoming::One(Message::Request(request))) => {
                Shape::passed(&CallRequest::read(&request).unwrap(), level)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn answers_say_what_the_newer_protocol_wants_to_know() {
        let cases = [
            (
                "tools/call",
                r#""result":{"content":[],"x":1.0}"#,
                r#""result":{"resultType":"complete","content":[],"x":1.0}"#,
                None,
            ),
            (
                "tools/list",
                r#""result":{"tools":[]}"#,
                r#""result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[]}"#,
                None,
            ),
            (
                "resources/read",
                r#""result":{ }"#,
                r#""result":{"resultType":"complete","ttlMs":0,"cacheScope":"private" }"#,
                None,
            ),
            (
                "tools/call",
                r#""result":{"resultType":"task","y":2}"#,
                r#""result":{"resultType":"task","y":2}"#,
                None,
            ),
            ("x/y", r#""result":7"#, r#""result":7"#, None),
            (
                "resources/read",
                r#""error":{"code":-32002,"message":"m","data":{"uri":"a:b"}}"#,
                r#""error":{"code":-32602,"message":"m","data":{"uri":"a:b"}}"#,
                None,
            ),
            (
                "x/y",
                r#""error":{"code":-32601,"message":"m"}"#,
                r#""error":{"code":-32601,"message":"m"}"#,
                Some(Rejection::UnknownMethod),
            ),
        ];
        for (method, said, shown, rejection) in cases {
            let body = Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":17,{said}}}"#));
            let expected = format!(r#"{{"jsonrpc":"2.0","id":"a",{shown}}}"#);
            assert_eq!(
                shape(method, None).show(&body, false),
                Some((expected.into(), rejection)),
                "{said}"
            );
            let untouched = format!(r#"{{"jsonrpc":"2.0","id":"a",{said}}}"#);
            if said.contains("result") {
                assert_eq!(shape(method, None).show(&body, true), Some((untouched.into(), None)));
            }
        }
    }

    #[test]
    fn only_wanted_log_messages_pass() {
        let log = |level: &str| {
            Bytes::from(format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"{level}"}}}}"#
            ))
        };
        let cases = [
            (None, "emergency", false),
            (Some(Level::Debug), "debug", true),
            (Some(Level::Warning), "info", false),
            (Some(Level::Warning), "error", true),
        ];
        for (wanted, said, passes) in cases {
            let shown = shape("tools/call", wanted).show(&log(said), false);
            assert_eq!(shown.is_some(), passes, "{wanted:?} {said}");
        }
        let progress = Bytes::from_static(
            br#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}}"#,
        );
        assert_eq!(shape("tools/call", None).show(&progress, false), Some((progress, None)));
        let question = Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#);
        assert_eq!(shape("tools/call", None).show(&question, false), None);
    }
}
