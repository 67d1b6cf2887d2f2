//! Protocol 2026-07-28 over the wire: statuses, headers and streams, beside the older protocols.

use serde_json::{Value, json};

use crate::agent::{Agent, path, post_head};
use crate::gate::Gate;
use crate::peer::gate_with_peer;
use crate::wire::{Connection, Events, Reply, ask};

const VERSION: &str = "MCP-Protocol-Version: 2026-07-28\r\n";

fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "e2e", "version": "1"},
    })
}

fn begin(gate: &Gate, headers: &str, body: &Value) -> Connection {
    let (address, body) = (gate.mcp(), body.to_string());
    let headers = format!("Content-Type: application/json\r\n{headers}");
    let head = post_head(&address, &path("peer"), &headers);
    let mut connection = Connection::open(&address);
    connection.send(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
    connection
}

fn send(gate: &Gate, headers: &str, body: &Value) -> Reply {
    begin(gate, headers, body).reply()
}

fn call(tool: &str) -> (String, Value) {
    let headers = format!("{VERSION}Mcp-Method: tools/call\r\nMcp-Name: {tool}\r\n");
    let params = json!({"name": tool, "arguments": {"n": 1}, "_meta": meta()});
    (headers, json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}))
}

#[test]
fn requests_need_no_session_and_agents_with_one_are_not_disturbed() {
    let (gate, peer) = gate_with_peer("", "", "");
    let agent = Agent::open(&gate, "peer");
    let (headers, body) = call("echo");
    for _ in 0..3 {
        let reply = send(&gate, &headers, &body);
        assert_eq!(reply.status, 200, "{reply:?}");
        assert_eq!(reply.header("mcp-session-id"), None);
        let answer = reply.json();
        assert_eq!(
            (&answer["id"], &answer["result"]["resultType"]),
            (&json!(7), &json!("complete"))
        );
        let received = &answer["result"]["structuredContent"];
        assert_eq!((&received["name"], &received["arguments"]), (&json!("echo"), &json!({"n": 1})));
        assert_eq!(received["_meta"], json!({}), "what is between client and toolgate stays there");
        assert!(agent.works());
    }
    assert_eq!(peer.started().len(), 2, "one for the agent session, one for the grant");
    let (pid, body) = call("pid");
    let pid_of = |session: &str| {
        let reply = send(&gate, &format!("{pid}{session}"), &body);
        reply.json()["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(pid_of(""), pid_of(""));
    assert_ne!(pid_of(""), pid_of("Toolgate-Session: one\r\n"));
    assert_eq!(pid_of("Toolgate-Session: one\r\n"), pid_of("Toolgate-Session: one\r\n"));
    let long = format!("Toolgate-Session: {}\r\n", "x".repeat(129));
    assert_eq!(send(&gate, &format!("{pid}{long}"), &body).status, 400);
}

#[test]
fn requests_that_do_not_agree_with_themselves_go_no_further() {
    let (gate, peer) = gate_with_peer("", "", "");
    let request = |method: &str, meta: &Value| json!({"jsonrpc": "2.0", "id": "x", "method": method, "params": {"_meta": meta}});
    let list = request("tools/list", &meta());
    let other = |version: &str| {
        let mut meta = meta();
        meta["io.modelcontextprotocol/protocolVersion"] = version.into();
        request("tools/list", &meta)
    };
    let method = |name: &str| format!("Mcp-Method: {name}\r\n");
    let (named, body) = call("echo");
    let cases = [
        (
            format!("{VERSION}{}", method("tools/list")),
            request("tools/list", &json!({})),
            400,
            -32602,
        ),
        (method("tools/list"), list.clone(), 400, -32020),
        (VERSION.to_owned(), list.clone(), 400, -32020),
        (format!("{VERSION}{}", method("tools/call")), list.clone(), 400, -32020),
        (format!("{VERSION}{VERSION}{}", method("tools/list")), list.clone(), 400, -32020),
        (format!("{VERSION}{}", method("tools/list")), other("2099-01-01"), 400, -32020),
        (
            format!("MCP-Protocol-Version: 2099-01-01\r\n{}", method("tools/list")),
            other("2099-01-01"),
            400,
            -32022,
        ),
        (named.replace("echo", "other"), body, 400, -32020),
        (format!("{VERSION}{}", method("ping")), request("ping", &meta()), 404, -32601),
        (format!("{VERSION}{}", method("initialize")), request("initialize", &meta()), 404, -32601),
    ];
    for (headers, body, status, code) in cases {
        let reply = send(&gate, &headers, &body);
        assert_eq!(
            (reply.status, &reply.json()["error"]["code"]),
            (status, &json!(code)),
            "{headers}{body}"
        );
        assert_eq!(reply.json()["id"], body["id"]);
    }
    assert_eq!(peer.started().len(), 0);
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
    assert_eq!(send(&gate, VERSION, &cancelled).status, 202);
    for verb in ["GET", "DELETE"] {
        let address = gate.mcp();
        let head = format!(
            "{verb} {} HTTP/1.1\r\nHost: {address}\r\n{VERSION}Accept: text/event-stream\r\n\r\n",
            path("peer")
        );
        let reply = ask(&address, &head);
        assert_eq!((reply.status, reply.header("allow")), (405, Some("POST")));
    }
}

#[test]
fn streams_have_no_event_ids_and_hanging_up_cancels() {
    let (gate, peer) = gate_with_peer("", "", "");
    let (headers, mut body) = call("progress");
    body["params"]["_meta"]["progressToken"] = "p".into();
    let mut events = Events::of(begin(&gate, &headers, &body));
    let mut seen = Vec::new();
    while let Some(event) = events.next() {
        assert_eq!(event.id, None);
        seen.push(serde_json::from_str::<Value>(&event.data).unwrap());
    }
    let (last, before) = seen.split_last().unwrap();
    assert_eq!((&last["id"], &last["result"]["resultType"]), (&json!(7), &json!("complete")));
    assert!(before.iter().all(|it| it["params"]["progressToken"] == "p") && !before.is_empty());

    let (headers, body) = call("slow");
    let hung_up = begin(&gate, &headers, &body);
    peer.is_called("slow");
    drop(hung_up);
    let cancelled = peer.hears("notifications/cancelled");
    let call = peer.received().into_iter().find(|it| it["params"]["name"] == "slow").unwrap();
    assert_eq!(cancelled["params"]["requestId"], call["id"]);
}

#[test]
fn a_question_of_the_server_is_answered_with_the_next_request() {
    let (gate, peer) = gate_with_peer("", "", "");
    let (headers, mut body) = call("ask");
    body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({"sampling": {}});
    let last = |mut events: Events| {
        let mut last = Value::Null;
        while let Some(event) = events.next() {
            last = serde_json::from_str(&event.data).unwrap();
        }
        last
    };
    let asked = last(Events::of(begin(&gate, &headers, &body)));
    let result = &asked["result"];
    assert_eq!((&asked["id"], &result["resultType"]), (&json!(7), &json!("input_required")));
    let (key, question) = result["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(question["method"], "sampling/createMessage");
    body["id"] = 8.into();
    body["params"]["inputResponses"] = json!({key: {"model": "m", "answer": 42}});
    body["params"]["requestState"] = result["requestState"].clone();
    let answer = last(Events::of(begin(&gate, &headers, &body)));
    let result = &answer["result"];
    assert_eq!((&answer["id"], &result["resultType"]), (&json!(8), &json!("complete")));
    assert_eq!(result["structuredContent"]["result"]["answer"], 42, "what the server received");
    let again = send(&gate, &headers, &body);
    assert_eq!((again.status, &again.json()["error"]["code"]), (400, &json!(-32602)));
    let calls = peer.received().iter().filter(|it| it["method"] == "tools/call").count();
    assert_eq!(calls, 1, "one call, however many requests");
}
