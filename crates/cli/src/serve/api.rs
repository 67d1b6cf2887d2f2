//! Makes the gateway and the admin API, and what puts the file and the store in force in them.

use std::sync::Arc;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolgate_admin::{Admin, Given, Tried};
use toolgate_audit::{ArgumentHashKey, Hash};
use toolgate_config::Config;
use toolgate_gateway::{Admission, Gateway, Metrics};
use toolgate_store::Store;

use super::data::DataFolder;
use super::entries::KeptServers;
use super::listeners::Bound;
use super::setup::Setup;
use super::wire::{self, Wiring};
use super::{random, sessions, store};

/// What they are made of.
pub(crate) struct Parts<'a> {
    pub(crate) store: &'a Arc<dyn Store>,
    pub(crate) secret: &'a ArgumentHashKey,
    pub(crate) data: &'a DataFolder,
    pub(crate) bound: &'a Bound,
    pub(crate) stop: &'a CancellationToken,
}

/// A gateway without servers that knows nobody, and what will change that. To be made inside a tokio
/// runtime.
pub(crate) fn setup(
    parts: &Parts<'_>,
    config: &Config,
    children: &TaskTracker,
) -> anyhow::Result<Arc<Setup>> {
    let store = Arc::clone(parts.store);
    let (ids, clock) = (Arc::new(random::SystemIds::default()), Arc::new(store::SystemClock));
    let writing = store::writing(&config.audit, parts.secret);
    let id_source = Arc::clone(&ids);
    let admission =
        Arc::new(Admission::new(Arc::clone(&store), Arc::clone(&clock) as _, id_source, writing));
    let metrics = Metrics::default();
    let wiring = Wiring::new(metrics.clone(), children.clone());
    let limits = wire::agent_sessions(config);
    let gateway = Gateway::new(ids, metrics, limits, admission);
    let entries = Arc::new(KeptServers::new(parts.data.path()));
    let tried = Arc::new(Tried::default());
    let admin = Admin::new(Given {
        store: Arc::clone(&store),
        gateway: Arc::clone(&gateway),
        clock,
        random: random::bits,
        entries: Arc::clone(&entries) as _,
        sessions: Some(session_items(&gateway)),
        facts: facts(parts.bound, config),
        tried: Arc::clone(&tried),
        stop: parts.stop.clone(),
    });
    let admin_token = Hash::of(parts.data.read_admin_token()?.as_bytes());
    let state = tokio::sync::Mutex::default();
    let bound = parts.bound.listen.clone();
    let setup = Setup { store, gateway, admin, wiring, entries, bound, admin_token, tried, state };
    let setup = Arc::new(setup);
    let known = Arc::downgrade(&setup);
    setup.gateway.admission().set_refresh(Box::new(move || {
        let known = known.clone();
        Box::pin(async move {
            match known.upgrade() {
                Some(setup) => setup.refresh().await,
                None => Err("toolgate is stopping".to_owned()),
            }
        })
    }));
    Ok(setup)
}

/// The items of the list of sessions, as soon as there can be any.
fn session_items(gateway: &Arc<Gateway>) -> Arc<toolgate_admin::Sessions> {
    let gateway = Arc::downgrade(gateway);
    Arc::new(move || {
        let gateway = gateway.upgrade();
        let sessions = gateway.as_ref().and_then(|gateway| gateway.sessions());
        sessions.map(|sessions| sessions::items(&sessions.operator_list())).unwrap_or_default()
    })
}

fn facts(bound: &Bound, config: &Config) -> Map<String, Value> {
    let mut facts = Map::new();
    facts.insert("mcp".to_owned(), bound.mcp.clone().into());
    facts.insert("sessions".to_owned(), bound.sessions.clone().into());
    facts.insert("admin".to_owned(), bound.admin.clone().into());
    facts.insert("pid".to_owned(), std::process::id().into());
    facts.insert("durability".to_owned(), config.audit.durability.as_str().into());
    facts
}
