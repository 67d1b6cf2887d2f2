//! One message, one response.

use std::time::Duration;

use http::{HeaderName, HeaderValue};
use tokio::net::TcpListener;
use toolgate_edge::remote::{Client, RemoteConnector, RemoteSpec};
use toolgate_gateway::channel::{Connector, SendError};

use crate::recorder::{Received, message, notification, recorder, soon};
use crate::script::{Script, connect, exchange, reuses_connections, send};

const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

fn lost(result: Result<(), SendError>) -> String {
    match result {
        Err(SendError::Lost(why)) => why,
        other => panic!("expected Lost, got {other:?}"),
    }
}

fn refused(result: Result<(), SendError>) -> (u16, String) {
    match result {
        Err(SendError::Refused { status, body }) => {
            (status.number, String::from_utf8(body.to_vec()).unwrap())
        }
        other => panic!("expected Refused, got {other:?}"),
    }
}

#[tokio::test]
async fn a_request_carries_ours_and_the_configured_headers_only() {
    let mut server = Script::start().await;
    let headers = [("x-api-key", "k1"), ("accept", "text/html"), ("user-agent", "mine")]
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
    let spec = RemoteSpec { headers: headers.to_vec(), ..server.spec() };
    let (channel, _) = connect(spec).await.unwrap();
    let (sending, mut record) = send(&channel, message(r#"{"id":1}"#));

    let call = server.call().await;
    assert_eq!(call.line, "POST /mcp?channel=secret HTTP/1.1");
    assert_eq!(call.body, r#"{"id":1}"#);
    let expected = [
        ("host", Some(server.address.to_string())),
        ("content-type", Some("application/json".to_owned())),
        ("accept", Some("application/json, text/event-stream".to_owned())),
        ("x-api-key", Some("k1".to_owned())),
        ("user-agent", Some("mine".to_owned())),
        ("origin", None),
        ("mcp-session-id", None),
        ("mcp-protocol-version", None),
    ];
    for (name, value) in expected {
        assert_eq!(call.header(name), value.as_deref(), "{name}");
    }
    call.json(ANSWER).await;
    soon(sending).await.unwrap().unwrap();
    assert_eq!(record.message().await, ANSWER);
}

#[tokio::test]
async fn a_json_answer_may_come_in_pieces() {
    let mut server = Script::start().await;
    let (channel, _) = server.connect().await;
    let (result, mut record) =
        exchange(&mut server, &channel, message("{}"), |mut call| async move {
            call.write(
                "HTTP/1.1 200 OK\r\ncontent-type: Application/JSON;charset=utf-8\r\n\
                 transfer-encoding: chunked\r\n\r\n",
            )
            .await;
            for piece in ANSWER.as_bytes().chunks(5) {
                call.chunk(std::str::from_utf8(piece).unwrap()).await;
            }
            call.finish().await;
        })
        .await;
    result.unwrap();
    assert_eq!(record.message().await, ANSWER);
    assert!(reuses_connections(&mut server, &channel).await);
}

#[tokio::test]
async fn successes_without_a_message() {
    let html = "Content-Type: text/html\r\n";
    let json = "Content-Type: application/json\r\n";
    let other = "{\"method\":\"x\"}";
    // status, headers, body, what a request says to it
    let cases = [
        (202, "", "", "sent no answer"),
        (204, "", "", "sent no answer"),
        (202, json, ANSWER, "sent no answer"),
        (200, html, "<html>", "answered with `text/html`"),
        (200, "", "hello", "answered with `no content type`"),
        (200, json, "", "without the answer"),
        (200, json, other, "without the answer"),
    ];
    let mut server = Script::start().await;
    let (channel, _) = server.connect().await;
    for (status, headers, body, expected) in cases {
        let answer = async |call: crate::script::Call| {
            call.answer(status, headers, body).await;
        };
        let (result, _) = exchange(&mut server, &channel, message("{}"), answer).await;
        let why = lost(result);
        assert!(why.starts_with("`demo` ") && why.contains(expected), "{why}");
        let (result, mut record) =
            exchange(&mut server, &channel, notification("{}"), answer).await;
        result.unwrap();
        let received = record.now();
        assert_eq!(received.len(), usize::from(body == other), "{received:?}");
    }
}

#[tokio::test]
async fn other_statuses_are_refusals() {
    let mut server = Script::start().await;
    let (channel, _) = server.connect().await;
    let moved = format!("Location: http://{}/elsewhere\r\n", server.address);
    let cases = [
        (307, moved.as_str(), ""),
        (301, moved.as_str(), ""),
        (400, "", r#"{"error":{"code":-32000,"message":"No session"}}"#),
        (401, "WWW-Authenticate: Bearer\r\n", "no"),
        (404, "", "not here"),
        (421, "", "foreign host"),
        (500, "Content-Type: application/json\r\n", ANSWER),
        (503, "", "later"),
    ];
    for (status, headers, body) in cases {
        let (result, mut record) = exchange(&mut server, &channel, message("{}"), async |call| {
            call.answer(status, headers, body).await;
        })
        .await;
        assert_eq!(refused(result), (status, body.to_owned()));
        assert_eq!(record.now(), []);
        assert!(server.is_quiet(), "nothing is followed or repeated");
    }
    let long = "x".repeat(200_000);
    let (result, _) = exchange(&mut server, &channel, message("{}"), async |call| {
        call.answer(400, "", &long).await;
    })
    .await;
    assert_eq!(refused(result).1.len(), 64 * 1024);
}

#[tokio::test]
async fn an_answer_over_the_limit_is_not_read() {
    let mut server = Script::start().await;
    let spec = RemoteSpec { max_body: 1000, ..server.spec() };
    let (channel, _) = connect(spec).await.unwrap();
    let announced =
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1001\r\n\r\n";
    let chunked = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\
                   Transfer-Encoding: chunked\r\n\r\n";
    let events = chunked.replace("application/json", "text/event-stream");
    for head in [announced, chunked, events.as_str()] {
        let (result, mut record) =
            exchange(&mut server, &channel, message("{}"), |mut call| async move {
                call.write(head).await;
                if head != announced {
                    call.chunk("data: {").await;
                    call.chunk(&"x".repeat(600)).await;
                    call.chunk(&"x".repeat(600)).await;
                }
                call.hung_up().await;
            })
            .await;
        assert!(lost(result).contains("more than 1000 bytes"));
        assert_eq!(record.now(), []);
    }
}

#[tokio::test]
async fn a_connection_that_breaks_after_writing_loses_the_answer() {
    let mut server = Script::start().await;
    let (channel, _) = server.connect().await;
    let half = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
    for begun in ["", "HTTP/1.1 200", half] {
        let (result, mut record) =
            exchange(&mut server, &channel, message("{}"), |mut call| async move {
                call.write(begun).await;
            })
            .await;
        let why = lost(result);
        assert!(why.contains(&format!("the connection to http://{} broke", server.address)));
        assert!(!why.contains("secret"), "{why}");
        assert_eq!(record.now(), []);
    }
}

#[tokio::test]
async fn without_a_connection_nothing_is_sent() {
    // Not one that was bound and closed: a neighbouring test may get that.
    let free = "127.0.0.1:9";
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent_address = silent.local_addr().unwrap();
    let talkative = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let talkative_address = talkative.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = talkative.accept().await {
            let stream = stream.into_std().unwrap();
            stream.set_nonblocking(false).unwrap();
            std::io::Write::write_all(&mut &stream, b"220 mail.example.test ESMTP\r\n").unwrap();
        }
    });
    let cases = [
        (
            format!("http://{free}/mcp?key=secret"),
            format!("connection refused at http://{free}: is the server running?"),
        ),
        (
            format!("https://{silent_address}/secret"),
            format!(
                "no connection to https://{silent_address} within 300ms: is the address right?"
            ),
        ),
        (
            format!("https://{talkative_address}/secret"),
            format!("no secure connection to https://{talkative_address}: "),
        ),
    ];
    let client = Client::with_connect_timeout(Duration::from_millis(300));
    for (url, expected) in cases {
        let spec = RemoteSpec::new("demo", url.parse().unwrap());
        let connector = RemoteConnector::new(client.clone(), spec);
        let channel = soon(connector.connect(recorder().0)).await.unwrap();
        let result = soon(channel.send(message("{}"), recorder().0)).await;
        let Err(SendError::NotSent(why)) = result else { panic!("{result:?}") };
        assert!(why.starts_with(&expected) && !why.contains("secret"), "{why}");
    }
    let unknown = RemoteSpec::new("demo", "http://no-such-host.invalid/".parse().unwrap());
    let (channel, _) = connect(unknown).await.unwrap();
    let result = soon(channel.send(message("{}"), recorder().0)).await;
    assert!(matches!(result, Err(SendError::NotSent(_))), "{result:?}");
}

#[tokio::test]
async fn addresses_that_cannot_be_used() {
    let cases = [
        ("/mcp", "must begin with"),
        ("ftp://example.test/", "must begin with"),
        ("http://user:secret@example.test/", "put an `Authorization` header"),
    ];
    for (url, expected) in cases {
        let result = connect(RemoteSpec::new("demo", url.parse().unwrap())).await;
        let Err(SendError::NotSent(why)) = result.map(drop) else { panic!("{url}") };
        assert!(why.contains(expected) && !why.contains("secret"), "{why}");
    }
}

#[tokio::test]
async fn closing_ends_what_runs() {
    let mut server = Script::start().await;
    let (channel, _) = server.connect().await;
    let (sending, mut record) = send(&channel, message("{}"));
    let call = server.call().await;
    soon(channel.close()).await;
    assert!(lost(soon(sending).await.unwrap()).contains("was closed"));
    call.hung_up().await;
    let after = channel.send(message("{}"), recorder().0).await;
    assert!(matches!(after, Err(SendError::NotSent(_))), "{after:?}");
    assert!(server.is_quiet(), "without a session there is nothing to delete");
    assert_eq!(record.now(), Vec::<Received>::new());
}
