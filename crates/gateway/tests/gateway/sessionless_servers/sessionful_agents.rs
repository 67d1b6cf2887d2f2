//! Agents of older protocols in front of servers of 2026-07-28.

use std::time::Duration;

use toolgate_audit::Outcome;
use toolgate_json::peek;

use toolgate_gateway::{PinMode, ServerSettings};

use super::{DISCOVERED, VERSION, called, meta, modern, older, older_call};
use crate::harness::{Harness, settings};
use crate::script::{Kind, Peer, Sent, settle};

#[tokio::test(start_paused = true)]
async fn an_older_agent_does_not_notice_what_the_server_speaks() {
    for kind in [Kind::Child, Kind::Http] {
        let (harness, mut peer) = modern(kind);
        let (agent, mut line) = older(&harness, &mut peer).await;
        assert_eq!(
            agent.welcome,
            r#"{"jsonrpc":"2.0","id":"hello","result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true}},"serverInfo":{"name":"n","version":"2"},"instructions":"be kind"}}"#
        );
        agent.tell(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        agent.tell(r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#).await;
        let local = [
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"info"}}"#,
        ];
        for raw in local {
            assert_eq!(agent.ask(raw).answer().await, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        }
        let mut reply = agent.ask(&older_call("7"));
        let sent = called(&mut line).await;
        assert_eq!(line.log().len(), 4, "no word too many: {:?}", line.log());
        assert_eq!(meta(&sent, VERSION), Some("\"2026-07-28\""));
        let able = r#"{"elicitation":{},"roots":{"listChanged":true}}"#;
        assert_eq!(meta(&sent, "io.modelcontextprotocol/clientCapabilities"), Some(able));
        assert_eq!(meta(&sent, "io.modelcontextprotocol/logLevel"), Some("\"info\""));
        assert_eq!(sent.head("mcp-name"), Some("t"));
        let token = meta(&sent, "progressToken").unwrap();
        sent.say(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":1}}}}"#
        ));
        assert!(reply.message().await.contains(r#""progressToken":"p""#));
        sent.answer(r#"{"resultType":"complete","content":[1.0],"_meta":{"k":1}}"#);
        assert_eq!(
            reply.message().await,
            r#"{"jsonrpc":"2.0","id":7,"result":{"content":[1.0],"_meta":{"k":1}}}"#
        );
        let read = agent
            .ask(r#"{"jsonrpc":"2.0","id":8,"method":"resources/read","params":{"uri":"a:b"}}"#);
        let sent = line.next().await;
        sent.say_error(-32602, "not found");
        assert!(read.answer().await.contains("-32002"));
        let forged = agent.ask(r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"t","requestState":"s"}}"#);
        assert!(forged.answer().await.contains("-32602"));
        assert!(line.rest().await.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn an_older_agent_is_asked_in_mid_call() {
    for kind in [Kind::Child, Kind::Http] {
        let (harness, mut peer) = modern(kind);
        harness.test_admission.enforce(
            "version: \"1\"\ndefault: allow\ntools:\n  t:\n    limits: [{ counter: once, window: hour, max: 1, scope: grant }]\n",
        );
        let (agent, mut line) = older(&harness, &mut peer).await;
        let mut reply = agent.ask(&older_call("7"));
        let sent = called(&mut line).await;
        let first = sent.id().to_owned();
        sent.answer(r#"{"resultType":"input_required","inputRequests":{"one":{"method":"elicitation/create","params":{"message":"m"}},"two":{"method":"roots/list"}},"requestState":"s1"}"#);
        let (one, two) = (reply.message().await, reply.message().await);
        assert!(one.contains(r#""method":"elicitation/create","params":{"message":"m"}"#), "{one}");
        assert!(two.contains("roots/list"), "{two}");
        let id = |raw: &str| peek(raw, &["id"]).unwrap().unwrap().to_owned();
        // A person takes longer than a call may.
        tokio::time::sleep(Duration::from_mins(5)).await;
        agent
            .tell(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"roots":[]}}}}"#, id(&two)))
            .await;
        assert!(line.rest().await.is_empty(), "not before everything is answered");
        agent
            .tell(&format!(
                r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-1,"message":"no"}}}}"#,
                id(&one)
            ))
            .await;
        let sent = line.next().await;
        assert_ne!(sent.id(), first);
        assert_eq!(sent.part(&["params", "requestState"]), Some("\"s1\""));
        assert_eq!(
            sent.part(&["params", "inputResponses"]),
            Some(r#"{"two":{"roots":[]},"one":{"action":"cancel"}}"#)
        );
        assert_eq!(meta(&sent, "progressToken"), Some(sent.id()));
        sent.answer(r#"{"resultType":"complete","content":[]}"#);
        assert_eq!(reply.message().await, r#"{"jsonrpc":"2.0","id":7,"result":{"content":[]}}"#);
        let rows = harness.test_admission.rows_by(2).await;
        let outcomes: Vec<_> = rows.iter().map(|row| row.draft.outcome).collect();
        assert_eq!(outcomes, [None, Some(Outcome::Ok)], "one call");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_stop_asking_is_given_up() {
    let (harness, mut peer) = modern(Kind::Http);
    let (agent, mut line) = older(&harness, &mut peer).await;
    let mut reply = agent.ask(&older_call("7"));
    let mut sent = called(&mut line).await;
    let mut rounds = 0;
    let answer = loop {
        sent.answer(r#"{"resultType":"input_required","inputRequests":{"r":{"method":"roots/list"}},"requestState":"s"}"#);
        let message = reply.message().await;
        if !message.contains("roots/list") {
            break message;
        }
        let id = peek(&message, &["id"]).unwrap().unwrap();
        agent.tell(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"roots":[]}}}}"#)).await;
        sent = line.next().await;
        rounds += 1;
    };
    assert!(answer.contains("outcome_unknown"), "{answer}");
    assert_eq!((rounds, line.rest().await.len()), (10, 0));
}

#[tokio::test(start_paused = true)]
async fn older_agents_hear_changes_over_one_stream() {
    for kind in [Kind::Child, Kind::Http] {
        let (harness, mut peer) = modern(kind);
        let (agent, mut line) = older(&harness, &mut peer).await;
        let mut received = agent.listen();
        let sent = line.next().await;
        assert_eq!(sent.method(), "subscriptions/listen");
        assert_eq!(sent.part(&["params", "notifications"]), Some(r#"{"toolsListChanged":true}"#));
        let tagged = |sent: &Sent, what: &str, more: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/{what}","params":{{{more}"_meta":{{"io.modelcontextprotocol/subscriptionId":{}}}}}}}"#,
                sent.id()
            )
        };
        sent.say(&tagged(
            &sent,
            "subscriptions/acknowledged",
            r#""notifications":{"toolsListChanged":true},"#,
        ));
        sent.say(&tagged(&sent, "tools/list_changed", ""));
        assert_eq!(
            received.so_far().await,
            [
                r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{}}}"#
            ]
        );
        let subscribe = |uri: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{{"uri":"{uri}"}}}}"#
            )
        };
        let reply = agent.ask(&subscribe("a:b"));
        let second = called(&mut line).await;
        assert_eq!(
            second.part(&["params", "notifications", "resourceSubscriptions"]),
            Some(r#"["a:b"]"#)
        );
        second.say(&tagged(
            &second,
            "subscriptions/acknowledged",
            r#""notifications":{"resourceSubscriptions":["a:b"]},"#,
        ));
        assert_eq!(reply.answer().await, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        match kind {
            Kind::Child | Kind::Sse => {
                let told = called(&mut line).await;
                assert_eq!(told.part(&["params", "requestId"]), Some(sent.id()));
            }
            Kind::Http => {
                let rest = line.rest().await;
                assert!(rest.iter().all(|body| body.contains("/list\"")) && sent.hung_up());
            }
        }
        second.say(&tagged(&second, "resources/updated", r#""uri":"a:b","#));
        let received = received.so_far().await;
        assert!(received[0].contains(r#""uri":"a:b""#) && !received[0].contains("subscriptionId"));
        let refused = agent.ask(&subscribe("a:c"));
        let third = called(&mut line).await;
        third.say(&tagged(
            &third,
            "subscriptions/acknowledged",
            r#""notifications":{"resourceSubscriptions":["a:b"]},"#,
        ));
        assert!(refused.answer().await.contains("-32602"));
    }
}

#[tokio::test(start_paused = true)]
async fn headers_repeat_annotated_arguments() {
    let list = r#"{"tools":[{"name":"t","inputSchema":{"type":"object","properties":{"n":{"type":"string","x-mcp-header":"N"}}}},{"name":"bad","inputSchema":{"properties":{"n":{"type":"number","x-mcp-header":"N"}}}}],"ttlMs":0}"#;
    // Its definitions may change.
    let settings = ServerSettings { pin: PinMode::Off, ..settings("files") };
    let (harness, mut peer) = Harness::of(settings, Peer::modern(Kind::Http, DISCOVERED));
    let (agent, mut line) = older(&harness, &mut peer).await;
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"n":"é"}}}"#;
    let reply = agent.ask(call);
    let asked = line.next().await;
    assert_eq!(asked.method(), "tools/list");
    asked.answer(list);
    let sent = line.next().await;
    assert_eq!(sent.head("mcp-param-n"), Some("=?base64?w6k=?="));
    // The server has changed its mind: its tools are asked for again, and the agent may repeat.
    let mismatch = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"m"}}"#;
    sent.refuse(crate::script::refusal(400, mismatch));
    let asked = line.next().await;
    assert_eq!(asked.method(), "tools/list");
    asked.answer(&list.replace("\"N\"", "\"M\""));
    let mut reply = reply;
    assert!(reply.message().await.contains("-32020"));
    settle().await;
    let reply = agent.ask(call);
    let sent = line.next().await;
    assert_eq!(
        (sent.head("mcp-param-n"), sent.head("mcp-param-m")),
        (None, Some("=?base64?w6k=?="))
    );
    sent.answer("{}");
    reply.answer().await;
    let reply = agent.ask(r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#);
    line.next().await.answer(list);
    let shown = reply.answer().await;
    assert!(
        shown.contains("\"t\"") && !shown.contains("bad") && !shown.contains("ttlMs"),
        "{shown}"
    );
}
