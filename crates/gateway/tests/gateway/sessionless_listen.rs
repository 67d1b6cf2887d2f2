//! `subscriptions/listen`: clients receive the notifications they requested, and no others.

use std::time::Duration;

use toolgate_gateway::Endpoint;
use toolgate_json::peek;

use crate::auto_server::AutoServer;
use crate::client::{Client, ask_as};
use crate::harness::{Harness, settings};
use crate::script::{Kind, Peer, settle};

const WELCOME: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"prompts":{},"resources":{"subscribe":true,"listChanged":true}},"serverInfo":{"name":"s","version":"1"}}"#;

fn listen(id: &str, filter: &str) -> String {
    ask_as(id, "subscriptions/listen", &format!(r#""notifications":{filter}"#))
}

fn acknowledged(id: &str, filter: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}},"notifications":{filter}}}}}"#
    )
}

fn told(id: &str, what: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/{what}","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}}}"#
    )
}

fn say(what: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/{what}"}}"#)
}

#[tokio::test(start_paused = true)]
async fn each_subscription_receives_its_notifications_under_its_own_id() {
    for kind in [Kind::Child, Kind::Http] {
        let (harness, mut peer) =
            Harness::of(settings("files"), Peer::with_welcome(kind, Some(WELCOME)));
        let client = Client::of_files(&harness);
        let all =
            r#"{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}"#;
        let mut one = client.ask(&listen("1", all));
        let mut two = client
            .ask(&listen("\"b\"", r#"{"resourcesListChanged":true,"toolsListChanged":false}"#));
        let line = peer.line().await;
        // The server never tells of prompts; toolgate does if a policy hides one.
        let agreed =
            r#"{"promptsListChanged":true,"resourcesListChanged":true,"toolsListChanged":true}"#;
        assert_eq!(one.message().await, acknowledged("1", agreed));
        assert_eq!(two.message().await, acknowledged("\"b\"", r#"{"resourcesListChanged":true}"#));
        settle().await;
        assert_eq!(line.listens(), 1);
        line.say(&say("tools/list_changed"));
        line.say(&say("message"));
        assert_eq!(one.so_far().await, [told("1", "tools/list_changed")]);
        assert!(two.so_far().await.is_empty());
        line.say(r#"{"jsonrpc":"2.0","method":"notifications/resources/list_changed","params":{"_meta":{"x":1.0}}}"#);
        let tagged = r#"{"jsonrpc":"2.0","method":"notifications/resources/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"b","x":1.0}}}"#;
        assert_eq!(two.so_far().await, [tagged]);
        drop(one);
        settle().await;
        line.say(&say("resources/list_changed"));
        assert_eq!(two.so_far().await, [told("\"b\"", "resources/list_changed")]);
    }
}

#[tokio::test(start_paused = true)]
async fn earlier_notifications_are_not_delivered() {
    let (harness, mut peer) =
        Harness::of(settings("files"), Peer::with_welcome(Kind::Child, Some(WELCOME)));
    let client = Client::of_files(&harness);
    let filter = r#"{"toolsListChanged":true}"#;
    let mut first = client.ask(&listen("1", filter));
    let line = peer.line().await;
    first.message().await;
    drop(first);
    settle().await;
    line.say(&say("tools/list_changed"));
    let mut second = client.ask(&listen("2", filter));
    assert_eq!(second.message().await, acknowledged("2", filter));
    assert!(second.so_far().await.is_empty());
    line.say(&say("tools/list_changed"));
    assert_eq!(second.so_far().await, [told("2", "tools/list_changed")]);
}

#[tokio::test(start_paused = true)]
async fn resources_are_followed_for_as_long_as_anybody_listens() {
    let auto_server = AutoServer::welcoming(WELCOME, &[]);
    auto_server.set("resources/subscribe", "{}");
    auto_server.set("resources/unsubscribe", "{}");
    let harness = Harness::new();
    harness.test_admission.enforce(
        "version: \"1\"\ndefault: allow\nresources: { default: allow, deny: [\"secret:*\"] }\n",
    );
    harness.apply([harness.played(settings("files"), &auto_server)]);
    for (endpoint, prefix) in
        [(Endpoint::Server("files".to_owned()), ""), (Endpoint::All, "files+")]
    {
        let client = Client::of(&harness, endpoint);
        let filter = |names: &[&str]| {
            let uris: Vec<_> = names.iter().map(|name| format!("\"{prefix}{name}\"")).collect();
            format!(r#"{{"resourceSubscriptions":[{}]}}"#, uris.join(","))
        };
        auto_server.received();
        let mut one = client.ask(&listen("1", &filter(&["a:b", "secret:x", "a:c"])));
        assert_eq!(one.message().await, acknowledged("1", &filter(&["a:b", "a:c"])));
        let mut two = client.ask(&listen("2", &filter(&["a:b"])));
        assert_eq!(two.message().await, acknowledged("2", &filter(&["a:b"])));
        for uri in ["a:b", "a:c", "a:d"] {
            auto_server.say(&format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":"{uri}"}}}}"#
            ));
        }
        let received = |seen: Vec<String>| -> Vec<String> {
            let uri = |body: &String| peek(body, &["params", "uri"]).unwrap().unwrap().to_owned();
            seen.iter().map(uri).collect()
        };
        let shown = |name: &str| format!("\"{prefix}{name}\"");
        assert_eq!(received(one.so_far().await), [shown("a:b"), shown("a:c")]);
        assert_eq!(received(two.so_far().await), [shown("a:b")]);
        let unsubscribed = || {
            let received = auto_server.received();
            let of = received.iter().filter(|body| body.contains("resources/unsubscribe"));
            of.map(|body| peek(body, &["params", "uri"]).unwrap().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        drop(one);
        settle().await;
        assert_eq!(unsubscribed(), ["\"a:c\""]);
        drop(two);
        settle().await;
        assert_eq!(unsubscribed(), ["\"a:b\""]);
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_subscription_is_reported() {
    let (harness, _peer) =
        Harness::of(settings("files"), Peer::with_welcome(Kind::Child, Some(WELCOME)));
    let client = Client::of_files(&harness);
    let mut reply = client.ask(&listen("\"l\"", r#"{"toolsListChanged":true}"#));
    reply.message().await;
    harness.gateway.drain(Duration::from_secs(1)).await;
    assert_eq!(
        reply.answer().await,
        r#"{"jsonrpc":"2.0","id":"l","result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}}"#
    );
}

#[tokio::test(start_paused = true)]
async fn a_listener_without_a_filter_is_refused() {
    let (harness, _peer) = Harness::one(Kind::Child);
    let client = Client::of_files(&harness);
    for raw in [
        ask_as("1", "subscriptions/listen", ""),
        listen("1", "[]"),
        listen("1", r#"{"resourceSubscriptions":[7]}"#),
    ] {
        assert!(client.refusal(&raw).await.starts_with("-32602 "), "{raw}");
    }
}
