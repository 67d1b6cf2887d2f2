//! The end of agent sessions: by the agent, by the idle timeout, by a stop of toolgate.

use std::time::Duration;

use toolgate_gateway::NotOpened;

use crate::harness::{Harness, INITIALIZE, shared};
use crate::script::{Kind, Peer, settle};

const ASK: &str = r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#;
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":1}"#;
const IDLE: Duration = Duration::from_mins(30);

#[tokio::test(start_paused = true)]
async fn an_agent_that_leaves_takes_its_server_along() {
    let (harness, mut peer) = Harness::one(Kind::Child);
    let (agent, mut line) = harness.agent_on(&mut peer).await;
    let (other, mut other_line) = harness.agent_on(&mut peer).await;
    let (reply, general) = (agent.ask(ASK), agent.listen());
    let _sent = line.next().await;
    harness.gateway.end(&agent.session);
    settle().await;
    assert!(line.closed());
    let answer = reply.answer().await;
    assert!(answer.contains("the agent session has ended"), "{answer}");
    assert!(answer.contains(r#""effect":"unknown""#), "{answer}");
    assert_eq!(general.all().await, []);
    assert!(harness.session("files", agent.session.id()).is_none());
    assert_eq!(harness.count("agent_sessions"), 1);

    let reply = other.ask(ASK);
    other_line.next().await.answer("1");
    assert_eq!(reply.answer().await, ANSWER);
}

#[tokio::test(start_paused = true)]
async fn idle_sessions_and_links_are_closed() {
    let (harness, mut peer) = Harness::one(Kind::Child);
    let (idle, idle_line) = harness.agent_on(&mut peer).await;
    let (reading, reading_line) = harness.agent_on(&mut peer).await;
    let general = reading.listen();
    tokio::time::advance(IDLE / 2).await;
    let (young, young_line) = harness.agent_on(&mut peer).await;
    harness.gateway.sweep();
    settle().await;
    assert_eq!(harness.count("agent_sessions"), 3);

    tokio::time::advance(IDLE / 2).await;
    harness.gateway.sweep();
    idle_line.until_closed().await;
    settle().await;
    assert!(!reading_line.closed() && !young_line.closed());
    assert!(harness.session("files", idle.session.id()).is_none());
    assert!(harness.session("files", reading.session.id()).is_some());
    assert!(harness.session("files", young.session.id()).is_some());

    // One that stops reading has been used until then.
    drop(general);
    settle().await;
    harness.gateway.sweep();
    settle().await;
    assert!(!reading_line.closed());
    tokio::time::advance(IDLE).await;
    harness.gateway.sweep();
    reading_line.until_closed().await;
    young_line.until_closed().await;
    assert_eq!(harness.count("agent_sessions"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_runs_is_use() {
    for settings in [crate::harness::settings("files"), shared("files")] {
        let settings = toolgate_gateway::ServerSettings { timeout: IDLE * 10, ..settings };
        let (harness, mut peer) = Harness::of(settings, Peer::new(Kind::Child));
        let (agent, mut line) = harness.agent_on(&mut peer).await;
        // The agent has hung up; its call runs on.
        drop(agent.call(ASK));
        let sent = line.next().await;
        for _ in 0..3 {
            tokio::time::advance(IDLE).await;
            harness.gateway.sweep();
            settle().await;
        }
        assert!(!line.closed());
        sent.answer("1");
        settle().await;
        for _ in 0..5 {
            harness.gateway.sweep();
            settle().await;
            tokio::time::advance(IDLE).await;
        }
        assert!(line.closed());
        assert_eq!(
            harness.count("upstream_requests_total{server=\"files\",result=\"answered\"}"),
            1
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_waits_for_what_runs() {
    let (harness, mut peer) = Harness::one(Kind::Child);
    let (agent, mut line) = harness.agent_on(&mut peer).await;
    let (reply, general) = (agent.ask(ASK), agent.listen());
    let sent = line.next().await;
    let gateway = std::sync::Arc::clone(&harness.gateway);
    let draining = tokio::spawn(async move { gateway.drain(Duration::from_secs(30)).await });
    assert_eq!(general.all().await, [], "idle streams end at once");
    assert!(matches!(harness.open("files", INITIALIZE).await, Err(NotOpened::Stopping)));
    settle().await;
    assert!(!draining.is_finished() && !line.closed());
    sent.answer("1");
    assert_eq!(reply.answer().await, ANSWER);
    draining.await.unwrap();
    assert!(line.closed());
    assert_eq!(harness.count("agent_sessions"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_stop_gives_up_after_its_grace() {
    for settings in [crate::harness::settings("files"), shared("files")] {
        let shared = settings.instances == toolgate_gateway::Instances::Shared;
        let (harness, mut peer) = Harness::of(settings, Peer::new(Kind::Child));
        let (agent, mut line) = harness.agent_on(&mut peer).await;
        let reply = agent.ask(ASK);
        let _sent = line.next().await;
        harness.gateway.drain(Duration::from_secs(5)).await;
        let answer = reply.answer().await;
        assert!(answer.contains("outcome_unknown"), "shared {shared}: {answer}");
        assert!(line.closed());
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_being_opened_when_toolgate_stops_is_not() {
    let (harness, mut peer) =
        Harness::of(crate::harness::settings("files"), Peer::silent(Kind::Child));
    let opening = harness.opening("files");
    let mut line = peer.line().await;
    let sent = line.next().await;
    harness.gateway.drain(Duration::from_secs(1)).await;
    sent.answer(crate::script::WELCOME);
    assert!(matches!(opening.await.unwrap(), Err(NotOpened::Stopping)));
    line.until_closed().await;
}
