//! The server over a real connection, driven by hand-written requests.

use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};

use super::{EchoOptions, EchoServer, content, start, start_with};

struct Reply {
    status: StatusCode,
    headers: HeaderMap,
    body: String,
}

async fn send(url: &str, method: Method, session: Option<&str>, body: &str) -> Reply {
    let client = Client::builder(TokioExecutor::new()).build_http();
    let mut request = Request::builder().method(method).uri(url);
    if let Some(session) = session {
        request = request.header("mcp-session-id", session);
    }
    let request = request.body(Full::new(Bytes::from(body.to_owned()))).unwrap();
    let (head, body) = client.request(request).await.unwrap().into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Reply {
        status: head.status,
        headers: head.headers,
        body: String::from_utf8_lossy(&body).into(),
    }
}

async fn open(echo: &EchoServer, version: &str) -> (String, Value) {
    let body = json!({"jsonrpc":"2.0","id":"a","method":"initialize","params":{
        "protocolVersion": version, "capabilities": {}, "clientInfo": {"name":"t","version":"1"}}});
    let reply = send(echo.url(), Method::POST, None, &body.to_string()).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.body);
    let session = reply.headers["mcp-session-id"].to_str().unwrap().to_owned();
    (session, serde_json::from_str(&reply.body).unwrap())
}

#[tokio::test]
async fn answers_each_request_under_its_own_id() {
    let echo = start().await.unwrap();
    let (session, _) = open(&echo, "2025-11-25").await;
    let text = json!(content::big_text(100));
    let big = format!(r#"{{"content":[{{"type":"text","text":{text}}}],"isError":false}}"#);
    let cases = [
        // an id keeps its spelling, arguments come back unchanged
        (
            r#"{"jsonrpc":"2.0","id":1e0,"method":"tools/call","params":{"name":"echo","arguments":{"n": 1.0}}}"#,
            r#"{"jsonrpc":"2.0","id":1e0,"result":{"content":[{"type":"text","text":"{\"n\": 1.0}"}],"isError":false}}"#.to_owned(),
        ),
        (
            r#"{"params":{"arguments":{"size":100},"name":"big"},"method":"tools/call","id":"x\"y","jsonrpc":"2.0"}"#,
            format!(r#"{{"jsonrpc":"2.0","id":"x\"y","result":{big}}}"#),
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{}}"#.to_owned(),
        ),
        (
            r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"absent"}}"#,
            r#"{"jsonrpc":"2.0","id":8,"error":{"code":-32602,"message":"no such tool"}}"#.to_owned(),
        ),
        (
            r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"big","arguments":{"size":67108865}}}"#,
            r#"{"jsonrpc":"2.0","id":9,"error":{"code":-32602,"message":"size must be a whole number up to 67108864"}}"#.to_owned(),
        ),
        (
            r#"{"jsonrpc":"2.0","id":10,"method":"resources/list"}"#,
            r#"{"jsonrpc":"2.0","id":10,"error":{"code":-32601,"message":"no such method"}}"#.to_owned(),
        ),
    ];
    for (request, expected) in cases {
        let reply = send(echo.url(), Method::POST, Some(&session), request).await;
        assert_eq!(reply.status, StatusCode::OK, "{request}");
        assert_eq!(reply.headers["content-type"], "application/json");
        assert_eq!(reply.body, expected, "{request}");
    }
    assert_eq!(echo.calls(), 2, "refused calls are not carried out");
}

#[tokio::test]
async fn negotiates_the_version_and_guards_its_sessions() {
    let echo = start().await.unwrap();
    for (asked, given) in
        [("2024-11-05", "2024-11-05"), ("2025-06-18", "2025-06-18"), ("1999-01-01", "2025-11-25")]
    {
        let (_, answer) = open(&echo, asked).await;
        assert_eq!(answer["result"]["protocolVersion"], given);
    }
    let (session, _) = open(&echo, "2025-11-25").await;
    assert_eq!(echo.sessions(), 4);
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let session = Some(session.as_str());
    for (method, session, body, status) in [
        (Method::POST, session, note, 202),
        (Method::POST, session, r#"{"jsonrpc":"2.0","id":5,"result":{}}"#, 202),
        (Method::POST, None, ping, 400),
        (Method::POST, Some("echo-0"), ping, 404),
        (Method::POST, session, r#"{"jsonrpc":"#, 400),
        (Method::POST, session, "[]", 400),
        (Method::GET, session, "", 405),
        (Method::DELETE, None, "", 400),
        (Method::DELETE, session, "", 204),
        (Method::DELETE, session, "", 404),
        (Method::POST, session, ping, 404),
    ] {
        let reply = send(echo.url(), method.clone(), session, body).await;
        assert_eq!(reply.status.as_u16(), status, "{method} {session:?} {body}");
    }
    assert_eq!(echo.sessions(), 3);
    echo.forget_sessions();
    assert_eq!(echo.sessions(), 0);
}

#[tokio::test]
async fn answers_as_an_event_stream_on_request() {
    let echo = start_with(EchoOptions { sse: true, ..EchoOptions::default() }).await.unwrap();
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#;
    let reply = send(echo.url(), Method::POST, None, body).await;
    assert_eq!(reply.headers["content-type"], "text/event-stream");
    let data = reply.body.strip_prefix("event: message\ndata: ").unwrap();
    let answer: Value = serde_json::from_str(data.strip_suffix("\n\n").unwrap()).unwrap();
    assert_eq!(answer["result"]["serverInfo"]["name"], "echo");
}

#[tokio::test]
async fn a_dropped_server_refuses_connections() {
    let echo = start().await.unwrap();
    let url = echo.url().to_owned();
    drop(echo);
    // The port closes when the runtime drops the aborted task.
    tokio::task::yield_now().await;
    let request = Request::post(url).body(Full::new(Bytes::new())).unwrap();
    let client = Client::builder(TokioExecutor::new()).build_http();
    assert!(client.request(request).await.is_err());
}

#[test]
fn content_has_the_size_that_was_asked_for() {
    for size in [0, 1, 85, 86, 87, 4096, 100_000] {
        assert_eq!(content::big_text(size).len(), size);
        let structured = content::structured(size);
        let row = content::structured(0).len();
        assert!((size..=size.max(1) + row).contains(&structured.len()), "{size}");
        serde_json::from_str::<Value>(&structured).unwrap();
    }
    for (asked, listed) in [(0, 3), (3, 3), (4, 4), (250, 250)] {
        let list: Value = serde_json::from_str(&content::tool_list(asked)).unwrap();
        let tools = list["tools"].as_array().unwrap();
        let mut names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), listed);
    }
}
