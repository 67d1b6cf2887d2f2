//! The recommended documents for the four closing tools, over HTTP, on a clock that a test sets:
//! the 31st (61st) call of a minute is refused with its rule and when to retry, another grant is
//! not concerned, and the next minute begins anew. `cargo xtask test --only closing` does the same
//! with the binary, a real server and the wall clock.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use toolgate_audit::{ArgumentMode, Hash};
use toolgate_edge::agents::{AgentLimits, Agents, Rules};
use toolgate_edge::guard::{Browsers, Guard};
use toolgate_edge::listen::{self, ConnectionLimits, ListenerOptions};
use toolgate_edge::remote::{Client, RemoteConnector, RemoteSpec};
use toolgate_gateway::{
    Access, ActivePolicy, Admission, AgentSessions, ArgumentRecording, Clock, Gateway, Grant, Ids,
    Instances, Metrics, PinMode, Results, Server, ServerSettings,
};
use toolgate_policy::{Known, Policy};
use toolgate_store_sqlite::{Durability, OpenOptions, Randomness};

use crate::agent::{Agent, Said};
use crate::upstream::Upstream;

/// The tools, and how often a minute.
const TOOLS: [(&str, u64); 4] =
    [("close", 30), ("close_session", 60), ("close_1c_session", 30), ("close_agent_session", 30)];

/// A clock that is set.
struct Still(Mutex<Timestamp>);

impl Clock for Still {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }
}

/// Ids that are easy to guess.
#[derive(Default)]
struct Counted(AtomicU64);

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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_four_closing_documents_hold_over_http() {
    let folder = tempfile::tempdir().unwrap();
    let upstream = Upstream::start(folder.path(), Box::new(|_| {})).await;
    let clock = Arc::new(Still(Mutex::new("2026-11-16T12:00:07Z".parse().unwrap())));
    let address = serve(&folder.path().join("data"), &upstream.url, Arc::clone(&clock) as _).await;
    let set = |time: &str| *clock.0.lock().unwrap() = time.parse().unwrap();
    // Time only moves forward, so each tool has its own minutes.
    for ((tool, max), minute) in TOOLS.into_iter().zip((10..).step_by(2)) {
        set(&format!("2026-11-16T12:{minute}:07Z"));
        let open = |who: &str| {
            let (address, token) = (address.clone(), format!("{tool}-{who}"));
            async move { Agent::open(&address, "/mcp/desk", Some(&token)).await.unwrap() }
        };
        let (mut agent, mut other) = (open("one").await, open("two").await);
        for n in 0..max {
            assert_eq!(agent.call(tool, "1").await.unwrap(), Said::Done("1".into()), "{tool} {n}");
        }
        refused(&mut agent, tool, 53).await;
        assert_eq!(other.call(tool, "1").await.unwrap(), Said::Done("1".into()));
        set(&format!("2026-11-16T12:{minute}:59Z"));
        refused(&mut agent, tool, 1).await;
        // A step back refills nothing.
        set("2026-11-16T11:59:00Z");
        refused(&mut agent, tool, 1).await;
        set(&format!("2026-11-16T12:{}:00Z", minute + 1));
        for _ in 0..max {
            assert_eq!(agent.call(tool, "2").await.unwrap(), Said::Done("2".into()));
        }
        refused(&mut agent, tool, 60).await;
        let ran = upstream.executed().into_iter().filter(|(name, _)| name == tool).count() as u64;
        assert_eq!(ran, 2 * max + 1, "{tool}: what the server carried out");
        let Said::Refused(code, result) = agent.call("list_things", "1").await.unwrap() else {
            panic!("what the document does not name is denied")
        };
        assert_eq!(
            (code.as_str(), &result["_meta"]["rule"]),
            ("policy_denied", &"(default deny)".into())
        );
    }
}

async fn refused(agent: &mut Agent, tool: &str, retry: u64) {
    let Said::Refused(code, result) = agent.call(tool, "0").await.unwrap() else {
        panic!("one more than the limit of {tool} was admitted")
    };
    assert_eq!(code, "rate_limited", "{result}");
    let meta = &result["_meta"];
    assert_eq!(meta["rule"], format!("/tools/{tool}/limits/{tool}_rate"), "{result}");
    assert_eq!(meta["retry_after_s"], retry, "{result}");
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("[POLICY DENIED] "), "{text}");
    assert!(text.contains(&format!("retry in {retry} s")), "{text}");
}

/// A whole gateway in this process, so that its clock can be set; where agents reach it.
async fn serve(data: &std::path::Path, url: &str, clock: Arc<dyn Clock>) -> String {
    let randomness = Randomness { owner: 1, signing: [1; 32], hashing: [2; 32] };
    let options = OpenOptions::new(Durability::Process, randomness);
    let opened = toolgate_store_sqlite::open(data, options, clock.now()).unwrap();
    let ids: Arc<dyn Ids> = Arc::new(Counted::default());
    let writing = ArgumentRecording { mode: ArgumentMode::Keys, secret: opened.secret };
    let admission = Admission::new(Arc::new(opened.store), clock, Arc::clone(&ids), writing);
    admission.set_access(access());
    let limits = AgentSessions { max: 100, per_grant: 100, idle: Duration::from_mins(10) };
    let metrics = Metrics::default();
    let gateway = Gateway::new(ids, metrics.clone(), limits.clone(), Arc::new(admission));
    let spec = RemoteSpec::new("desk", url.parse().unwrap());
    let connector = Arc::new(RemoteConnector::new(Client::new(), spec));
    let server = Server::new(settings(), connector, metrics.of_server("desk"));
    gateway.apply(vec![Arc::new(server)], limits);

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let guard = Guard {
        bound_to: IpAddr::V4(Ipv4Addr::LOCALHOST),
        hosts: Vec::new(),
        origins: Vec::new(),
        browsers: Browsers::Local,
        https: false,
    };
    let rules = Rules {
        guard,
        limits: AgentLimits {
            body: 1 << 20,
            body_read: Duration::from_mins(1),
            depth: 64,
            result: 1 << 26,
        },
    };
    let agents = Agents::new(gateway, rules, Arc::new(AtomicBool::new(true)));
    let limits = ConnectionLimits {
        connections: 100,
        header_read: Duration::from_mins(1),
        header_bytes: 32 * 1024,
    };
    tokio::spawn(listen::serve(
        listener,
        ListenerOptions::default(),
        agents,
        limits,
        CancellationToken::new(),
    ));
    address
}

/// Two grants under each document.
fn access() -> Access {
    let mut by_token = HashMap::new();
    for (tool, max) in TOOLS {
        let document = format!(
            "version: '1'\ndefault: deny\ntools:\n  {tool}: {{ limits: [{{ counter: {tool}_rate, \
             window: minute, max: {max}, scope: grant }}] }}\n"
        );
        let policy = Policy::load(tool, &document, &Known::default()).policy.unwrap();
        let policy = Arc::new(ActivePolicy::new(policy));
        for who in ["one", "two"] {
            let token = format!("{tool}-{who}");
            let grant = Grant {
                label: token.as_str().into(),
                policy: Some(Arc::clone(&policy)),
                ..Grant::default()
            };
            by_token.insert(Hash::of(token.as_bytes()), Arc::new(grant));
        }
    }
    Access::new(None, by_token)
}

fn settings() -> ServerSettings {
    ServerSettings {
        name: "desk".to_owned(),
        instances: Instances::PerAgent,
        timeout: Duration::from_mins(1),
        start_timeout: Duration::from_mins(1),
        reconnect_timeout: Duration::from_mins(1),
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
