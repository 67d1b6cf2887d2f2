//! The listeners of `serve`: bound before anything else, so that a taken port ends the start.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use axum::Router;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde::Serialize;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolgate_config::Config;
use toolgate_edge::agents::Agents;
use toolgate_edge::guard::Browsers;
use toolgate_edge::people::SharedGuard;
use toolgate_edge::sessions::{Door, Switchboard};
use toolgate_edge::{listen, people};
use toolgate_gateway::Gateway;

use super::{session_metrics, sessions, wire};

/// Bound, and not yet served.
pub(crate) struct Listeners {
    mcp: Option<TcpListener>,
    sessions: Option<TcpListener>,
    admin: Option<TcpListener>,
    metrics: Option<TcpListener>,
}

/// Where they are bound, as URLs.
#[derive(Debug)]
pub(crate) struct Bound {
    pub(crate) mcp: Option<String>,
    pub(crate) sessions: Option<String>,
    pub(crate) admin: Option<String>,
}

#[derive(Serialize)]
struct ReadyLine<'a> {
    ready: bool,
    mcp: Option<&'a str>,
    sessions: Option<&'a str>,
    admin: Option<&'a str>,
    pid: u32,
}

// === impl Listeners ===

impl Listeners {
    pub(crate) async fn bind(config: &Config) -> anyhow::Result<Self> {
        let listen = &config.listen;
        Ok(Self {
            mcp: bind(listen.mcp, "mcp").await?,
            sessions: bind(listen.sessions, "sessions").await?,
            admin: bind(listen.admin, "admin").await?,
            metrics: bind(listen.metrics, "metrics").await?,
        })
    }

    pub(crate) fn bound(&self, config: &Config) -> anyhow::Result<Bound> {
        let url = |listener: &Option<TcpListener>, scheme: &str, path: &str| {
            let address = listener.as_ref().map(TcpListener::local_addr).transpose()?;
            anyhow::Ok(address.map(|address| format!("{scheme}://{address}{path}")))
        };
        Ok(Bound {
            mcp: url(&self.mcp, "http", "")?,
            sessions: url(&self.sessions, "ws", &config.sessions.path)?,
            admin: url(&self.admin, "http", "")?,
        })
    }

    /// Serves on all of them until `stop`.
    pub(crate) fn serve(
        self,
        config: &Config,
        behind: &Behind<'_>,
        ready: &Arc<AtomicBool>,
        serving: &TaskTracker,
        stop: &CancellationToken,
    ) -> Served {
        let Behind { gateway, api, board } = *behind;
        let limits = wire::connection_limits(config);
        let metrics = metrics_text(gateway, board);
        let agents = self.mcp.map(|listener| {
            let bound_to = ip_of(&listener);
            let rules = wire::agent_rules(config, bound_to);
            let agents = Agents::new(Arc::clone(gateway), rules, Arc::clone(ready));
            serving.spawn(listen::serve(listener, agents.clone(), limits.clone(), stop.clone()));
            (agents, bound_to)
        });
        let mut guards = Vec::new();
        let mut serve = |listener, browsers, service: &dyn Fn(SharedGuard) -> people::Service| {
            let Some(listener) = listener else { return };
            let guard = wire::guard(config, ip_of(&listener), browsers);
            let guard = SharedGuard::new(Arc::new(guard).into());
            guards.push(Arc::clone(&guard));
            serving.spawn(listen::serve(listener, service(guard), limits.clone(), stop.clone()));
        };
        serve(self.admin, Browsers::OwnPages, &|guard| {
            people::everything(guard, Arc::clone(ready), Arc::clone(&metrics), api.clone())
        });
        serve(self.metrics, Browsers::OwnPages, &|guard| {
            people::metrics_alone(guard, Arc::clone(&metrics))
        });
        let door = self.sessions.zip(board).map(|(listener, board)| {
            let bound_to = ip_of(&listener);
            let rules = sessions::rules(config, bound_to);
            let (board, sockets) = (Arc::clone(board), serving.clone());
            let door = Door::new(Arc::clone(&board), rules, limits.connections, sockets);
            serving.spawn(listen::serve(listener, door.clone(), limits.clone(), stop.clone()));
            (door, board, bound_to)
        });
        Served { agents, guards, door }
    }
}

/// What answers behind the listeners.
pub(crate) struct Behind<'a> {
    pub(crate) gateway: &'a Arc<Gateway>,
    pub(crate) api: &'a Router,
    /// Sessions, if they are listened to.
    pub(crate) board: Option<&'a Arc<Switchboard>>,
}

/// What of the listeners can change while they serve.
pub(crate) struct Served {
    agents: Option<(Agents, IpAddr)>,
    guards: Vec<SharedGuard>,
    door: Option<(Door, Arc<Switchboard>, IpAddr)>,
}

impl Served {
    /// Other rules from the next request on.
    pub(crate) fn set_rules(&self, config: &Config) {
        if let Some((agents, bound_to)) = &self.agents {
            agents.set_rules(wire::agent_rules(config, *bound_to));
        }
        if let Some((door, board, bound_to)) = &self.door {
            door.set_rules(sessions::rules(config, *bound_to));
            board.reconfigure(sessions::settings(config));
        }
        for guard in &self.guards {
            let old = guard.load();
            guard.store(Arc::new(wire::guard(config, old.bound_to, old.browsers)));
        }
    }
}

// === impl Bound ===

impl Bound {
    /// The line that says where everything is, for programs.
    pub(crate) fn ready_line(&self) -> String {
        let line = ReadyLine {
            ready: true,
            mcp: self.mcp.as_deref(),
            sessions: self.sessions.as_deref(),
            admin: self.admin.as_deref(),
            pid: std::process::id(),
        };
        serde_json::to_string(&line).unwrap_or_default()
    }
}

async fn bind(address: Option<SocketAddr>, name: &str) -> anyhow::Result<Option<TcpListener>> {
    let Some(address) = address else { return Ok(None) };
    let bound = TcpListener::bind(address).await.with_context(|| {
        format!(
            "cannot listen on {address}; if another program has this address, set `listen.{name}` \
             in toolgate.yaml to another one, or to `off`"
        )
    })?;
    Ok(Some(bound))
}

fn ip_of(listener: &TcpListener) -> IpAddr {
    listener.local_addr().map_or(IpAddr::from([127, 0, 0, 1]), |address| address.ip())
}

fn metrics_text(gateway: &Gateway, board: Option<&Arc<Switchboard>>) -> people::Metrics {
    let mut registry = Registry::with_prefix("toolgate");
    gateway.metrics().register(&mut registry);
    let look = board.map(|board| session_metrics::register(&mut registry, Arc::clone(board)));
    Arc::new(move || {
        if let Some(look) = &look {
            look();
        }
        let mut text = String::new();
        match encode(&mut text, &registry) {
            Ok(()) => text,
            Err(error) => format!("# {error}\n"),
        }
    })
}
