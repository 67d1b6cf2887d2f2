//! Approvals: the inbox, and one held call with what it would do.

use askama::Template;
use axum::http::Method;
use serde_json::{Value, json};

use crate::assets;
use crate::look::Look as _;
use crate::problem::Problem;
use crate::shell::Shell;
use crate::shown::{Moment, duration, foreign};
use crate::visit::{Outcome, Visit, page, part};

#[derive(Template)]
#[template(path = "approvals.html")]
struct Approvals {
    s: Shell,
    assets: &'static str,
    pending: Vec<Held>,
    others: Vec<Held>,
}

#[derive(Template)]
#[template(path = "approval.html")]
struct ApprovalPage {
    s: Shell,
    assets: &'static str,
    held: Held,
    more: Vec<(String, String)>,
}

/// A held call.
struct Held {
    id: String,
    path: String,
    is_pending: bool,
    state: String,
    state_text: String,
    grant: String,
    what: String,
    tool_href: String,
    class: String,
    class_text: String,
    rule: String,
    arguments: String,
    digest: String,
    created: Option<Moment>,
    left: String,
}

/// The inbox.
pub(crate) async fn show(visit: Visit) -> Outcome {
    let s = Shell::of(&visit, "approvals").await?;
    let items = match visit.list::<Value>("/api/v1/approvals").await {
        Ok(items) => items,
        Err(Problem::Refused(_)) => Vec::new(),
        Err(other) => return Err(other),
    };
    let held: Vec<Held> = items.iter().map(|item| of(&visit, &s, item)).collect();
    let (pending, mut others): (Vec<_>, Vec<_>) = held.into_iter().partition(|it| it.is_pending);
    others.reverse();
    others.truncate(50);
    page(&Approvals { s, assets: &assets::VERSION, pending, others })
}

/// One held call.
pub(crate) async fn one(visit: Visit) -> Outcome {
    let s = Shell::of(&visit, "approvals").await?;
    let item: Value = visit.get(&format!("/api/v1/approvals/{}", part(visit.param("id")))).await?;
    let known = [
        "id",
        "state",
        "grant",
        "server",
        "tool",
        "class",
        "rule",
        "arguments",
        "created",
        "digest",
    ];
    let more = item.as_object().into_iter().flatten();
    let more = more.filter(|(key, value)| !known.contains(&key.as_str()) && !value.is_null());
    let shown = |value: &Value| match value {
        Value::String(text) => foreign(text, 2_000),
        other => foreign(&format!("{other:#}"), 4_000),
    };
    let more = more.map(|(key, value)| (key.replace('_', " "), shown(value))).collect();
    let held = of(&visit, &s, &item);
    page(&ApprovalPage { s, assets: &assets::VERSION, held, more })
}

fn of(visit: &Visit, s: &Shell, item: &Value) -> Held {
    let text = |key: &str| item.at(key).as_str().unwrap_or_default().to_owned();
    let (state, class) = (text("state"), text("class"));
    let expires = item.at("expires").as_str().and_then(|it| it.parse::<jiff::Timestamp>().ok());
    let left = expires.map(|end| end.duration_since(visit.console.admin.now()));
    let left = left.filter(jiff::SignedDuration::is_positive);
    let arguments = match &item.at("arguments") {
        Value::Null => String::new(),
        Value::String(raw) => raw.clone(),
        other => format!("{other:#}"),
    };
    Held {
        path: format!("/approvals/{}", part(&text("id"))),
        id: text("id"),
        is_pending: state == "pending",
        state_text: s.tr(&format!("approval-{state}")),
        state,
        grant: foreign(&text("grant"), 80),
        what: foreign(&format!("{}/{}", text("server"), text("tool")), 200),
        tool_href: format!("/tools/{}/{}", part(&text("server")), part(&text("tool"))),
        class_text: s.tr(&format!("class-{class}")),
        class,
        rule: foreign(&text("rule"), 200),
        arguments: foreign(&arguments, 20_000),
        digest: text("digest"),
        created: Moment::of(item.at("created").as_str()),
        left: left.map(|left| duration(visit.language, left)).unwrap_or_default(),
    }
}

/// Approves.
pub(crate) async fn approve(visit: Visit) -> Outcome {
    answer(visit, "approve", "done-approved").await
}

/// Denies.
pub(crate) async fn deny(visit: Visit) -> Outcome {
    answer(visit, "deny", "done-denied").await
}

async fn answer(visit: Visit, verb: &str, key: &str) -> Outcome {
    let target = format!("/api/v1/approvals/{}/{verb}", part(visit.param("id")));
    let body = match visit.form.some("reason") {
        Some(reason) => json!({ "reason": reason }),
        None => json!({}),
    };
    let sent = visit.send(&Method::POST, &target, &body).await;
    visit.ended(sent, &visit.back("/approvals"), visit.tr(key))
}
