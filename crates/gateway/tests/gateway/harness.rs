//! A gateway with scripted servers, and agents that use it as the edge does.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use toolgate_gateway::{
    AgentSession, AgentSessions, Call, Endpoint, Gateway, Grant, Ids, Instances, Metrics,
    NotOpened, PinMode, Results, Server, ServerSettings,
};
use toolgate_mcp::{Incoming, Limits, Message, Refusal, Request, parse_agent};

use crate::auto_server::AutoServer;
use crate::reply::{Reply, read};
use crate::script::{Kind, Line, Peer};
use crate::test_admission::TestAdmission;

pub(crate) const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"x":1.0},"clientInfo":{"name":"a","version":"0"}}}"#;

/// Ids that are easy to tell apart, and easy to guess.
pub(crate) struct Counted(AtomicUsize);

impl Counted {
    pub(crate) fn new() -> Self {
        Self(AtomicUsize::new(1))
    }
}

impl Ids for Counted {
    fn agent_session(&self) -> Option<String> {
        Some(format!("agent-{}", self.0.fetch_add(1, Ordering::Relaxed)))
    }

    fn call(&self) -> Option<[u8; 10]> {
        let mut bytes = [0; 10];
        bytes[2..].copy_from_slice(&self.0.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        Some(bytes)
    }
}

/// A gateway.
pub(crate) struct Harness {
    pub(crate) gateway: Arc<Gateway>,
    metrics: Metrics,
    pub(crate) test_admission: TestAdmission,
}

/// One agent connected to one server.
pub(crate) struct Agent {
    pub(crate) session: Arc<AgentSession>,
    /// The answer to its `initialize`.
    pub(crate) welcome: String,
}

/// A server that may take a minute for a call and ten seconds to start.
pub(crate) fn settings(name: &str) -> ServerSettings {
    ServerSettings {
        name: name.to_owned(),
        instances: Instances::PerAgent,
        timeout: Duration::from_mins(1),
        start_timeout: Duration::from_secs(10),
        reconnect_timeout: Duration::from_secs(5),
        tool_timeouts: HashMap::new(),
        tool_classes: HashMap::new(),
        bare_names: false,
        max_requests: 1000,
        backs_off: false,
        pin: PinMode::First,
        validate: false,
        results: Results::Pass,
    }
}

pub(crate) fn shared(name: &str) -> ServerSettings {
    ServerSettings { instances: Instances::Shared, ..settings(name) }
}

pub(crate) fn limits() -> AgentSessions {
    AgentSessions { max: 10_000, per_grant: 10_000, idle: Duration::from_mins(30) }
}

impl Harness {
    pub(crate) fn new() -> Self {
        Self::with_limits(limits())
    }

    pub(crate) fn with_limits(limits: AgentSessions) -> Self {
        Self::counting(Counted::new(), limits)
    }

    /// A gateway whose ids begin with this number, as after a restart.
    pub(crate) fn numbered_from(first: usize) -> Self {
        Self::counting(Counted(AtomicUsize::new(first)), limits())
    }

    fn counting(ids: Counted, limits: AgentSessions) -> Self {
        let ids: Arc<dyn Ids> = Arc::new(ids);
        let test_admission = TestAdmission::new(Arc::clone(&ids));
        Self::with(ids, test_admission, limits)
    }

    pub(crate) fn with(
        ids: Arc<dyn Ids>,
        test_admission: TestAdmission,
        limits: AgentSessions,
    ) -> Self {
        let metrics = Metrics::default();
        let admission = Arc::clone(&test_admission.admission);
        Self {
            gateway: Gateway::new(ids, metrics.clone(), limits, admission),
            metrics,
            test_admission,
        }
    }

    /// A gateway with one server, called `files`, and the hand on that server.
    pub(crate) fn one(kind: Kind) -> (Self, Peer) {
        Self::of(settings("files"), Peer::new(kind))
    }

    pub(crate) fn of(settings: ServerSettings, peer: Peer) -> (Self, Peer) {
        let harness = Self::new();
        harness.apply([harness.server(settings, &peer)]);
        (harness, peer)
    }

    pub(crate) fn server(&self, settings: ServerSettings, peer: &Peer) -> Arc<Server> {
        let metrics = self.metrics.of_server(&settings.name);
        Arc::new(Server::new(settings, peer.connector(), metrics))
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// A server that plays by itself.
    pub(crate) fn played(&self, settings: ServerSettings, auto_server: &AutoServer) -> Arc<Server> {
        let metrics = self.metrics.of_server(&settings.name);
        Arc::new(Server::new(settings, auto_server.connector(), metrics))
    }

    pub(crate) fn apply(&self, servers: impl IntoIterator<Item = Arc<Server>>) {
        self.gateway.apply(servers.into_iter().collect(), limits());
    }

    /// An agent of `files`.
    pub(crate) async fn agent(&self) -> Agent {
        self.open("files", INITIALIZE).await.unwrap()
    }

    /// An agent of `files` and the line that was made for it.
    pub(crate) async fn agent_on(&self, peer: &mut Peer) -> (Agent, Line) {
        (self.agent().await, peer.line().await)
    }

    pub(crate) async fn open(&self, server: &str, initialize: &str) -> Result<Agent, NotOpened> {
        open(&self.gateway, Endpoint::Server(server.to_owned()), initialize).await
    }

    /// An agent of all servers, with a grant.
    pub(crate) async fn open_as(&self, caller: &Arc<Grant>) -> Agent {
        let request = request(INITIALIZE);
        let opened = self.gateway.open(&Endpoint::All, &request, caller).await;
        let (session, welcome) = opened.unwrap();
        Agent { session, welcome: String::from_utf8(welcome.to_vec()).unwrap() }
    }

    /// The agent session `id` of `server`.
    pub(crate) fn session(&self, server: &str, id: &str) -> Option<Arc<AgentSession>> {
        let caller = self.gateway.admission().caller(None).unwrap();
        self.gateway.session(&Endpoint::Server(server.to_owned()), id, &caller)
    }

    /// An agent of all servers.
    pub(crate) async fn open_all(&self, initialize: &str) -> Agent {
        open(&self.gateway, Endpoint::All, initialize).await.unwrap()
    }

    /// Opens an agent session in a task of its own, so that the test can play the server.
    pub(crate) fn opening(
        &self,
        server: &str,
    ) -> tokio::task::JoinHandle<Result<Agent, NotOpened>> {
        let gateway = Arc::clone(&self.gateway);
        let endpoint = Endpoint::Server(server.to_owned());
        tokio::spawn(async move { open(&gateway, endpoint, INITIALIZE).await })
    }

    /// The value of the metric that the line begins with, labels and all.
    pub(crate) fn count(&self, metric: &str) -> i64 {
        let mut registry = Registry::default();
        self.metrics.register(&mut registry);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(metric)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no `{metric}` in {text}")).parse().unwrap()
    }
}

async fn open(gateway: &Gateway, endpoint: Endpoint, initialize: &str) -> Result<Agent, NotOpened> {
    let request = request(initialize);
    let caller = gateway.admission().caller(None).unwrap();
    let (session, welcome) = gateway.open(&endpoint, &request, &caller).await?;
    Ok(Agent { session, welcome: String::from_utf8(welcome.to_vec()).unwrap() })
}

pub(crate) fn request(raw: &str) -> Request<'_> {
    match parse(raw) {
        Incoming::One(Message::Request(request)) => request,
        other => panic!("not a request: {other:?}"),
    }
}

fn parse(raw: &str) -> Incoming<'_> {
    parse_agent(raw.as_bytes(), &Limits::default()).unwrap()
}

impl Agent {
    /// Sends a request and reads whatever comes of it.
    pub(crate) fn ask(&self, raw: &str) -> Reply {
        Reply::of(&self.session, self.call(raw))
    }

    /// Sends a request; nothing happens before somebody waits for the call or drops it.
    pub(crate) fn call(&self, raw: &str) -> Call {
        self.try_call(raw).unwrap()
    }

    pub(crate) fn try_call(&self, raw: &str) -> Result<Call, Refusal> {
        self.session.request(&request(raw))
    }

    /// Sends messages of 2025-03-26 as a batch.
    pub(crate) async fn batch(&self, raw: &str) -> Option<Reply> {
        let Incoming::Batch(members) = parse(raw) else { panic!("not a batch: {raw}") };
        let attached = self.session.stream(&self.session.batch(&members).await?);
        Some(Reply::reading(|events| read(attached, events)))
    }

    /// Sends a notification or an answer.
    pub(crate) async fn tell(&self, raw: &str) {
        match parse(raw) {
            Incoming::One(Message::Notification(notification)) => {
                self.session.notify(&notification).await.unwrap();
            }
            Incoming::One(Message::Response(response)) => self.session.respond(&response).await,
            other => panic!("wants an answer: {other:?}"),
        }
    }

    /// Reads the general stream from now on.
    pub(crate) fn listen(&self) -> Reply {
        let attached = self.session.listen();
        Reply::reading(|events| read(attached, events))
    }
}
