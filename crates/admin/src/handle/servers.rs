//! Servers: list, add, remove, test.
//!
//! Only an admin may add one: a server's entry can run any program.

use jiff::{SignedDuration, Timestamp, Unit};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use toolgate_control::{Finding, SERVERS};
use toolgate_control::{Origin, ServerItem, View};
use toolgate_gateway::KnownServer;
use toolgate_store::{Change, Document};

use crate::api::Ask;
use crate::fault::{Fault, Flaw};
use crate::reply::{Answer, Listed, created, done, ok, page};
use crate::suggest::unknown;

/// The result of testing a server.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Tested {
    /// Whether it answered.
    ok: bool,
    /// Its tools, by its own names.
    tools: Vec<String>,
    /// How long it took, in milliseconds.
    ms: u64,
    /// The error.
    message: Option<String>,
}

pub(crate) async fn list(ask: Ask) -> Answer {
    let known = ask.admin.gateway().known_servers();
    let mut items = ask.admin.view().servers.clone();
    let now = ask.admin.now();
    for item in &mut items {
        if let Some(known) = known.iter().find(|server| server.name == item.name) {
            add_state(item, known, now);
        }
    }
    let freezes = &ask.admin.view().freezes;
    let frozen = |item: &ServerItem| {
        freezes.iter().any(|it| it.all || it.server.as_deref() == Some(&item.name))
    };
    page(items.into_iter().map(|item| Listed { frozen: frozen(&item), item }).collect(), &ask.query)
}

/// Adds what the gateway knows of a server.
fn add_state(item: &mut ServerItem, known: &KnownServer, now: Timestamp) {
    let status = &known.status;
    item.tools = known.tools;
    (item.state, item.running) = (status.state.as_str(), status.running);
    item.retry_after_s = status.retry_after.map(|wait| wait.as_secs() + 1);
    let Some(error) = &status.last_error else { return };
    item.last_error = Some(error.why.clone());
    let ago = SignedDuration::try_from(error.ago).unwrap_or_default();
    let at = now.checked_sub(ago).unwrap_or(now).round(Unit::Second);
    item.last_error_at = at.ok().map(|at| at.to_string());
}

pub(crate) async fn add(ask: Ask) -> Answer {
    let mut entry: Map<String, Value> = ask.json()?;
    let Some(Value::String(name)) = entry.remove("name") else {
        return Err(Fault::bad_request("`name` must be a string"));
    };
    let _turn = ask.admin.turn.lock().await;
    let view = ask.admin.view();
    if view.servers.iter().any(|server| server.name == name) {
        return Err(Fault::conflict(format!("there is a server `{name}` already")));
    }
    let entry = Value::Object(entry).to_string();
    let wrong = |findings: Vec<Finding>| {
        let flaws = findings.iter().map(Flaw::of).collect();
        Fault::unprocessable("the server's entry is not valid", flaws)
    };
    ask.admin.given.control.added_servers().check(&name, &entry).map_err(wrong)?;
    let mut row = ask.row(&format!("added the server `{name}`"));
    row.server = Some(name.as_str().into());
    let key = name.as_str().into();
    let kept = Document { space: SERVERS.into(), key, json: entry.as_str().into() };
    ask.change(Change::PutDocument(kept), row).await?;
    created(find(&ask.admin.view(), &name)?)
}

pub(crate) async fn remove(ask: Ask) -> Answer {
    let name = ask.param("name");
    let _turn = ask.admin.turn.lock().await;
    let view = ask.admin.view();
    if find(&view, name)?.source == Origin::File {
        let why = "comes from toolgate.yaml; remove it there";
        return Err(Fault::conflict(format!("the server `{name}` {why}")));
    }
    let mut row = ask.row(&format!("removed the server `{name}`"));
    row.server = Some(name.into());
    ask.change(Change::RemoveDocument(SERVERS.into(), name.into()), row).await?;
    done()
}

pub(crate) async fn test(ask: Ask) -> Answer {
    let name = ask.param("name");
    find(&ask.admin.view(), name)?;
    let began = tokio::time::Instant::now();
    let tried = ask.admin.gateway().test_server(name).await;
    let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    ok(&match tried {
        Ok(tools) => Tested { ok: true, tools, ms, message: None },
        Err(why) => Tested { ok: false, tools: Vec::new(), ms, message: Some(why.to_string()) },
    })
}

fn find<'v>(view: &'v View, name: &str) -> Result<&'v ServerItem, Fault> {
    let found = view.servers.iter().find(|server| server.name == name);
    let names = view.servers.iter().map(|server| server.name.as_str());
    found.ok_or_else(|| unknown("server", name, names))
}
