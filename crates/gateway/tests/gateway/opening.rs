//! Opening an agent session, and how that can fail.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::oneshot;
use toolgate_gateway::channel::SendError;
use toolgate_gateway::{AgentSessions, Endpoint, Gateway, Ids, Metrics, NotOpened, ServerSettings};
use toolgate_json::peek;
use toolgate_mcp::{Incoming, Limits, Message, parse_agent};

use crate::harness::{Agent, Harness, INITIALIZE, limits, settings, shared};
use crate::script::{Connect, Kind, Peer, refusal as refused_with, settle};

fn refusal(opened: Result<Agent, NotOpened>) -> String {
    match opened {
        Err(NotOpened::Answer(answer)) => String::from_utf8(answer.to_vec()).unwrap(),
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("it was opened"),
    }
}

#[tokio::test(start_paused = true)]
async fn the_agents_own_initialize_opens_its_server() {
    for kind in [Kind::Child, Kind::Http] {
        let (harness, mut peer) = Harness::of(settings("files"), Peer::silent(kind));
        let opening = harness.opening("files");
        let mut line = peer.line().await;
        let sent = line.next().await;
        assert_eq!(sent.method(), "initialize");
        assert_eq!(sent.part(&["params"]), peek(INITIALIZE, &["params"]).unwrap());
        sent.answer(r#"{"x":1.0,"protocolVersion":"2025-06-18","capabilities":{ }}"#);
        let agent = opening.await.unwrap().unwrap();
        assert_eq!(
            agent.welcome,
            r#"{"jsonrpc":"2.0","id":"hello","result":{"x":1.0,"protocolVersion":"2025-06-18","capabilities":{ }}}"#
        );
        assert_eq!(line.established().as_deref(), Some("2025-06-18"));
        assert_eq!(agent.session.version().unwrap().as_str(), "2025-06-18");
        let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        assert!(line.rest().await.is_empty(), "the agent says itself when it is initialized");
        agent.tell(initialized).await;
        assert_eq!(line.next().await.body, initialized);
        let found = harness.session("files", agent.session.id()).unwrap();
        assert!(Arc::ptr_eq(&found, &agent.session));
        assert!(harness.session("other", agent.session.id()).is_none());
        assert_eq!(harness.count("agent_sessions"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_version_that_we_do_not_know_passes() {
    let welcome = r#"{"protocolVersion":"2030-01-01"}"#;
    let (harness, mut peer) =
        Harness::of(settings("files"), Peer::with_welcome(Kind::Http, Some(welcome)));
    let (agent, line) = harness.agent_on(&mut peer).await;
    assert!(agent.welcome.contains(welcome));
    assert_eq!(agent.session.version(), None);
    assert_eq!(line.established().as_deref(), Some("2030-01-01"));
}

#[tokio::test(start_paused = true)]
async fn the_servers_own_error_reaches_the_agent_under_its_id() {
    let error =
        r#""error":{"code":-32602,"message":"Unsupported protocol version","data":{"x":1.0}}}"#;
    let expected = format!(r#"{{"jsonrpc":"2.0","id":"hello",{error}"#);
    for settings in [settings("files"), shared("files")] {
        for (kind, id) in [
            (Kind::Child, None),
            (Kind::Http, None),
            (Kind::Http, Some("")),
            (Kind::Http, Some(r#""id":null,"#)),
        ] {
            let (harness, mut peer) = Harness::of(settings.clone(), Peer::silent(kind));
            let opening = harness.opening("files");
            let mut line = peer.line().await;
            let sent = line.hello().await;
            let own = format!(r#""id":{},"#, sent.id());
            sent.say(&format!(r#"{{"jsonrpc":"2.0",{}{error}"#, id.unwrap_or(&own)));
            assert_eq!(refusal(opening.await.unwrap()), expected, "{kind:?} {id:?}");
            line.until_closed().await;
            assert_eq!(harness.count("agent_sessions"), 0);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_inside_a_refusal_reaches_the_agent_too() {
    let (harness, mut peer) = Harness::of(settings("files"), Peer::silent(Kind::Http));
    let opening = harness.opening("files");
    let mut line = peer.line().await;
    let body = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"too old"}}"#;
    let body = Bytes::from_static(body.as_bytes());
    line.next().await.refuse(refused_with(400, body));
    let expected = r#"{"jsonrpc":"2.0","id":"hello","error":{"code":-32602,"message":"too old"}}"#;
    assert_eq!(refusal(opening.await.unwrap()), expected);
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_server_is_reported() {
    let table = [
        (SendError::NotSent("no such program".to_owned()), "no such program"),
        (SendError::Lost("it hung up".to_owned()), "it hung up"),
        (refused_with(401, Bytes::new()), "credentials"),
        (SendError::SessionLost, "lost the session"),
    ];
    for (error, what) in table {
        let (harness, peer) = Harness::of(settings("files"), Peer::silent(Kind::Http));
        peer.next_connect(Connect::Refuse(error.clone()));
        let at_connect = refusal(harness.open("files", INITIALIZE).await);
        let (harness, mut peer) = Harness::of(settings("files"), Peer::silent(Kind::Http));
        let opening = harness.opening("files");
        let mut line = peer.line().await;
        line.next().await.refuse(error);
        let at_handshake = refusal(opening.await.unwrap());
        for answer in [at_connect, at_handshake] {
            assert!(answer.contains(what), "{answer}");
            assert!(answer.contains(r#""id":"hello""#), "{answer}");
            assert!(answer.contains(r#""effect":"not_started""#), "{answer}");
        }
        line.until_closed().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_shake_hands_in_time_is_given_up() {
    for settings in [settings("files"), shared("files")] {
        let (harness, mut peer) = Harness::of(settings, Peer::silent(Kind::Child));
        peer.next_connect(Connect::Hang);
        let answer = refusal(harness.open("files", INITIALIZE).await);
        assert!(answer.contains("no handshake within 5s"), "{answer}");
        let answer = refusal(harness.open("files", INITIALIZE).await);
        assert!(answer.contains("no handshake within 5s"), "{answer}");
        let mut line = peer.line().await;
        line.until_closed().await;
        // An answer that comes after all is nobody's.
        line.next().await.answer(crate::script::WELCOME);
        assert_eq!(harness.count("agent_sessions"), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn an_invalid_handshake_is_reported() {
    for (result, what) in [("{}", "has no protocol version"), ("7", "has no protocol version")] {
        let (harness, mut peer) =
            Harness::of(settings("files"), Peer::with_welcome(Kind::Child, Some(result)));
        let answer = refusal(harness.open("files", INITIALIZE).await);
        assert!(answer.contains(what), "{answer}");
        peer.line().await.until_closed().await;
    }
    let (harness, mut peer) = Harness::of(settings("files"), Peer::silent(Kind::Child));
    let opening = harness.opening("files");
    let mut line = peer.line().await;
    let _sent = line.next().await;
    line.break_off("exit status 1: no config");
    let answer = refusal(opening.await.unwrap());
    assert!(answer.contains("exit status 1: no config"), "{answer}");
    assert!(answer.contains(r#""effect":"not_started""#), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn starts_that_fail_are_spaced_out() {
    let settings = ServerSettings { backs_off: true, ..settings("files") };
    let (harness, peer) = Harness::of(settings, Peer::new(Kind::Child));
    for (tries, wait) in [(1, 1), (2, 2), (3, 4)] {
        peer.next_connect(Connect::Refuse(SendError::NotSent("broken".to_owned())));
        let answer = refusal(harness.open("files", INITIALIZE).await);
        assert!(answer.contains("broken"), "{answer}");
        assert_eq!(peer.tried(), tries);
        let answer = refusal(harness.open("files", INITIALIZE).await);
        assert!(answer.contains(&format!(r#""retry_after_s":{wait}"#)), "{answer}");
        assert!(answer.contains(&format!("Try again in {wait} s.")), "{answer}");
        assert_eq!(peer.tried(), tries, "not tried during the pause");
        tokio::time::advance(Duration::from_secs(wait)).await;
    }
    harness.agent().await;
    assert_eq!(harness.count("server_starts_total{server=\"files\",result=\"failed\"}"), 3);
    assert_eq!(harness.count("server_starts_total{server=\"files\",result=\"ok\"}"), 1);
}

#[tokio::test(start_paused = true)]
async fn there_are_never_more_agent_sessions_than_allowed() {
    let harness = Harness::with_limits(AgentSessions { max: 2, ..limits() });
    let peer = Peer::new(Kind::Child);
    harness.gateway.apply(
        vec![harness.server(settings("files"), &peer)],
        AgentSessions { max: 2, ..limits() },
    );
    let first = harness.agent().await;
    let (go, held) = oneshot::channel();
    peer.next_connect(Connect::Held(held));
    let opening = harness.opening("files");
    settle().await;
    // The one that is being opened counts.
    let third = harness.open("files", INITIALIZE).await;
    assert!(matches!(third, Err(NotOpened::TooMany(2))));
    assert_eq!(peer.tried(), 2);
    go.send(()).unwrap();
    let second = opening.await.unwrap().unwrap();
    assert!(matches!(harness.open("files", INITIALIZE).await, Err(NotOpened::TooMany(2))));
    harness.gateway.end(&first.session);
    settle().await;
    harness.agent().await;
    assert_eq!(harness.count("agent_sessions_rejected_total"), 2);

    // One that was not opened, and one that was given up, leave their places.
    harness.gateway.end(&second.session);
    settle().await;
    peer.next_connect(Connect::Refuse(SendError::NotSent("broken".to_owned())));
    refusal(harness.open("files", INITIALIZE).await);
    peer.next_connect(Connect::Hang);
    let given_up = harness.opening("files");
    settle().await;
    given_up.abort();
    assert!(given_up.await.is_err());
    harness.agent().await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_opening_states_its_cause() {
    struct None;
    impl Ids for None {
        fn agent_session(&self) -> Option<String> {
            Option::None
        }
        fn call(&self) -> Option<[u8; 10]> {
            Option::None
        }
    }
    let (harness, peer) = Harness::one(Kind::Child);
    assert!(matches!(harness.open("other", INITIALIZE).await, Err(NotOpened::UnknownServer)));
    let admission = Arc::clone(harness.gateway.admission());
    let caller = admission.caller(Option::None).unwrap();
    let gateway = Gateway::new(Arc::new(None), Metrics::default(), limits(), admission);
    gateway.apply(vec![harness.server(settings("files"), &peer)], limits());
    let parsed = parse_agent(INITIALIZE.as_bytes(), &Limits::default()).unwrap();
    let Incoming::One(Message::Request(request)) = parsed else { panic!("no request") };
    assert!(matches!(
        gateway.open(&Endpoint::Server("files".to_owned()), &request, &caller).await,
        Err(NotOpened::NoIds)
    ));
    assert_eq!(peer.tried(), 0);
}
