//! Policies: list, put, roll back, remove, explain; the tools they are checked against.
//!
//! Invariant: a document with a problem or a failing test of its own is never stored.

use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use toolgate_audit::RowKind;
use toolgate_control::{Finding, NotAccepted, Origin, PolicyItem, PolicyText, ToolDecision, View};
use toolgate_gateway::ActivePolicy;
use toolgate_policy::{
    Call, Class, Explanation, Identity, LimitState, SessionFacts, explain, limits,
};
use toolgate_store::Change;

use super::grants;
use crate::api::Ask;
use crate::fault::{Fault, Flaw};
use crate::reply::{Answer, done, ok, page};
use crate::suggest::unknown;

/// The call to explain.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ExplainRequest")]
pub(crate) struct Asked {
    /// A grant, by id or label: its identity, groups and what it has used.
    grant: Option<String>,
    /// The server.
    server: Option<String>,
    /// The tool: without `server`, by a name that agents see on `/mcp`; else by its own name.
    tool: String,
    /// Its arguments, an object.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    arguments: Option<Box<RawValue>>,
    /// A time; default: now.
    at: Option<String>,
    /// The tool's risk class; default: the known one, or that implied by its name.
    class: Option<String>,
    /// The name of the client.
    client: Option<String>,
    /// The session called.
    #[serde(default)]
    session: AskedSession,
}

/// A session, as far as conditions refer to it.
#[derive(Deserialize, Default, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ExplainSession")]
struct AskedSession {
    kind: Option<String>,
    infobase_name: Option<String>,
    host_id: Option<String>,
}

#[derive(Serialize)]
struct Explained {
    #[serde(flatten)]
    explanation: Explanation,
    limits: Vec<LimitState>,
    /// The tool that the name means.
    resolved: Resolved,
    /// Set if no tool of this name can be called.
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    suggestions: Option<Vec<String>>,
}

#[derive(Serialize)]
struct Resolved {
    /// Its server; empty if the name belongs to none.
    server: Arc<str>,
    /// The server's own name of it.
    tool: Arc<str>,
    /// Its other names; policies match all of them.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    aliases: Arc<[Arc<str>]>,
}

/// A policy after a change, with the warnings of its document.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AppliedPolicy")]
pub(crate) struct Applied {
    #[serde(flatten)]
    item: PolicyItem,
    /// Warnings about the document.
    problems: Vec<Flaw>,
}

/// A document after its check.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "CheckedPolicy")]
pub(crate) struct CheckedDocument {
    /// Whether it could be stored.
    valid: bool,
    /// Whether it is rejected only because its own tests fail.
    fails_tests: bool,
    /// Errors and warnings: `code`, `severity`, `line`, `column`, `message`, `hint`.
    #[schemars(with = "Vec<serde_json::Value>")]
    problems: Vec<Finding>,
    /// What it decides about every known tool, if it is valid.
    tools: Vec<ToolDecision>,
}

/// The servers and tools that policies are checked against.
#[derive(Serialize, JsonSchema)]
pub(crate) struct KnownTools {
    /// Servers that keys may name.
    servers: Vec<String>,
    /// Tools; a session tool is listed once for each of its names.
    tools: Vec<KnownTool>,
    /// Servers whose tools are not known yet.
    unlisted: Vec<String>,
}

/// A tool that keys may name.
#[derive(Serialize, JsonSchema)]
struct KnownTool {
    /// Its server, `sessions` or `toolgate`.
    server: String,
    /// Its own name, or one that it is published under.
    name: String,
    /// Its risk class.
    class: String,
}

/// A version of a policy in the store.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PolicyVersion")]
pub(crate) struct StoredVersion {
    /// Its number, from 1.
    version: u64,
    /// When it was created.
    created: String,
    /// Its text.
    document: String,
}

/// Which version becomes active again.
#[derive(Deserialize, Default, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "RollbackRequest")]
pub(crate) struct Rollback {
    /// The version; default: the one before the active one.
    version: Option<u64>,
}

pub(crate) async fn list(ask: Ask) -> Answer {
    let view = ask.admin.view();
    page(view.policies.iter().map(|policy| policy.item.clone()).collect(), &ask.query)
}

pub(crate) async fn get(ask: Ask) -> Answer {
    ok(find(&ask.admin.view(), ask.param("name"))?)
}

/// Checks a document and runs its tests, without storing it.
pub(crate) async fn check(ask: Ask) -> Answer {
    let (name, text) = (ask.param("name"), text(&ask)?);
    check_name(name)?;
    ok(&match ask.admin.given.control.check_policy(name, text).await {
        Ok(accepted) => CheckedDocument {
            valid: true,
            fails_tests: false,
            problems: accepted.warnings,
            tools: ask.admin.given.control.decisions(&accepted.policy, None, ask.admin.now()),
        },
        Err(NotAccepted::Rejected(rejected)) => CheckedDocument {
            valid: false,
            fails_tests: rejected.fails_tests,
            problems: rejected.findings,
            tools: Vec::new(),
        },
        Err(error @ NotAccepted::Aborted) => return Err(error.into()),
    })
}

/// What a document would change, without storing it.
pub(crate) async fn plan(ask: Ask) -> Answer {
    let (name, text) = (ask.param("name"), text(&ask)?);
    check_name(name)?;
    let control = &ask.admin.given.control;
    let accepted = control.check_policy(name, text).await?;
    ok(&control.plan(name, &accepted.policy, ask.admin.now()))
}

pub(crate) async fn put(ask: Ask) -> Answer {
    let name = ask.param("name");
    check_name(name)?;
    let text = text(&ask)?;
    apply(&ask, name, text, &format!("put the policy `{name}`")).await
}

/// What policies are checked against.
pub(crate) async fn known(ask: Ask) -> Answer {
    let view = ask.admin.view();
    let grant = ask.query.text("grant").map(|grant| grants::find(&view, grant)).transpose()?;
    let known = ask.admin.gateway().known_for_policies(grant.map(|grant| &*grant.label));
    let tools = known.tools.unwrap_or_default().into_iter().map(|tool| KnownTool {
        server: tool.server,
        name: tool.name,
        class: tool.class.as_str().to_owned(),
    });
    ok(&KnownTools {
        servers: view.servers.iter().map(|server| server.name.clone()).collect(),
        tools: tools.collect(),
        unlisted: known.unlisted,
    })
}

pub(crate) async fn versions(ask: Ask) -> Answer {
    let name = ask.param("name");
    let stored = ask.admin.store().policy_versions(name).await?;
    if stored.is_empty() {
        find(&ask.admin.view(), name)?;
    }
    let versions = stored.into_iter().map(|stored| StoredVersion {
        version: stored.version,
        created: stored.created.to_string(),
        document: stored.document.to_string(),
    });
    page(versions.collect(), &ask.query)
}

/// Puts the document of an earlier version as the next version.
pub(crate) async fn rollback(ask: Ask) -> Answer {
    let name = ask.param("name");
    let asked: Rollback = if ask.body.is_empty() { Rollback::default() } else { ask.json()? };
    let stored = ask.admin.store().policy_versions(name).await?;
    if stored.is_empty() {
        let view = ask.admin.view();
        find(&view, name)?;
        refuse_fixed(&view, name)?;
    }
    let active = find(&ask.admin.view(), name).ok().and_then(|policy| policy.item.version);
    // A removed policy comes back with its last version.
    let before = || stored.iter().rev().find(|it| active.is_none_or(|now| it.version < now));
    let wanted = match asked.version {
        Some(version) => stored.iter().find(|it| it.version == version),
        None => before(),
    };
    let Some(wanted) = wanted else {
        let numbers: Vec<String> = stored.iter().map(|it| it.version.to_string()).collect();
        let which = asked.version.map_or("earlier version".to_owned(), |v| format!("version {v}"));
        let why = format!("the policy `{name}` has no {which}; versions: {}", numbers.join(", "));
        return Err(Fault::not_found(why));
    };
    let what = format!("rolled the policy `{name}` back to version {}", wanted.version);
    apply(&ask, name, &wanted.document, &what).await
}

/// Stores a document as the next version, after its check.
async fn apply(ask: &Ask, name: &str, text: &str, what: &str) -> Answer {
    refuse_fixed(&ask.admin.view(), name)?;
    // Its own tests may take seconds, so no other change waits for them.
    let accepted = ask.admin.given.control.check_policy(name, text).await?;
    let _turn = ask.admin.turn.lock().await;
    refuse_fixed(&ask.admin.view(), name)?;
    let mut row = ask.row(what);
    row.kind = RowKind::Policy;
    row.policy = Some(name.into());
    row.policy_hash = toolgate_audit::Hash::parse(accepted.policy.hash()).ok();
    let change = Change::PutPolicy { name: name.into(), document: text.into() };
    ask.change(change, row).await?;
    let item = find(&ask.admin.view(), name)?.item.clone();
    ok(&Applied { item, problems: flaws(&accepted.warnings) })
}

fn text(ask: &Ask) -> Result<&str, Fault> {
    std::str::from_utf8(&ask.body).map_err(|_| Fault::bad_request("the document is not UTF-8"))
}

fn flaws(findings: &[Finding]) -> Vec<Flaw> {
    findings.iter().map(Flaw::of).collect()
}

pub(crate) async fn remove(ask: Ask) -> Answer {
    let name = ask.param("name");
    let _turn = ask.admin.turn.lock().await;
    let view = ask.admin.view();
    let found = find(&view, name)?;
    // The version in the store that a policy of the file shadows can be removed.
    let is_shadowed = found.item.shadows.is_some();
    if !is_shadowed {
        refuse_fixed(&view, name)?;
    }
    let names = |policy: &Option<String>| policy.as_deref() == Some(name);
    let user = view.grants.iter().find(|grant| grant.revoked.is_none() && names(&grant.policy));
    if let Some(grant) = user.filter(|_| !is_shadowed) {
        let why = format!("the grant `{}` uses it; attach another policy first", grant.label);
        return Err(Fault::conflict(why));
    }
    let mut row = ask.row(&format!("removed the policy `{name}`"));
    row.kind = RowKind::Policy;
    row.policy = Some(name.into());
    ask.change(Change::RemovePolicy(name.into()), row).await?;
    done()
}

pub(crate) async fn explained(ask: Ask) -> Answer {
    let asked: Asked = ask.json()?;
    let (view, now) = (ask.admin.view(), ask.admin.now());
    let name = ask.param("name");
    find(&view, name)?;
    let broken = || Fault::conflict(format!("the policy `{name}` is not active"));
    let policy = Arc::clone(view.in_force.get(name).ok_or_else(broken)?);
    let arguments = asked.arguments.as_ref().map_or("{}", |raw| raw.get());
    if !arguments.trim_start().starts_with('{') {
        return Err(Fault::bad_request("`arguments` must be an object"));
    }
    let at = asked.at.as_deref().map(str::parse::<Timestamp>).transpose();
    let at = at.map_err(|_| Fault::bad_request("`at` must be a time (2026-01-05T12:00:00Z)"))?;
    let grant =
        asked.grant.as_deref().map(|grant| grants::find(&view, grant).cloned()).transpose()?;
    let label = grant.as_ref().map(|grant| &*grant.label);
    let resolved = ask.admin.gateway().resolve_tool(asked.server.as_deref(), &asked.tool, label);
    let class = match asked.class.as_deref() {
        Some(word) => Class::parse(word)
            .ok_or_else(|| Fault::bad_request(format!("`{word}` is not a risk class")))?,
        None => resolved.class,
    };
    let call = move |policy: &ActivePolicy, usage: &dyn toolgate_policy::Usage, now: Timestamp| {
        let identity = grant.as_ref().and_then(|grant| {
            let name = grant.identity.as_deref()?;
            Some(Identity { name, groups: &grant.groups })
        });
        let arguments = asked.arguments.as_ref().map_or("{}", |raw| raw.get());
        let call = Call {
            grant: grant.as_ref().map_or("", |grant| &grant.label),
            identity,
            client: asked.client.as_deref(),
            session: Some(SessionFacts {
                kind: asked.session.kind.as_deref(),
                infobase_name: asked.session.infobase_name.as_deref(),
                host_id: asked.session.host_id.as_deref(),
            }),
            aliases: &resolved.aliases,
            ..Call::new(&resolved.server, &resolved.tool, class, arguments)
        };
        let explanation = explain(&policy.policy, &call, usage, now);
        Explained {
            explanation,
            limits: limits(&policy.policy, &call, usage, now),
            resolved: Resolved {
                server: Arc::clone(&resolved.server),
                tool: Arc::clone(&resolved.tool),
                aliases: Arc::clone(&resolved.aliases),
            },
            unknown: resolved.unknown.is_some().then_some(true),
            suggestions: resolved.unknown.clone(),
        }
    };
    let (sender, receiver) = oneshot::channel();
    let look = Box::new(move |usage: &dyn toolgate_policy::Usage, now: Timestamp| {
        // The client may be gone.
        drop(sender.send(call(&policy, usage, at.unwrap_or(now))));
    });
    ask.admin.store().read_usage(now, look).await?;
    ok(&receiver.await.map_err(|_| Fault::unavailable("the store did not answer"))?)
}

fn find<'v>(view: &'v View, name: &str) -> Result<&'v PolicyText, Fault> {
    let found = view.policies.iter().find(|policy| policy.item.name == name);
    let names = view.policies.iter().map(|policy| policy.item.name.as_str());
    found.ok_or_else(|| unknown("policy", name, names))
}

fn refuse_fixed(view: &View, name: &str) -> Result<(), Fault> {
    let found = view.policies.iter().find(|policy| policy.item.name == name);
    let why = match found.map(|policy| policy.item.source) {
        Some(Origin::File) => "is defined in toolgate.yaml, which takes precedence; edit it there",
        Some(Origin::BuiltIn) => "is built in; choose another name for yours",
        Some(Origin::Store | Origin::Data) | None => return Ok(()),
    };
    Err(Fault::conflict(format!("the policy `{name}` {why}")))
}

fn check_name(name: &str) -> Result<(), Fault> {
    let good = name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c));
    if good {
        return Ok(());
    }
    let why = "up to 64 letters, digits, `-`, `_` and `.`, the first a letter or digit";
    Err(Fault::bad_request(format!("`{name}` cannot be the name of a policy: {why}")))
}
