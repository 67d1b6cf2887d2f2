//! Servers: list, add, remove, test.
//!
//! Only an admin may add one: a server's entry can run any program.

use jiff::{SignedDuration, Timestamp, Unit};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use toolgate_catalog::{Definition, Labels, classify, hidden_text};
use toolgate_control::{Finding, NotUsable, SERVERS};
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

/// The last lines of a server.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ServerLog")]
pub(crate) struct Log {
    /// At most 100 lines.
    lines: Vec<String>,
}

/// What a server offers that is not added yet.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ServerLook")]
pub(crate) struct Looked {
    /// Whether it answered.
    ok: bool,
    /// Its tools.
    tools: Vec<Offered>,
    /// The error.
    message: Option<String>,
}

/// A tool of such a server.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "OfferedTool")]
struct Offered {
    /// The server's own name of it.
    name: String,
    /// Risk class.
    class: &'static str,
    /// `low`, `medium`, `high` or `critical`.
    level: &'static str,
    /// What it can do with data: `reads_private`, `ingests_untrusted`, `sends_out`.
    #[schemars(with = "Vec<String>")]
    labels: Labels,
    /// Characters in its definition that people do not see.
    hidden: usize,
}

/// A server that was added, with the warnings of its entry.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AddedServer")]
pub(crate) struct Added {
    #[serde(flatten)]
    item: ServerItem,
    /// Warnings about the entry.
    problems: Vec<Flaw>,
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
    let checked = ask.admin.given.control.added_servers().check(&name, &entry);
    let warnings = checked.map_err(|findings| wrong(&findings))?;
    let mut row = ask.row(&format!("added the server `{name}`"));
    row.server = Some(name.as_str().into());
    let key = name.as_str().into();
    let kept = Document { space: SERVERS.into(), key, json: entry.as_str().into() };
    ask.change(Change::PutDocument(kept), row).await?;
    let item = find(&ask.admin.view(), &name)?.clone();
    created(&Added { item, problems: warnings.iter().map(Flaw::of).collect() })
}

/// Everything that is wrong with an entry.
fn wrong(findings: &[Finding]) -> Fault {
    let flaws = findings.iter().map(Flaw::of).collect();
    Fault::unprocessable("the server's entry is not valid", flaws)
}

/// Starts a server, lists its tools and ends it; nothing of it is kept but the row.
pub(crate) async fn look(ask: Ask) -> Answer {
    let mut entry: Map<String, Value> = ask.json()?;
    let Some(Value::String(name)) = entry.remove("name") else {
        return Err(Fault::bad_request("`name` must be a string"));
    };
    let entry = Value::Object(entry).to_string();
    let server = ask.admin.given.control.unadded_server(&name, &entry).await;
    let server = server.map_err(|why| match why {
        NotUsable::Entry(findings) => wrong(&findings),
        NotUsable::Wiring(why) => Fault::bad_request(why.to_string()),
    })?;
    let mut row = ask.row(&format!("started the server `{name}` to look at its tools"));
    row.server = Some(name.as_str().into());
    ask.check_person()?;
    ask.admin.store().record(row).await?;
    ok(&match ask.admin.gateway().look_at(&server).await {
        Ok(raw) => Looked {
            ok: true,
            tools: raw.iter().map(|it| Offered::of(it)).collect(),
            message: None,
        },
        Err(why) => Looked { ok: false, tools: Vec::new(), message: Some(why.to_string()) },
    })
}

impl Offered {
    fn of(raw: &str) -> Self {
        let definition = Definition::parse(raw).unwrap_or_else(|_| Definition::named("?"));
        let found = classify(&definition);
        Self {
            name: definition.name.to_string(),
            class: found.class.as_str(),
            level: found.level.as_str(),
            labels: found.labels,
            hidden: hidden_text(raw).len(),
        }
    }
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

pub(crate) async fn log(ask: Ask) -> Answer {
    let name = ask.param("name");
    find(&ask.admin.view(), name)?;
    ok(&Log { lines: ask.admin.gateway().server_log(name) })
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
