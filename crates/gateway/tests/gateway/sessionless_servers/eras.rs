//! Which era a server speaks, and agents of both in front of it.

use toolgate_gateway::Endpoint;

use super::{CALL, DISCOVERED, VERSION, called, meta, modern, older, older_call, state_in};
use crate::auto_server::AutoServer;
use crate::client::{Client, ask};
use crate::harness::{Harness, settings};
use crate::reply::Seen;
use crate::script::{Kind, Peer, settle};

#[tokio::test(start_paused = true)]
async fn a_server_of_both_eras_is_spoken_to_in_that_of_the_agent() {
    let welcome = r#"{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}"#;
    let mut peer = Peer::modern(Kind::Child, DISCOVERED);
    peer.set_welcome(Some(welcome));
    let harness = Harness::new();
    harness.apply([harness.server(settings("files"), &peer)]);
    let (_agent, older_line) = harness.agent_on(&mut peer).await;
    assert!(older_line.log()[0].contains("initialize"), "{:?}", older_line.log());
    let reply = Client::of_files(&harness).ask(&ask("tools/call", CALL));
    let mut line = peer.line().await;
    let sent = called(&mut line).await;
    assert!(line.log()[0].contains("server/discover") && meta(&sent, VERSION).is_some());
    sent.answer("{}");
    reply.answer().await;
}

#[tokio::test(start_paused = true)]
async fn hanging_up_cancels_in_every_era() {
    for kind in [Kind::Child, Kind::Http] {
        let (harness, mut peer) = modern(kind);
        let reply = Client::of_files(&harness).ask(&ask("tools/call", CALL));
        let mut line = peer.line().await;
        let sent = called(&mut line).await;
        settle().await;
        drop(reply);
        settle().await;
        match kind {
            Kind::Http => assert!(sent.hung_up() && line.rest().await.is_empty()),
            Kind::Child | Kind::Sse => {
                let told = line.next().await;
                assert_eq!(told.part(&["params", "requestId"]), Some(sent.id()));
            }
        }
        let (agent, mut line) = older(&harness, &mut peer).await;
        let mut reply = agent.ask(&older_call("7"));
        let sent = called(&mut line).await;
        agent
            .tell(
                r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#,
            )
            .await;
        match kind {
            Kind::Http => {
                assert!(line.rest().await.is_empty() && sent.hung_up());
                assert_eq!(reply.next().await, None);
            }
            Kind::Child | Kind::Sse => {
                let told = line.next().await;
                assert_eq!(told.part(&["params", "requestId"]), Some(sent.id()));
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_probe_leaves_older_servers_usable() {
    // It dies of a question that it does not know.
    let (harness, mut peer) = Harness::of(settings("files"), Peer::silent(Kind::Child));
    let client = Client::of_files(&harness);
    let reply = client.ask(&ask("tools/call", CALL));
    let mut first = peer.line().await;
    assert_eq!(first.next().await.method(), "server/discover");
    peer.set_welcome(Some(crate::script::WELCOME));
    first.break_off("it died");
    let mut line = peer.line().await;
    let sent = line.next().await;
    assert_eq!(sent.method(), "tools/call");
    assert!(line.log()[0].contains("initialize"));
    sent.answer("{}");
    reply.answer().await;
    // It says nothing at all to it.
    let (harness, mut peer) = Harness::of(settings("files"), Peer::silent(Kind::Child));
    let client = Client::of_files(&harness);
    let reply = client.ask(&ask("tools/call", CALL));
    let mut line = peer.line().await;
    assert_eq!(line.next().await.method(), "server/discover");
    let hello = line.next().await;
    assert_eq!(hello.method(), "initialize");
    hello.answer(crate::script::WELCOME);
    assert_eq!(line.next().await.method(), "notifications/initialized");
    line.next().await.answer("{}");
    reply.answer().await;
    // Remembered: the next one is not asked.
    let other = Client { session: Some("other"), ..client };
    let _reply = other.ask(&ask("tools/call", CALL));
    assert_eq!(peer.line().await.next().await.method(), "initialize");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_has_changed_its_protocol_is_found_out() {
    let (harness, mut peer) = modern(Kind::Http);
    let client = Client::of_files(&harness);
    let reply = client.ask(&ask("tools/call", CALL));
    let mut line = peer.line().await;
    called(&mut line).await.answer("{}");
    reply.answer().await;
    peer.set_discover(None);
    peer.set_welcome(Some(crate::script::WELCOME));
    let mut reply = client.ask(&ask("tools/call", CALL));
    let refusal =
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"not initialized"}}"#;
    line.next().await.refuse(crate::script::refusal(400, refusal));
    // The call is not written again: it may have been executed. The next one is.
    assert!(reply.message().await.contains("not initialized"));
    assert!(line.rest().await.is_empty());
    let reply = client.ask(&ask("tools/call", CALL));
    let mut line = peer.line().await;
    let sent = called(&mut line).await;
    assert!(meta(&sent, VERSION).is_none());
    sent.answer(r#"{"content":[]}"#);
    assert!(reply.answer().await.contains(r#""resultType":"complete""#));
}

#[tokio::test(start_paused = true)]
async fn servers_of_both_eras_stand_side_by_side() {
    let modern = AutoServer::modern(DISCOVERED, &["new"]);
    let legacy = AutoServer::with_tools(&["old"]);
    for auto_server in [&modern, &legacy] {
        auto_server.set("tools/call", r#"{"content":[]}"#);
    }
    let harness = Harness::new();
    harness.apply([harness.played(settings("m"), &modern), harness.played(settings("l"), &legacy)]);
    let agent = harness.open_all(crate::harness::INITIALIZE).await;
    let client = Client::of(&harness, Endpoint::All);
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    for listed in
        [agent.ask(list).answer().await, client.ask(&ask("tools/list", "")).answer().await]
    {
        assert!(listed.contains("m__new") && listed.contains("l__old"), "{listed}");
    }
    for tool in ["m__new", "l__old"] {
        let params = format!(r#""name":"{tool}""#);
        let raw =
            format!(r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{{params}}}}}"#);
        assert!(agent.ask(&raw).answer().await.ends_with(r#""result":{"content":[]}}"#));
        let answer = client.ask(&ask("tools/call", &params)).answer().await;
        assert!(answer.contains(r#""content":[]"#), "{answer}");
    }
    modern.unset("tools/call");
    let mut reply = client.ask(&ask("tools/call", r#""name":"m__new""#));
    let sent = modern.waiting("tools/call").await;
    assert_eq!(sent.part(&["params", "name"]), Some("\"new\""));
    sent.answer(r#"{"resultType":"input_required","inputRequests":{},"requestState":"s"}"#);
    let state = state_in(&reply.message().await);
    let more = format!(r#""name":"m__new","requestState":"{state}""#);
    let reply = client.ask(&ask("tools/call", &more));
    let sent = modern.waiting("tools/call").await;
    assert_eq!(sent.part(&["params", "name"]), Some("\"new\""));
    assert_eq!(
        (sent.part(&["params", "requestState"]), sent.head("mcp-name")),
        (Some("\"s\""), Some("new"))
    );
    sent.answer(r#"{"resultType":"complete"}"#);
    assert!(matches!(&reply.all().await[..], [Seen::Event(_) | Seen::Body(_, 200)]));
}
