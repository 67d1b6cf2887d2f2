//! Messages of a server reach only the agent they concern: on shared servers, with the name of the
//! server, and for a limited time.

use std::time::Duration;

use toolgate_gateway::Endpoint;

use crate::auto_server::AutoServer;
use crate::client::{Client, ask};
use crate::harness::{Harness, settings, shared};
use crate::script::{Kind, Peer, settle};
use crate::sessionless_servers::DISCOVERED;

const ASKING: &str = r#"{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{},"sampling":{}},"clientInfo":{"name":"a","version":"0"}}}"#;

/// Headers of a client.
type Heads = &'static [(&'static str, &'static str)];

fn note(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/{method}","params":{params}}}"#)
}

#[tokio::test(start_paused = true)]
async fn unattributed_messages_of_a_shared_server_reach_no_agent() {
    let (harness, mut peer) = Harness::of(shared("files"), Peer::new(Kind::Child));
    let one = harness.agent().await;
    let line = peer.line().await;
    let mut first = one.listen();
    let said = |line: &crate::script::Line| {
        for (method, params) in [
            ("message", r#"{"level":"info","data":"of a call of another"}"#),
            ("elicitation/complete", r#"{"elicitationId":"e"}"#),
            ("x/list_changed", r#"{"data":"of another"}"#),
            ("x/unknown", "{}"),
        ] {
            line.say(&note(method, params));
        }
    };
    // Also if only one agent is there: it may be about one that has gone.
    said(&line);
    assert!(first.so_far().await.is_empty());
    let two = harness.agent().await;
    let mut second = two.listen();
    said(&line);
    assert!(first.so_far().await.is_empty() && second.so_far().await.is_empty());
    line.say(&note("tools/list_changed", r#"{"of":"another"}"#));
    let bare = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    assert_eq!(first.so_far().await, [bare]);
    assert_eq!(second.so_far().await, [bare]);
}

#[tokio::test(start_paused = true)]
async fn only_what_an_agent_session_follows_is_unsubscribed_and_never_for_others() {
    for settings in [shared("files"), settings("files")] {
        let is_shared = settings == shared("files");
        let auto_server = AutoServer::with_tools(&[]);
        auto_server.set("resources/subscribe", "{}");
        auto_server.set("resources/unsubscribe", "{}");
        let harness = Harness::new();
        harness.apply([harness.played(settings, &auto_server)]);
        let (one, two) = (harness.agent().await, harness.agent().await);
        let ask = |what: &str, uri: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"resources/{what}","params":{{"uri":"{uri}"}}}}"#
            )
        };
        let ended = || {
            auto_server
                .received()
                .iter()
                .filter(|body| body.contains("resources/unsubscribe"))
                .count()
        };
        one.ask(&ask("subscribe", "file:///tmp/a")).answer().await;
        for uri in
            ["file:///tmp/a", "FILE:///tmp/a", "file:///tmp/%61", "file:/tmp//a", "file:///x"]
        {
            let answer = two.ask(&ask("unsubscribe", uri)).answer().await;
            assert!(answer.ends_with(r#""result":{}}"#), "{answer}");
            assert_eq!(ended(), 0, "{uri}");
        }
        // What it follows in another spelling it may end only where nobody else follows it.
        two.ask(&ask("subscribe", "FILE:///tmp/./a")).answer().await;
        two.ask(&ask("unsubscribe", "FILE:///tmp/./a")).answer().await;
        assert_eq!(ended(), usize::from(!is_shared));
        two.ask(&ask("subscribe", "file:///tmp/b")).answer().await;
        two.ask(&ask("unsubscribe", "file:///tmp/b")).answer().await;
        assert_eq!(ended(), 1);
        two.ask(&ask("unsubscribe", "file:///tmp/b")).answer().await;
        assert_eq!(ended(), 0, "once");
        one.ask(&ask("unsubscribe", "file:///tmp/a")).answer().await;
        assert_eq!(ended(), 1);
        let wrong = r#"{"jsonrpc":"2.0","id":1,"method":"resources/unsubscribe","params":{"uri":["file:///tmp/a"]}}"#;
        assert_eq!(one.try_call(wrong).err().map(|refusal| refusal.code), Some(-32602));
        let wrong =
            r#"{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":{"a":1}}}"#;
        assert_eq!(one.try_call(wrong).err().map(|refusal| refusal.code), Some(-32602));
    }
}

#[tokio::test(start_paused = true)]
async fn headers_that_contradict_the_arguments_reach_no_server() {
    const LIST: &str = r#"{"tools":[{"name":"t","inputSchema":{"properties":{"n":{"type":"string","x-mcp-header":"N"}}}}],"resultType":"complete"}"#;
    for (auto_server, newer) in
        [(AutoServer::modern(DISCOVERED, &[]), true), (AutoServer::with_tools(&[]), false)]
    {
        auto_server.set("tools/list", LIST);
        let harness = Harness::new();
        harness.apply([harness.played(settings("files"), &auto_server)]);
        let client = Client::of_files(&harness);
        let call =
            |arguments: &str| ask("tools/call", &format!(r#""name":"t","arguments":{arguments}"#));
        let cases: [(Heads, &str, bool); 9] = [
            (&[("mcp-param-n", "v")], r#"{"n":"v"}"#, true),
            (&[("mcp-param-n", "=?base64?dg==?=")], r#"{"n":"v"}"#, true),
            (&[("mcp-param-n", "v"), ("mcp-param-other", "x")], r#"{"n":"v","other":"y"}"#, true),
            (&[("mcp-param-n", "w")], r#"{"n":"v"}"#, false),
            (&[("mcp-param-n", "=?base64?dw==?=")], r#"{"n":"v"}"#, false),
            (&[("mcp-param-n", "=?base64?d?=")], r#"{"n":"v"}"#, false),
            (&[("mcp-param-n", "v")], "{}", false),
            (&[("mcp-param-n", "v")], r#"{"n":null}"#, false),
            (&[], r#"{"n":"v"}"#, false),
        ];
        for (parameters, arguments, passes) in cases {
            let client = Client { parameters, ..client.clone() };
            auto_server.received();
            if passes {
                let reply = client.ask(&call(arguments));
                let sent = auto_server.waiting("tools/call").await;
                assert_eq!(sent.head("mcp-param-n"), newer.then_some("v"), "{arguments}");
                assert_eq!(sent.head("mcp-param-other"), None, "no policy has seen it");
                sent.answer(r#"{"content":[],"resultType":"complete"}"#);
                reply.answer().await;
            } else {
                let refusal = client.refusal(&call(arguments)).await;
                assert!(refusal.starts_with("-32020 "), "{parameters:?} {arguments}: {refusal}");
                assert!(!auto_server.received().iter().any(|body| body.contains("tools/call")));
            }
        }
        // Headers on anything else go nowhere.
        let client = Client { parameters: &[("mcp-param-n", "w")], ..client };
        let reply = client.ask(&ask("prompts/get", r#""name":"p""#));
        let sent = auto_server.waiting("prompts/get").await;
        assert_eq!(sent.head("mcp-param-n"), None);
        sent.answer(r#"{"messages":[],"resultType":"complete"}"#);
        reply.answer().await;
    }
}

#[tokio::test(start_paused = true)]
async fn headers_are_checked_before_anybody_has_listed_the_tools() {
    const LIST: &str = r#"{"tools":[{"name":"t","inputSchema":{"properties":{"n":{"type":"string","x-mcp-header":"N"}}}}],"resultType":"complete"}"#;
    for auto_server in [AutoServer::modern(DISCOVERED, &[]), AutoServer::with_tools(&[])] {
        auto_server.set("tools/list", LIST);
        let harness = Harness::new();
        harness.apply([harness.played(settings("files"), &auto_server)]);
        let client = Client { parameters: &[("mcp-param-n", "w")], ..Client::of_files(&harness) };
        let answers =
            client.ask(&ask("tools/call", r#""name":"t","arguments":{"n":"v"}"#)).all().await;
        assert!(format!("{answers:?}").contains("-32020"), "{answers:?}");
        assert!(!auto_server.received().iter().any(|body| body.contains("tools/call")));
    }
}

#[tokio::test(start_paused = true)]
async fn questions_name_their_server_where_all_are_shown() {
    for (endpoint, named) in [(Endpoint::All, true), (Endpoint::Server("files".to_owned()), false)]
    {
        let auto_server = AutoServer::with_tools(&["t"]);
        let harness = Harness::new();
        harness.apply([harness.played(settings("files"), &auto_server)]);
        let agent = match endpoint {
            Endpoint::All => harness.open_all(ASKING).await,
            _ => harness.open("files", ASKING).await.unwrap(),
        };
        let tool = if named { "files__t" } else { "t" };
        let mut reply = agent.ask(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}"}}}}"#
        ));
        let _sent = auto_server.waiting("tools/call").await;
        for (method, params) in [
            ("elicitation/create", r#"{"message":"Go on?","requestedSchema":{}}"#),
            ("sampling/createMessage", r#"{"messages":[],"maxTokens":1}"#),
        ] {
            auto_server.say(&format!(
                r#"{{"jsonrpc":"2.0","id":"q","method":"{method}","params":{params}}}"#
            ));
            let question = reply.message().await;
            assert_eq!(question.contains(r#""toolgate/server":"files""#), named, "{question}");
            assert_eq!(question.contains("[files] Go on?"), named && method.starts_with('e'));
            assert_eq!(question.contains(params), !named, "{question}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_not_answered_ends_and_frees_its_place() {
    let (harness, mut peer) = Harness::one(Kind::Child);
    let (agent, mut line) = harness.agent_on(&mut peer).await;
    let mut reply =
        agent.ask(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#);
    let sent = line.next().await;
    line.say(r#"{"jsonrpc":"2.0","id":"q","method":"roots/list"}"#);
    assert!(reply.message().await.contains("roots/list"));
    tokio::time::advance(Duration::from_mins(10)).await;
    settle().await;
    harness.gateway.sweep();
    let told = reply.message().await;
    assert!(told.contains("notifications/cancelled"), "{told}");
    let answer = line.next().await;
    assert!(answer.body.contains(r#""id":"q","error""#), "{}", answer.body);
    // The call goes on, and its time with it.
    assert!(reply.message().await.contains("upstream_timeout"));
    drop(sent);
}

#[tokio::test(start_paused = true)]
async fn questions_without_end_do_not_keep_a_call_for_ever() {
    let (harness, mut peer) = Harness::one(Kind::Child);
    let (agent, mut line) = harness.agent_on(&mut peer).await;
    let reply =
        agent.ask(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#);
    let sent = line.next().await;
    for number in 0..20 {
        line.say(&format!(r#"{{"jsonrpc":"2.0","id":"q{number}","method":"roots/list"}}"#));
        tokio::time::sleep(Duration::from_mins(5)).await;
    }
    let all = reply.all().await;
    assert!(format!("{all:?}").contains("upstream_timeout"));
    drop(sent);
}

#[tokio::test(start_paused = true)]
async fn a_filter_of_changes_holds_what_is_known_and_nothing_else() {
    let (harness, _peer) = Harness::one(Kind::Child);
    let client = Client::of_files(&harness);
    for filter in [
        r#"{"x/jobs":[1]}"#,
        r#"{"toolsListChanged":true,"everything":true}"#,
        r#"{"ToolsListChanged":true}"#,
        r#"{"resource\u017fubscriptions":[]}"#,
        r#"{"toolsListChanged":"true"}"#,
        r#"{"toolsListChanged":1}"#,
        r#"{"resourceSubscriptions":"a:b"}"#,
        r#"{"resourceSubscriptions":{"0":"a:b"}}"#,
        r#"{"resourceSubscriptions":[["a:b"]]}"#,
        r#"{"taskIds":"t"}"#,
        r#"{"":1}"#,
    ] {
        let raw = ask("subscriptions/listen", &format!(r#""notifications":{filter}"#));
        let refusal = client.refusal(&raw).await;
        assert!(refusal.starts_with("-32602 "), "{filter}: {refusal}");
    }
}
