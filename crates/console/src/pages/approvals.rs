//! Approvals: the inbox, standing exceptions, and the answers of people.

use askama::Template;
use axum::http::Method;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::assets;
use crate::pages::policy::rule_href;
use crate::shell::Shell;
use crate::shown::{Moment, duration, foreign, laid_out};
use crate::visit::{Outcome, Visit, page, part};

#[derive(Template)]
#[template(path = "approvals.html")]
struct Approvals {
    s: Shell,
    assets: &'static str,
    pending: Vec<Held>,
    others: Vec<Held>,
    standing: Vec<Standing>,
}

/// An approval of the API, as far as pages show it.
#[derive(Deserialize)]
pub(crate) struct Item {
    pub(crate) id: String,
    pub(crate) state: String,
    pub(crate) grant: String,
    pub(crate) identity: Option<String>,
    pub(crate) client: Option<String>,
    pub(crate) server: String,
    pub(crate) session_id: Option<String>,
    pub(crate) tool: String,
    /// As they were hashed; a reader that parses numbers would show others.
    pub(crate) arguments: Option<Box<RawValue>>,
    pub(crate) digest: String,
    pub(crate) class: String,
    pub(crate) rule: String,
    pub(crate) policy: Option<String>,
    pub(crate) approvers: Vec<String>,
    pub(crate) people: usize,
    pub(crate) note: Option<String>,
    pub(crate) created: String,
    pub(crate) expires: String,
}

/// A standing exception of the API.
#[derive(Deserialize)]
struct StandingItem {
    id: String,
    grant: String,
    server: String,
    tool: String,
    keep: Vec<String>,
    person: String,
    expires: String,
}

struct Standing {
    id: String,
    path: String,
    grant: String,
    what: String,
    keep: String,
    person: String,
    expires: Option<Moment>,
}

/// A held call.
pub(crate) struct Held {
    pub(crate) id: String,
    pub(crate) path: String,
    pub(crate) is_pending: bool,
    pub(crate) state: String,
    pub(crate) state_text: String,
    pub(crate) grant: String,
    /// Identity and client, if they are known.
    pub(crate) who: String,
    pub(crate) what: String,
    pub(crate) tool_href: String,
    pub(crate) class: String,
    pub(crate) class_text: String,
    pub(crate) rule: String,
    pub(crate) rule_href: String,
    pub(crate) note: String,
    pub(crate) arguments: String,
    pub(crate) digest: String,
    pub(crate) created: Option<Moment>,
    pub(crate) left: String,
}

/// The inbox.
pub(crate) async fn show(visit: Visit) -> Outcome {
    let s = Shell::of(&visit, "approvals").await?;
    let pending: Vec<Item> = visit.list("/api/v1/approvals?state=pending&limit=200").await?;
    let mut others: Vec<Item> = visit.list("/api/v1/approvals?limit=10000").await?;
    others.retain(|item| item.state != "pending");
    others.reverse();
    others.truncate(50);
    let standing: Vec<StandingItem> = visit.list("/api/v1/approvals/standing").await?;
    page(&Approvals {
        assets: &assets::VERSION,
        pending: pending.iter().map(|item| held(&visit, &s, item)).collect(),
        others: others.iter().map(|item| held(&visit, &s, item)).collect(),
        standing: standing.into_iter().map(Standing::of).collect(),
        s,
    })
}

/// A held call as pages show it.
pub(crate) fn held(visit: &Visit, s: &Shell, item: &Item) -> Held {
    let expires = item.expires.parse::<jiff::Timestamp>().ok();
    let left = expires.map(|end| end.duration_since(visit.console.admin.now()));
    let left = left.filter(|left| left.is_positive() && item.state == "pending");
    let server = item.session_id.as_deref().unwrap_or(&item.server);
    let raw = item.arguments.as_ref().map(|raw| laid_out(raw.get())).unwrap_or_default();
    let who = [&item.identity, &item.client].into_iter().flatten();
    Held {
        path: format!("/approvals/{}", part(&item.id)),
        id: item.id.clone(),
        is_pending: item.state == "pending",
        state_text: s.tr(&format!("approval-{}", item.state)),
        state: item.state.clone(),
        grant: foreign(&item.grant, 80),
        who: who.map(|it| foreign(it, 80)).collect::<Vec<_>>().join(", "),
        what: foreign(&format!("{server}/{}", item.tool), 200),
        tool_href: format!("/tools/{}/{}", part(&item.server), part(&item.tool)),
        class_text: s.tr(&format!("class-{}", item.class)),
        class: item.class.clone(),
        rule_href: rule_href(item.policy.as_deref().unwrap_or_default(), &item.rule),
        rule: foreign(&item.rule, 200),
        note: foreign(item.note.as_deref().unwrap_or_default(), 500),
        arguments: foreign(&raw, 20_000),
        digest: item.digest.clone(),
        created: Moment::of(Some(&item.created)),
        left: left.map(|left| duration(visit.language, left)).unwrap_or_default(),
    }
}

impl Standing {
    fn of(item: StandingItem) -> Self {
        Self {
            path: part(&item.id),
            grant: foreign(&item.grant, 80),
            what: foreign(&format!("{}/{}", item.server, item.tool), 200),
            keep: foreign(&item.keep.join(", "), 300),
            person: foreign(&item.person, 80),
            expires: Moment::of(Some(&item.expires)),
            id: item.id,
        }
    }
}

/// Approves, also similar calls for a while if the form asks for it.
pub(crate) async fn approve(visit: Visit) -> Outcome {
    let mut body = json!({});
    if let (Some(time), Some(body)) = (visit.form.some("similar"), body.as_object_mut()) {
        let similar = json!({ "for": time, "keep": visit.form.all("keep") });
        body.insert("similar".to_owned(), similar);
    }
    answer(visit, "approve", body, "done-approved").await
}

/// Denies.
pub(crate) async fn deny(visit: Visit) -> Outcome {
    answer(visit, "deny", json!({}), "done-denied").await
}

async fn answer(visit: Visit, verb: &str, mut body: Value, key: &str) -> Outcome {
    let target = format!("/api/v1/approvals/{}/{verb}", part(visit.param("id")));
    if let (Some(reason), Some(body)) = (visit.form.some("reason"), body.as_object_mut()) {
        body.insert("reason".to_owned(), reason.into());
    }
    let sent = visit.send(&Method::POST, &target, &body).await;
    visit.ended(sent, &visit.back("/approvals"), visit.tr(key))
}

/// Ends a standing exception.
pub(crate) async fn end_standing(visit: Visit) -> Outcome {
    let target = format!("/api/v1/approvals/standing/{}", part(visit.param("id")));
    let sent = visit.send(&Method::DELETE, &target, &Value::Null).await;
    visit.ended(sent, "/approvals", visit.tr("done-standing-ended"))
}
