//! Requests about tasks from clients that did not declare the extension for tasks.

use bytes::Bytes;
use toolgate_admission::call_request::{CallRequest, RawText, Subject};
use toolgate_json::peek;
use toolgate_mcp::{code, method, write};
use toolgate_upstream::tasks::own_id;

use super::Client;
use crate::downstream::agent::AgentSession;

/// The extension of protocol 2026-07-28 that has tasks.
const TASKS: &str = "io.modelcontextprotocol/tasks";

/// The answer to a request about a task that its grant does not own, if the client did not declare the
/// extension for tasks. A server checks the extension before the task.
pub(super) fn undeclared_task(
    session: &AgentSession,
    client: &Client<'_>,
    request: &CallRequest<'_>,
) -> Option<Bytes> {
    let tasks = [method::TASKS_GET, method::TASKS_UPDATE, method::TASKS_CANCEL];
    if !tasks.contains(&request.method)
        || matches!(peek(client.claims.capabilities, &["extensions", TASKS]), Ok(Some(_)))
    {
        return None;
    }
    let Subject::Task(Some(RawText { text: Some(shown), .. })) = &request.subject else {
        return None;
    };
    if own_id(session, shown).is_some() {
        return None;
    }
    let why = format!("the request does not declare the extension `{TASKS}`");
    let data = format!(r#"{{"requiredCapabilities":{{"extensions":{{"{TASKS}":{{}}}}}}}}"#);
    Some(write::error(Some(request.id), code::MISSING_CAPABILITY, &why, Some(&data)))
}
