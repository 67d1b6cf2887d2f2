//! Tools of servers, and sessions.

use schemars::JsonSchema;
use serde::Serialize;

use crate::api::Ask;
use crate::reply::{Answer, page};

/// A tool.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Tool")]
pub(crate) struct ToolItem {
    /// The server.
    server: String,
    /// The server's own name of the tool.
    name: String,
    /// Risk class.
    class: &'static str,
    /// `low`, `medium`, `high` or `critical`.
    level: &'static str,
    /// SHA-256 over its canonical definition, in lower-case hex.
    fingerprint: Option<String>,
    /// `listed`.
    state: &'static str,
}

pub(crate) async fn list(ask: Ask) -> Answer {
    let gateway = &ask.admin.gateway();
    gateway.list_unlisted_servers().await;
    let tools = gateway.known_tools().into_iter().map(|tool| ToolItem {
        server: tool.server,
        name: tool.name,
        class: tool.class.as_str(),
        level: tool.class.level().as_str(),
        fingerprint: tool.fingerprint.map(|hash| hash.to_string()),
        state: "listed",
    });
    page(tools.collect(), &ask.query)
}

pub(crate) async fn sessions(ask: Ask) -> Answer {
    let sessions = ask.admin.given.sessions.as_ref();
    page(sessions.map(|list| list()).unwrap_or_default(), &ask.query)
}
