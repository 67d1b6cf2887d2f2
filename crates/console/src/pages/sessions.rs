//! Sessions: programs that dialled in.

use askama::Template;
use jiff::SignedDuration;
use serde_json::Value;

use crate::assets;
use crate::look::Look as _;
use crate::shell::Shell;
use crate::shown::{duration, foreign};
use crate::visit::{Outcome, Visit, page};

mod why;

use why::Why;

#[derive(Template)]
#[template(path = "sessions.html")]
struct SessionsPage {
    s: Shell,
    assets: &'static str,
    sessions: Vec<SessionLine>,
    address: String,
    why: Why,
}

/// A session in the list.
pub(crate) struct SessionLine {
    pub(crate) id: String,
    pub(crate) base: String,
    pub(crate) kind: String,
    host: String,
    pub(crate) state: String,
    state_text: String,
    tools: String,
    queued: String,
    in_flight: String,
    last: String,
    address: String,
    pub(crate) is_conflict: bool,
}

/// The page.
pub(crate) async fn show(visit: Visit) -> Outcome {
    let (s, status) = Shell::and_status(&visit, "sessions").await?;
    let items: Vec<Value> = visit.list("/api/v1/sessions").await?;
    let line = |item: &Value| {
        let text = |key: &str| foreign(item.at(key).as_str().unwrap_or_default(), 120);
        let size = |key: &str| match &item.at(key) {
            Value::Number(n) => n.to_string(),
            Value::Array(all) => all.len().to_string(),
            _ => String::new(),
        };
        let state = text("state");
        let last = item.at("last_answer_secs_ago").as_i64();
        SessionLine {
            id: text("session_id"),
            base: text("infobase_name"),
            kind: text("kind"),
            host: text("host_id"),
            state_text: s.tr(&format!("session-{state}")),
            state,
            tools: size("tools"),
            queued: size("queued"),
            in_flight: size("inflight"),
            last: last
                .map(|seconds| duration(visit.language, SignedDuration::from_secs(seconds)))
                .unwrap_or_default(),
            address: first_text(item, &["address", "peer", "remote"]),
            is_conflict: item.at("conflict").is_array(),
        }
    };
    let sessions: Vec<SessionLine> = items.iter().map(line).collect();
    let why = Why::of(&visit, &s, &items, &sessions).await?;
    let address = status.at("sessions").as_str().unwrap_or_default().to_owned();
    page(&SessionsPage { s, assets: &assets::VERSION, sessions, address, why })
}

fn first_text(item: &Value, keys: &[&str]) -> String {
    keys.iter().find_map(|key| item.at(key).as_str()).map(|it| foreign(it, 80)).unwrap_or_default()
}
