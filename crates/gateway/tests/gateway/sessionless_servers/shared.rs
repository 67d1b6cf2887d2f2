//! Servers that agents of both eras share: probed, and told who speaks.

use std::time::Duration;

use super::{CALL, DISCOVERED, called, meta, older, older_call};
use crate::client::{Client, ask};
use crate::harness::{Harness, shared};
use crate::script::{Connect, Kind, Peer, WELCOME};
use toolgate_gateway::channel::SendError;
use toolgate_json::peek;

const ABLE: &str = "io.modelcontextprotocol/clientCapabilities";

#[tokio::test(start_paused = true)]
async fn a_shared_server_knows_whom_it_asks() {
    for kind in [Kind::Child, Kind::Http] {
        let (harness, mut peer) = Harness::of(shared("files"), Peer::modern(kind, DISCOVERED));
        let (one, mut line) = older(&harness, &mut peer).await;
        let two = harness.agent().await;
        assert!(line.log()[0].contains("server/discover"), "{:?}", line.log());
        let mut reply = one.ask(&older_call("7"));
        let sent = called(&mut line).await;
        let able = r#"{"elicitation":{},"roots":{"listChanged":true}}"#;
        assert_eq!(meta(&sent, ABLE), Some(able));
        let mut other = two.ask(&older_call("7"));
        let hanging = line.next().await;
        assert_ne!(meta(&hanging, ABLE), Some(able));
        sent.answer(r#"{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{}}}}"#);
        let asked = reply.message().await;
        assert!(asked.contains("elicitation/create"), "{asked}");
        // Who is asked has time, who is not has none of that.
        tokio::time::sleep(Duration::from_mins(5)).await;
        assert!(other.message().await.contains("upstream_timeout"));
        assert!(reply.so_far().await.is_empty());
        let id = peek(&asked, &["id"]).unwrap().unwrap();
        one.tell(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"action":"accept"}}}}"#)).await;
        let sent = loop {
            let sent = line.next().await;
            if sent.method() == "tools/call" {
                break sent;
            }
        };
        let given = sent.part(&["params", "inputResponses"]);
        assert_eq!(given, Some(r#"{"k":{"action":"accept"}}"#));
        sent.answer(r#"{"resultType":"complete","content":[]}"#);
        assert_eq!(reply.message().await, r#"{"jsonrpc":"2.0","id":7,"result":{"content":[]}}"#);
        let raw = ask("tools/call", CALL);
        let reply = Client::of_files(&harness).ask(&raw);
        let sent = line.next().await;
        assert_eq!(sent.body, raw.replace("\"a\"", sent.id()), "its own words");
        sent.answer(r#"{"x":1.0}"#);
        assert!(reply.answer().await.ends_with(r#""result":{"x":1.0}}"#));
        assert_eq!(peer.tried(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn agents_of_a_shared_server_see_the_form_of_their_own_protocol() {
    const INFO: &str = r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"n"},"k":1.0}"#;
    let discovered = DISCOVERED
        .replace(r#""capabilities":{"#, r#""capabilities":{"extensions":{"example/x":{}},"#);
    for kind in [Kind::Child, Kind::Http] {
        let (harness, mut peer) = Harness::of(shared("files"), Peer::modern(kind, &discovered));
        let (agent, mut line) = older(&harness, &mut peer).await;
        let capabilities = peek(&agent.welcome, &["result", "capabilities"]).unwrap().unwrap();
        assert_eq!(
            capabilities,
            r#"{"tools":{"listChanged":true},"resources":{"subscribe":true}}"#
        );
        let mut reply = agent.ask(&older_call("7"));
        let sent = called(&mut line).await;
        sent.answer(&format!(r#"{{"resultType":"complete","content":[],{INFO}}}"#));
        assert_eq!(
            reply.message().await,
            r#"{"jsonrpc":"2.0","id":7,"result":{"content":[],"_meta":{"k":1.0}}}"#
        );
        let reply = Client::of_files(&harness).ask(&ask("tools/call", CALL));
        let sent = line.next().await;
        sent.answer(&format!(r#"{{"resultType":"complete","content":[],{INFO}}}"#));
        let answer = reply.answer().await;
        assert!(answer.ends_with(&format!(r#""content":[],{INFO}}}}}"#)), "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_shared_server_refuses_is_remembered() {
    let (harness, mut peer) = Harness::of(shared("files"), Peer::silent(Kind::Child));
    let opening = harness.opening("files");
    let mut line = peer.line().await;
    let probe = line.next().await;
    assert_eq!(probe.method(), "server/discover");
    probe.say_error(-32601, "no such method");
    let hello = line.next().await;
    assert_eq!(hello.method(), "initialize");
    hello.answer(WELCOME);
    let agent = opening.await.unwrap().unwrap();
    line.break_off("it crashed");
    let _reply = agent.ask(&older_call("7"));
    let mut line = peer.line().await;
    assert_eq!(line.next().await.method(), "initialize", "it is not asked again");
}

/// What cannot be started may be another server by the time it can.
#[tokio::test(start_paused = true)]
async fn a_shared_server_that_failed_to_start_is_probed_again() {
    let (harness, mut peer) = Harness::of(shared("files"), Peer::silent(Kind::Child));
    let opening = harness.opening("files");
    let mut line = peer.line().await;
    line.next().await.say_error(-32601, "no such method");
    line.next().await.answer(WELCOME);
    let agent = opening.await.unwrap().unwrap();
    line.break_off("it crashed");
    peer.next_connect(Connect::Refuse(SendError::NotSent("no such program".to_owned())));
    let failed = agent.ask(&older_call("7")).answer().await;
    assert!(failed.contains("upstream_unavailable"), "{failed}");

    tokio::time::advance(Duration::from_mins(10)).await;
    let reply = agent.ask(&older_call("8"));
    let mut line = peer.line().await;
    let probe = line.next().await;
    assert_eq!(probe.method(), "server/discover", "nothing is taken for granted any more");
    probe.answer(DISCOVERED);
    called(&mut line).await.answer(r#"{"resultType":"complete","x":1.0}"#);
    assert!(reply.answer().await.ends_with(r#""result":{"x":1.0}}"#));
}
