//! Error `-32021`: a call that cannot be done, because its server asks for something that the
//! client has not declared.
//!
//! An older server is told that nobody can answer, as an older client would tell it, and may do
//! without. Only a call that then fails is answered with `-32021`: it was needed.

use bytes::Bytes;
use toolgate_mcp::{Payload, Request, code, method, peek, text, write};

use super::Client;
use crate::agent::AgentSession;
use crate::outlet::Outlet;
use crate::tasks::own_id;

/// How much of what the server said is repeated.
const MAX_WORDS: usize = 500;
/// The extension of protocol 2026-07-28 that has tasks.
const TASKS: &str = "io.modelcontextprotocol/tasks";

/// The capabilities, raw JSON, that a question of a server takes and the client of `session` has
/// not declared; none if it has, or if nobody knows which those are.
pub(super) fn missing(session: &AgentSession, request: &Request<'_>) -> Option<&'static str> {
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

/// The answer to a request about a task that its grant does not have, if the client did not declare
/// the extension for tasks. A server would miss the extension before it misses the task.
pub(super) fn undeclared_task(
    session: &AgentSession,
    client: &Client<'_>,
    request: &Request<'_>,
) -> Option<Bytes> {
    let tasks = [method::TASKS_GET, method::TASKS_UPDATE, method::TASKS_CANCEL];
    if !tasks.contains(&&*request.method)
        || matches!(peek(client.claims.capabilities, &["extensions", TASKS]), Ok(Some(_)))
    {
        return None;
    }
    let shown = peek(request.params?, &["taskId"]).ok().flatten().and_then(text)?;
    if own_id(session, &shown).is_some() {
        return None;
    }
    let why = format!("the request does not declare the extension `{TASKS}`");
    let data = format!(r#"{{"requiredCapabilities":{{"extensions":{{"{TASKS}":{{}}}}}}}}"#);
    Some(write::error(Some(request.id), code::MISSING_CAPABILITY, &why, Some(&data)))
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
    let first = toolgate_mcp::items(content).ok().flatten()?.into_iter().next()?;
    peek(first, &["text"]).ok().flatten()
}
