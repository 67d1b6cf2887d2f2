//! Calls are detached: an agent that disconnects changes nothing for the server and can resume.

use std::time::Duration;

use toolgate_gateway::EventId;
use toolgate_gateway::event_buffer::{First, Next};

use crate::harness::Harness;
use crate::reply::Seen;
use crate::script::{Kind, settle};

const ASK: &str = r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#;
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":1}"#;
const NOTE: &str = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#;
const CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;

#[tokio::test(start_paused = true)]
async fn a_detached_call_runs_to_its_end() {
    for kind in [Kind::Child, Kind::Http] {
        let (harness, mut peer) = Harness::one(kind);
        let (agent, mut line) = harness.agent_on(&mut peer).await;
        // Dropped before it was even sent, and dropped while it is waited for.
        drop(agent.call(ASK));
        let first = line.next().await;
        let mut call = agent.call(ASK);
        let waiting = tokio::spawn(async move { call.first().await });
        let second = line.next().await;
        waiting.abort();
        assert!(waiting.await.is_err());
        settle().await;
        assert!(line.rest().await.is_empty(), "no cancel");
        first.answer("1");
        second.answer("1");
        settle().await;
        assert_eq!(
            harness.count("upstream_requests_total{server=\"files\",result=\"answered\"}"),
            2
        );
        harness.gateway.drain(Duration::from_secs(1)).await;
        assert!(harness.gateway.tasks().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_finds_the_rest_of_a_stream_when_it_comes_back() {
    let (harness, mut peer) = Harness::one(Kind::Child);
    let (agent, mut line) = harness.agent_on(&mut peer).await;
    let mut call = agent.call(ASK);
    assert!(matches!(call.first().await, First::Stream));
    let mut attached = agent.session.stream(&call);
    drop(call);
    let sent = line.next().await;
    sent.say(NOTE);
    let stream = attached.number();
    assert_eq!(attached.next().await, Next::Event(1, NOTE.into()));
    drop(attached);
    sent.say(NOTE);
    sent.answer("1");
    settle().await;

    for after in [0, 1, 2] {
        let id = EventId { stream, event: after };
        let mut attached = agent.session.resume(&id).expect("the stream");
        for number in after + 1..=3 {
            let body = if number == 3 { ANSWER } else { NOTE };
            assert_eq!(attached.next().await, Next::Event(number, body.into()));
        }
        assert_eq!(attached.next().await, Next::End);
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_id_that_never_was_does_no_harm() {
    let (harness, mut peer) = Harness::one(Kind::Child);
    let (agent, mut line) = harness.agent_on(&mut peer).await;
    let other = harness.agent().await;
    let mut reply = agent.ask(ASK);
    let sent = line.next().await;
    sent.say(NOTE);
    reply.message().await;
    for stream in [2, 99, u64::MAX] {
        assert!(agent.session.resume(&EventId { stream, event: 0 }).is_none());
    }
    assert!(other.session.resume(&EventId { stream: 1, event: 0 }).is_none(), "another's stream");
    // A place that its stream has not reached is nobody's.
    for stream in [0, 1] {
        assert!(agent.session.resume(&EventId { stream, event: u64::MAX }).is_none());
    }
    let mut attached = agent.session.resume(&EventId { stream: 1, event: 1 }).unwrap();
    sent.answer("1");
    assert_eq!(attached.next().await, Next::Event(2, ANSWER.into()));
}

#[tokio::test(start_paused = true)]
async fn the_general_stream_goes_on_where_it_was_left() {
    let (harness, mut peer) = Harness::one(Kind::Child);
    let (agent, line) = harness.agent_on(&mut peer).await;
    line.say(NOTE);
    let mut general = agent.listen();
    assert_eq!(general.message().await, NOTE);
    drop(general);
    settle().await;
    line.say(CHANGED);
    let mut general = agent.listen();
    assert_eq!(general.message().await, CHANGED);
    let mut again = agent.session.resume(&EventId { stream: 0, event: 0 }).unwrap();
    assert_eq!(again.next().await, Next::Event(1, NOTE.into()));
    assert_eq!(general.all().await, [], "the newest reader wins");
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_answered_in_full() {
    let (harness, mut peer) = Harness::one(Kind::Child);
    let (agent, mut line) = harness.agent_on(&mut peer).await;
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"m"},
        {"jsonrpc":"2.0","method":"notifications/x"},
        {"jsonrpc":"2.0","id":2},
        {"jsonrpc":"2.0","id":3,"method":"m"}]"#;
    let reply = agent.batch(batch).await.unwrap();
    let mut notified = 0;
    for sent in [line.next().await, line.next().await, line.next().await] {
        match sent.part(&["id"]) {
            Some(_) => sent.answer("1"),
            None => notified += 1,
        }
    }
    assert_eq!(notified, 1);
    let all: Vec<String> = reply
        .all()
        .await
        .into_iter()
        .map(|seen| match seen {
            Seen::Event(body) => body,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(all.len(), 3);
    assert!(all.iter().any(|body| body == ANSWER), "{all:?}");
    assert!(all.iter().any(|body| body.contains(r#""id":3,"result":1"#)), "{all:?}");
    assert!(all.iter().any(|body| body.contains(r#""error""#)), "{all:?}");
    assert!(agent.batch(r#"[{"jsonrpc":"2.0","method":"notifications/x"}]"#).await.is_none());
}
