//! Cancellation: an unsent request is never sent; a sent one is cancelled under the gateway's id.

use tokio::sync::oneshot;
use toolgate_gateway::channel::Progress;

use crate::harness::{Harness, shared};
use crate::reply::Seen;
use crate::script::{Connect, Kind, Peer, settle};

const ASK: &str = r#"{"jsonrpc":"2.0","id":"a","method":"m"}"#;

fn cancel(id: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId": {id},"reason":"r","_meta":{{"x":1.0}}}}}}"#
    )
}

#[tokio::test(start_paused = true)]
async fn what_was_sent_is_cancelled_under_our_number() {
    for kind in [Kind::Child, Kind::Http] {
        let (harness, mut peer) = Harness::one(kind);
        let (agent, mut line) = harness.agent_on(&mut peer).await;
        let reply = agent.ask(ASK);
        let sent = line.next().await;
        agent.tell(&cancel("\"a\"")).await;
        assert_eq!(line.rest().await, [cancel(sent.id())]);
        // The server may have been faster; then its answer counts.
        sent.answer("1");
        assert_eq!(reply.answer().await, r#"{"jsonrpc":"2.0","id":"a","result":1}"#);
        agent.tell(&cancel("\"a\"")).await;
        assert!(line.rest().await.is_empty(), "what is over cannot be cancelled");
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_not_sent_never_is() {
    let (harness, mut peer) = Harness::one(Kind::Child);
    let (agent, line) = harness.agent_on(&mut peer).await;
    let (go, held) = oneshot::channel();
    peer.next_connect(Connect::Held(held));
    line.break_off("it crashed");
    let withdrawn = agent.ask(ASK);
    let wanted = agent.ask(r#"{"jsonrpc":"2.0","id":"b","method":"m"}"#);
    settle().await;
    agent.tell(&cancel("\"a\"")).await;
    assert_eq!(withdrawn.all().await, [], "nobody waits for a cancelled request");
    go.send(()).unwrap();
    let mut line = peer.line().await;
    line.next().await.answer("1");
    assert_eq!(wanted.answer().await, r#"{"jsonrpc":"2.0","id":"b","result":1}"#);
    assert!(line.rest().await.is_empty());
    let requests = line.log().iter().filter(|body| body.contains(r#""method":"m""#)).count();
    assert_eq!(requests, 1);
}

#[tokio::test(start_paused = true)]
async fn one_of_a_batch_can_be_withdrawn_and_the_others_are_answered() {
    let (harness, mut peer) = Harness::one(Kind::Child);
    let (agent, line) = harness.agent_on(&mut peer).await;
    let (go, held) = oneshot::channel();
    peer.next_connect(Connect::Held(held));
    line.break_off("it crashed");
    let batch =
        r#"[{"jsonrpc":"2.0","id":"a","method":"m"},{"jsonrpc":"2.0","id":"b","method":"m"}]"#;
    let reply = agent.batch(batch).await.unwrap();
    settle().await;
    agent.tell(&cancel("\"a\"")).await;
    go.send(()).unwrap();
    let mut line = peer.line().await;
    line.next().await.answer("1");
    let answer = r#"{"jsonrpc":"2.0","id":"b","result":1}"#.to_owned();
    assert!(
        matches!(reply.all().await.as_slice(), [Seen::Event(one) | Seen::Body(one, 200)] if *one == answer)
    );
}

#[tokio::test(start_paused = true)]
async fn no_agent_cancels_requests_of_others() {
    let (harness, mut peer) = Harness::of(shared("files"), Peer::new(Kind::Child));
    let (one, two) = (harness.agent().await, harness.agent().await);
    let mut line = peer.line().await;
    let first = one.ask(ASK);
    let of_one = line.next().await;
    let second = two.ask(ASK);
    let of_two = line.next().await;
    // Neither our numbers nor other spellings mean anything.
    for id in [of_one.id(), of_two.id(), "a", "\"\\u0061\"", "null", "\"b\""] {
        let raw = cancel(if id == "a" { "7" } else { id });
        two.tell(&raw).await;
    }
    assert!(line.rest().await.is_empty());
    two.tell(&cancel("\"a\"")).await;
    assert_eq!(line.rest().await, [cancel(of_two.id())]);
    of_one.answer("1");
    of_two.answer("2");
    assert_eq!(first.answer().await, r#"{"jsonrpc":"2.0","id":"a","result":1}"#);
    assert_eq!(second.answer().await, r#"{"jsonrpc":"2.0","id":"a","result":2}"#);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_without_an_id_goes_nowhere() {
    let (harness, mut peer) = Harness::one(Kind::Child);
    let (agent, mut line) = harness.agent_on(&mut peer).await;
    let reply = agent.ask(ASK);
    let sent = line.next().await;
    for raw in [
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a","requestId":"a"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":["a"]}"#,
    ] {
        agent.tell(raw).await;
    }
    assert!(line.rest().await.is_empty());
    let answer = format!(r#"{{"jsonrpc":"2.0","id":{},"result":1}}"#, sent.id());
    assert_eq!(sent.say(&answer), Progress::Expecting);
    reply.answer().await;
}
