//! `GET /api/v1/status`.

use schemars::JsonSchema;
use serde::Serialize;
use toolgate_control::FreezeItem;

use crate::api::Ask;
use crate::reply::{Answer, ok};

/// The state of toolgate.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Status {
    /// The version of the binary.
    version: &'static str,
    /// Listeners, process id, and the durability of the audit.
    #[serde(flatten)]
    facts: serde_json::Map<String, serde_json::Value>,
    /// Whether calls without a token are accepted.
    local: bool,
    /// How many agent sessions are open.
    agent_sessions: usize,
    audit: AuditStatus,
    /// Active freezes.
    freezes: Vec<FreezeItem>,
}

/// The state of the audit.
#[derive(Serialize, JsonSchema)]
struct AuditStatus {
    /// How many rows there are.
    rows: u64,
    /// The hash of the last one.
    hash: String,
    /// The last row that a checkpoint covers; null if there is no checkpoint.
    checkpoint: Option<u64>,
    /// Calls that were admitted and have not ended.
    open_calls: u64,
}

pub(crate) async fn get(ask: Ask) -> Answer {
    let (given, view) = (&ask.admin.given, ask.admin.view());
    let stands = ask.admin.store().status().await?;
    ok(&Status {
        version: env!("CARGO_PKG_VERSION"),
        facts: given.facts.clone(),
        local: view.local,
        agent_sessions: ask.admin.gateway().agent_sessions(),
        audit: AuditStatus {
            rows: stands.head.seq,
            hash: stands.head.hash.to_string(),
            checkpoint: stands.checkpoint.map(|checkpoint| checkpoint.seq),
            open_calls: stands.open,
        },
        freezes: view.freezes.clone(),
    })
}
