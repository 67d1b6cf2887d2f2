//! `session_list` and `tools_cache_reset`.

use std::future::{Ready, ready};
use std::sync::Arc;

use serde_json::Value;
use toolgate_policy::Class;
use toolgate_session::SessionFailure;

use super::{BuiltIn, Failed};
use crate::downstream::agent::AgentSession;

pub(super) const SESSION_LIST: BuiltIn = BuiltIn {
    name: "session_list",
    class: Class::Read,
    of_sessions: true,
    definition: r#"{"name":"session_list","description":"Lists the connected programs (1C clients, server channels) whose tools can be called here: session_id, kind, infobase, state, running and queued calls. Use a session_id from it to select the program of a call.","inputSchema":{"type":"object","properties":{},"additionalProperties":false},"outputSchema":{"type":"object","properties":{"sessions":{"type":"array","items":{"type":"object"}}},"required":["sessions"]},"annotations":{"readOnlyHint":true,"openWorldHint":false}}"#,
    run: |session, arguments| Box::pin(to_text(session_list(&session, &arguments))),
};

pub(super) const TOOLS_CACHE_RESET: BuiltIn = BuiltIn {
    name: "tools_cache_reset",
    class: Class::Write,
    of_sessions: true,
    definition: r#"{"name":"tools_cache_reset","description":"Removes remembered tools of programs that are not connected now: all of them, or those of one configuration. Connected programs and their tools are not affected.","inputSchema":{"type":"object","properties":{"config_id":{"type":"string","description":"Only the tools of this configuration."}},"additionalProperties":false},"outputSchema":{"type":"object","properties":{"removed":{"type":"integer"},"scope":{"type":"string","enum":["all","by_config_id"]},"enabled":{"type":"boolean"}},"required":["removed","scope","enabled"]},"annotations":{"readOnlyHint":false,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}}"#,
    run: |session, arguments| Box::pin(to_text(tools_cache_reset(&session, &arguments))),
};

fn to_text(done: Result<Value, Failed>) -> Ready<Result<String, Failed>> {
    ready(done.map(|structured| structured.to_string()))
}

fn session_list(session: &Arc<AgentSession>, arguments: &str) -> Result<Value, Failed> {
    Failed::unless_empty("session_list", arguments)?;
    let dial_in = session.dial_in().ok_or_else(no_sessions)?;
    Ok(dial_in.driver.list(&session.grant().sessions))
}

fn tools_cache_reset(session: &Arc<AgentSession>, arguments: &str) -> Result<Value, Failed> {
    let dial_in = session.dial_in().ok_or_else(no_sessions)?;
    let given = Some(arguments).filter(|raw| *raw != "null");
    dial_in.driver.reset(given, &session.grant().sessions).map_err(|failure| match failure {
        SessionFailure::InvalidArguments { what } => Failed::invalid(&what),
        other => Failed { code: other.error_code(), text: other.text() },
    })
}

/// Not reached: without sessions these tools do not exist.
fn no_sessions() -> Failed {
    Failed { code: "unknown_tool", text: "No session can connect here.".to_owned() }
}
