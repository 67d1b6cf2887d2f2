//! Grants: a card for each, with what an agent with it can do; create, rotate, revoke.

use askama::Template;
use axum::http::Method;
use serde_json::{Map, Value, json};
use toolgate_catalog::trifecta;

use crate::assets;
use crate::items::{Grant, PolicyItem, Server, Tool, ToolDecision};
use crate::look::Look as _;
use crate::pages::token::NewToken;
use crate::problem::Problem;
use crate::shell::Shell;
use crate::shown::{Moment, ago, foreign, shell_word};
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
    most: Most,
    policy_path: String,
}

/// What an agent with a grant can do at most.
#[derive(Default)]
struct Most {
    /// Tools by effect: allow, hold, deny and hide.
    effects: Vec<(&'static str, String, usize)>,
    /// The classes of tools that can be called.
    classes: Vec<(&'static str, String, usize)>,
    /// The limits of tools that can be called.
    limits: Vec<String>,
    is_trifecta: bool,
    /// Its policy is in shadow mode.
    is_shadow: bool,
    /// Through which tools: the label in words, and the tools.
    through: Vec<(String, String)>,
}

const CLASSES: [&str; 6] = ["read", "write", "execute", "destructive", "financial", "other"];
/// How many tools and limits a card names.
const NAMED: usize = 6;

/// The page.
pub(crate) async fn show(visit: Visit) -> Outcome {
    let s = Shell::of(&visit, "grants").await?;
    let grants: Vec<Grant> = visit.list("/api/v1/grants").await?;
    let policies: Vec<PolicyItem> = visit.list("/api/v1/policies").await?;
    let servers: Vec<Server> = visit.list("/api/v1/servers").await?;
    let tools: Vec<Tool> = visit.list("/api/v1/tools").await?;
    let now = visit.console.admin.now();
    let mut cards = Vec::new();
    for grant in grants {
        let most = match grant.revoked {
            None => most(&visit, &s, &grant, &tools).await?,
            Some(_) => Most::default(),
        };
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
            most,
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

/// What an agent with the grant can do at most.
async fn most(visit: &Visit, s: &Shell, grant: &Grant, tools: &[Tool]) -> Result<Most, Problem> {
    let target = format!("/api/v1/grants/{}/permissions", part(&grant.id));
    let all: Vec<ToolDecision> = visit.list(&target).await?;
    let named =
        |prefix: &str, word: &'static str, count| (word, s.tr(&format!("{prefix}-{word}")), count);
    let effects = ["allow", "hold", "deny", "hide"]
        .map(|word| named("effect", word, all.iter().filter(|it| it.effect == word).count()));
    // In shadow mode every call passes, whatever the rules say.
    let is_shadow = grant.policy.as_ref().is_some_and(|policy| s.in_shadow.contains(policy));
    let may = |it: &&ToolDecision| is_shadow || matches!(it.effect.as_str(), "allow" | "hold");
    let usable: Vec<&ToolDecision> = all.iter().filter(may).collect();
    let classes = CLASSES
        .map(|word| named("class", word, usable.iter().filter(|it| it.class == word).count()));
    let of_servers = usable.iter().filter(|it| it.server != "toolgate");
    let limits = of_servers.filter_map(|it| {
        let limits = it.limits.join(", ");
        (!limits.is_empty()).then(|| foreign(&format!("{}/{}: {limits}", it.server, it.tool), 160))
    });
    let labels = usable.iter().filter_map(|it| {
        let is_it = |tool: &&Tool| tool.server == it.server && tool.name == it.tool;
        let labels = tools.iter().find(is_it)?.labels?;
        Some((format!("{}/{}", it.server, it.tool), labels))
    });
    let found = trifecta(labels);
    let through = [
        ("reads-private", &found.reads_private),
        ("ingests-untrusted", &found.ingests_untrusted),
        ("sends-out", &found.sends_out),
    ];
    let list = |names: &[String]| {
        let shown = names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
        foreign(&if names.len() > NAMED { format!("{shown}, …") } else { shown }, 400)
    };
    Ok(Most {
        is_shadow,
        effects: effects.into_iter().filter(|(_, _, count)| *count > 0).collect(),
        classes: classes.into_iter().filter(|(_, _, count)| *count > 0).collect(),
        limits: limits.take(NAMED).collect(),
        is_trifecta: found.present,
        through: through.map(|(key, names)| (s.tr(&format!("label-{key}")), list(names))).to_vec(),
    })
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
    let cli = create_command(&visit);
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

/// The same on the command line.
fn create_command(visit: &Visit) -> String {
    let form = &visit.form;
    let flags = ["policy", "identity", "expires"].into_iter();
    let flags =
        flags.filter_map(|name| Some(format!(" --{name} {}", shell_word(form.some(name)?))));
    let servers = form.all("servers").into_iter();
    let servers = servers.map(|name| format!(" --server {}", shell_word(name)));
    let flags = flags.chain(servers).collect::<String>();
    format!("toolgate grant create {}{flags}", shell_word(form.text("label")))
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
