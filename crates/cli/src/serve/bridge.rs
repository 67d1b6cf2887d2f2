//! The gateway of `run`: one server, the store of the data folder, no listener.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use jiff::Timestamp;
use tokio_util::task::TaskTracker;
use toolgate_config::Config;
use toolgate_control::{StdioBridge, Wiring as _, agent_sessions};
use toolgate_edge::agents::AgentLimits;
use toolgate_edge::child::ChildWatch;
use toolgate_gateway::{Admission, Gateway, Metrics, PINS};
use toolgate_store::Store;

use super::wire::{Wiring, agent_limits};
use super::{close, core_dumps, random, store, wait_for_end};

/// The gateway of `run` and what it is made of.
pub(crate) struct Bridge {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) access: Arc<StdioBridge>,
    pub(crate) watch: ChildWatch,
    pub(crate) limits: AgentLimits,
    store: Arc<dyn Store>,
    children: TaskTracker,
}

impl Bridge {
    /// Starts it with the one server of this configuration. To be called inside a tokio runtime.
    pub(crate) fn start(folder: &Path, config: &Config) -> anyhow::Result<Self> {
        core_dumps::off();
        let (store, secret) = store::open(folder, &config.audit)?;
        let (ids, clock) = (Arc::new(random::SystemIds::default()), Arc::new(store::SystemClock));
        let recording = store::recording(&config.audit, &secret);
        let (of_ids, of_store) = (Arc::clone(&ids), Arc::clone(&store));
        let admission = Arc::new(Admission::new(of_store, clock, of_ids, recording));
        let (metrics, children, watch) =
            (Metrics::default(), TaskTracker::new(), ChildWatch::default());
        let wiring = Wiring::new(metrics.clone(), children.clone()).watched_by(watch.clone());
        let gateway = Gateway::new(ids, metrics, agent_sessions(config), admission);
        let mut servers = Vec::new();
        for server in &config.servers {
            let made = wiring.server(server, &config.limits);
            servers.push(made.map_err(|why| anyhow!("the server cannot be set up: {why}"))?);
        }
        gateway.apply(servers, agent_sessions(config));
        let access = StdioBridge::new(Arc::clone(&store), Arc::clone(&gateway), config.clone());
        let access = access.map_err(|why| anyhow!("the built-in policy cannot be used:\n{why}"))?;
        let limits = agent_limits(config);
        Ok(Self { gateway, access, watch, limits, store, children })
    }

    /// Restores the definitions that earlier processes recorded.
    pub(crate) async fn restore(&self) -> anyhow::Result<()> {
        let pinned = self.store.documents(PINS).await.context("cannot read the pins of tools")?;
        self.gateway.restore_pins(&pinned);
        Ok(())
    }

    /// Notices what other processes have changed. Called several times a second.
    pub(crate) async fn tick(&self) {
        // A failure means that calls are refused until the store answers again.
        if let Err(error) = self.access.refresh().await {
            tracing::error!(%error, "cannot read the store");
        }
        self.store.tick(Timestamp::now());
        self.gateway.admission().holds().sync(self.store.approvals_version());
    }

    /// Ends the server, and closes the audit.
    pub(crate) async fn stop(&self) {
        self.gateway.drain(std::time::Duration::ZERO).await;
        wait_for_end(&TaskTracker::new(), &self.children).await;
        close(&*self.store).await;
    }
}
