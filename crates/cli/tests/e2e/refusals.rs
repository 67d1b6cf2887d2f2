//! Rejected requests of agents: each with its status, a JSON-RPC body and a text that
//! help, and without harm to anything else.

use serde_json::{Value, json};

use crate::agent::{Agent, initialize, opening, path, post_head};
use crate::gate::Gate;
use crate::peer::gate_with_peer;
use crate::wire::{Connection, Events, Reply, ask};

/// Checks a refusal, and that it is JSON-RPC.
#[track_caller]
fn check(reply: &Reply, status: u16, code: i32, words: &str) -> Value {
    assert_eq!(reply.status, status, "{reply:?}");
    assert_eq!(reply.header("content-type"), Some("application/json"));
    let body = reply.json();
    assert_eq!((&body["jsonrpc"], &body["error"]["code"]), (&"2.0".into(), &code.into()), "{body}");
    let message = body["error"]["message"].as_str().unwrap();
    assert!(message.contains(words), "`{words}` is missing in `{message}`");
    body
}

fn call(arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{{"name":"echo","arguments":{arguments}}}}}"#
    )
}

#[test]
fn bodies_that_are_not_a_message() {
    let (gate, peer) = gate_with_peer("", "", "");
    let agent = Agent::open(&gate, "peer");
    let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    let cases: &[(String, i32, &str, Value)] = &[
        (String::new(), -32700, "not valid JSON", Value::Null),
        ("  ".to_owned(), -32700, "not valid JSON", Value::Null),
        ("{".to_owned(), -32700, "line 1 column 1", Value::Null),
        ("hello".to_owned(), -32700, "not valid JSON", Value::Null),
        ("\u{feff}{}".to_owned(), -32700, "byte order mark", Value::Null),
        ("7".to_owned(), -32600, "must be a JSON object", Value::Null),
        ("{}".to_owned(), -32600, "`jsonrpc` is missing", Value::Null),
        ("[]".to_owned(), -32600, "at least one message", Value::Null),
        (r#"{"jsonrpc":"2.0","id":5}"#.to_owned(), -32600, "none of `method`", json!(5)),
        (
            r#"{"jsonrpc":"2.0","id":5,"Method":"ping"}"#.to_owned(),
            -32600,
            "`Method` imitates `method`",
            json!(5),
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#.to_owned(),
            -32600,
            "not null",
            Value::Null,
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"id":6,"method":"ping"}"#.to_owned(),
            -32600,
            "`id` occurs twice",
            Value::Null,
        ),
        (call(r#"{"a":1,"a":2}"#), -32602, "`a` occurs twice", json!(5)),
        (call(r#"{"deep":[{"b":1,"\u0062":2}]}"#), -32602, "`b` occurs twice", json!(5)),
        (call(r#"{"a":"\ud800"}"#), -32602, "surrogate", json!(5)),
        (call(&nested(100)), -32600, "deeper than 64 levels", json!(5)),
        (call(&nested(1_000_000)), -32600, "deeper than 64 levels", json!(5)),
        (nested(1_000_000), -32600, "", Value::Null),
        ("[".repeat(1_000_000), -32700, "not valid JSON", Value::Null),
        ("{\"a\":".repeat(500_000), -32700, "not valid JSON", Value::Null),
    ];
    let before = peer.received().len();
    for (body, code, words, id) in cases {
        let mut connection = agent.begin(body);
        let answer = check(&connection.reply(), 400, *code, words);
        assert_eq!(answer["id"], *id, "{answer}");
        // The connection is as good as new.
        let good = r#"{"jsonrpc":"2.0","id":6,"method":"ping"}"#;
        let head = agent.post_head();
        connection.send(format!("{head}Content-Length: {}\r\n\r\n{good}", good.len()).as_bytes());
        assert_eq!(connection.reply().json(), json!({"jsonrpc": "2.0", "id": 6, "result": {}}));
    }
    assert_eq!(peer.received().len() - before, cases.len(), "only the pings went further");
}

#[test]
fn bytes_that_are_not_text() {
    let (gate, _) = gate_with_peer("", "", "");
    let agent = Agent::open(&gate, "peer");
    let mut connection = agent.begin("");
    assert_eq!(connection.reply().status, 400);
    let head = agent.post_head();
    connection.send(format!("{head}Content-Length: 4\r\n\r\n").as_bytes());
    connection.send(b"{\"\xff\"");
    check(&connection.reply(), 400, -32700, "not UTF-8 at byte 2");
    assert!(agent.works());
}

#[test]
fn heads_that_do_not_fit() {
    let (gate, _) = gate_with_peer("", "", "");
    let agent = Agent::open(&gate, "peer");
    let Agent { address, session, .. } = &agent;
    let both = "Accept: application/json, text/event-stream\r\n";
    let json = "Content-Type: application/json\r\n";
    let known = format!("Mcp-Session-Id: {session}\r\n");
    let unknown = "Mcp-Session-Id: no-such-session\r\n".to_owned();
    let old = format!("{known}MCP-Protocol-Version: 1999-01-01\r\n");
    let cases: &[(&str, &str, String, u16, i32, &str)] = &[
        ("POST", "peer", format!("{both}{known}"), 415, -32600, "must be application/json"),
        (
            "POST",
            "peer",
            format!("{both}{known}Content-Type: text/plain\r\n"),
            415,
            -32600,
            "application/json",
        ),
        ("POST", "peer", format!("{json}{known}Accept: text/html\r\n"), 406, -32600, "must list"),
        (
            "POST",
            "peer",
            format!("{json}{known}Accept: application/json\r\n"),
            406,
            -32600,
            "text/event-stream",
        ),
        ("POST", "peer", format!("{both}{json}"), 400, -32600, "Mcp-Session-Id header is missing"),
        ("POST", "peer", format!("{both}{json}{unknown}"), 404, -32001, "send `initialize` again"),
        ("POST", "peer", format!("{both}{json}{old}"), 400, -32600, "2025-11-25"),
        ("POST", "nobody", format!("{both}{json}{known}"), 404, -32600, "`servers`"),
        (
            "GET",
            "peer",
            known.clone() + "Accept: application/json\r\n",
            406,
            -32600,
            "event-stream",
        ),
        ("GET", "peer", both.to_owned(), 400, -32600, "Mcp-Session-Id header is missing"),
        ("GET", "peer", format!("{both}{unknown}"), 404, -32001, "no such agent session"),
        ("GET", "peer", format!("{both}{old}"), 400, -32600, "MCP-Protocol-Version"),
        ("DELETE", "peer", String::new(), 400, -32600, "Mcp-Session-Id header is missing"),
        ("DELETE", "peer", unknown.clone(), 404, -32001, "no such agent session"),
        ("DELETE", "nobody", known.clone(), 404, -32600, "`servers`"),
        ("PUT", "peer", known.clone(), 405, -32600, "POST, GET and DELETE"),
        ("PATCH", "peer", known.clone(), 405, -32600, "POST, GET and DELETE"),
        ("OPTIONS", "peer", String::new(), 405, -32600, "POST, GET and DELETE"),
    ];
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for (method, server, headers, status, code, words) in cases {
        let body = if *method == "POST" { body } else { "" };
        let request = format!(
            "{method} {} HTTP/1.1\r\nHost: {address}\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            path(server),
            body.len()
        );
        let reply = ask(address, &request);
        check(&reply, *status, *code, words);
        let allow = (*status == 405).then_some("POST, GET, DELETE");
        assert_eq!(reply.header("allow"), allow, "{method}");
    }
    assert!(agent.works());
}

#[test]
fn a_place_in_a_stream_that_never_was() {
    let (gate, _) = gate_with_peer("", "", "");
    let agent = Agent::open(&gate, "peer");
    for id in [
        "garbage",
        "",
        "1",
        "77-1",
        "-1-1",
        "0-1",
        "0-999",
        "0-18446744073709551615",
        "99999999999999999999-0",
        "\u{43c}\u{443}\u{441}\u{43e}\u{440}",
    ] {
        let headers = format!("Accept: text/event-stream\r\nLast-Event-ID: {id}\r\n");
        let mut connection = agent.get(&headers);
        let head = connection.try_head();
        let head = head.unwrap_or_else(|| panic!("{id}: no answer"));
        assert_eq!(head.status, 400, "{id}");
        check(&connection.body(head), 400, -32600, "Last-Event-ID");
    }
    assert!(agent.works());
}

#[test]
fn bodies_that_are_too_large() {
    let (gate, _) = gate_with_peer("limits: { body: 64KiB }", "", "");
    let agent = Agent::open(&gate, "peer");
    let words = "larger than 65536 bytes";
    let head = agent.post_head();

    // Announced: refused before the first byte of it is sent.
    let mut connection = Connection::open(&agent.address);
    connection.send(format!("{head}Content-Length: 9999999999\r\n\r\n").as_bytes());
    check(&connection.reply(), 413, -32600, words);
    let mut connection = Connection::open(&agent.address);
    let expect = "Expect: 100-continue\r\nContent-Length: 9999999999\r\n\r\n";
    connection.send(format!("{head}{expect}").as_bytes());
    check(&connection.reply(), 413, -32600, words);

    // Not announced: refused as soon as it is too much, though it has not ended.
    let mut connection = Connection::open(&agent.address);
    connection.send(format!("{head}Transfer-Encoding: chunked\r\n\r\n").as_bytes());
    let chunk = format!("8000\r\n{}\r\n", " ".repeat(0x8000));
    for _ in 0..3 {
        connection.send(chunk.as_bytes());
    }
    check(&connection.reply(), 413, -32600, words);

    // Up to the limit it is fine.
    let mut body = call("{}");
    body.push_str(&" ".repeat(65_536 - body.len()));
    assert_eq!(agent.send(&body).status, 200);
    body.push(' ');
    check(&agent.send(&body), 413, -32600, words);
    assert!(agent.works());
}

/// Most clients send all that they have before they read anything.
#[test]
fn a_client_that_sends_everything_first_finds_the_answer() {
    let (gate, _) = gate_with_peer("", "", "");
    let (agents, people) = (gate.address("mcp"), gate.address("admin"));
    let body = format!("{{\"a\":\"{}\"}}", "x".repeat(16 * 1024 * 1024));
    let headers = "Content-Type: application/json\r\nAccept: application/json, text/event-stream";
    let evil = format!("{headers}\r\nOrigin: http://evil.example");
    let cases = [
        (&agents, "/mcp/peer", headers, 413),
        (&agents, "/mcp/none", headers, 404),
        (&agents, "/mcp/peer", "Content-Type: text/plain", 415),
        (&agents, "/mcp/peer", evil.as_str(), 403),
        (&people, "/api/v1/grants", headers, 401),
        (&people, "/none", headers, 404),
    ];
    for (address, path, headers, status) in cases {
        let mut connection = Connection::open(address);
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\n{headers}\r\nContent-Length: {length}\r\n\r\n"
        );
        connection.send(head.as_bytes());
        connection.send(body.as_bytes());
        assert_eq!(connection.reply().status, status, "{path} {headers}");
    }
}

#[test]
fn a_truncated_body_affects_no_other_request() {
    let (gate, peer) = gate_with_peer("", "", "");
    let agent = Agent::open(&gate, "peer");
    let mut connection = Connection::open(&agent.address);
    let head = agent.post_head();
    connection.send(format!("{head}Content-Length: 1000\r\n\r\n{}", call("{}")).as_bytes());
    drop(connection);
    let mut connection = Connection::open(&agent.address);
    connection.send(format!("{head}Transfer-Encoding: chunked\r\n\r\nzz\r\n").as_bytes());
    check(&connection.reply(), 400, -32600, "cut off");
    assert!(agent.works());
    assert!(peer.received().iter().all(|message| message["method"] != "tools/call"));
}

#[test]
fn messages_that_want_no_answer() {
    let (gate, peer) = gate_with_peer("", "", "");
    let agent = Agent::open(&gate, "peer");
    for body in [
        r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#,
        r#"{"jsonrpc":"2.0","id":12345,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":"nobody asked","error":{"code":1,"message":"no"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}"#,
    ] {
        let reply = agent.send(body);
        assert_eq!((reply.status, reply.body.as_str()), (202, ""), "{body}");
    }
    assert!(agent.works());
    peer.hears("notifications/roots/list_changed");
    let received = peer.received();
    assert!(received.iter().all(|message| message["id"] != 12345), "nobody asked for that");
    assert!(received.iter().all(|message| message["method"] != "notifications/cancelled"));
}

#[test]
fn a_session_ends_with_delete() {
    let (gate, _) = gate_with_peer("", "", "");
    let (agent, other) = (Agent::open(&gate, "peer"), Agent::open(&gate, "peer"));
    let mut stream = Events::of(agent.get("Accept: text/event-stream\r\n"));
    assert_eq!(agent.delete().status, 200);
    assert!(stream.next().is_none(), "its stream ends with it");
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    check(&agent.send(body), 404, -32001, "send `initialize` again");
    check(&agent.get("Accept: text/event-stream\r\n").reply(), 404, -32001, "has ended");
    assert_eq!(agent.delete().status, 404);
    assert!(other.works(), "another agent session is not disturbed");
}

#[test]
fn a_session_belongs_to_its_server() {
    let (gate, peer) = gate_with_peer("", "", "");
    let twin = peer.entry("", "").replace("peer:", "twin:");
    gate.configure(&format!("servers:\n{}{twin}", peer.entry("", "")));
    gate.log.wait_for("configuration reloaded");
    let mut agent = Agent::open(&gate, "peer");
    agent.path = path("twin");
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    check(&agent.send(body), 404, -32001, "no such agent session");
    agent.path = path("peer");
    assert!(agent.works());
}

#[test]
fn batches_only_where_the_protocol_has_them() {
    let (gate, _) = gate_with_peer("", "", "");
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for version in ["2025-11-25", "2025-06-18", "2024-11-05"] {
        let agent = Agent::open_as(&gate, "peer", version);
        check(&agent.send(&format!("[{ping}]")), 400, -32600, "one by one");
        assert!(agent.works());
    }

    let agent = Agent::open_as(&gate, "peer", "2025-03-26");
    check(&agent.send(&format!("[{}]", opening("2025-03-26"))), 400, -32600, "`initialize`");
    let note = r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#;
    assert_eq!(agent.send(&format!("[{note},{note}]")).status, 202);
    let unknown = r#"{"jsonrpc":"2.0","id":2,"method":"no/such"}"#;
    let bad = r#"{"jsonrpc":"2.0","id":3,"Method":"ping"}"#;
    let reply = agent.send(&format!("[{ping},{note},{unknown},{bad},7]"));
    assert_eq!(reply.status, 200);
    let data = reply.body.lines().filter_map(|line| line.strip_prefix("data: "));
    let mut answers: Vec<Value> = data
        .filter(|data| !data.is_empty())
        .map(|data| serde_json::from_str(data).unwrap())
        .collect();
    answers.sort_by_key(|answer| answer["id"].as_u64());
    assert_eq!(answers.len(), 4, "{answers:?}");
    assert_eq!((&answers[0]["id"], &answers[0]["error"]["code"]), (&Value::Null, &json!(-32600)));
    assert_eq!(answers[1], json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    assert_eq!((&answers[2]["id"], &answers[2]["error"]["code"]), (&json!(2), &json!(-32601)));
    assert_eq!((&answers[3]["id"], &answers[3]["error"]["code"]), (&json!(3), &json!(-32600)));
}

#[test]
fn too_many_agent_sessions() {
    let (gate, _) = gate_with_peer("agent_sessions: { max: 1 }", "", "");
    let agent = Agent::open(&gate, "peer");
    let reply = initialize(&gate, "peer", "2025-11-25");
    check(&reply, 503, -32603, "`agent_sessions.max`");
    assert_eq!(agent.delete().status, 200);
    assert!(Agent::open(&gate, "peer").works());
}

#[test]
fn initialize_for_a_server_that_is_not_there() {
    let gate = Gate::start("");
    check(&initialize(&gate, "nobody", "2025-11-25"), 404, -32600, "`servers`");
    let head = post_head(&gate.mcp(), "/mcp/", "Content-Type: application/json\r\n");
    check(&ask(&gate.mcp(), &format!("{head}Content-Length: 2\r\n\r\n{{}}")), 404, -32600, "/mcp/");
}
