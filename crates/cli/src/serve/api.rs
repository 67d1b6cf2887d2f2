//! Wires the gateway, its control, the admin API and the console.

use std::sync::Arc;

use axum::Router;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolgate_admin::{Admin, Given};
use toolgate_audit::{ArgumentHashKey, Hash};
use toolgate_config::Config;
use toolgate_console::{Console, ConsoleSettings};
use toolgate_control::{AddedServers, Control, agent_sessions};
use toolgate_gateway::{Admission, Gateway, Metrics};
use toolgate_store::Store;

use super::listeners::Bound;
use super::wire::Wiring;
use super::{random, sessions, store};
use crate::data::DataFolder;

/// Their parts.
pub(crate) struct Parts<'a> {
    pub(crate) store: &'a Arc<dyn Store>,
    pub(crate) secret: &'a ArgumentHashKey,
    pub(crate) data: &'a DataFolder,
    pub(crate) bound: &'a Bound,
    pub(crate) stop: &'a CancellationToken,
}

/// A gateway without servers or grants, its control and the admin API. To be called inside a tokio
/// runtime.
pub(crate) fn control(
    parts: &Parts<'_>,
    config: &Config,
    children: &TaskTracker,
) -> anyhow::Result<(Arc<Control>, Arc<Admin>)> {
    let store = Arc::clone(parts.store);
    let (ids, clock) = (Arc::new(random::SystemIds::default()), Arc::new(store::SystemClock));
    let writing = store::recording(&config.audit, parts.secret);
    let id_source = Arc::clone(&ids);
    let admission =
        Arc::new(Admission::new(Arc::clone(&store), Arc::clone(&clock) as _, id_source, writing));
    let metrics = Metrics::default();
    let wiring = Wiring::new(metrics.clone(), children.clone());
    let gateway = Gateway::new(ids, metrics, agent_sessions(config), admission);
    let control = Control::new(toolgate_control::Parts {
        store,
        gateway: Arc::clone(&gateway),
        wiring: Box::new(wiring),
        added_servers: AddedServers::new(parts.data.path()),
        bound: parts.bound.listen.clone(),
        admin_token: Hash::of(parts.data.read_admin_token()?.as_bytes()),
    });
    let admin = Admin::new(Given {
        control: Arc::clone(&control),
        clock,
        random: random::bits,
        sessions: Some(session_items(&gateway)),
        started: Timestamp::now(),
        facts: facts(parts.bound, config),
        stop: parts.stop.clone(),
        verify: {
            let folder = parts.data.path().to_owned();
            Arc::new(move || toolgate_store_sqlite::verify(&folder, Vec::new()))
        },
    });
    Ok((control, admin))
}

/// The paths of the admin listener: the API and the console.
pub(crate) fn router(admin: &Arc<Admin>, bound: &Bound, config: &Config) -> Router {
    let settings =
        ConsoleSettings { https: bound.is_https(), public_url: config.public_url.clone() };
    let console = Console::new(Arc::clone(admin), settings);
    toolgate_admin::router(Arc::clone(admin)).merge(toolgate_console::router(console))
}

/// The items of the list of sessions.
fn session_items(gateway: &Arc<Gateway>) -> Arc<toolgate_admin::Sessions> {
    let gateway = Arc::downgrade(gateway);
    Arc::new(move || {
        let gateway = gateway.upgrade();
        let driver = gateway.as_ref().and_then(|gateway| gateway.session_driver());
        driver.map(|driver| sessions::items(&driver.operator_list())).unwrap_or_default()
    })
}

fn facts(bound: &Bound, config: &Config) -> Map<String, Value> {
    let mut facts = Map::new();
    let metrics = bound.listen.metrics.map(|address| address.to_string());
    facts.insert(
        "listeners".to_owned(),
        json!({
            "mcp": bound.mcp, "sessions": bound.sessions, "admin": bound.admin, "metrics": metrics,
        }),
    );
    facts.insert("mcp".to_owned(), bound.mcp.clone().into());
    facts.insert("sessions".to_owned(), bound.sessions.clone().into());
    facts.insert("admin".to_owned(), bound.admin.clone().into());
    facts.insert("pid".to_owned(), std::process::id().into());
    facts.insert("durability".to_owned(), config.audit.durability_name().into());
    facts
}
