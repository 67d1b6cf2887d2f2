//! Translates messages of sessionful servers for clients of 2026-07-28.
//!
//! Invariant: only the id of an answer, the fields that 2026-07-28 requires and the error codes that it
//! has changed are edited.

use bytes::Bytes;
use toolgate_admission::call_request::CallRequest;
use toolgate_json::{Edit, members, peek, text};
use toolgate_mcp::{
    Incoming, Limits, Message, Notification, Payload, Response, code, method, parse_server,
};

use toolgate_upstream::event_buffer::Rejection;
use toolgate_upstream::log_level::Level;

/// How the messages of one call are translated.
#[derive(Debug)]
pub(super) enum Shape {
    /// Messages of toolgate itself, unchanged.
    Ours,
    /// Messages of a server.
    Passed(Passed),
}

#[derive(Debug)]
pub(super) struct Passed {
    /// The id as the client spelled it.
    id: Box<str>,
    /// Whether the answer needs caching members.
    cached: bool,
    /// The log level of the client.
    level: Option<Level>,
    /// The progress token of the newest round, raw JSON, once the call has several.
    newest_token: Option<NewestToken>,
}

/// The progress token of the newest round of a call.
#[derive(Debug)]
enum NewestToken {
    /// The round sent this one, raw JSON.
    Sent(Box<str>),
    /// The round sent none, so its client expects no progress.
    Missing,
}

/// Methods whose answers have caching members.
const CACHED: [&str; 5] = [
    method::TOOLS_LIST,
    method::PROMPTS_LIST,
    method::RESOURCES_LIST,
    method::RESOURCES_TEMPLATES_LIST,
    method::RESOURCES_READ,
];

/// The caching members: answers of sessionful servers are not cached, and belong to one grant.
const CACHING: &str = r#""ttlMs":0,"cacheScope":"private""#;

impl Shape {
    pub(super) fn passed(request: &CallRequest<'_>, level: Option<Level>) -> Self {
        let cached = CACHED.contains(&request.method);
        Self::Passed(Passed { id: request.id.into(), cached, level, newest_token: None })
    }

    /// The id as the client spelled it.
    pub(super) fn id(&self) -> &str {
        match self {
            Self::Ours => "null",
            Self::Passed(passed) => &passed.id,
        }
    }

    /// Continues with the next round: answer and progress belong to its request.
    pub(super) fn next_round(&mut self, request: &CallRequest<'_>) {
        if let Self::Passed(passed) = self {
            passed.id = request.id.into();
            let token = request.progress_token.map(|token| NewestToken::Sent(token.into()));
            passed.newest_token = Some(token.unwrap_or(NewestToken::Missing));
        }
    }

    /// The message for the client, and whether it rejects the request; `None` if it is not for the
    /// client. Messages of a sessionless server need no translation.
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
                let shown =
                    passed.wants(&notification).then(|| passed.progress(&notification, body));
                shown.flatten().map(|body| (body, None))
            }
            // Requests of servers are handled elsewhere.
            _ => None,
        }
    }
}

impl Passed {
    fn wants(&self, notification: &Notification<'_>) -> bool {
        match notification.method.as_ref() {
            method::MESSAGE => {
                let sent = notification
                    .params
                    .and_then(|params| text(peek(params, &["level"]).ok()??))
                    .and_then(|word| Level::parse(&word));
                match (self.level, sent) {
                    (None, _) => false,
                    (Some(wanted), Some(sent)) => sent >= wanted,
                    (Some(_), None) => true,
                }
            }
            // The client does not know the cancelled request of the server.
            method::ELICITATION_COMPLETE | method::CANCELLED => false,
            _ => true,
        }
    }

    /// The notification, with the progress token of the newest round if it reports progress.
    fn progress(&self, notification: &Notification<'_>, body: &Bytes) -> Option<Bytes> {
        if notification.method != method::PROGRESS {
            return Some(body.clone());
        }
        match &self.newest_token {
            None => Some(body.clone()),
            Some(NewestToken::Missing) => None,
            Some(NewestToken::Sent(token)) => {
                let old = peek(notification.params?, &["progressToken"]).ok()??;
                Some(Edit::new(notification.raw).replace(old, &**token).ok()?.finish())
            }
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

    /// Adds `resultType` and the caching members.
    fn complete<'a>(&self, edit: Edit<'a>, result: &'a str) -> Option<Edit<'a>> {
        let [kind, ttl] = members(result, ["resultType", "ttlMs"]).ok()?;
        let mut added = Vec::new();
        if kind.is_none() {
            added.push(r#""resultType":"complete""#);
        }
        if self.cached && ttl.is_none() {
            added.push(CACHING);
        }
        if added.is_empty() || !result.starts_with('{') {
            return Some(edit);
        }
        edit.insert_raw(result, &added.join(",")).ok()
    }
}

/// Translates error codes, and finds errors that reject the request itself.
fn renumber<'a>(edit: Edit<'a>, error: &'a str) -> (Option<Edit<'a>>, Option<Rejection>) {
    let raw = peek(error, &["code"]).ok().flatten();
    let number = raw.and_then(|raw| raw.parse().ok());
    let (new, rejection) = match number {
        Some(code::RESOURCE_NOT_FOUND) => (Some(code::INVALID_PARAMS), None),
        // 2026-07-28 does not define this code.
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
    fn answers_get_the_members_of_2026_07_28() {
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
