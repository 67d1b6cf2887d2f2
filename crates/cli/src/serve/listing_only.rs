//! A gateway that only lists: for `scan` and `doctor`. It has no data folder, no grants and no policy, so nothing
//! but lists can be requested, and its children are started and isolated as those of `serve`.

use std::sync::Arc;

use anyhow::anyhow;
use jiff::Timestamp;
use thiserror::Error;
use tokio_util::task::TaskTracker;
use toolgate_audit::ArgumentHashKey;
use toolgate_config::Config;
use toolgate_control::{Wiring as _, agent_sessions};
use toolgate_gateway::{Admission, Gateway, Metrics};
use toolgate_store::{Document, Engine, EngineSettings, MemoryBackend, Store};

use super::wire::Wiring;
use super::{CLOSE_TIMEOUT, core_dumps, random, store};

/// Why a server was not listed, in words for people.
#[derive(Debug, Clone, Error)]
#[error("{0}")]
pub(crate) struct NotListed(pub(crate) String);

impl NotListed {
    /// The same for people who know the server by another name than this gateway.
    pub(crate) fn under_its_name(self, here: &str, name: &str) -> Self {
        let text = self.0.replacen(&format!("server `{here}`"), "it", 1);
        Self(text.replace(&format!("`{here}`"), &format!("`{name}`")))
    }
}

/// The gateway and its children.
pub(crate) struct ListingGateway {
    gateway: Arc<Gateway>,
    children: TaskTracker,
}

impl ListingGateway {
    /// Starts it with the servers of a configuration. To be called inside a tokio runtime.
    pub(crate) fn start(config: &Config) -> anyhow::Result<Self> {
        core_dumps::off();
        let (backend, settings) = (MemoryBackend::without_rows(), EngineSettings::default());
        let engine = Engine::inline(backend, settings, Timestamp::now())?;
        let store: Arc<dyn Store> = Arc::new(engine);
        let secret = ArgumentHashKey(random::bytes()?);
        let ids = Arc::new(random::SystemIds::default());
        let recording = store::recording(&config.audit, &secret);
        let clock = Arc::new(store::SystemClock);
        let admission = Arc::new(Admission::new(store, clock, Arc::clone(&ids) as _, recording));
        let (metrics, children) = (Metrics::default(), TaskTracker::new());
        let wiring = Wiring::new(metrics.clone(), children.clone());
        let gateway = Gateway::new(ids, metrics, agent_sessions(config), admission);
        let mut servers = Vec::new();
        for server in &config.servers {
            let made = wiring.server(server, &config.limits);
            servers.push(made.map_err(|why| anyhow!("a server cannot be set up: {why}"))?);
        }
        gateway.apply(servers, agent_sessions(config));
        Ok(Self { gateway, children })
    }

    /// The definitions of a server's tools, as the server wrote them.
    pub(crate) async fn definitions(&self, server: &str) -> Result<Vec<String>, NotListed> {
        self.gateway.list_definitions(server).await.map_err(|why| NotListed(why.to_string()))
    }

    /// Judges what is listed by the definitions that a data folder holds: those that were recorded, and
    /// those that people approved.
    pub(crate) fn restore(&self, recorded: &[Document], approved: &[Document]) {
        self.gateway.restore_pins(recorded);
        self.gateway.set_approved_tools(approved);
    }

    /// The quarantined tools of a server that was listed, and why.
    pub(crate) fn quarantined(&self, server: &str) -> Vec<(String, String)> {
        let found = self.gateway.server(server).map(|server| server.quarantined());
        let found = found.unwrap_or_default().into_iter();
        found.map(|(tool, why)| (tool.into(), why.to_string())).collect()
    }

    /// Ends all children.
    pub(crate) async fn stop(&self) {
        self.gateway.drain(std::time::Duration::ZERO).await;
        self.children.close();
        if tokio::time::timeout(CLOSE_TIMEOUT, self.children.wait()).await.is_err() {
            tracing::warn!("child processes did not end in time");
        }
    }
}
