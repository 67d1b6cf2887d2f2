//! Grants: create, change, rotate, revoke.
//!
//! Grants of the file are read-only here, except for a revocation, which is kept in the store and
//! overrides the file.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_audit::{Draft, Hash};
use toolgate_control::{GrantItem, LOCAL, Origin, Role, STDIO, View};
use toolgate_store::{Change, Snapshot, StoredGrant};

use super::input::{check_name, expires, given, shown};
use crate::api::Ask;
use crate::fault::Fault;
use crate::reply::{Answer, Listed, created, ok, page};
use crate::secret::token;
use crate::suggest::{message, unknown};

/// A new grant.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewGrant")]
pub(crate) struct New {
    /// Unique; `local` is reserved.
    label: String,
    /// Its policy; without one every call is denied.
    policy: Option<String>,
    /// Servers it may reach; all if absent.
    servers: Option<Vec<String>>,
    /// Sessions it may reach; all if absent.
    sessions: Option<Reach>,
    /// The identity on whose behalf the agent acts.
    identity: Option<String>,
    /// Groups of that identity.
    #[serde(default)]
    groups: Vec<String>,
    /// A date (00:00 UTC) or a time.
    expires: Option<String>,
}

/// Changes of a grant: an absent key keeps its value, null removes it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "GrantChanges")]
#[expect(clippy::option_option, reason = "absent and null are different")]
pub(crate) struct Changes {
    /// Its policy; without one every call is denied.
    #[serde(default, deserialize_with = "given")]
    policy: Option<Option<String>>,
    /// Servers it may reach; null is all.
    #[serde(default, deserialize_with = "given")]
    servers: Option<Option<Vec<String>>>,
    /// Sessions it may reach; null is all.
    #[serde(default, deserialize_with = "given")]
    sessions: Option<Option<Reach>>,
    /// A date (00:00 UTC) or a time; null means never.
    #[serde(default, deserialize_with = "given")]
    expires: Option<Option<String>>,
}

/// Which sessions a grant may reach: those that match every list given here. Globs.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reach {
    /// Globs for the infobase name.
    #[serde(skip_serializing_if = "Option::is_none")]
    infobase_name: Option<Vec<String>>,
    /// Globs for the kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<Vec<String>>,
    /// Globs for the session id.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<Vec<String>>,
}

/// A new token.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "GrantToken")]
pub(crate) struct Made {
    /// The grant's id.
    id: String,
    /// Its label.
    label: String,
    /// The token; it cannot be shown again.
    token: String,
}

pub(crate) async fn list(ask: Ask) -> Answer {
    let mut items = ask.admin.view().grants.clone();
    let Snapshot { grants, uses, .. } = ask.admin.store().snapshot().await?;
    for item in &mut items {
        let stored = grants.iter().find(|grant| *grant.id == *item.id);
        let of_file = || uses.iter().find(|used| *used.id == *item.id).map(|used| used.at);
        let used = stored.and_then(|grant| grant.last_use).or_else(of_file);
        item.last_use = used.map(shown);
    }
    let freezes = &ask.admin.view().freezes;
    let frozen = |item: &GrantItem| {
        freezes.iter().any(|it| it.all || it.grant.as_deref() == Some(&item.label))
    };
    page(items.into_iter().map(|item| Listed { frozen: frozen(&item), item }).collect(), &ask.query)
}

/// What the policy of a grant decides about every tool that it can reach.
pub(crate) async fn permissions(ask: Ask) -> Answer {
    let view = ask.admin.view();
    let grant = find(&view, ask.param("id"))?;
    let policy = grant.policy.as_deref().and_then(|name| view.in_force.get(name));
    let control = &ask.admin.given.control;
    let decisions = policy
        .map(|active| control.decisions(&active.policy, Some(grant), ask.admin.now()))
        .unwrap_or_default();
    page(decisions, &ask.query)
}

pub(crate) async fn create(ask: Ask) -> Answer {
    let new: New = ask.json()?;
    let (view, now) = (ask.admin.view(), ask.admin.now());
    check_name("label", &new.label, &[LOCAL, STDIO])?;
    if view.grants.iter().any(|grant| grant.label == new.label) {
        let why = "labels stay taken after a revocation, choose another";
        return Err(Fault::conflict(format!("the label `{}` is taken; {why}", new.label)));
    }
    check_known(&view, new.policy.as_deref(), new.servers.as_deref())?;
    let bits = ask.admin.random()?;
    let token = token(&bits);
    let grant = StoredGrant {
        id: id("g-", &ask.admin.random()?),
        label: new.label.as_str().into(),
        token: Hash::of(token.as_bytes()),
        identity: new.identity.as_deref().map(Into::into),
        groups: new.groups,
        servers: new.servers,
        sessions: new.sessions.as_ref().map(reach),
        policy: new.policy.as_deref().map(Into::into),
        created: now,
        expires: new.expires.map(|text| expires(&text, now)).transpose()?,
        last_use: None,
        revoked: None,
    };
    let made = Made { id: grant.id.to_string(), label: new.label, token };
    let row = about(&ask, &grant, "created the grant");
    let _turn = ask.admin.turn.lock().await;
    super::local::end(&ask, "a grant was created").await?;
    ask.change(Change::PutGrant(Box::new(grant)), row).await?;
    created(&made)
}

pub(crate) async fn rotate(ask: Ask) -> Answer {
    let _turn = ask.admin.turn.lock().await;
    let mut grant = stored(&ask).await?;
    let token = token(&ask.admin.random()?);
    grant.token = Hash::of(token.as_bytes());
    let made = Made { id: grant.id.to_string(), label: grant.label.to_string(), token };
    let row = about(&ask, &grant, "rotated the token of the grant");
    ask.change(Change::PutGrant(Box::new(grant)), row).await?;
    ok(&made)
}

pub(crate) async fn patch(ask: Ask) -> Answer {
    let changes: Changes = ask.json()?;
    let more = changes.servers.is_some() || changes.sessions.is_some() || changes.expires.is_some();
    if more && !ask.who.may(Role::Admin) {
        let why = "only the policy of a grant may be changed with the role `policy_manager`";
        return Err(Fault::forbidden(why));
    }
    let _turn = ask.admin.turn.lock().await;
    let mut grant = stored(&ask).await?;
    let (view, now) = (ask.admin.view(), ask.admin.now());
    let mut what = Vec::new();
    if let Some(policy) = changes.policy {
        check_known(&view, policy.as_deref(), None)?;
        what.push(format!("policy {}", policy.as_deref().unwrap_or("none")));
        grant.policy = policy.as_deref().map(Into::into);
    }
    if let Some(servers) = changes.servers {
        check_known(&view, None, servers.as_deref())?;
        let names = match servers.as_deref() {
            None => "all".to_owned(),
            Some([]) => "none".to_owned(),
            Some(some) => some.join(", "),
        };
        what.push(format!("servers {names}"));
        grant.servers = servers;
    }
    if let Some(sessions) = changes.sessions {
        grant.sessions = sessions.as_ref().map(reach);
        what.push(format!("sessions {}", grant.sessions.as_deref().unwrap_or("all")));
    }
    if let Some(end) = changes.expires {
        grant.expires = end.map(|text| expires(&text, now)).transpose()?;
        what.push(format!("expires {}", grant.expires.map_or("never".into(), shown)));
    }
    if what.is_empty() {
        let why = "nothing to change; give `policy`, `servers`, `sessions` or `expires`";
        return Err(Fault::bad_request(why));
    }
    let mut row = about(&ask, &grant, "changed the grant");
    row.message = row.message.map(|text| format!("{text}: {}", what.join("; ")).into());
    let id = grant.id.to_string();
    ask.change(Change::PutGrant(Box::new(grant)), row).await?;
    let view = ask.admin.view();
    let item = view.grants.iter().find(|grant| grant.id == id);
    ok(item.ok_or_else(|| Fault::not_found("the grant is gone"))?)
}

/// The grant in the path, if it can be changed here.
async fn stored(ask: &Ask) -> Result<StoredGrant, Fault> {
    let view = ask.admin.view();
    let item = find(&view, ask.param("id"))?;
    if item.revoked.is_some() {
        return Err(Fault::conflict(format!("the grant `{}` was revoked", item.label)));
    }
    if item.source == Origin::File {
        let why = "comes from toolgate.yaml; change it there";
        return Err(Fault::conflict(format!("the grant `{}` {why}", item.label)));
    }
    let kept = ask.admin.store().snapshot().await?.grants;
    let grant = kept.into_iter().find(|grant| *grant.id == *item.id);
    grant.ok_or_else(|| Fault::not_found("the grant is gone"))
}

/// A grant by id or label.
pub(crate) fn find<'v>(view: &'v View, named: &str) -> Result<&'v GrantItem, Fault> {
    let found = view.grants.iter().find(|grant| grant.id == named || grant.label == named);
    let labels = view.grants.iter().map(|grant| grant.label.as_str());
    found.ok_or_else(|| unknown("grant", named, labels))
}

/// Rejects unknown names: a typo would silently deny everything.
fn check_known(view: &View, policy: Option<&str>, servers: Option<&[String]>) -> Result<(), Fault> {
    let is_policy = |name: &str| view.policies.iter().any(|policy| policy.item.name == name);
    if let Some(name) = policy.filter(|name| !is_policy(name)) {
        let known: Vec<&str> = view.policies.iter().map(|p| p.item.name.as_str()).collect();
        let what = message("policy", name, known.iter().copied());
        let why = format!(
            "{what} (policies: {}); `toolgate policy apply FILE` creates one",
            known.join(", ")
        );
        return Err(Fault::bad_request(why));
    }
    let is_server = |name: &str| view.servers.iter().any(|server| server.name == name);
    match servers.unwrap_or_default().iter().find(|name| !is_server(name)) {
        Some(name) => {
            let known = view.servers.iter().map(|server| server.name.as_str());
            Err(Fault::bad_request(message("server", name, known)))
        }
        None => Ok(()),
    }
}

fn about(ask: &Ask, grant: &StoredGrant, did: &str) -> Draft {
    let mut row = ask.row(&format!("{did} `{}`", grant.label));
    row.grant = Some(Arc::clone(&grant.label));
    row.identity.clone_from(&grant.identity);
    row.policy.clone_from(&grant.policy);
    row
}

fn reach(reach: &Reach) -> Arc<str> {
    serde_json::to_string(reach).unwrap_or_default().into()
}

/// A short id of random bytes.
pub(crate) fn id(prefix: &str, bits: &[u8; 32]) -> Arc<str> {
    let hex = Hash(*bits).to_string();
    prefix.chars().chain(hex.chars().take(16)).collect::<String>().into()
}
