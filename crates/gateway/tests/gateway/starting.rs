//! Servers that start slowly, fail to start, or are left while they start; and the lists that
//! toolgate fetches itself.

use std::time::Duration;

use tokio::time::{Instant, advance};
use toolgate_gateway::channel::SendError;
use toolgate_gateway::{NotListed, ServerSettings, ServerState};

use crate::harness::{Agent, Harness, INITIALIZE, settings, shared};
use crate::script::{Connect, Kind, Line, Peer, WELCOME, settle};

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
const CALL: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files__a","arguments":{}}}"#;
const DISCOVERED: &str = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}"#;
const WITH_TOOLS: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}"#;
const TOOLS: &str = r#"{"tools":[{"name":"a"}]}"#;

/// A child with the default time to start.
fn child(name: &str) -> ServerSettings {
    let minute = Duration::from_mins(1);
    ServerSettings {
        backs_off: true,
        start_timeout: minute,
        reconnect_timeout: minute,
        ..settings(name)
    }
}

async fn tools(agent: &Agent) -> String {
    agent.ask(LIST).answer().await
}

/// Answers the handshake and the list of tools.
async fn serve_lists(line: &mut Line) {
    line.hello().await.answer(WITH_TOOLS);
    loop {
        let sent = line.next().await;
        if sent.method() == "tools/list" {
            return sent.answer(TOOLS);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_to_the_probe_is_used() {
    let settings = ServerSettings { instances: shared("files").instances, ..child("files") };
    let (harness, mut peer) = Harness::of(settings, Peer::silent(Kind::Child));
    let opening = harness.opening("files");
    let mut line = peer.line().await;
    let probe = line.next().await;
    assert_eq!(probe.method(), "server/discover");
    let initialize = line.next().await;
    assert_eq!(initialize.method(), "initialize", "after ten seconds");
    probe.answer(DISCOVERED);
    initialize.say_error(-32022, "unsupported protocol version");
    let agent = opening.await.unwrap().unwrap();
    assert!(agent.welcome.contains(r#""capabilities":{"tools":{}}"#), "{}", agent.welcome);
    let reply = agent.ask(LIST);
    let sent = line.next().await;
    assert_eq!(sent.method(), "tools/list");
    assert!(sent.body.contains("io.modelcontextprotocol/protocolVersion"), "{}", sent.body);
    sent.answer(r#"{"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"private"}"#);
    reply.answer().await;
    assert_eq!(peer.tried(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_names_the_protocol_proves_it() {
    let settings = ServerSettings { instances: shared("files").instances, ..child("files") };
    let (harness, mut peer) = Harness::of(settings, Peer::silent(Kind::Child));
    let opening = harness.opening("files");
    let mut line = peer.line().await;
    let probe = line.next().await;
    let initialize = line.next().await;
    probe.say_error(-32603, "not ready");
    let id = initialize.id();
    initialize.say(&format!(
        r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32022,"message":"m","data":{{"supported":["2026-07-28"]}}}}}}"#
    ));
    let again = line.next().await;
    assert_eq!(again.method(), "server/discover");
    again.answer(DISCOVERED);
    assert!(opening.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ignores_the_probe_is_sessionful() {
    let settings = ServerSettings { instances: shared("files").instances, ..child("files") };
    let (harness, mut peer) = Harness::of(settings, Peer::silent(Kind::Child));
    let opening = harness.opening("files");
    let mut line = peer.line().await;
    assert_eq!(line.next().await.method(), "server/discover");
    line.next().await.answer(WELCOME);
    assert!(opening.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_child_whose_agent_leaves_while_it_starts_has_not_failed() {
    let (harness, mut peer) = Harness::of(child("files"), Peer::silent(Kind::Child));
    let first = harness.open_all(INITIALIZE).await;
    let line = peer.line().await;
    harness.gateway.end(&first.session);
    line.until_closed().await;
    settle().await;
    assert_eq!(peer.tried(), 1, "nothing is started for an agent that has left");
    let status = &harness.gateway.known_servers()[0].status;
    assert_eq!((status.state, status.last_error.clone()), (ServerState::NeverUsed, None));
    let second = harness.open_all(INITIALIZE).await;
    serve_lists(&mut peer.line().await).await;
    assert!(tools(&second).await.contains("files__a"));
}

#[tokio::test(start_paused = true)]
async fn starts_that_fail_together_are_repeated_one_after_the_other() {
    let (harness, mut peer) = Harness::of(child("files"), Peer::silent(Kind::Child));
    let (one, two) = (harness.opening("files"), harness.opening("files"));
    let (mut first, second) = (peer.line().await, peer.line().await);
    second.break_off("the database is locked");
    settle().await;
    assert_eq!(peer.tried(), 2, "it waits until the other one has started");
    first.hello().await.answer(WELCOME);
    peer.line().await.hello().await.answer(WELCOME);
    assert!(one.await.unwrap().is_ok() && two.await.unwrap().is_ok());
    // From now on starts wait for each other.
    let (three, four) = (harness.opening("files"), harness.opening("files"));
    let mut third = peer.line().await;
    settle().await;
    assert_eq!(peer.tried(), 4);
    third.hello().await.answer(WELCOME);
    peer.line().await.hello().await.answer(WELCOME);
    assert!(three.await.unwrap().is_ok() && four.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_child_that_fails_alone_is_not_started_again() {
    let (harness, mut peer) = Harness::of(child("files"), Peer::silent(Kind::Child));
    let opening = harness.opening("files");
    peer.line().await.break_off("exit code 1");
    assert!(opening.await.unwrap().is_err());
    assert_eq!(peer.tried(), 1);
}

#[tokio::test(start_paused = true)]
async fn toolgate_lists_a_server_itself_and_ends_its_process() {
    let (harness, mut peer) = Harness::of(child("files"), Peer::silent(Kind::Child));
    harness.gateway.list_new_servers();
    let mut line = peer.line().await;
    serve_lists(&mut line).await;
    line.until_closed().await;
    settle().await;
    let known = &harness.gateway.known_servers()[0];
    assert_eq!(
        (known.tools, known.status.state, known.status.running),
        (Some(1), ServerState::Ready, 0)
    );
    harness.gateway.list_new_servers();
    settle().await;
    assert_eq!(peer.tried(), 1, "once");
    // An agent that lists once and leaves sees it at once.
    let agent = harness.open_all(INITIALIZE).await;
    let before = Instant::now();
    assert!(tools(&agent).await.contains("files__a"));
    assert_eq!(before.elapsed(), Duration::ZERO);
}

/// A server without a process reports no changes; an agent that lists must learn of them.
#[tokio::test(start_paused = true)]
async fn what_agents_list_is_listed_again_over_a_process_that_ends() {
    let (harness, mut peer) = Harness::of(child("files"), Peer::silent(Kind::Child));
    harness.gateway.list_new_servers();
    let mut line = peer.line().await;
    serve_lists(&mut line).await;
    line.until_closed().await;
    settle().await;
    // It introduces itself as toolgate does, so that it needs no process for a list of its own.
    let agent = harness.open_all(&INITIALIZE.replace(r#"{"x":1.0}"#, "{}")).await;
    advance(Duration::from_secs(5)).await;
    harness.gateway.list_new_servers();
    settle().await;
    assert_eq!(peer.tried(), 1, "no agent has listed");
    for _ in 0..2 {
        assert!(tools(&agent).await.contains("files__a"));
    }
    harness.gateway.list_new_servers();
    let mut line = peer.line().await;
    serve_lists(&mut line).await;
    line.until_closed().await;
    settle().await;
    assert_eq!(peer.tried(), 2, "once for both");
    assert!(tools(&agent).await.contains("files__a"));
    harness.gateway.list_new_servers();
    settle().await;
    assert_eq!(peer.tried(), 2, "not at once again");
    advance(Duration::from_secs(2)).await;
    harness.gateway.list_new_servers();
    serve_lists(&mut peer.line().await).await;
}

#[tokio::test(start_paused = true)]
async fn a_list_waits_for_a_server_that_is_starting() {
    let (harness, mut peer) = Harness::of(child("files"), Peer::silent(Kind::Child));
    harness.gateway.list_new_servers();
    let agent = harness.open_all(INITIALIZE).await;
    let asked = Instant::now();
    let reply = agent.ask(LIST);
    advance(Duration::from_secs(3)).await;
    serve_lists(&mut peer.line().await).await;
    assert!(reply.answer().await.contains("files__a"));
    assert_eq!(asked.elapsed().as_secs(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_list_waits_no_longer_than_configured_and_the_rest_joins_later() {
    let (harness, mut peer) = Harness::of(child("files"), Peer::silent(Kind::Child));
    harness.gateway.set_list_wait(Duration::from_secs(2));
    harness.gateway.list_new_servers();
    let agent = harness.open_all(INITIALIZE).await;
    let mut general = agent.listen();
    let asked = Instant::now();
    assert!(!tools(&agent).await.contains("files__a"));
    assert_eq!(asked.elapsed().as_secs(), 2);
    serve_lists(&mut peer.line().await).await;
    assert!(general.message().await.contains("notifications/tools/list_changed"));
    assert!(tools(&agent).await.contains("files__a"));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_has_failed_delays_no_list() {
    let (harness, peer) = Harness::of(settings("files"), Peer::silent(Kind::Http));
    for _ in 0..20 {
        peer.next_connect(Connect::Hang);
    }
    harness.gateway.list_new_servers();
    settle().await;
    advance(Duration::from_secs(6)).await;
    settle().await;
    let agent = harness.open_all(INITIALIZE).await;
    let asked = Instant::now();
    assert!(!tools(&agent).await.contains("files__a"));
    assert_eq!(asked.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_failed_listing_is_repeated() {
    let (harness, mut peer) = Harness::of(child("files"), Peer::silent(Kind::Child));
    harness.gateway.list_new_servers();
    peer.line().await.break_off("not yet");
    serve_lists(&mut peer.line().await).await;
    settle().await;
    assert_eq!(harness.gateway.known_servers()[0].tools, Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_test_of_a_server_shows_the_cause_and_its_list_is_used() {
    let (harness, mut peer) = Harness::of(child("files"), Peer::silent(Kind::Child));
    let refuse = || peer.next_connect(Connect::Refuse(SendError::NotSent("no file".to_owned())));
    refuse();
    assert!(harness.open("files", INITIALIZE).await.is_err());
    let status = harness.gateway.known_servers().remove(0).status;
    assert_eq!(status.state, ServerState::BackingOff);
    assert_eq!(status.last_error.unwrap().why, "no file");
    refuse();
    let tested = harness.gateway.test_server("files").await;
    let Err(NotListed::Failed(why)) = tested else { panic!("{tested:?}") };
    assert!(why.contains("no file") && !why.contains("delayed"), "{why}");
    let gateway = harness.gateway.clone();
    let test = tokio::spawn(async move { gateway.test_server("files").await });
    serve_lists(&mut peer.line().await).await;
    assert_eq!(test.await.unwrap(), Ok(vec!["a".to_owned()]));
    let agent = harness.open_all(INITIALIZE).await;
    assert!(tools(&agent).await.contains("files__a"));
}

#[tokio::test(start_paused = true)]
async fn lists_are_kept_across_restarts() {
    let (harness, mut peer) = Harness::of(child("files"), Peer::silent(Kind::Child));
    let store = harness.gateway.admission().store().clone();
    harness.gateway.list_new_servers();
    serve_lists(&mut peer.line().await).await;
    settle().await;
    harness.gateway.store_lists(&*store);
    let stored = store.documents(toolgate_gateway::LISTS).await.unwrap();
    let (next, peer) = Harness::of(child("files"), Peer::silent(Kind::Child));
    next.gateway.restore_lists(&stored, &**next.gateway.admission().store());
    let agent = next.open_all(INITIALIZE).await;
    assert!(tools(&agent).await.contains("files__a"), "before any server has answered");
    drop(peer);
}

#[tokio::test(start_paused = true)]
async fn calls_to_a_server_that_hangs_do_not_queue() {
    let (harness, mut peer) = Harness::of(settings("files"), Peer::new(Kind::Http));
    let (agent, line) = harness.agent_on(&mut peer).await;
    line.break_off("gone");
    peer.set_welcome(None);
    let call = CALL.replace("files__a", "a");
    let mut replies = Vec::new();
    for _ in 0..4 {
        replies.push((Instant::now(), agent.ask(&call)));
        advance(Duration::from_millis(500)).await;
    }
    for (asked, reply) in replies {
        let answer = reply.answer().await;
        assert!(answer.contains("upstream_unavailable"), "{answer}");
        assert!(asked.elapsed() <= Duration::from_millis(5_600), "{:?}", asked.elapsed());
    }
    let asked = Instant::now();
    assert!(harness.open("files", INITIALIZE).await.is_err());
    assert!(asked.elapsed() <= Duration::from_millis(5_100), "{:?}", asked.elapsed());
}
