//! Only the closed list passes: under a policy that allows nothing, and under a freeze of everything, no sequence
//! of messages reaches a server beyond the closed list, whatever its methods, ids, batches, eras and
//! endpoints are, and whatever the era and the channel of the server.
//!
//! The edge is left out: it only rejects more. The record of the servers decides, compared with a
//! list of its own (`gate.rs`); beside that the servers' channels end the test at once if a message
//! has neither a permit nor the right to do without.
//!
//! `TOOLGATE_SEED` repeats a run whose seed a failure has printed, `TOOLGATE_SEQUENCES` makes it
//! longer or shorter.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use toolgate_gateway::sessionless_clients::{Client, NotStarted, Started};
use toolgate_gateway::{Access, AgentSession, Endpoint, Frozen, Grant, NotOpened};
use toolgate_mcp::sessionless::Claims;
use toolgate_mcp::{Incoming, Limits, Message, Request, method, parse_agent};

use crate::auto_server::AutoServer;
use crate::gate::is_open;
use crate::harness::{Harness, INITIALIZE, request, settings, shared};
use crate::script::{Kind, settle};
use crate::test_admission::policy;

mod messages;

use messages::body;
use toolgate_dice::Dice;

/// What is in force: a policy, and whether everything is frozen.
type Force = (&'static str, bool);

const NOTHING: Force = ("version: \"1\"\ndefault: deny\n", false);
const FROZEN: Force = ("version: \"1\"\ndefault: allow\n", true);
const ANYTHING: Force = ("version: \"1\"\ndefault: allow\n", false);

/// The servers: a name, the kind of channel, whether agents share it, and whether it is of
/// protocol 2026-07-28.
const SERVERS: [(&str, Kind, bool, bool); 8] = [
    ("files", Kind::Child, false, false),
    ("web", Kind::Http, false, false),
    ("old", Kind::Sse, false, false),
    ("team", Kind::Child, true, false),
    ("crew", Kind::Http, true, false),
    ("ring", Kind::Sse, true, false),
    ("newer", Kind::Http, false, true),
    ("newborn", Kind::Child, false, true),
];

const MODERN: &str = r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"prompts":{},"resources":{"subscribe":true},"completions":{},"logging":{}},"_meta":{}}"#;

#[test]
fn no_sequence_of_messages_reaches_a_server_beyond_the_closed_list() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seed = number("TOOLGATE_SEED").unwrap_or_else(|| RandomState::new().hash_one(0));
    let sequences = number("TOOLGATE_SEQUENCES").unwrap_or(100_000);
    // Shown if the test fails.
    println!("TOOLGATE_SEED={seed} TOOLGATE_SEQUENCES={sequences}");
    for (force, sequences) in [(NOTHING, sequences), (FROZEN, sequences / 4)] {
        let received = run(force, seed, sequences);
        assert_eq!(received.beyond, Vec::<String>::new());
        assert!(received.open > sequences / 50, "hardly anything came through: {}", received.open);
    }
}

#[test]
fn the_search_notices_what_a_policy_lets_through() {
    let received = run(ANYTHING, 7, 2_000);
    for method in ["tools/call", "resources/read", "x/y"] {
        let seen = received.beyond.iter().any(|body| body.contains(method));
        assert!(seen, "no `{method}` among {} messages", received.beyond.len());
    }
    assert_eq!(received.reached, SERVERS.map(|(name, ..)| name).into(), "not every server");
}

/// What servers received.
#[derive(Default)]
struct Received {
    /// How many messages of the closed list.
    open: u64,
    beyond: Vec<String>,
    /// The servers that received something beyond it.
    reached: BTreeSet<&'static str>,
}

fn run(force: Force, seed: u64, sequences: u64) -> Received {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(search(force, seed, sequences))
}

fn players() -> [AutoServer; SERVERS.len()] {
    SERVERS.map(|(_, kind, _, is_sessionless)| {
        let auto_server = if is_sessionless {
            AutoServer::modern_over(kind, MODERN, &["x"])
        } else {
            AutoServer::over(kind, &["x", "ping"])
        };
        for method in ["ping", "logging/setLevel", "resources/unsubscribe", "tools/call", "x/y"] {
            auto_server.set(method, "{}");
        }
        auto_server.set("server/discover", MODERN);
        auto_server
    })
}

fn enforce(harness: &Harness, (document, frozen): Force) {
    let policy = Some(policy(document));
    let grant = Grant { label: "local".into(), policy, ..Grant::default() };
    let mut access = Access::new(Some(Arc::new(grant)), []);
    access.frozen = Frozen { all: frozen, ..Frozen::default() };
    access.generation = Some(harness.test_admission.store.generation());
    harness.test_admission.admission.set_access(access);
}

async fn search(force: Force, seed: u64, sequences: u64) -> Received {
    let harness = Harness::new();
    let players = players();
    let servers = SERVERS.iter().zip(&players).map(|((name, _, is_shared, _), auto_server)| {
        harness.played(if *is_shared { shared(name) } else { settings(name) }, auto_server)
    });
    harness.apply(servers);
    let one = |(name, ..): &(&str, Kind, bool, bool)| Endpoint::Server((*name).to_owned());
    let mut endpoints: Vec<Endpoint> = SERVERS.iter().map(one).collect();
    endpoints.extend([Endpoint::All, Endpoint::Sessions]);
    let mut sessions = Vec::new();
    for endpoint in &endpoints {
        sessions.push(open(&harness, endpoint, &request(INITIALIZE)).await.unwrap());
    }
    enforce(&harness, force);
    let (mut dice, mut received) = (Dice::new(seed), Received::default());
    for sequence in 0..sequences {
        let place = dice.below(endpoints.len());
        for _ in 0..=dice.below(3) {
            let body = body(&mut dice);
            let (endpoint, session) = (&endpoints.get(place), &sessions.get(place));
            let (endpoint, session) = (endpoint.unwrap(), session.unwrap());
            send(&harness, endpoint, session, &body, dice.one_in(3)).await;
        }
        if sequence % 16 == 0 {
            settle().await;
            listen_in(&players, &mut received);
        }
    }
    settle().await;
    listen_in(&players, &mut received);
    received
}

fn listen_in(players: &[AutoServer], received: &mut Received) {
    for ((name, ..), auto_server) in SERVERS.iter().zip(players) {
        for body in auto_server.received() {
            if is_open(body.as_bytes()) {
                received.open += 1;
            } else {
                received.reached.insert(name);
                received.beyond.push(body);
            }
        }
    }
}

async fn open(
    harness: &Harness,
    endpoint: &Endpoint,
    request: &Request<'_>,
) -> Result<Arc<AgentSession>, NotOpened> {
    let caller = harness.gateway.admission().caller(None).unwrap();
    Ok(harness.gateway.open(endpoint, request, &caller).await?.0)
}

/// Sends a body as the edge would, but for what the edge rejects itself.
async fn send(
    harness: &Harness,
    endpoint: &Endpoint,
    session: &Arc<AgentSession>,
    body: &str,
    modern: bool,
) {
    let Ok(message) = parse_agent(body.as_bytes(), &Limits::default()) else { return };
    match message {
        Incoming::One(Message::Request(request)) if modern => {
            let claims = Claims { capabilities: "{}", client_info: None, log_level: None };
            let none = Vec::new();
            let client = Client { claims: &claims, session: None, parameters: Some(&none) };
            let caller = harness.gateway.admission().caller(None).unwrap();
            match harness.gateway.sessionless_request(endpoint, &caller, &client, &request).await {
                Ok(Started::Call(mut call)) => drop(call.first().await),
                Ok(_) | Err(NotStarted::Refused(_) | NotStarted::NotOpened(_)) => {}
            }
        }
        Incoming::One(Message::Request(request)) if request.method == method::INITIALIZE => {
            if let Ok(other) = open(harness, endpoint, &request).await {
                harness.gateway.end(&other);
            }
        }
        Incoming::One(Message::Request(request)) => drop(session.request(&request)),
        Incoming::One(Message::Notification(note)) => drop(session.notify(&note).await),
        Incoming::One(Message::Response(response)) => session.respond(&response).await,
        Incoming::Batch(members) => drop(session.batch(&members).await),
    }
}
