//! Links that are lost, reconnected, forgotten or too slow.

use std::time::Duration;

use toolgate_gateway::ServerSettings;
use toolgate_gateway::channel::SendError;
use toolgate_json::peek;

use crate::harness::{Harness, INITIALIZE, settings};
use crate::script::{Connect, Kind, Line, Peer, settle};

const ASK: &str = r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"n":1.0}}"#;
const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#;

/// That the line was opened anew: the agent's own `initialize` again, `initialized`, and only then
/// the request.
fn assert_opened_again(line: &Line, method: &str) {
    let log = line.log();
    let [initialize, initialized, request] = log.as_slice() else { panic!("{log:?}") };
    let part = |raw, key| peek(raw, &[key]).unwrap().map(str::to_owned);
    assert_eq!(part(initialize, "method").as_deref(), Some("\"initialize\""));
    assert_eq!(part(initialize, "params"), part(INITIALIZE, "params"));
    assert_eq!(part(initialized, "method").as_deref(), Some("\"notifications/initialized\""));
    assert_eq!(part(request, "method"), Some(format!("\"{method}\"")));
}

#[tokio::test(start_paused = true)]
async fn a_lost_channel_fails_what_runs_and_comes_up_again_on_use() {
    for kind in [Kind::Child, Kind::Http] {
        let (harness, mut peer) = Harness::one(kind);
        let (agent, mut line) = harness.agent_on(&mut peer).await;
        let (call, ask) = (agent.ask(CALL), agent.ask(ASK));
        let _sent = (line.next().await, line.next().await);
        line.break_off("exit status 9");
        let call = call.answer().await;
        let ask = ask.answer().await;
        for answer in [&call, &ask] {
            assert!(answer.contains("exit status 9"), "{answer}");
            assert!(answer.contains(r#""error_code":"outcome_unknown""#), "{answer}");
            assert!(answer.contains(r#""effect":"unknown""#), "{answer}");
        }
        assert!(call.contains(r#""isError":true"#) && ask.contains(r#""error":{"#));
        assert_eq!(peer.tried(), 1, "nobody needs it now");

        let (first, second) = (agent.ask(ASK), agent.ask(ASK));
        let mut again = peer.line().await;
        let (a, b) = (again.next().await, again.next().await);
        assert_eq!(peer.tried(), 2, "both wait for one handshake");
        a.answer("1");
        b.answer("1");
        first.answer().await;
        second.answer().await;
        line.until_closed().await;
        assert_eq!(
            harness.count("upstream_requests_total{server=\"files\",result=\"unknown\"}"),
            2
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_reconnect_repeats_the_handshake_of_the_agent() {
    let (harness, mut peer) = Harness::one(Kind::Child);
    let (agent, line) = harness.agent_on(&mut peer).await;
    let _general = agent.listen();
    settle().await;
    assert_eq!(line.listens(), 1);
    line.break_off("it crashed");
    let reply = agent.ask(ASK);
    let mut again = peer.line().await;
    again.next().await.answer("1");
    reply.answer().await;
    assert_opened_again(&again, "m");
    assert_eq!(again.established().as_deref(), Some("2025-11-25"));
    assert_eq!(again.listens(), 1, "the agent still listens");
}

#[tokio::test(start_paused = true)]
async fn a_failed_reconnect_states_that_nothing_was_sent() {
    let (harness, mut peer) = Harness::one(Kind::Child);
    let (agent, line) = harness.agent_on(&mut peer).await;
    line.break_off("it crashed");
    peer.next_connect(Connect::Refuse(SendError::NotSent("no such program".to_owned())));
    let answer = agent.ask(CALL).answer().await;
    assert!(answer.contains("no such program") && answer.contains("not_started"), "{answer}");

    peer.next_connect(Connect::Hang);
    let answer = agent.ask(CALL).answer().await;
    assert!(answer.contains("no handshake within 5s"), "{answer}");
    assert!(answer.contains("not_started"), "{answer}");

    peer.set_welcome(None);
    let reply = agent.ask(CALL);
    let mut line = peer.line().await;
    let sent = line.next().await;
    sent.say(&format!(r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":1}}}}"#, sent.id()));
    let answer = reply.answer().await;
    assert!(answer.contains("rejects a new session") && answer.contains("not_started"), "{answer}");
    line.until_closed().await;

    peer.set_welcome(Some(crate::script::WELCOME));
    let reply = agent.ask(ASK);
    peer.line().await.next().await.answer("1");
    reply.answer().await;
}

#[tokio::test(start_paused = true)]
async fn a_child_that_dies_young_is_given_a_pause() {
    let settings = ServerSettings { backs_off: true, ..settings("files") };
    let (harness, mut peer) = Harness::of(settings, Peer::new(Kind::Child));
    let (agent, line) = harness.agent_on(&mut peer).await;
    line.break_off("it crashed");
    let answer = agent.ask(CALL).answer().await;
    assert!(answer.contains(r#""retry_after_s":1"#), "{answer}");
    assert!(answer.contains("not_started"), "{answer}");
    assert_eq!(peer.tried(), 1);
    tokio::time::advance(Duration::from_secs(1)).await;
    let reply = agent.ask(ASK);
    let mut line = peer.line().await;
    line.next().await.answer("1");
    reply.answer().await;
    // One that has lived for long is started again at once.
    tokio::time::advance(Duration::from_mins(1)).await;
    line.break_off("it crashed");
    let reply = agent.ask(ASK);
    peer.line().await.next().await.answer("1");
    reply.answer().await;
}

#[tokio::test(start_paused = true)]
async fn more_requests_than_a_server_may_have_under_way_are_not_sent() {
    let settings = ServerSettings { max_requests: 2, ..settings("files") };
    let (harness, mut peer) = Harness::of(settings, Peer::new(Kind::Child));
    let (agent, mut line) = harness.agent_on(&mut peer).await;
    let (first, second) = (agent.ask(CALL), agent.ask(ASK));
    let (one, two) = (line.next().await, line.next().await);
    let refused = agent.ask(CALL).answer().await;
    assert!(refused.contains("2 requests to it are in flight"), "{refused}");
    assert!(refused.contains(r#""error_code":"upstream_unavailable""#), "{refused}");
    assert!(refused.contains("not_started"), "{refused}");
    one.answer("1");
    first.answer().await;
    let third = agent.ask(ASK);
    let three = line.next().await;
    two.answer("2");
    three.answer("3");
    second.answer().await;
    third.answer().await;
}

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;

#[tokio::test(start_paused = true)]
async fn a_forgotten_session_is_opened_again_and_a_list_asked_for_once_more() {
    let (harness, mut peer) = Harness::one(Kind::Http);
    let (agent, mut line) = harness.agent_on(&mut peer).await;
    let reply = agent.ask(LIST);
    let first = line.next().await;
    first.refuse(SendError::SessionLost);
    let mut again = peer.line().await;
    let second = again.next().await;
    assert_eq!(first.body, second.body);
    assert_opened_again(&again, "tools/list");
    second.answer("1");
    assert_eq!(reply.answer().await, r#"{"jsonrpc":"2.0","id":1,"result":1}"#);
    assert!(line.rest().await.is_empty() && again.rest().await.is_empty());
    line.until_closed().await;
    assert!(!again.closed());
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_session_was_forgotten_is_for_the_agent_to_repeat() {
    let (harness, mut peer) = Harness::one(Kind::Http);
    let (agent, mut line) = harness.agent_on(&mut peer).await;
    let reply = agent.ask(CALL);
    line.next().await.refuse(SendError::SessionLost);
    let answer = reply.answer().await;
    assert!(answer.contains("lost the session") && answer.contains("Repeat"), "{answer}");
    assert!(answer.contains(r#""error_code":"upstream_unavailable""#), "{answer}");
    assert!(answer.contains(r#""effect":"unknown""#), "{answer}");
    assert!(!answer.contains("Nothing was sent"), "{answer}");
    // The new session is open before anything is asked of it, and was not given the call.
    let mut again = peer.line().await;
    let reply = agent.ask(CALL);
    let second = again.next().await;
    assert_opened_again(&again, "tools/call");
    second.answer("1");
    assert!(reply.answer().await.ends_with(r#""result":1}"#));
    assert!(again.rest().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_forgotten_twice_is_a_failure() {
    let (harness, mut peer) = Harness::one(Kind::Http);
    let (agent, mut line) = harness.agent_on(&mut peer).await;
    let reply = agent.ask(LIST);
    line.next().await.refuse(SendError::SessionLost);
    let mut again = peer.line().await;
    again.next().await.refuse(SendError::SessionLost);
    let answer = reply.answer().await;
    assert!(answer.contains("lost the session") && answer.contains("unknown"), "{answer}");
    assert!(again.rest().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn all_whose_session_was_forgotten_share_the_new_one() {
    let (harness, mut peer) = Harness::one(Kind::Http);
    let (agent, mut line) = harness.agent_on(&mut peer).await;
    let replies = [agent.ask(LIST), agent.ask(LIST), agent.ask(LIST)];
    for sent in [line.next().await, line.next().await, line.next().await] {
        sent.refuse(SendError::SessionLost);
    }
    let mut again = peer.line().await;
    for sent in [again.next().await, again.next().await, again.next().await] {
        sent.answer("1");
    }
    for reply in replies {
        assert_eq!(reply.answer().await, r#"{"jsonrpc":"2.0","id":1,"result":1}"#);
    }
    assert_eq!(peer.tried(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_too_long_is_cancelled() {
    let mut settings = settings("files");
    settings.tool_timeouts.insert("slow".to_owned(), Duration::from_mins(10));
    settings.tool_timeouts.insert("quick".to_owned(), Duration::from_secs(2));
    let (harness, mut peer) = Harness::of(settings, Peer::new(Kind::Http));
    let (agent, mut line) = harness.agent_on(&mut peer).await;
    for (tool, after) in [("slow", "600s"), ("quick", "2s"), ("other", "60s")] {
        let reply = agent.ask(&CALL.replace("\"t\"", &format!("\"{tool}\"")));
        let sent = line.next().await;
        let answer = reply.answer().await;
        assert!(answer.contains(&format!("did not answer within {after}")), "{answer}");
        assert!(answer.contains(r#""error_code":"upstream_timeout""#), "{answer}");
        assert!(answer.contains(r#""effect":"unknown""#), "{answer}");
        let cancel = line.next().await;
        assert_eq!(cancel.method(), "notifications/cancelled");
        assert_eq!(cancel.part(&["params", "requestId"]), Some(sent.id()));
        sent.answer("\"late\"");
    }
    assert_eq!(harness.count("upstream_requests_total{server=\"files\",result=\"timeout\"}"), 3);
    assert!(line.rest().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_never_left_was_not_started() {
    let mut settings = settings("files");
    settings.tool_timeouts.insert("t".to_owned(), Duration::from_secs(2));
    let (harness, mut peer) = Harness::of(settings, Peer::new(Kind::Child));
    let (agent, line) = harness.agent_on(&mut peer).await;
    line.break_off("it crashed");
    peer.next_connect(Connect::Hang);
    let answer = agent.ask(CALL).answer().await;
    assert!(answer.contains("not ready within 2s"), "{answer}");
    assert!(answer.contains(r#""effect":"not_started""#), "{answer}");
}
