//! Policies: list, put, remove, explain.
//!
//! Invariant: a document with a problem or a failing test of its own is never stored.

use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use toolgate_audit::RowKind;
use toolgate_control::{Origin, PolicyText, View};
use toolgate_gateway::InForce;
use toolgate_policy::{
    Call, Class, Explanation, Identity, LimitState, SessionFacts, explain, limits,
};
use toolgate_store::Change;

use super::grants;
use crate::api::Ask;
use crate::fault::Fault;
use crate::reply::{Answer, done, ok, page};

/// The call to explain.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ExplainRequest")]
pub(crate) struct Asked {
    /// A grant, by id or label: its identity, groups and what it has used.
    grant: Option<String>,
    /// The server; any if absent.
    server: Option<String>,
    /// The tool, by its own name.
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
}

pub(crate) async fn list(ask: Ask) -> Answer {
    let view = ask.admin.view();
    page(view.policies.iter().map(|policy| policy.item.clone()).collect(), &ask.query)
}

pub(crate) async fn get(ask: Ask) -> Answer {
    ok(find(&ask.admin.view(), ask.param("name"))?)
}

pub(crate) async fn put(ask: Ask) -> Answer {
    let name = ask.param("name");
    check_name(name)?;
    refuse_fixed(&ask.admin.view(), name)?;
    let text = std::str::from_utf8(&ask.body)
        .map_err(|_| Fault::bad_request("the document is not UTF-8"))?;
    // Its own tests may take seconds, so no other change waits for them.
    let policy = ask.admin.given.control.check_policy(name, text).await?;
    let _turn = ask.admin.turn.lock().await;
    refuse_fixed(&ask.admin.view(), name)?;
    let mut row = ask.row(&format!("put the policy `{name}`"));
    row.kind = RowKind::Policy;
    row.policy = Some(name.into());
    row.policy_hash = toolgate_audit::Hash::parse(policy.hash()).ok();
    let change = Change::PutPolicy { name: name.into(), document: text.into() };
    ask.change(change, row).await?;
    ok(&find(&ask.admin.view(), name)?.item)
}

pub(crate) async fn remove(ask: Ask) -> Answer {
    let name = ask.param("name");
    let _turn = ask.admin.turn.lock().await;
    let view = ask.admin.view();
    find(&view, name)?;
    refuse_fixed(&view, name)?;
    let names = |policy: &Option<String>| policy.as_deref() == Some(name);
    let user = view.grants.iter().find(|grant| grant.revoked.is_none() && names(&grant.policy));
    if let Some(grant) = user {
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
    let named = ask.admin.gateway().named(asked.server.as_deref(), &asked.tool, label);
    let class = match asked.class.as_deref() {
        Some(word) => Class::parse(word)
            .ok_or_else(|| Fault::bad_request(format!("`{word}` is not a risk class")))?,
        None => named.class,
    };
    let call = move |policy: &InForce, usage: &dyn toolgate_policy::Usage, now: Timestamp| {
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
            aliases: &named.aliases,
            ..Call::new(&named.server, &named.tool, class, arguments)
        };
        let explanation = explain(&policy.policy, &call, usage, now);
        Explained { explanation, limits: limits(&policy.policy, &call, usage, now) }
    };
    let (tell, told) = oneshot::channel();
    let look = Box::new(move |usage: &dyn toolgate_policy::Usage, now: Timestamp| {
        // The client may be gone.
        drop(tell.send(call(&policy, usage, at.unwrap_or(now))));
    });
    ask.admin.store().read_usage(now, look).await?;
    ok(&told.await.map_err(|_| Fault::unavailable("the store did not answer"))?)
}

fn find<'v>(view: &'v View, name: &str) -> Result<&'v PolicyText, Fault> {
    let found = view.policies.iter().find(|policy| policy.item.name == name);
    found.ok_or_else(|| Fault::not_found(format!("there is no policy `{name}`")))
}

fn refuse_fixed(view: &View, name: &str) -> Result<(), Fault> {
    let found = view.policies.iter().find(|policy| policy.item.name == name);
    let why = match found.map(|policy| policy.item.source) {
        Some(Origin::File) => "comes from toolgate.yaml; change it there",
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
