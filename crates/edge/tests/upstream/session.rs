//! The session that a server opens, and its own stream.

use std::sync::Arc;

use toolgate_gateway::channel::{Channel, SendError};

use crate::recorder::{message, soon};
use crate::script::{Call, Script, exchange, send};

const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
const JSON: &str = "Content-Type: application/json\r\n";

fn opening(id: &str) -> String {
    format!("{JSON}Mcp-Session-Id: {id}\r\n")
}

/// Sends a request that the server answers, and gives the session id that it carried.
async fn session_of(
    server: &mut Script,
    channel: &Arc<dyn Channel>,
    headers: &str,
) -> Option<String> {
    let mut id = None;
    let (result, _) = exchange(server, channel, message("{}"), async |call: Call| {
        id = call.header("mcp-session-id").map(str::to_owned);
        call.answer(200, headers, ANSWER).await;
    })
    .await;
    result.unwrap();
    id
}

#[tokio::test]
async fn the_session_of_the_first_success_is_kept() {
    let mut server = Script::start().await;
    let (channel, _) = server.connect().await;
    let (result, _) = exchange(&mut server, &channel, message("{}"), async |call| {
        call.answer(400, &opening("from-a-refusal"), "missing session").await;
    })
    .await;
    assert!(
        matches!(result, Err(SendError::Refused { status, .. }) if status.number == 400),
        "{result:?}"
    );
    assert_eq!(session_of(&mut server, &channel, &opening("one")).await, None);
    assert_eq!(session_of(&mut server, &channel, &opening("two")).await.as_deref(), Some("one"));
    assert_eq!(session_of(&mut server, &channel, JSON).await.as_deref(), Some("one"));
}

#[tokio::test]
async fn the_version_is_named_once_it_is_established() {
    let mut server = Script::start().await;
    let (channel, _) = server.connect().await;
    for expected in [None, Some("2025-06-18")] {
        let (result, _) = exchange(&mut server, &channel, message("{}"), async |call| {
            assert_eq!(call.header("mcp-protocol-version"), expected);
            call.json(ANSWER).await;
        })
        .await;
        result.unwrap();
        channel.established("2025-06-18");
    }
}

#[tokio::test]
async fn a_lost_session_is_noticed_and_forgotten() {
    let gone = [
        (404, ""),
        (404, r#"{"error":{"code":-32600,"message":"x"}}"#),
        (400, r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request"}}"#),
        (400, r#"{"error":{"code":-32600,"message":"No valid Session ID provided"}}"#),
    ];
    for (status, body) in gone {
        let mut server = Script::start().await;
        let (channel, _) = server.connect().await;
        session_of(&mut server, &channel, &opening("one")).await;
        channel.established("2025-11-25");
        let (result, _) = exchange(&mut server, &channel, message("{}"), async |call| {
            call.answer(status, &opening("three"), body).await;
        })
        .await;
        assert_eq!(result, Err(SendError::SessionLost), "{status} {body}");
        let (result, _) = exchange(&mut server, &channel, message("{}"), async |call| {
            assert_eq!(call.header("mcp-session-id"), None);
            assert_eq!(call.header("mcp-protocol-version"), None);
            call.answer(200, &opening("two"), ANSWER).await;
        })
        .await;
        result.unwrap();
        assert_eq!(session_of(&mut server, &channel, JSON).await.as_deref(), Some("two"));
    }
}

#[tokio::test]
async fn a_late_answer_does_not_bring_a_lost_session_back() {
    let mut server = Script::start().await;
    let (channel, _) = server.connect().await;
    session_of(&mut server, &channel, &opening("one")).await;
    let (late, _record) = send(&channel, message("{}"));
    let late_call = server.call().await;
    let (result, _) = exchange(&mut server, &channel, message("{}"), async |call| {
        call.answer(404, "", "").await;
    })
    .await;
    assert_eq!(result, Err(SendError::SessionLost));
    late_call.answer(200, &opening("one"), ANSWER).await;
    soon(late).await.unwrap().unwrap();
    assert_eq!(session_of(&mut server, &channel, JSON).await, None);
}

#[tokio::test]
async fn other_refusals_leave_the_session_alone() {
    let mut server = Script::start().await;
    let (channel, _) = server.connect().await;
    session_of(&mut server, &channel, &opening("one")).await;
    let refusals = [
        (400, r#"{"error":{"code":-32602,"message":"bad"}}"#),
        (400, "session"),
        (403, ""),
        (500, ""),
    ];
    for (status, body) in refusals {
        let (result, _) = exchange(&mut server, &channel, message("{}"), async |call| {
            call.answer(status, "", body).await;
        })
        .await;
        assert!(matches!(result, Err(SendError::Refused { .. })), "{status} {body}: {result:?}");
        assert_eq!(session_of(&mut server, &channel, JSON).await.as_deref(), Some("one"));
    }
}

#[tokio::test]
async fn closing_deletes_the_session() {
    let mut server = Script::start().await;
    let (channel, _) = server.connect().await;
    session_of(&mut server, &channel, &opening("one")).await;
    channel.established("2025-11-25");
    let closing = tokio::spawn(async move {
        channel.close().await;
        channel.close().await;
    });
    let call = server.call().await;
    assert_eq!(call.line, "DELETE /mcp?channel=secret HTTP/1.1");
    assert_eq!(call.header("mcp-session-id"), Some("one"));
    assert_eq!(call.header("mcp-protocol-version"), Some("2025-11-25"));
    call.answer(405, "", "").await;
    soon(closing).await.unwrap();
    assert!(server.is_quiet(), "a session is deleted once");
}

#[tokio::test]
async fn a_server_without_a_stream_of_its_own_is_left_alone() {
    for (status, headers) in [(405, ""), (404, ""), (400, ""), (200, JSON), (501, "")] {
        let mut server = Script::start().await;
        let (channel, mut record) = server.connect().await;
        let listening = tokio::spawn(async move { channel.listen().await });
        let call = server.call().await;
        assert_eq!(call.line, "GET /mcp?channel=secret HTTP/1.1");
        call.answer(status, headers, "").await;
        soon(listening).await.unwrap();
        assert_eq!(record.now(), []);
    }
}

#[tokio::test]
async fn the_servers_own_stream_comes_back() {
    let mut server = Script::start().await;
    let (channel, mut record) = server.connect().await;
    session_of(&mut server, &channel, &opening("one")).await;
    channel.established("2025-11-25");
    let listener = Arc::clone(&channel);
    let listening = tokio::spawn(async move { listener.listen().await });

    let mut call = server.call().await;
    assert_eq!(call.header("accept"), Some("text/event-stream"));
    assert_eq!(call.header("content-type"), None);
    assert_eq!(call.header("mcp-session-id"), Some("one"));
    assert_eq!(call.header("mcp-protocol-version"), Some("2025-11-25"));
    assert_eq!(call.header("last-event-id"), None);
    call.stream().await;
    call.chunk("retry: 1\nid: e1\ndata: {\"n\":1}\n\n").await;
    assert_eq!(record.message().await, "{\"n\":1}");
    drop(call);

    // It fails for a while, then goes on where it was.
    let call = server.call().await;
    assert_eq!(call.header("last-event-id"), Some("e1"));
    call.answer(503, "", "").await;
    let mut call = server.call().await;
    assert_eq!(call.header("last-event-id"), Some("e1"));
    call.stream().await;
    call.chunk(": ping\n\ndata: {\"n\":2}\n\n").await;
    assert_eq!(record.message().await, "{\"n\":2}");

    let closing = tokio::spawn(async move { channel.close().await });
    soon(listening).await.unwrap();
    call.hung_up().await;
    server.call().await.answer(200, "", "").await;
    soon(closing).await.unwrap();
    assert_eq!(record.now(), []);
}
