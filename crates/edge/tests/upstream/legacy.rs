//! HTTP+SSE of 2024-11-05: how it is found, and what goes over it.

use std::sync::Arc;

use http::{HeaderName, HeaderValue};
use toolgate_edge::remote::{Client, HttpTransport, RemoteConnector, RemoteSpec};
use toolgate_gateway::channel::{Channel, Connector, RefusedStatus, SendError, StatusClass};

use crate::recorder::{Received, Record, message, notification, recorder, soon};
use crate::script::{Call, Script, connect, exchange, send};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#;
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
const ENDPOINT: &str = "event: endpoint\ndata: /messages?session_id=1\n\n";
const POST: &str = "POST /messages?session_id=1 HTTP/1.1";

/// A rejection with this status.
fn refused(number: u16, body: &str) -> SendError {
    let class = match number {
        307 => StatusClass::Redirect,
        400 => StatusClass::BadRequest,
        401 => StatusClass::Credentials,
        404 | 405 => StatusClass::NoEndpoint,
        _ => StatusClass::ServerError,
    };
    let status = RefusedStatus { number, class };
    SendError::Refused { status, body: body.to_owned().into() }
}

fn spec(server: &Script, transport: HttpTransport) -> RemoteSpec {
    RemoteSpec { transport, ..server.spec() }
}

/// Takes the GET for the stream and names the endpoint.
async fn open_stream(server: &mut Script, endpoint: &str) -> Call {
    let mut get = server.call().await;
    assert_eq!(get.line, "GET /mcp?channel=secret HTTP/1.1");
    assert_eq!(get.header("accept"), Some("text/event-stream"));
    get.stream().await;
    get.chunk(endpoint).await;
    get
}

/// A channel that was told to be a legacy one, and its stream.
async fn open(server: &mut Script) -> (Arc<dyn Channel>, Record, Call) {
    open_as(server, spec(server, HttpTransport::Legacy)).await
}

async fn open_as(server: &mut Script, spec: RemoteSpec) -> (Arc<dyn Channel>, Record, Call) {
    let connecting = tokio::spawn(connect(spec));
    let stream = open_stream(server, ENDPOINT).await;
    let (channel, record) = soon(connecting).await.unwrap().unwrap();
    (channel, record, stream)
}

async fn accept(call: Call) {
    assert_eq!(call.line, POST);
    call.answer(202, "Content-Type: text/plain\r\n", "Accepted").await;
}

/// A stream that is not opened, with what; and why there is no channel.
async fn not_opened(first: &str) -> String {
    let mut server = Script::start().await;
    let connecting = tokio::spawn(connect(spec(&server, HttpTransport::Legacy)));
    let mut get = server.call().await;
    get.write(first).await;
    drop(get);
    match soon(connecting).await.unwrap() {
        Err(SendError::NotSent(why)) => why,
        other => panic!("{first}: {:?}", other.map(drop)),
    }
}

#[tokio::test]
async fn messages_go_to_the_endpoint_and_come_on_the_stream() {
    let mut server = Script::start().await;
    let key = (HeaderName::from_static("x-api-key"), HeaderValue::from_static("k"));
    let spec = RemoteSpec { headers: vec![key], ..spec(&server, HttpTransport::Legacy) };
    let host = server.address.to_string();
    let connecting = tokio::spawn(connect(spec));
    let mut stream = open_stream(&mut server, ENDPOINT).await;
    assert_eq!(stream.header("x-api-key"), Some("k"));
    let (channel, mut record) = soon(connecting).await.unwrap().unwrap();

    channel.established("2024-11-05");
    let (result, mut exchanged) =
        exchange(&mut server, &channel, message(INITIALIZE), async |call| {
            assert_eq!((call.line.as_str(), call.body.as_str()), (POST, INITIALIZE));
            assert_eq!(call.header("host"), Some(host.as_str()));
            assert_eq!(call.header("content-type"), Some("application/json"));
            assert_eq!(call.header("x-api-key"), Some("k"));
            for absent in ["origin", "mcp-session-id", "mcp-protocol-version"] {
                assert_eq!(call.header(absent), None);
            }
            accept(call).await;
        })
        .await;
    result.unwrap();
    stream.chunk(&format!(": ping\r\n\r\nevent: message\r\ndata: {ANSWER}\r\n\r\n")).await;
    assert_eq!(record.message().await, ANSWER);
    stream.chunk(&format!("event: endpoint\ndata: /other\n\nevent: x\ndata: y\n\n{}", "")).await;
    stream.chunk(&format!("data: {ANSWER}\n\n")).await;
    assert_eq!(record.message().await, ANSWER, "the rest is no message");
    let (result, _) = exchange(&mut server, &channel, notification("{}"), accept).await;
    result.unwrap();
    assert_eq!(exchanged.now(), [], "nothing comes with the exchange itself");
    soon(channel.listen()).await;
    assert!(server.is_quiet(), "there is no other stream");
}

#[tokio::test]
async fn a_refused_initialize_leads_to_the_legacy_transport() {
    for status in [400, 404, 405] {
        let mut server = Script::start().await;
        let (channel, mut record) = connect(spec(&server, HttpTransport::Detect)).await.unwrap();
        let (sending, _) = send(&channel, message(INITIALIZE));
        let post = server.call().await;
        assert_eq!(
            (post.line.as_str(), post.body.as_str()),
            ("POST /mcp?channel=secret HTTP/1.1", INITIALIZE)
        );
        post.answer(status, "", "").await;
        let mut stream = open_stream(&mut server, ENDPOINT).await;
        let post = server.call().await;
        assert_eq!(post.body, INITIALIZE);
        accept(post).await;
        soon(sending).await.unwrap().unwrap();
        stream.chunk(&format!("data: {ANSWER}\n\n")).await;
        assert_eq!(record.message().await, ANSWER);
    }
}

#[tokio::test]
async fn other_answers_do_not() {
    let json = "Content-Type: application/json\r\n";
    let cases = [
        (HttpTransport::Detect, 200, json, ANSWER),
        (HttpTransport::Detect, 401, "", "no"),
        (HttpTransport::Detect, 307, "Location: /sse\r\n", ""),
        (HttpTransport::Detect, 500, "", ""),
        (HttpTransport::Streamable, 405, "", ""),
    ];
    for (speaks, status, headers, body) in cases {
        let mut server = Script::start().await;
        let (channel, _) = connect(spec(&server, speaks)).await.unwrap();
        // The first message decides; a refusal of a later one is a refusal.
        for (status, headers, body) in [(status, headers, body), (404, "", "")] {
            let (result, _) = exchange(&mut server, &channel, message("{}"), async |call: Call| {
                call.answer(status, headers, body).await;
            })
            .await;
            let expected = match status {
                200 => Ok(()),
                status => Err(refused(status, body)),
            };
            assert_eq!(result, expected);
            assert!(server.is_quiet(), "{speaks:?} {status}");
        }
    }
}

#[tokio::test]
async fn without_a_legacy_stream_the_refusal_is_final() {
    let mut server = Script::start().await;
    let (channel, mut record) = connect(spec(&server, HttpTransport::Detect)).await.unwrap();
    let (sending, _) = send(&channel, message(INITIALIZE));
    server.call().await.answer(400, "", "what is this?").await;
    server.call().await.answer(405, "", "no").await;
    let refused = refused(400, "what is this?");
    assert_eq!(soon(sending).await.unwrap(), Err(refused));
    assert_eq!(record.now(), []);
}

#[tokio::test]
async fn what_worked_is_remembered_until_it_fails() {
    let mut server = Script::start().await;
    let connector =
        Arc::new(RemoteConnector::new(Client::new(), spec(&server, HttpTransport::Detect)));
    let connect = || {
        let connector = Arc::clone(&connector);
        tokio::spawn(async move { connector.connect(recorder().0).await })
    };
    let channel = soon(connect()).await.unwrap().unwrap();
    let (sending, _) = send(&channel, message(INITIALIZE));
    server.call().await.answer(404, "", "").await;
    let first = open_stream(&mut server, ENDPOINT).await;
    accept(server.call().await).await;
    soon(sending).await.unwrap().unwrap();

    // Straight to the stream.
    let connecting = connect();
    let second = open_stream(&mut server, ENDPOINT).await;
    let channel = soon(connecting).await.unwrap().unwrap();
    let (result, _) = exchange(&mut server, &channel, message(INITIALIZE), accept).await;
    result.unwrap();

    // The server has learned the newer transport, and then nothing is remembered any more.
    let connecting = connect();
    server.call().await.answer(405, "", "").await;
    let channel = soon(connecting).await.unwrap().unwrap();
    let (result, _) = exchange(&mut server, &channel, message(INITIALIZE), async |call: Call| {
        assert_eq!(call.line, "POST /mcp?channel=secret HTTP/1.1");
        call.json(ANSWER).await;
    })
    .await;
    result.unwrap();
    soon(connect()).await.unwrap().unwrap();
    assert!(server.is_quiet());
    drop((first, second));
}

#[tokio::test]
async fn the_end_of_the_stream_is_the_end_of_the_channel() {
    for ending in ["ended", "broken", "too large"] {
        let mut server = Script::start().await;
        let spec = RemoteSpec { max_body: 1000, ..spec(&server, HttpTransport::Legacy) };
        let (channel, mut record, mut stream) = open_as(&mut server, spec).await;
        let (waiting, _) = send(&channel, message("{}"));
        let unanswered = server.call().await;
        stream.chunk(&format!("data: {ANSWER}\n\n")).await;
        assert_eq!(record.message().await, ANSWER);
        let expected = match ending {
            "ended" => {
                stream.finish().await;
                "`demo` ended its stream"
            }
            "broken" => {
                drop(stream);
                "broke before the answer"
            }
            _ => {
                stream.chunk(&format!("data: {}", "x".repeat(1001))).await;
                stream.hung_up().await;
                "more than 1000 bytes"
            }
        };
        let why = record.closed().await;
        assert!(why.contains(expected), "{why}");
        let lost = soon(waiting).await.unwrap();
        assert!(matches!(lost, Err(SendError::Lost(_))), "{lost:?}");
        let after = soon(channel.send(message("{}"), recorder().0)).await;
        assert!(matches!(after, Err(SendError::NotSent(_))), "{after:?}");
        drop(unanswered);
    }
}

#[tokio::test]
async fn closing_drops_the_stream_and_reports_nothing() {
    for dropped in [false, true] {
        let mut server = Script::start().await;
        let (channel, mut record, stream) = open(&mut server).await;
        if !dropped {
            soon(channel.close()).await;
        }
        drop(channel);
        stream.hung_up().await;
        assert_eq!(record.next().await, None::<Received>);
        assert!(server.is_quiet());
    }
}

#[tokio::test]
async fn a_message_that_the_endpoint_refuses() {
    let mut server = Script::start().await;
    let (channel, _record, _stream) = open(&mut server).await;
    let cases = [
        (404, "no such session", SendError::SessionLost),
        (400, "bad", refused(400, "bad")),
        (503, "", refused(503, "")),
    ];
    for (status, body, expected) in cases {
        let (result, _) = exchange(&mut server, &channel, message("{}"), async |call: Call| {
            call.answer(status, "", body).await;
        })
        .await;
        assert_eq!(result, Err(expected));
    }
}

#[tokio::test]
async fn streams_that_name_no_endpoint() {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    let cases = [
        ("HTTP/1.1 404 X\r\nContent-Length: 0\r\n\r\n".to_owned(), "answered HTTP 404 to a GET"),
        ("HTTP/1.1 200 X\r\nContent-Length: 0\r\n\r\n".to_owned(), "sent no event stream"),
        (head.to_owned(), "ended its stream without an endpoint"),
        (format!("{head}data: {{}}\n\n"), "a message before its endpoint"),
        (format!("{head}event: endpoint\ndata: http://evil.example/\n\n"), "another origin"),
    ];
    for (first, expected) in cases {
        let why = not_opened(&first).await;
        assert!(why.contains(expected) && !why.contains("secret"), "{why}");
    }
}

#[tokio::test]
async fn a_stream_without_an_endpoint_is_not_waited_for_long() {
    let mut server = Script::start().await;
    let (channel, _record) = connect(spec(&server, HttpTransport::Detect)).await.unwrap();
    let (sending, _) = send(&channel, message(INITIALIZE));
    server.call().await.answer(400, "", "no").await;
    let mut get = server.call().await;
    get.stream().await;
    get.chunk("id: 1\ndata:\n\n").await;
    let refused = refused(400, "no");
    assert_eq!(soon(sending).await.unwrap(), Err(refused));
    get.hung_up().await;
}
