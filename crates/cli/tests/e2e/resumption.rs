//! Streams that outlive their connection.

use serde_json::json;

use crate::agent::Agent;
use crate::peer::gate_with_peer;
use crate::wire::{Connection, Events};

#[test]
fn a_result_arrives_though_the_connection_was_cut() {
    let (gate, peer) = gate_with_peer("", "", "");
    let agent = Agent::open(&gate, "peer");
    let mut cut = Events::of(agent.begin_call("slow", &json!({})));
    let primed = cut.next().unwrap();
    assert_eq!(primed.data, "", "the first event only gives an id to come back with");
    assert_eq!(primed.retry, Some(1_000), "and says when");
    let place = primed.id.unwrap();
    drop(cut);

    peer.go();
    let mut resumed = agent.resume(&place);
    let (event, answer) = resumed.message().unwrap();
    assert_eq!(answer["id"], 7);
    assert_eq!(answer["result"]["content"][0]["text"], "at last");
    assert!(resumed.next().is_none(), "a stream ends with its answer");

    // After the answer there is nothing more, however often it is resumed.
    assert!(agent.resume(event.id.as_ref().unwrap()).next().is_none());
    // A place before it still shows it, in case it was lost on the way.
    assert_eq!(agent.resume(&place).message().unwrap().1, answer);
    let calls = peer.received().iter().filter(|m| m["method"] == "tools/call").count();
    assert_eq!(calls, 1, "the call was made once");
}

#[test]
fn a_stream_can_be_taken_over_while_the_call_runs() {
    let (gate, peer) = gate_with_peer("", "", "");
    let agent = Agent::open(&gate, "peer");
    let mut first = Events::of(agent.begin_call("slow", &json!({})));
    let place = first.next().unwrap().id.unwrap();
    let mut second = agent.resume(&place);
    assert!(first.next().is_none(), "the newest reader wins");
    peer.go();
    let (_, answer) = second.message().unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "at last");
}

#[test]
fn the_streams_of_a_session_are_its_own() {
    let (gate, peer) = gate_with_peer("", "", "");
    let (agent, other) = (Agent::open(&gate, "peer"), Agent::open(&gate, "peer"));
    let mut events = Events::of(agent.begin_call("slow", &json!({})));
    let place = events.next().unwrap().id.unwrap();
    let headers = format!("Accept: text/event-stream\r\nLast-Event-ID: {place}\r\n");
    assert_eq!(other.get(&headers).reply().status, 400);
    peer.go();
    assert!(events.message().is_some());
}

#[test]
fn older_protocols_get_no_empty_event() {
    let (gate, peer) = gate_with_peer("", "", "");
    for version in ["2025-06-18", "2025-03-26", "2024-11-05"] {
        let agent = Agent::open_as(&gate, "peer", version);
        let mut events = Events::of(agent.begin_call("slow", &json!({})));
        peer.go();
        let event = events.next().unwrap();
        assert!(event.data.contains("at last"), "{version}: {event:?}");
        assert!(event.id.is_some());
        assert!(events.next().is_none());
    }
}

#[test]
fn an_agent_that_hangs_up_does_not_end_its_call() {
    let (gate, peer) = gate_with_peer("", "", "");
    let agent = Agent::open(&gate, "peer");
    let call: Connection = agent.begin_call("slow", &json!({}));
    peer.is_called("slow");
    drop(call);
    peer.go();
    assert!(agent.works());
    let cancelled = peer.received().iter().any(|m| m["method"] == "notifications/cancelled");
    assert!(!cancelled, "a broken connection is no cancel");
}
