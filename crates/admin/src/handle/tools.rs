//! Tools of servers with their definitions, and sessions.
//!
//! Invariant: a person approves one fingerprint. If the definition has another one by then, nothing
//! is approved.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_audit::Hash;
use toolgate_gateway::{
    APPROVED_TOOLS, Approval, KnownDefinition, KnownTool, NotApprovable, approval_key,
};
use toolgate_store::Change;

use crate::api::Ask;
use crate::fault::Fault;
use crate::reply::{Answer, ok, page};

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
    /// `listed`, or `quarantined`: neither listed nor callable until a person approves it.
    state: &'static str,
    /// Why it is quarantined.
    reason: Option<String>,
}

/// A tool under review.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ToolReview")]
pub(crate) struct Review {
    #[serde(flatten)]
    tool: ToolItem,
    /// The newest definition as its server wrote it, if it has at most 64 KiB.
    source: Option<String>,
    /// The fingerprint of the definition that may be used: the approved one, else the first one.
    approved: Option<String>,
    /// That definition as its server wrote it.
    approved_source: Option<String>,
}

/// The definition that is approved.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ToolApproval")]
pub(crate) struct ApprovalBody {
    /// Its fingerprint, in hex. If the tool has another one by now, the answer is 409.
    fingerprint: String,
}

impl ToolItem {
    fn of(tool: KnownTool) -> Self {
        Self {
            server: tool.server,
            name: tool.name,
            class: tool.class.as_str(),
            level: tool.class.level().as_str(),
            fingerprint: tool.fingerprint.map(|hash| hash.to_string()),
            state: if tool.quarantine.is_some() { "quarantined" } else { "listed" },
            reason: tool.quarantine.map(|reason| reason.to_string()),
        }
    }
}

impl Review {
    pub(super) fn of(known: &KnownDefinition) -> Self {
        let text = |text: &Option<Arc<str>>| text.as_deref().map(str::to_owned);
        Self {
            tool: ToolItem::of(KnownTool {
                server: known.server.clone(),
                name: known.name.clone(),
                class: known.class,
                fingerprint: known.facts.fingerprint,
                quarantine: known.quarantine.clone(),
            }),
            source: text(&known.facts.definition),
            approved: known.approved.map(|hash| hash.to_string()),
            approved_source: text(&known.approved_definition),
        }
    }
}

pub(crate) async fn list(ask: Ask) -> Answer {
    let gateway = &ask.admin.gateway();
    gateway.list_unlisted_servers().await;
    page(gateway.known_tools().into_iter().map(ToolItem::of).collect(), &ask.query)
}

/// Approves the definition that has this fingerprint.
pub(crate) async fn approve(ask: Ask) -> Answer {
    let body: ApprovalBody = ask.json()?;
    let fingerprint = Hash::parse(&body.fingerprint.to_ascii_lowercase())
        .map_err(|_| Fault::bad_request("`fingerprint` must be 64 hex digits"))?;
    let (server, tool) = (ask.param("server").to_owned(), ask.param("tool").to_owned());
    let _turn = ask.admin.turn.lock().await;
    let gateway = ask.admin.gateway();
    let approvable = gateway.approvable(&server, &tool, fingerprint).map_err(|why| match why {
        NotApprovable::Unknown { .. } => unknown_tool(&server, &tool),
        NotApprovable::Changed { .. } => Fault::conflict(why.to_string()),
    })?;
    let keep = approvable.iter().map(|known| {
        let several = (known.key != known.name).then_some(fingerprint);
        let approval = Approval {
            server: known.server.clone(),
            tool: known.key.clone(),
            fingerprint: fingerprint.to_string(),
            definition: known.facts.definition.as_deref().map(str::to_owned),
            person: ask.who.name.to_string(),
        };
        (approval_key(&server, &known.key, several).into(), approval.to_json().into())
    });
    let keep = keep.collect();
    let mut row = ask.row(&format!("approved the definition of the tool `{server}/{tool}`"));
    (row.server, row.tool) = (Some(server.as_str().into()), Some(tool.as_str().into()));
    row.fingerprint = Some(fingerprint);
    let change =
        Change::ReplaceDocuments { space: APPROVED_TOOLS.into(), keep, forget: Vec::new() };
    ask.change(change, row).await?;
    let known = gateway.definitions(&server, &tool);
    let approved = known.iter().find(|known| known.facts.fingerprint == Some(fingerprint));
    match approved {
        Some(known) => ok(&Review::of(known)),
        None => Err(unknown_tool(&server, &tool)),
    }
}

pub(super) fn unknown_tool(server: &str, tool: &str) -> Fault {
    Fault::not_found(format!("there is no tool `{tool}` of `{server}` in any list"))
}

pub(crate) async fn sessions(ask: Ask) -> Answer {
    let sessions = ask.admin.given.sessions.as_ref();
    page(sessions.map(|list| list()).unwrap_or_default(), &ask.query)
}
