//! Error `-32021`: a call failed because its server requires a capability that the client did not
//! declare.
//!
//! A sessionful server receives the answer that a client without the capability would give, and may
//! continue without it. Only if the call then fails is it answered with `-32021`.

use bytes::Bytes;
use toolgate_json::{peek, text};
use toolgate_mcp::{Payload, Request, code, method, write};

use super::agent::Agent;
use crate::event_buffer::EventBuffer;

/// How much of the server's error text is repeated.
const MAX_WORDS: usize = 500;

/// Requests of servers, and the client capability that they require.
const ASKED: [(&str, &str); 3] = [
    (method::ELICITATION_CREATE, "elicitation"),
    (method::SAMPLING_CREATE_MESSAGE, "sampling"),
    (method::ROOTS_LIST, "roots"),
];

/// Whether the client of an agent session declared that its user can fill in forms.
pub(crate) fn can_fill_forms(session: &dyn Agent) -> bool {
    let form =
        Request { raw: "", id: "0", method: method::ELICITATION_CREATE.into(), params: Some("{}") };
    missing(session, &form).is_none()
}

/// The capability (raw JSON) that a request of a server requires and the client of `session` did
/// not declare; `None` if none is missing.
fn missing(session: &dyn Agent, request: &Request<'_>) -> Option<&'static str> {
    let opening = String::from_utf8_lossy(session.opening());
    let has = |path: &[&str]| {
        let path: Vec<_> = std::iter::once("capabilities").chain(path.iter().copied()).collect();
        matches!(peek(&opening, &path), Ok(Some(_)))
    };
    let part = |key| request.params.and_then(|params| peek(params, &[key]).ok().flatten());
    match request.method.as_ref() {
        method::ELICITATION_CREATE => {
            let by_url = part("mode").and_then(text).as_deref() == Some("url");
            match (by_url, has(&["elicitation", "url"])) {
                (true, true) => None,
                (true, false) => Some(r#"{"elicitation":{"url":{}}}"#),
                // Without a mode, the request means forms.
                (false, false) if has(&["elicitation"]) => None,
                (false, true) if has(&["elicitation", "form"]) => None,
                (false, false) => Some(r#"{"elicitation":{}}"#),
                (false, true) => Some(r#"{"elicitation":{"form":{}}}"#),
            }
        }
        method::SAMPLING_CREATE_MESSAGE => {
            match (has(&["sampling"]), part("tools").is_some(), has(&["sampling", "tools"])) {
                (true, false, _) | (true, true, true) => None,
                (_, true, _) => Some(r#"{"sampling":{"tools":{}}}"#),
                (false, false, _) => Some(r#"{"sampling":{}}"#),
            }
        }
        method::ROOTS_LIST => (!has(&["roots"])).then_some(r#"{"roots":{}}"#),
        _ => None,
    }
}

/// The answer `-32021` to the request `id`, if its server failed after a rejected request.
pub(crate) fn missing_capability_answer(
    buffer: &EventBuffer,
    id: &str,
    payload: Payload<'_>,
) -> Option<Bytes> {
    let required = buffer.missing_capability()?;
    let words = match payload {
        Payload::Error(error) => peek(error, &["message"]).ok().flatten(),
        Payload::Result(result) => {
            let failed = matches!(peek(result, &["isError"]), Ok(Some("true")));
            failed.then_some(())?;
            peek(result, &["content"]).ok().flatten().and_then(first_text)
        }
    };
    let words = words.and_then(text).unwrap_or_default();
    let end = words.floor_char_boundary(MAX_WORDS);
    let why = format!(
        "the server requires a capability that this request does not declare, {required}; its error: {}",
        words.get(..end).unwrap_or_default()
    );
    let data = format!(r#"{{"requiredCapabilities":{required}}}"#);
    Some(write::error(Some(id), code::MISSING_CAPABILITY, &why, Some(&data)))
}

fn first_text(content: &str) -> Option<&str> {
    let first = toolgate_json::items(content).ok().flatten()?.into_iter().next()?;
    peek(first, &["text"]).ok().flatten()
}

/// The immediate answer to a request of a server that the client of a standing session cannot
/// receive; `None` if it can, or if the session is not a standing one. `buffer` belongs to the call
/// in progress.
pub(crate) fn answer_at_once(
    session: &dyn Agent,
    request: &Request<'_>,
    buffer: Option<&EventBuffer>,
) -> Option<Bytes> {
    session.is_implicit().then_some(())?;
    if request.method == method::PING {
        return Some(write::result(request.id, "{}"));
    }
    let missing_capability = missing(session, request);
    let why = match (missing_capability, buffer) {
        (None, Some(_)) if is_asked(&request.method) => return None,
        (None, None) if is_asked(&request.method) => {
            "the client speaks protocol 2026-07-28 and can be asked only during a call"
        }
        _ => "the client does not support this request",
    };
    if let (Some(missing_capability), Some(buffer)) = (missing_capability, buffer) {
        buffer.mark_missing_capability(missing_capability);
    }
    Some(write::error(Some(request.id), code::METHOD_NOT_FOUND, why, None))
}

fn is_asked(method: &str) -> bool {
    ASKED.iter().any(|(asked, _)| method == *asked)
}

/// Whether the client of an agent session declared that it can answer this.
pub(crate) fn can_answer(session: &dyn Agent, method: &str) -> bool {
    let opening = String::from_utf8_lossy(session.opening());
    let asked = ASKED.iter().find(|(asked, _)| method == *asked);
    asked.is_some_and(|(_, capability)| {
        matches!(peek(&opening, &["capabilities", capability]), Ok(Some(_)))
    })
}
