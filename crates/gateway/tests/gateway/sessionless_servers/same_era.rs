//! Clients and servers of protocol 2026-07-28.

use std::time::Duration;

use toolgate_audit::Outcome;

use super::{CALL, DISCOVERED, called, meta, modern, state_in};
use crate::client::{Client, ask, ask_as};
use crate::script::Kind;

#[tokio::test(start_paused = true)]
async fn everything_passes_between_equals() {
    for kind in [Kind::Child, Kind::Http] {
        let (harness, mut peer) = modern(kind);
        let client = Client::of_files(&harness);
        let raw = ask_as("\"a\"", "tools/call", r#""name":"t", "z":1e5"#);
        let reply = client.ask(&raw);
        let mut line = peer.line().await;
        let sent = called(&mut line).await;
        assert_eq!(sent.body, raw.replace("\"a\"", sent.id()), "its own words");
        assert_eq!(line.log().len(), 3, "no handshake but the probe, and a list");
        assert_eq!(
            (sent.head("mcp-method"), sent.head("mcp-name")),
            (Some("tools/call"), Some("t"))
        );
        assert_eq!(sent.head("mcp-protocol-version"), Some("2026-07-28"));
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
        let (harness, mut peer) = modern(kind);
        let client = Client::of_files(&harness);
        let mut reply = client.ask(&ask_as("1", "tools/call", CALL));
        let mut line = peer.line().await;
        let sent = called(&mut line).await;
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
        let rows = harness.test_admission.rows_by(3).await;
        let outcomes: Vec<_> = rows.iter().map(|row| row.draft.outcome).collect();
        assert_eq!(outcomes, [None, Some(Outcome::InputRequired), Some(Outcome::Ok)]);
        assert!(rows.iter().all(|row| row.draft.call_id == rows[0].draft.call_id));
    }
}

#[tokio::test(start_paused = true)]
async fn progress_of_a_further_round_carries_its_token() {
    for kind in [Kind::Child, Kind::Http] {
        let (harness, mut peer) = modern(kind);
        let client = Client::of_files(&harness);
        let ask = |id: &str, more: &str, token: &str| {
            let plain = ask_as(id, "tools/call", &format!("{CALL}{more}"));
            plain.replace(r#""_meta":{"#, &format!(r#""_meta":{{"progressToken":{token},"#))
        };
        let mut reply = client.ask(&ask("1", "", "\"first\""));
        let mut line = peer.line().await;
        let sent = called(&mut line).await;
        sent.answer(r#"{"resultType":"input_required","inputRequests":{}}"#);
        let state = state_in(&reply.message().await);
        let more = format!(r#","requestState":"{state}""#);
        let mut reply = client.ask(&ask("2", &more, "7"));
        let again = line.next().await;
        let progress = |token: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":1}}}}"#
            )
        };
        again.say(&progress(meta(&again, "progressToken").unwrap()));
        assert_eq!(reply.message().await, progress("7"));
        again.answer(r#"{"resultType":"complete","content":[]}"#);
        assert!(reply.message().await.contains(r#""resultType":"complete""#));
    }
}

#[tokio::test(start_paused = true)]
async fn a_parked_question_without_a_client_ends() {
    let (harness, mut peer) = modern(Kind::Http);
    let client = Client::of_files(&harness);
    let mut reply = client.ask(&ask("tools/call", CALL));
    let mut line = peer.line().await;
    called(&mut line).await.answer(r#"{"resultType":"input_required","inputRequests":{}}"#);
    let state = state_in(&reply.message().await);
    tokio::time::sleep(Duration::from_secs(601)).await;
    let more = format!(r#"{CALL},"requestState":"{state}""#);
    let refusal = client.refusal(&ask("tools/call", &more)).await;
    assert!(refusal.starts_with("-32602 "), "{refusal}");
    assert!(line.rest().await.is_empty());
}

/// A server that was reached and then hangs keeps a client that asks what it can do no longer than
/// one that is not reached.
#[tokio::test(start_paused = true)]
async fn a_question_what_a_server_can_do_is_given_up_early() {
    let (harness, mut peer) = modern(Kind::Http);
    let client = Client::of_files(&harness);
    let reply = client.ask(&ask("tools/call", CALL));
    let mut line = peer.line().await;
    called(&mut line).await.answer(r#"{"resultType":"complete","content":[]}"#);
    reply.answer().await;
    let began = tokio::time::Instant::now();
    let reply = client.ask(&ask("server/discover", ""));
    let unanswered = line.next().await;
    assert_eq!(unanswered.method(), "server/discover");
    let answer = reply.answer().await;
    assert!(answer.contains("upstream_timeout"), "{answer}");
    let limit = crate::harness::settings("files").reconnect_timeout;
    assert!(began.elapsed() <= limit, "{:?}", began.elapsed());
    drop(unanswered);
}
