//! Tasks on `/mcp`: calls that go on after their answer, at whichever server they were made.
//!
//! A task is shown under an id that says its server and its grant, sealed; the same task has the
//! same id wherever it is shown. Both kinds of tasks are meant: those of 2025-11-25, which can be
//! listed, and those of the extension of 2026-07-28.
//!
//! Invariant: a task is reached by the grant that it was shown to, and by no other.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use memchr::memmem;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::timeout;
use toolgate_mcp::{Edit, items, members, method, peek, text, write};

use crate::agent::AgentSession;
use crate::call::Work;
use crate::link::Link;
use crate::on_behalf;
use crate::outlet::Outlet;
use crate::seal::{Seal, TASKS};
use crate::server::Server;
use crate::shown::show_uris;

/// Where a message says which task it belongs to.
const RELATED: &str = "io.modelcontextprotocol/related-task";
/// The same id is to come out each time; the cipher stands it.
const ALWAYS: [u8; 10] = [0; 10];
/// How long a server may take to list its tasks, and how much it may say.
const LISTING: Duration = Duration::from_millis(1_500);
const MAX_PAGES: usize = 10;

/// Whether this may say something of a task; most plainly does not.
pub(crate) fn may_show(json: &str) -> bool {
    memmem::find(json.as_bytes(), b"\"taskId\"").is_some()
}

/// What a server says of tasks (`params` or `result`), as the agent is to see it; none if it says
/// nothing of any.
pub(crate) fn show(session: &AgentSession, server: &Server, json: &str) -> Option<String> {
    let parts = ["taskId", "status", "task", "tasks", "_meta", "result"];
    let [flat, status, task, tasks, meta, result] = members(json, parts).ok()?;
    let mut ids: Vec<&str> = flat.filter(|_| status.is_some()).into_iter().collect();
    ids.extend(task.and_then(|task| peek(task, &["taskId"]).ok().flatten()));
    for task in tasks.and_then(|all| items(all).ok()?).unwrap_or_default() {
        ids.extend(peek(task, &["taskId"]).ok().flatten());
    }
    ids.extend(meta.and_then(|meta| peek(meta, &[RELATED, "taskId"]).ok().flatten()));
    if ids.is_empty() {
        return None;
    }
    let mut edit = Edit::new(json);
    for raw in ids {
        let shown = shown_id(session, server.name(), &text(raw)?)?;
        edit = edit.replace(raw, write::quote(&shown)).ok()?;
    }
    if let Some(result) = result
        && let Some(shown) = show_uris(result, &server.naming)
    {
        edit = edit.replace(result, shown).ok()?;
    }
    Some(String::from_utf8_lossy(&edit.finish()).into_owned())
}

/// The server of a task, and what it calls it; none if it was not shown to this grant.
pub(super) fn own_id(session: &AgentSession, shown: &str) -> Option<(String, String)> {
    let opened = Seal::new(&session.admission().secret(), TASKS)?.open(shown)?;
    let [grant, server, own] = serde_json::from_str::<[String; 3]>(&opened).ok()?;
    (*session.grant().label == *grant).then_some((server, own))
}

fn shown_id(session: &AgentSession, server: &str, own: &str) -> Option<String> {
    let what = json!([&*session.grant().label, server, own]).to_string();
    Seal::new(&session.admission().secret(), TASKS)?.close(&what, ALWAYS)
}

/// Lists the tasks of all servers that keep a list for this agent alone.
pub(super) fn list(session: &Arc<AgentSession>, id: &str, outlet: &Arc<Outlet>) -> Work {
    let (session, outlet, id) = (Arc::clone(session), Arc::clone(outlet), id.to_owned());
    Box::pin(async move {
        let mut asked = JoinSet::new();
        for (place, link) in session.links().iter().enumerate() {
            let offer = link.server().offers.of(link.audience());
            let lists = offer.is_some_and(|offer| offer.can("tasks"));
            // Where agents share a server its list has what others have begun.
            if lists && link.is_up() && !link.is_shared() && !link.speaks_modern() {
                let (link, session) = (Arc::clone(link), Arc::clone(&session));
                asked.spawn(async move {
                    let listing = tasks_of(&session, &link);
                    let tasks = timeout(LISTING, listing).await.unwrap_or_default();
                    (place, link, tasks)
                });
            }
        }
        let mut all = BTreeMap::new();
        while let Some(answered) = asked.join_next().await {
            let Ok((place, link, tasks)) = answered else { continue };
            let shown = tasks.iter().filter_map(|task| show(&session, link.server(), task));
            all.insert(place, shown.collect::<Vec<_>>());
        }
        let all = all.into_values().flatten().collect::<Vec<_>>().join(",");
        outlet.answer(write::result(&id, &format!(r#"{{"tasks":[{all}]}}"#)), None);
    })
}

async fn tasks_of(session: &Arc<AgentSession>, link: &Arc<Link>) -> Vec<String> {
    let (mut all, mut cursor) = (Vec::new(), None);
    for _ in 0..MAX_PAGES {
        let params = cursor.take().map(|cursor: String| format!(r#"{{"cursor":{cursor}}}"#));
        let asking = on_behalf::ask(session, link, method::TASKS_LIST, params.as_deref());
        let Some(answer) = asking.await else { break };
        let answer = String::from_utf8_lossy(&answer);
        let result = peek(&answer, &["result"]).ok().flatten().unwrap_or("{}");
        let [tasks, next] = members(result, ["tasks", "nextCursor"]).unwrap_or_default();
        let tasks = tasks.and_then(|raw| items(raw).ok()?).unwrap_or_default();
        all.extend(tasks.into_iter().map(str::to_owned));
        cursor = next.filter(|raw| raw.starts_with('"')).map(str::to_owned);
        if cursor.is_none() {
            break;
        }
    }
    all
}
