//! Wiring: creates servers and listener rules from the configuration.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use http::{HeaderName, HeaderValue, Uri};
use tokio_util::task::TaskTracker;
use toolgate_config::{
    Config, Http, HttpFlavour, Limits, Names, Pin, ServerConfig, Stdio, Transport,
};
use toolgate_control::WiringError;
use toolgate_edge::agents::{AgentLimits, Rules};
use toolgate_edge::child::{ChildConnector, ChildSpec, ChildWatch, inheritable};
use toolgate_edge::guard::{Browsers, Guard};
use toolgate_edge::listen::ConnectionLimits;
use toolgate_edge::remote::{Client, HttpTransport, RemoteConnector, RemoteSpec};
use toolgate_gateway::channel::Connector;
use toolgate_gateway::{Instances, Metrics, PinMode, Results, Server, ServerSettings};

use super::random;

/// How long a handshake with an HTTP server may take that no agent requested.
const RECONNECT: Duration = Duration::from_secs(5);

/// Creates servers.
pub(crate) struct Wiring {
    client: Client,
    children: TaskTracker,
    environment: Vec<(String, String)>,
    metrics: Metrics,
    watch: Option<ChildWatch>,
}

impl Wiring {
    pub(crate) fn new(metrics: Metrics, children: TaskTracker) -> Self {
        let environment = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| inheritable(name))
            .collect();
        Self { client: Client::new(), children, environment, metrics, watch: None }
    }

    /// Its children report to `watch`.
    pub(crate) fn watched_by(self, watch: ChildWatch) -> Self {
        Self { watch: Some(watch), ..self }
    }

    fn create(&self, config: &ServerConfig, limits: &Limits) -> anyhow::Result<Arc<Server>> {
        let max_result = bytes(limits.result);
        let metrics = self.metrics.of_server(&config.name);
        let connector: Arc<dyn Connector> = match &config.transport {
            Transport::Stdio(stdio) => {
                Arc::new(self.child(&config.name, stdio, max_result).counted_by(metrics.clone()))
            }
            Transport::Http(http) => Arc::new(self.remote(&config.name, http, max_result)?),
        };
        let (instances, backs_off, reconnect_timeout) = match &config.transport {
            Transport::Stdio(stdio) => {
                let instances = if stdio.shared { Instances::Shared } else { Instances::PerAgent };
                (instances, true, config.start_timeout)
            }
            Transport::Http(_) => (Instances::PerAgent, false, RECONNECT),
        };
        let tool_timeouts: HashMap<String, Duration> = config
            .tools
            .iter()
            .filter_map(|tool| Some((tool.name.clone(), tool.timeout?)))
            .collect();
        let tool_classes =
            config.tools.iter().filter_map(|tool| Some((tool.name.clone(), tool.class?))).collect();
        let settings = ServerSettings {
            name: config.name.clone(),
            instances,
            timeout: config.timeout,
            start_timeout: config.start_timeout,
            reconnect_timeout,
            tool_timeouts,
            tool_classes,
            bare_names: config.names == Names::Bare,
            max_requests: bytes(limits.requests),
            backs_off,
            pin: pin(config.pin),
            validate: config.validate,
            results: match config.results {
                toolgate_config::Results::Pass => Results::Pass,
                toolgate_config::Results::Escape => Results::Escape,
                toolgate_config::Results::Strip => Results::Strip,
            },
        };
        Ok(Arc::new(Server::new(settings, connector, metrics)))
    }

    fn child(&self, name: &str, stdio: &Stdio, max_line: usize) -> ChildConnector {
        let spec = ChildSpec {
            args: stdio.args.iter().map(|arg| arg.expose().to_owned()).collect(),
            env: stdio
                .env
                .iter()
                .map(|(name, value)| (name.clone(), value.expose().to_owned()))
                .collect(),
            secrets: stdio.secrets.iter().map(|secret| secret.expose().to_owned()).collect(),
            cwd: Some(stdio.cwd.clone()),
            max_line,
            ..ChildSpec::new(name, stdio.command.expose())
        };
        let ids = Box::new(|| {
            let bytes: [u8; 8] = random::bytes().unwrap_or_default();
            format!("{:016x}", u64::from_be_bytes(bytes))
        });
        let environment = self.environment.clone();
        let connector = ChildConnector::new(spec, environment, ids, self.children.clone());
        match &self.watch {
            Some(watch) => connector.watched_by(watch.clone()),
            None => connector,
        }
    }

    fn remote(&self, name: &str, http: &Http, max_body: usize) -> anyhow::Result<RemoteConnector> {
        let url: Uri = http.url.expose().parse().with_context(|| format!("the url of `{name}`"))?;
        let headers = http.headers.iter().map(|(key, value)| {
            let what = || format!("the header `{key}` of server `{name}`");
            let key: HeaderName = key.parse().with_context(what)?;
            let mut value = HeaderValue::from_str(value.expose()).with_context(what)?;
            value.set_sensitive(true);
            Ok((key, value))
        });
        let transport = match http.flavour {
            HttpFlavour::Unknown => HttpTransport::Detect,
            HttpFlavour::Streamable => HttpTransport::Streamable,
            HttpFlavour::Sse => HttpTransport::Legacy,
        };
        let spec = RemoteSpec {
            transport,
            headers: headers.collect::<anyhow::Result<_>>()?,
            max_body,
            ..RemoteSpec::new(name, url)
        };
        Ok(RemoteConnector::new(self.client.clone(), spec))
    }
}

impl toolgate_control::Wiring for Wiring {
    fn server(&self, config: &ServerConfig, limits: &Limits) -> Result<Arc<Server>, WiringError> {
        self.create(config, limits).map_err(|error| format!("{error:#}").into())
    }
}

/// The rules and limits of the agents' listener.
pub(crate) fn agent_rules(config: &Config, bound_to: IpAddr, https: bool) -> Rules {
    let guard = guard(config, bound_to, Browsers::Local, https);
    Rules { guard, limits: agent_limits(config) }
}

/// The limits of an agent's requests.
pub(crate) fn agent_limits(config: &Config) -> AgentLimits {
    AgentLimits {
        body: bytes(config.limits.body),
        body_read: config.limits.body_read,
        depth: bytes(config.limits.depth),
        result: bytes(config.limits.result),
    }
}

/// The Host and Origin rules of a listener.
pub(crate) fn guard(config: &Config, bound_to: IpAddr, browsers: Browsers, https: bool) -> Guard {
    let origins = config.origins.iter().map(|origin| origin.as_str().to_owned()).collect();
    Guard { bound_to, hosts: config.hosts.clone(), origins, browsers, https }
}

/// The limits of one listener.
pub(crate) fn connection_limits(config: &Config) -> ConnectionLimits {
    ConnectionLimits {
        connections: bytes(config.limits.connections),
        header_read: config.limits.header_read,
        header_bytes: bytes(config.limits.headers),
    }
}

/// What happens to new and changed definitions.
pub(crate) fn pin(pin: Pin) -> PinMode {
    match pin {
        Pin::First => PinMode::First,
        Pin::Strict => PinMode::Strict,
        Pin::Off => PinMode::Off,
    }
}

pub(crate) fn bytes(size: u64) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}
