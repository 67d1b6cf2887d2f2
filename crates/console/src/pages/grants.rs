//! Grants: a card for each, with what an agent with it can do; create, rotate, revoke.

use askama::Template;
use axum::http::Method;
use serde_json::{Map, Value, json};

use crate::assets;
use crate::items::{Grant, PolicyItem, Server, ToolDecision};
use crate::look::Look as _;
use crate::pages::token::NewToken;
use crate::problem::Problem;
use crate::shell::Shell;
use crate::shown::{Moment, ago};
use crate::visit::{Outcome, Visit, page, part};

#[derive(Template)]
#[template(path = "grants.html")]
struct GrantsPage {
    s: Shell,
    assets: &'static str,
    grants: Vec<GrantCard>,
    policies: Vec<String>,
    servers: Vec<String>,
}

struct GrantCard {
    grant: Grant,
    path: String,
    policy: String,
    servers: String,
    sessions: String,
    expires: Option<Moment>,
    used: String,
    is_expired: bool,
    /// Tools by effect: allow, hold, deny and hide.
    effects: Vec<(&'static str, String, usize)>,
    policy_path: String,
}

/// The page.
pub(crate) async fn show(visit: Visit) -> Outcome {
    let s = Shell::of(&visit, "grants").await?;
    let grants: Vec<Grant> = visit.list("/api/v1/grants").await?;
    let policies: Vec<PolicyItem> = visit.list("/api/v1/policies").await?;
    let servers: Vec<Server> = visit.list("/api/v1/servers").await?;
    let now = visit.console.admin.now();
    let mut cards = Vec::new();
    for grant in grants {
        let effects =
            if grant.revoked.is_none() { effects(&visit, &s, &grant).await? } else { Vec::new() };
        let end = grant.expires.as_deref().and_then(|it| it.parse::<jiff::Timestamp>().ok());
        cards.push(GrantCard {
            path: part(&grant.id),
            policy: grant.policy.clone().unwrap_or_default(),
            policy_path: grant.policy.as_deref().map(part).unwrap_or_default(),
            servers: grant.servers.as_ref().map(|names| names.join(", ")).unwrap_or_default(),
            sessions: grant.sessions.as_ref().map(ToString::to_string).unwrap_or_default(),
            expires: Moment::of(grant.expires.as_deref()),
            used: ago(visit.language, grant.last_use.as_deref(), now),
            is_expired: end.is_some_and(|end| end <= now),
            effects,
            grant,
        });
    }
    page(&GrantsPage {
        s,
        assets: &assets::VERSION,
        grants: cards,
        policies: policies.into_iter().map(|policy| policy.name).collect(),
        servers: servers.into_iter().map(|server| server.name).collect(),
    })
}

/// How many tools the grant may call, must ask for, and may not call.
async fn effects(
    visit: &Visit,
    s: &Shell,
    grant: &Grant,
) -> Result<Vec<(&'static str, String, usize)>, Problem> {
    let target = format!("/api/v1/grants/{}/permissions", part(&grant.id));
    let summary: Vec<ToolDecision> = visit.list(&target).await?;
    let count = |effect: &str| summary.iter().filter(|it| it.effect == effect).count();
    let all = ["allow", "hold", "deny", "hide"]
        .map(|effect| (effect, s.tr(&format!("effect-{effect}")), count(effect)));
    Ok(all.into_iter().filter(|(_, _, count)| *count > 0).collect())
}

/// Creates a grant, and shows its token once.
pub(crate) async fn create(visit: Visit) -> Outcome {
    let form = &visit.form;
    let mut body = Map::new();
    body.insert("label".to_owned(), form.text("label").into());
    for key in ["policy", "identity", "expires"] {
        if let Some(value) = form.some(key) {
            body.insert(key.to_owned(), value.into());
        }
    }
    let servers = form.all("servers");
    if !servers.is_empty() {
        body.insert("servers".to_owned(), json!(servers));
    }
    let groups = form.words("groups");
    if !groups.is_empty() {
        body.insert("groups".to_owned(), json!(groups));
    }
    let label = form.text("label").to_owned();
    let policy = form.some("policy").map(|it| format!(" --policy {it}")).unwrap_or_default();
    let cli = format!("toolgate grant create {label}{policy}");
    let sent = visit.send(&Method::POST, "/api/v1/grants", &Value::Object(body)).await;
    shown_once(&visit, sent, cli).await
}

/// Replaces the token, and shows the new one once.
pub(crate) async fn rotate(visit: Visit) -> Outcome {
    let id = visit.param("id");
    let target = format!("/api/v1/grants/{}/rotate", part(id));
    let sent = visit.send(&Method::POST, &target, &Value::Null).await;
    let cli = format!("toolgate grant rotate {id}");
    shown_once(&visit, sent, cli).await
}

async fn shown_once(visit: &Visit, sent: Result<Value, Problem>, cli: String) -> Outcome {
    let made = match sent {
        Ok(made) => made,
        refused => return visit.ended(refused, "/grants", String::new()),
    };
    let text = |key: &str| made.at(key).as_str().unwrap_or_default().to_owned();
    let s = Shell::of(visit, "grants").await?;
    let status: Value = visit.get("/api/v1/status").await?;
    let mcp = status.at("mcp").as_str().unwrap_or("http://127.0.0.1:4001").to_owned();
    NewToken::of_grant(s, text("label"), text("token"), &mcp, cli).show()
}

/// Revokes a grant.
pub(crate) async fn revoke(visit: Visit) -> Outcome {
    let target = format!("/api/v1/grants/{}", part(visit.param("id")));
    let sent = visit.send(&Method::DELETE, &target, &Value::Null).await;
    visit.ended(sent, "/grants", visit.tr("done-revoked"))
}

/// Ends the revocation of a grant of the file.
pub(crate) async fn restore(visit: Visit) -> Outcome {
    let target = format!("/api/v1/grants/{}/restore", part(visit.param("id")));
    let sent = visit.send(&Method::POST, &target, &Value::Null).await;
    visit.ended(sent, "/grants", visit.tr("done-restored"))
}

/// Attaches another policy.
pub(crate) async fn attach(visit: Visit) -> Outcome {
    let target = format!("/api/v1/grants/{}", part(visit.param("id")));
    let body = json!({ "policy": visit.form.some("policy") });
    let sent = visit.send(&Method::PATCH, &target, &body).await;
    visit.ended(sent, "/grants", visit.tr("done-attached"))
}
