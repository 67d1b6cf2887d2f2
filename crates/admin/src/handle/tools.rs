//! Tools of servers with their definitions, and sessions.
//!
//! Invariant: a person approves one fingerprint. If the definition has another one by then, nothing
//! is approved.

use std::collections::HashSet;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_audit::Hash;
use toolgate_catalog::Labels;
use toolgate_gateway::{
    APPROVED_TOOLS, Approval, KnownDefinition, KnownTool, NotApprovable, approval_key,
};
use toolgate_store::{Change, Document};

use crate::api::Ask;
use crate::fault::Fault;
use crate::reply::{Answer, ok, page};

/// The space of the store with definitions that people have rejected.
const REJECTED_TOOLS: &str = "rejected_tools";

/// The person who rejected a definition, and when.
#[derive(Deserialize, Serialize, JsonSchema)]
#[schemars(rename = "ToolRejection")]
pub(crate) struct Rejection {
    /// The person.
    person: String,
    /// When.
    at: String,
}

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
    /// What it can do with data: `reads_private`, `ingests_untrusted`, `sends_out`.
    #[schemars(with = "Vec<String>")]
    labels: Labels,
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
            labels: tool.labels,
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
                labels: known.facts.labels,
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
    let fingerprint = fingerprint(&body)?;
    let (server, tool) = (ask.param("server").to_owned(), ask.param("tool").to_owned());
    let _turn = ask.admin.turn.lock().await;
    let gateway = ask.admin.gateway();
    let approvable = approvable(&ask, &server, &tool, fingerprint)?;
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

/// Records that a person has looked at this definition and does not want it. It stays quarantined.
pub(crate) async fn reject(ask: Ask) -> Answer {
    let body: ApprovalBody = ask.json()?;
    let fingerprint = fingerprint(&body)?;
    let (server, tool) = (ask.param("server").to_owned(), ask.param("tool").to_owned());
    let _turn = ask.admin.turn.lock().await;
    let gateway = ask.admin.gateway();
    let found = approvable(&ask, &server, &tool, fingerprint)?;
    if found.iter().all(|known| known.quarantine.is_none()) {
        let why = "is not quarantined; to refuse its calls, change the policy or freeze its server";
        return Err(Fault::conflict(format!("the tool `{server}/{tool}` {why}")));
    }
    let mut row = ask.row(&format!("rejected the definition of the tool `{server}/{tool}`"));
    (row.server, row.tool) = (Some(server.as_str().into()), Some(tool.as_str().into()));
    row.fingerprint = Some(fingerprint);
    let json = serde_json::json!({ "person": *ask.who.name, "at": ask.admin.now().to_string() });
    let kept = Document {
        space: REJECTED_TOOLS.into(),
        key: rejection_key(&server, &tool, fingerprint).into(),
        json: json.to_string().into(),
    };
    ask.change(Change::PutDocument(kept), row).await?;
    let known = gateway.definitions(&server, &tool);
    let rejected = known.iter().find(|known| known.facts.fingerprint == Some(fingerprint));
    ok(&Review::of(rejected.ok_or_else(|| unknown_tool(&server, &tool))?))
}

/// Who rejected this definition.
pub(super) async fn rejection(
    ask: &Ask,
    server: &str,
    tool: &str,
    fingerprint: Hash,
) -> Result<Option<Rejection>, Fault> {
    let key = rejection_key(server, tool, fingerprint);
    let kept = ask.admin.store().documents(REJECTED_TOOLS).await?;
    let found = kept.iter().find(|document| *document.key == *key);
    Ok(found.and_then(|document| serde_json::from_str(&document.json).ok()))
}

/// Tools whose quarantined definitions wait for a person.
pub(super) async fn unanswered(ask: &Ask) -> Result<Vec<KnownTool>, Fault> {
    let mut tools = ask.admin.gateway().known_tools();
    tools.retain(|tool| tool.quarantine.is_some());
    if tools.is_empty() {
        return Ok(tools);
    }
    let kept = ask.admin.store().documents(REJECTED_TOOLS).await?;
    let rejected: HashSet<&str> = kept.iter().map(|document| &*document.key).collect();
    let is_rejected = |tool: &KnownTool| {
        let key = tool.fingerprint.map(|it| rejection_key(&tool.server, &tool.name, it));
        key.is_some_and(|key| rejected.contains(key.as_str()))
    };
    tools.retain(|tool| !is_rejected(tool));
    Ok(tools)
}

fn rejection_key(server: &str, tool: &str, fingerprint: Hash) -> String {
    format!("{server}/{tool}/{fingerprint}")
}

fn fingerprint(body: &ApprovalBody) -> Result<Hash, Fault> {
    Hash::parse(&body.fingerprint.to_ascii_lowercase())
        .map_err(|_| Fault::bad_request("`fingerprint` must be 64 hex digits"))
}

/// The definitions with this fingerprint.
fn approvable(
    ask: &Ask,
    server: &str,
    tool: &str,
    fingerprint: Hash,
) -> Result<Vec<KnownDefinition>, Fault> {
    ask.admin.gateway().approvable(server, tool, fingerprint).map_err(|why| match why {
        NotApprovable::Unknown { .. } => unknown_tool(server, tool),
        NotApprovable::Changed { .. } => Fault::conflict(why.to_string()),
    })
}

pub(super) fn unknown_tool(server: &str, tool: &str) -> Fault {
    Fault::not_found(format!("there is no tool `{tool}` of `{server}` in any list"))
}

pub(crate) async fn sessions(ask: Ask) -> Answer {
    let sessions = ask.admin.given.sessions.as_ref();
    page(sessions.map(|list| list()).unwrap_or_default(), &ask.query)
}
