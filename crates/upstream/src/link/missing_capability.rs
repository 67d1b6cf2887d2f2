//! Error `-32021`: a call that cannot be done, because its server asks for something that the
//! client has not declared.
//!
//! An older server is told that nobody can answer, as an older client would tell it, and may do
//! without. Only a call that then fails is answered with `-32021`: it was needed.

use bytes::Bytes;
use toolgate_json::{peek, text};
use toolgate_mcp::{Payload, Request, code, method, write};

use super::agent::Agent;
use crate::event_buffer::Outlet;

/// How much of what the server said is repeated.
const MAX_WORDS: usize = 500;

/// What may be asked, and the capability of a client that can answer.
const ASKED: [(&str, &str); 3] = [
    (method::ELICITATION_CREATE, "elicitation"),
    (method::SAMPLING_CREATE_MESSAGE, "sampling"),
    (method::ROOTS_LIST, "roots"),
];

/// The capabilities, raw JSON, that a question of a server takes and the client of `session` has
/// not declared; none if it has, or if nobody knows which those are.
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
                // Whoever names no kind means forms.
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

/// The answer to the request `id` if its server failed after it had asked in vain.
pub(crate) fn lacking(outlet: &Outlet, id: &str, payload: Payload<'_>) -> Option<Bytes> {
    let required = outlet.lacks()?;
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
        "the server asks for what this request does not declare, {required}, and says: {}",
        words.get(..end).unwrap_or_default()
    );
    let data = format!(r#"{{"requiredCapabilities":{required}}}"#);
    Some(write::error(Some(id), code::MISSING_CAPABILITY, &why, Some(&data)))
}

fn first_text(content: &str) -> Option<&str> {
    let first = toolgate_json::items(content).ok().flatten()?.into_iter().next()?;
    peek(first, &["text"]).ok().flatten()
}

/// The answer to a question of a server that the client of a standing session cannot be asked, in
/// the call that is answered in `outlet`; none if it can, or if the session is not a standing one.
pub(crate) fn answer_at_once(
    session: &dyn Agent,
    request: &Request<'_>,
    outlet: Option<&Outlet>,
) -> Option<Bytes> {
    session.is_standing().then_some(())?;
    if request.method == method::PING {
        return Some(write::result(request.id, "{}"));
    }
    let lacks = missing(session, request);
    let why = match (lacks, outlet) {
        (None, Some(_)) if is_asked(&request.method) => return None,
        (None, None) if is_asked(&request.method) => {
            "the client speaks protocol 2026-07-28 and can be asked during a call only"
        }
        _ => "the client cannot be asked this",
    };
    if let (Some(lacks), Some(outlet)) = (lacks, outlet) {
        outlet.mark_lacking(lacks);
    }
    Some(write::error(Some(request.id), code::METHOD_NOT_FOUND, why, None))
}

fn is_asked(method: &str) -> bool {
    ASKED.iter().any(|(asked, _)| method == *asked)
}

/// Whether whoever is behind an agent session has said that it can answer this.
pub(crate) fn can_answer(session: &dyn Agent, method: &str) -> bool {
    let opening = String::from_utf8_lossy(session.opening());
    let asked = ASKED.iter().find(|(asked, _)| method == *asked);
    asked.is_some_and(|(_, capability)| {
        matches!(peek(&opening, &["capabilities", capability]), Ok(Some(_)))
    })
}
