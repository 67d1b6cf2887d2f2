//! Clients and servers of protocol 2026-07-28.

use std::time::Duration;

use toolgate_audit::Outcome;

use super::{CALL, DISCOVERED, modern, state_in};
use crate::client::{Client, ask, ask_as};
use crate::script::{Kind, settle};

#[tokio::test(start_paused = true)]
async fn everything_passes_between_equals() {
    for kind in [Kind::Child, Kind::Http] {
        let (bed, mut peer) = modern(kind);
        let client = Client { parameters: &[("mcp-param-x", "1")], ..Client::of_files(&bed) };
        let raw = ask_as("\"a\"", "tools/call", r#""name":"t", "z":1e5"#);
        let reply = client.ask(&raw);
        let mut line = peer.line().await;
        let sent = line.next().await;
        assert_eq!(sent.body, raw.replace("\"a\"", sent.id()), "its own words");
        assert_eq!(line.log().len(), 2, "no handshake but the probe");
        assert_eq!(
            (sent.head("mcp-method"), sent.head("mcp-name")),
            (Some("tools/call"), Some("t"))
        );
        assert_eq!(sent.head("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(sent.head("mcp-param-x"), Some("1"));
        // No `resultType`: that is the server's affair.
        sent.answer(r#"{"content":[],"x":1.0}"#);
        let answer = reply.answer().await;
        assert_eq!(answer, r#"{"jsonrpc":"2.0","id":"a","result":{"content":[],"x":1.0}}"#);
        let reply = client.ask(&ask("x/y", ""));
        let sent = line.next().await;
        sent.answer(r#"{"resultType":"strange","ttlMs":7}"#);
        assert!(reply.answer().await.ends_with(r#""result":{"resultType":"strange","ttlMs":7}}"#));
        let reply = client.ask(&ask("server/discover", ""));
        let sent = line.next().await;
        assert_eq!(sent.method(), "server/discover");
        sent.answer(DISCOVERED);
        assert!(reply.answer().await.ends_with(&format!("{DISCOVERED}}}")));
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_passes_between_equals_under_a_state_of_ours() {
    for kind in [Kind::Child, Kind::Http] {
        let (bed, mut peer) = modern(kind);
        let client = Client::of_files(&bed);
        let mut reply = client.ask(&ask_as("1", "tools/call", CALL));
        let mut line = peer.line().await;
        let sent = line.next().await;
        sent.answer(r#"{"x":1.0,"resultType":"input_required","inputRequests":{"own":{"method":"any/thing"}},"requestState":"theirs"}"#);
        let answer = reply.message().await;
        let state = state_in(&answer);
        assert_eq!(
            answer.replace(&state, "theirs"),
            r#"{"jsonrpc":"2.0","id":1,"result":{"x":1.0,"resultType":"input_required","inputRequests":{"own":{"method":"any/thing"}},"requestState":"theirs"}}"#
        );
        assert_eq!(reply.next().await, None, "the request is over");
        let retry = |id: &str, state: &str| {
            let more = format!(
                r#"{CALL},"inputResponses":{{"own":7,"more":[]}},"requestState":"{state}""#
            );
            ask_as(id, "tools/call", &more)
        };
        let refusal = client.refusal(&retry("2", "theirs")).await;
        assert!(refusal.starts_with("-32602 "), "{refusal}");
        let reply = client.ask(&retry("\"r\"", &state));
        let again = line.next().await;
        assert_ne!(again.id(), sent.id());
        assert_eq!(again.body, retry(again.id(), "theirs"), "as the client wrote it");
        let replayed = client.refusal(&retry("3", &state)).await;
        assert!(replayed.contains("was used"), "{replayed}");
        again.answer(r#"{"resultType":"complete","content":[]}"#);
        assert_eq!(
            reply.answer().await,
            r#"{"jsonrpc":"2.0","id":"r","result":{"resultType":"complete","content":[]}}"#
        );
        let rows = bed.office.rows_by(3).await;
        let outcomes: Vec<_> = rows.iter().map(|row| row.draft.outcome).collect();
        assert_eq!(outcomes, [None, Some(Outcome::InputRequired), Some(Outcome::Ok)]);
        assert!(rows.iter().all(|row| row.draft.call_id == rows[0].draft.call_id));
    }
}

#[tokio::test(start_paused = true)]
async fn a_parked_question_of_nobody_is_given_up() {
    let (bed, mut peer) = modern(Kind::Http);
    let client = Client::of_files(&bed);
    let mut reply = client.ask(&ask("tools/call", CALL));
    let mut line = peer.line().await;
    line.next().await.answer(r#"{"resultType":"input_required","inputRequests":{}}"#);
    let state = state_in(&reply.message().await);
    tokio::time::sleep(Duration::from_secs(601)).await;
    let more = format!(r#"{CALL},"requestState":"{state}""#);
    let refusal = client.refusal(&ask("tools/call", &more)).await;
    assert!(refusal.starts_with("-32602 "), "{refusal}");
    assert!(line.rest().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_only_the_server_knows_of_is_heard_on_a_stream_of_its_own() {
    let listen = |filter: &str| {
        ask_as("\"l\"", "subscriptions/listen", &format!(r#""notifications":{filter}"#))
    };
    let said = |id: &str, what: &str, more: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/{what}","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}{more}}}}}"#
        )
    };
    for kind in [Kind::Child, Kind::Http] {
        let (bed, mut peer) = modern(kind);
        let client = Client::of_files(&bed);
        let imitated = client.refusal(&listen(r#"{"resourceſubscriptions":["a:b"]}"#)).await;
        assert!(imitated.starts_with("-32602 "), "{imitated}");
        let filter = r#"{"x/jobs":[1.0, "a"],"toolsListChanged":true,"y":{}}"#;
        let mut reply = client.ask(&listen(filter));
        let mut line = peer.line().await;
        let (known, agreed) = (line.next().await, r#","notifications":{"toolsListChanged":true}"#);
        assert_eq!(known.part(&["params", "notifications"]), Some(r#"{"toolsListChanged":true}"#));
        known.say(&said(known.id(), "subscriptions/acknowledged", agreed));
        let own = line.next().await;
        assert_eq!(
            own.part(&["params", "notifications"]),
            Some(r#"{"x/jobs":[1.0, "a"],"y":{}}"#),
            "as the client wrote it"
        );
        let agreed = r#","notifications":{"x/jobs":[1.0]}"#;
        own.say(&said(own.id(), "subscriptions/acknowledged", agreed));
        own.say(&said(own.id(), "x/job", r#","n":1.0"#));
        known.say(&said(known.id(), "tools/list_changed", ""));
        let agreed = r#","notifications":{"toolsListChanged":true,"x/jobs":[1.0]}"#;
        let first = reply.message().await;
        assert_eq!(first, said("\"l\"", "subscriptions/acknowledged", agreed));
        assert_eq!(reply.message().await, said("\"l\"", "x/job", r#","n":1.0"#));
        known.say(&said(known.id(), "tools/list_changed", ""));
        assert_eq!(reply.message().await, said("\"l\"", "tools/list_changed", ""));
        drop(reply);
        settle().await;
        match kind {
            Kind::Http => assert!(own.hung_up() && !known.hung_up()),
            Kind::Child => {
                let told = line.next().await;
                assert_eq!(told.part(&["params", "requestId"]), Some(own.id()));
            }
        }
    }
}
