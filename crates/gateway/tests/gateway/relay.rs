//! Large lists are relayed while they arrive; other messages are not.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::sleep;
use toolgate_gateway::RelayWriter;
use toolgate_gateway::channel::{Progress, SendError};

use crate::harness::{Agent, Harness, INITIALIZE, shared};
use crate::reply::{Reply, Seen};
use crate::script::{Kind, Line, Peer, Sent};

const LIST: &str = r#"{"jsonrpc":"2.0","id":"mine","method":"prompts/list"}"#;
const REST: &str = r#"{"name":"b"}]}}"#;
const OUTCOME: &str = "upstream_requests_total{server=\"files\",result=\"";

const BEFORE: &str = r#"{"jsonrpc":"2.0","id":"#;
const AFTER: &str = r#","result":{"prompts":[{"name":"a"},"#;

fn beginning(id: &str) -> String {
    format!("{BEFORE}{id}{AFTER}")
}

/// An agent that has asked for a list, of which it has seen the beginning.
struct Passing {
    harness: Harness,
    agent: Agent,
    line: Line,
    reply: Reply,
    sent: Sent,
    relay_writer: RelayWriter,
}

fn begins(sent: &Sent) -> Option<RelayWriter> {
    let beginning = beginning(sent.id());
    sent.begins(&beginning, beginning.len() + REST.len())
}

async fn passing() -> Passing {
    let (harness, mut peer) = Harness::one(Kind::Http);
    let (agent, mut line) = harness.agent_on(&mut peer).await;
    let mut reply = agent.ask(LIST);
    let sent = line.next().await;
    let relay_writer = begins(&sent).unwrap();
    let begun = Seen::Begun(beginning("\"mine\"").len() + REST.len());
    let pieces = [BEFORE, "\"mine\""].map(|piece| Seen::Piece(piece.to_owned()));
    for expected in [begun].into_iter().chain(pieces) {
        assert_eq!(reply.next().await, Some(expected));
    }
    Passing { harness, agent, line, reply, sent, relay_writer }
}

#[tokio::test(start_paused = true)]
async fn a_list_goes_on_while_it_comes() {
    let Passing { harness, mut reply, sent, mut relay_writer, .. } = passing().await;
    assert!(reply.so_far().await.is_empty(), "the newest piece waits");
    relay_writer.push(Bytes::from_static(REST.as_bytes()));
    assert_eq!(reply.next().await, Some(Seen::Piece(AFTER.to_owned())));
    // However long the rest takes, it has begun as one answer and remains one.
    sleep(Duration::from_secs(10)).await;
    assert_eq!(sent.passed(relay_writer), Progress::Answered);
    assert_eq!(reply.all().await, [Seen::Piece(REST.to_owned())]);
    assert_eq!(harness.count(&format!("{OUTCOME}answered\"}}")), 1);
}

#[tokio::test(start_paused = true)]
async fn what_breaks_off_is_no_answer_and_the_next_request_works() {
    for lost in [true, false] {
        let Passing { harness, agent, mut line, reply, sent, mut relay_writer } = passing().await;
        relay_writer.push(Bytes::from_static(b"{"));
        if lost {
            drop(relay_writer);
            sent.refuse(SendError::Lost("the connection broke".to_owned()));
        } else {
            sleep(Duration::from_secs(61)).await;
            assert!(sent.hung_up(), "it took too long");
            drop(relay_writer);
        }
        let seen = reply.all().await;
        assert_eq!(seen.last(), Some(&Seen::Truncated), "{seen:?}");
        let outcome = if lost { "unknown" } else { "timeout" };
        assert_eq!(harness.count(&format!("{OUTCOME}{outcome}\"}}")), 1);

        let reply = agent.ask(LIST);
        let mut next = line.next().await;
        if next.method() == "notifications/cancelled" {
            next = line.next().await;
        }
        next.answer("{}");
        assert_eq!(reply.answer().await, r#"{"jsonrpc":"2.0","id":"mine","result":{}}"#);
    }
}

#[tokio::test(start_paused = true)]
async fn what_turns_out_to_be_no_answer_is_broken_off() {
    for rest in [r#""x"]},"id":99}"#, r#""x"]}} {}"#, r#""x"]},"error":{}}"#] {
        let Passing { reply, sent, mut relay_writer, .. } = passing().await;
        relay_writer.push(Bytes::from_static(rest.as_bytes()));
        assert_eq!(sent.passed(relay_writer), Progress::Expecting, "{rest}");
        sent.refuse(SendError::Lost("no answer".to_owned()));
        let seen = reply.all().await;
        assert_eq!(seen.last(), Some(&Seen::Truncated), "{seen:?}");
    }
    for rest in [r#""x"]"#, r#""x]}}"#] {
        let Passing { mut relay_writer, .. } = passing().await;
        relay_writer.push(Bytes::from_static(rest.as_bytes()));
        assert!(relay_writer.finish().is_none(), "{rest}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_hangs_up_leaves_the_request_to_its_end() {
    let Passing { harness, reply, sent, mut relay_writer, .. } = passing().await;
    drop(reply);
    crate::script::settle().await;
    relay_writer.push(Bytes::from_static(REST.as_bytes()));
    assert_eq!(sent.passed(relay_writer), Progress::Answered);
    crate::script::settle().await;
    assert_eq!(harness.count(&format!("{OUTCOME}answered\"}}")), 1);
}

#[tokio::test(start_paused = true)]
async fn whatever_an_agent_is_not_to_see_as_it_is_waits_until_it_is_whole() {
    let call = r#"{"jsonrpc":"2.0","id":"mine","method":"tools/call","params":{"name":"t"}}"#;
    let hiding = "version: \"1\"\ndefault: allow\nhide: [a]\n";
    let open = "version: \"1\"\ndefault: allow\n";
    let soon = Duration::ZERO;
    // A request, the policy, how long its answer takes to begin, and whether it passes.
    let cases = [
        (LIST, open, soon, true),
        (&LIST.replace("prompts/", "resources/"), open, soon, true),
        // Definitions are judged before the agent sees them.
        (&LIST.replace("prompts/", "tools/"), open, soon, false),
        (LIST, hiding, soon, false),
        (LIST, open, Duration::from_millis(200), false),
        (&LIST.replace("prompts/list", "ping"), open, soon, false),
        (call, open, soon, false),
    ];
    for (raw, policy, after, passes) in cases {
        let (harness, mut peer) = Harness::of(shared("files"), Peer::new(Kind::Http));
        harness.test_admission.enforce(policy);
        let agent = harness.agent().await;
        let mut line = peer.line().await;
        let mut reply = agent.ask(raw);
        let sent = line.next().await;
        sleep(after).await;
        assert!(sent.begins(&beginning("999"), 100).is_none(), "it answers something else");
        let relay_writer = begins(&sent);
        assert_eq!(relay_writer.is_some(), passes, "{raw} {policy} {after:?}");
        if relay_writer.is_none() {
            sent.answer(r#"{"tools":[],"prompts":[]}"#);
            let expected = r#"{"jsonrpc":"2.0","id":"mine","result":{"tools":[],"prompts":[]}}"#;
            assert_eq!(reply.message().await, expected, "{raw}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn no_member_of_a_batch_passes() {
    let (harness, mut peer) = Harness::one(Kind::Http);
    let agent =
        harness.open("files", &INITIALIZE.replace("2025-11-25", "2025-03-26")).await.unwrap();
    let mut line = peer.line().await;
    let reply = agent.batch(&format!("[{LIST}]")).await.unwrap();
    let sent = line.next().await;
    assert!(begins(&sent).is_none());
    sent.answer("{}");
    assert_eq!(reply.answer().await, r#"{"jsonrpc":"2.0","id":"mine","result":{}}"#);
}

#[tokio::test(start_paused = true)]
async fn a_list_with_pages_is_not_relayed() {
    let (harness, mut peer) = Harness::one(Kind::Http);
    let (agent, mut line) = harness.agent_on(&mut peer).await;
    // A cursor that was relayed is not one that the agent may send.
    let raw = LIST.replace(r#""prompts/list""#, r#""prompts/list","params":{"cursor":"p2"}"#);
    let refused = agent.ask(&raw).answer().await;
    assert!(refused.contains("-32602"), "{refused}");
    // The list that it begins anew waits until it is whole.
    let _reply = agent.ask(LIST);
    assert!(begins(&line.next().await).is_none());
}
