//! Requests whose body is complete only after their token was revoked or replaced, and streams that
//! were opened with such a token.

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::api::Api;
use crate::gate::{Gate, Home};
use crate::peer::Peer;
use crate::wire::{Connection, Events};

/// A gateway with one server; the first grant and the first person are made at run time.
fn gate() -> (Gate, Peer) {
    let home = Home::new();
    let peer = Peer::new(&home, "peer");
    let config = format!(
        "policies: {{ open: {{ version: '1', default: allow }} }}\nservers:\n{}",
        peer.entry("", "")
    );
    (Gate::start_in(home, &config), peer)
}

fn text(made: &Value, key: &str) -> String {
    made[key].as_str().unwrap_or_else(|| panic!("{made}")).to_owned()
}

/// Sends a request without the last byte of its body, and returns that byte.
fn all_but_one(address: &str, line: &str, headers: &str, body: &Value) -> (Connection, Vec<u8>) {
    let body = body.to_string();
    let (most, last) = body.as_bytes().split_at(body.len() - 1);
    let mut connection = Connection::open(address);
    let head = format!(
        "{line} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         {headers}Content-Length: {}\r\n\r\n",
        body.len()
    );
    connection.send(head.as_bytes());
    connection.send(most);
    (connection, last.to_vec())
}

/// How a token ends, as a method and the rest of the path.
const ENDS: [(&str, &str, u16); 2] = [("DELETE", "", 204), ("POST", "/rotate", 200)];

#[test]
fn no_change_is_made_with_a_token_that_ended_before_the_body_did() {
    let (gate, _peer) = gate();
    let api = Api::admin(&gate);
    for (number, (method, rest, status)) in ENDS.into_iter().enumerate() {
        let person = json!({"name": format!("boss-{number}"), "roles": ["admin"]}).to_string();
        let made = api.expect(201, "POST", "people", &person);
        let header = format!("Authorization: Bearer {}\r\n", text(&made, "token"));
        let body = json!({"name": format!("back-door-{number}"), "roles": ["admin"]});
        let line = "POST /api/v1/people";
        let (mut late, last) = all_but_one(&gate.admin(), line, &header, &body);
        api.expect(status, method, &format!("people/{}{rest}", text(&made, "id")), "");
        late.send(&last);
        let reply = late.reply();
        assert_eq!(reply.status, 401, "{method}{rest}: {reply:?}");
    }
    assert!(!api.get("people").to_string().contains("back-door"));
}

#[test]
fn no_call_is_made_with_a_token_that_ended_before_the_body_did() {
    let (gate, peer) = gate();
    let api = Api::admin(&gate);
    for (number, (method, rest, status)) in ENDS.into_iter().enumerate() {
        let grant = json!({"label": format!("agent-{number}"), "policy": "open"}).to_string();
        let made = api.expect(201, "POST", "grants", &grant);
        let headers = format!(
            "Authorization: Bearer {}\r\nAccept: application/json, text/event-stream\r\n\
             MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: echo\r\n",
            text(&made, "token")
        );
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "echo", "arguments": {}, "_meta": meta}});
        let (mut late, last) = all_but_one(&gate.mcp(), "POST /mcp/peer", &headers, &body);
        api.expect(status, method, &format!("grants/{}{rest}", text(&made, "id")), "");
        late.send(&last);
        let reply = late.reply();
        assert_eq!(reply.status, 401, "{method}{rest}: {reply:?}");
    }
    assert!(!peer.received().iter().any(|message| message["method"] == "tools/call"));
}

#[test]
fn streams_end_with_the_token_that_opened_them() {
    let (gate, _peer) = gate();
    let api = Api::admin(&gate);
    let made = api.expect(201, "POST", "grants", r#"{"label":"agent","policy":"open"}"#);
    let agent = Agent::open_with(&gate, "peer", &text(&made, "token"));
    let accept = format!("Accept: text/event-stream\r\n{}", agent.authorization());
    let mut general = Events::of(agent.get(&accept));
    let viewer = api.expect(201, "POST", "people", r#"{"name":"vera","roles":["viewer"]}"#);
    let viewing = Api::with(&gate, &text(&viewer, "token"));
    let mut rows = Events::of(viewing.begin("GET", "/api/v1/events", "", ""));
    api.expect(200, "POST", &format!("grants/{}/rotate", text(&made, "id")), "");
    assert!(general.message().is_none(), "the stream of the agent has ended");
    api.expect(200, "POST", &format!("people/{}/rotate", text(&viewer, "id")), "");
    api.expect(201, "POST", "grants", r#"{"label":"later"}"#);
    // Rows from before may come, and then the end.
    while let Some((_, row)) = rows.message() {
        assert!(!row.to_string().contains("later"), "{row}");
    }
}
