//! The listeners of `serve`: bound first, so that a used port ends the start.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use axum::Router;
use serde::Serialize;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolgate_admin::Admin;
use toolgate_audit::Hash;
use toolgate_config::{Config, Listen};
use toolgate_edge::admin_listener::{Metrics, Service, SharedGuard};
use toolgate_edge::agents::Agents;
use toolgate_edge::guard::Browsers;
use toolgate_edge::listen::{Front, ListenerOptions, Peers};
use toolgate_edge::sessions::{SessionListener, SessionListenerBounds};
use toolgate_edge::tls::{Certificate, Tls};
use toolgate_edge::{admin_listener, listen};
use toolgate_gateway::{Gateway, SessionDriver};

use super::{metrics, sessions, wire};

/// Bound sockets that are not yet served.
pub(crate) struct Listeners {
    mcp: Option<TcpListener>,
    sessions: Option<TcpListener>,
    admin: Option<TcpListener>,
    metrics: Option<TcpListener>,
}

/// The bound addresses, as URLs.
#[derive(Debug)]
pub(crate) struct Bound {
    pub(crate) mcp: Option<String>,
    pub(crate) sessions: Option<String>,
    pub(crate) admin: Option<String>,
    /// The same as addresses.
    pub(crate) listen: Listen,
    /// The certificate, if they use TLS.
    tls: Option<Tls>,
}

#[derive(Serialize)]
struct ReadyLine<'a> {
    ready: bool,
    mcp: Option<&'a str>,
    sessions: Option<&'a str>,
    admin: Option<&'a str>,
    pid: u32,
    /// The SHA-256 of the certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate: Option<String>,
    /// The configuration file, for other processes on the data folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    config: Option<&'a str>,
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

    pub(crate) fn bound(&self, config: &Config, tls: Option<Tls>) -> anyhow::Result<Bound> {
        let (http, ws) = if tls.is_some() { ("https", "wss") } else { ("http", "ws") };
        let url = |listener: &Option<TcpListener>, scheme: &str, path: &str| {
            let address = listener.as_ref().map(TcpListener::local_addr).transpose()?;
            anyhow::Ok(address.map(|address| format!("{scheme}://{address}{path}")))
        };
        let address = |listener: &Option<TcpListener>| {
            listener.as_ref().map(TcpListener::local_addr).transpose()
        };
        let listen = Listen {
            mcp: address(&self.mcp)?,
            sessions: address(&self.sessions)?,
            admin: address(&self.admin)?,
            metrics: address(&self.metrics)?,
        };
        Ok(Bound {
            listen,
            mcp: url(&self.mcp, http, "")?,
            sessions: url(&self.sessions, ws, &config.sessions.path)?,
            admin: url(&self.admin, http, "")?,
            tls,
        })
    }

    /// Serves on all of them until `stop`.
    pub(crate) fn serve(
        self,
        config: &Config,
        bound: &Bound,
        behind: &Behind<'_>,
        ready: &Arc<AtomicBool>,
        serving: &TaskTracker,
        stop: &CancellationToken,
    ) -> Served {
        let Behind { gateway, admin, api, sessions, front } = *behind;
        let driver = sessions.map(|sessions| &sessions.driver);
        let options =
            ListenerOptions { tls: bound.tls.clone(), only_from: None, front: Some(front.clone()) };
        let limits = wire::connection_limits(config);
        let text = metrics::text(gateway, driver);
        let watch = watch(gateway);
        let agents = self.mcp.map(|listener| {
            let bound_to = ip_of(&listener);
            let rules = wire::agent_rules(config, bound_to, bound.tls.is_some());
            let agents = Agents::new(Arc::clone(gateway), rules, Arc::clone(ready));
            serving.spawn(listen::serve(
                listener,
                options.clone(),
                agents.clone(),
                limits.clone(),
                stop.clone(),
            ));
            (agents, bound_to)
        });
        let mut guards = Vec::new();
        let mut serve = |listener, options, service: &dyn Fn(SharedGuard, Metrics) -> Service| {
            let Some(listener) = listener else { return };
            let bound_to = ip_of(&listener);
            let guard = wire::guard(config, bound_to, Browsers::OwnPages, bound.tls.is_some());
            let guard = SharedGuard::new(Arc::new(guard).into());
            guards.push(Arc::clone(&guard));
            let metrics =
                Metrics { text: Arc::clone(&text), access: metrics_access(bound_to, admin) };
            let service = service(guard, metrics);
            serving.spawn(listen::serve(listener, options, service, limits.clone(), stop.clone()));
        };
        let only_from = self.admin.as_ref().and_then(|listener| proxies(config, ip_of(listener)));
        serve(self.admin, ListenerOptions { only_from, ..options.clone() }, &|guard, metrics| {
            admin_listener::admin_service(
                guard,
                Arc::clone(ready),
                metrics,
                api.clone(),
                Arc::clone(&watch),
            )
        });
        serve(self.metrics, options.clone(), &|guard, metrics| {
            admin_listener::metrics_service(guard, metrics, Arc::clone(&watch))
        });
        let dial_in = self.sessions.zip(sessions).map(|(listener, sessions)| {
            let bound_to = ip_of(&listener);
            let rules = sessions::rules(config, bound_to, bound.tls.is_some());
            let driver = Arc::clone(&sessions.driver);
            let bounds = SessionListenerBounds {
                sockets: limits.connections,
                unfinished: sessions.max_unfinished,
            };
            let tracker = serving.clone();
            let accepts = SessionListener::new(Arc::clone(&driver), rules, bounds, tracker, watch);
            let (service, limits, stop) = (accepts.clone(), limits.clone(), stop.clone());
            serving.spawn(listen::serve(listener, options.clone(), service, limits, stop));
            (accepts, driver, bound_to)
        });
        Served { agents, guards, dial_in, tls: bound.tls.clone() }
    }
}

/// The services behind the listeners.
pub(crate) struct Behind<'a> {
    pub(crate) gateway: &'a Arc<Gateway>,
    pub(crate) admin: &'a Arc<Admin>,
    pub(crate) api: &'a Router,
    /// Sessions, if their listener is on.
    pub(crate) sessions: Option<&'a sessions::Served>,
    /// The thread that accepts connections.
    pub(crate) front: &'a Front,
}

/// The parts of the listeners that can change while they serve.
pub(crate) struct Served {
    agents: Option<(Agents, IpAddr)>,
    guards: Vec<SharedGuard>,
    dial_in: Option<(SessionListener, Arc<SessionDriver>, IpAddr)>,
    tls: Option<Tls>,
}

impl Served {
    /// Uses another certificate from the next connection on, if TLS is on.
    pub(crate) fn set_certificate(&self, certificate: Option<Certificate>) {
        if let (Some(tls), Some(certificate)) = (&self.tls, certificate) {
            tls.set(certificate);
        }
    }

    /// Uses other rules from the next request on.
    pub(crate) fn set_rules(&self, config: &Config) {
        // Turning TLS on or off needs a restart.
        let https = self.tls.is_some();
        if let Some((agents, bound_to)) = &self.agents {
            agents.set_rules(wire::agent_rules(config, *bound_to, https));
        }
        if let Some((listener, driver, bound_to)) = &self.dial_in {
            listener.set_rules(sessions::rules(config, *bound_to, https));
            driver.reconfigure(config.sessions.settings.clone());
        }
        for guard in &self.guards {
            let old = guard.load();
            guard.store(Arc::new(wire::guard(config, old.bound_to, old.browsers, https)));
        }
    }
}

// === impl Bound ===

impl Bound {
    /// The line of `--ready-json`.
    pub(crate) fn ready_line(&self) -> String {
        self.line(None, None)
    }

    /// The line of `serve.json`, with the fingerprint of the certificate and the configuration file.
    pub(crate) fn kept_line(&self, config: Option<&Path>) -> String {
        let certificate = self.tls.as_ref().map(|tls| Hash(tls.fingerprint()).to_string());
        self.line(certificate, config)
    }

    /// Whether the listeners use TLS.
    pub(crate) fn is_https(&self) -> bool {
        self.tls.is_some()
    }

    fn line(&self, certificate: Option<String>, config: Option<&Path>) -> String {
        let line = ReadyLine {
            ready: true,
            mcp: self.mcp.as_deref(),
            sessions: self.sessions.as_deref(),
            admin: self.admin.as_deref(),
            pid: std::process::id(),
            certificate,
            // A path that is not UTF-8 cannot be in JSON.
            config: config.and_then(Path::to_str),
        };
        serde_json::to_string(&line).unwrap_or_default()
    }
}

async fn bind(address: Option<SocketAddr>, name: &str) -> anyhow::Result<Option<TcpListener>> {
    let Some(address) = address else { return Ok(None) };
    let bound = TcpListener::bind(address).await.with_context(|| {
        format!(
            "cannot listen on {address}; if another program uses this address, set `listen.{name}` \
             in toolgate.yaml to another one, or to `off`"
        )
    })?;
    Ok(Some(bound))
}

fn ip_of(listener: &TcpListener) -> IpAddr {
    listener.local_addr().map_or(IpAddr::from([127, 0, 0, 1]), |address| address.ip())
}

/// Metrics need a token on a listener that is not on loopback.
fn metrics_access(bound_to: IpAddr, admin: &Arc<Admin>) -> Option<admin_listener::MetricsAccess> {
    let admin = Arc::clone(admin);
    (!bound_to.is_loopback()).then(|| Arc::new(move |headers: &_| admin.may_look(headers)) as _)
}

/// The addresses that may connect: reverse proxies, unless the listener is on loopback.
fn proxies(config: &Config, bound_to: IpAddr) -> Option<Peers> {
    let networks = config.behind_proxy.clone();
    let shut = !networks.is_empty() && !bound_to.is_loopback();
    let may_come = move |peer| networks.iter().any(|network| network.contains(peer));
    shut.then(|| Arc::new(may_come) as _)
}

/// Reports failed authentication.
fn watch(gateway: &Arc<Gateway>) -> admin_listener::AccessObserver {
    let gateway = Arc::clone(gateway);
    Arc::new(move |listener, why, peer| {
        gateway.admission().auth_failures().refused(listener, why, peer);
    })
}
