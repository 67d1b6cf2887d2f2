//! Real traffic: many agents under TLS, people behind a proxy, the largest results, and agents that
//! do not read their answers.

use std::collections::HashMap;
use std::thread;

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::api::{Api, admin_token};
use crate::gate::{Gate, Home, eventually};
use crate::hostile::{Script, Server, tool, two_grants};
use crate::peer::Peer;
use crate::tls::{NAME, OPEN, Pair, TLS, connect_from};
use crate::wire::Connection;

/// Agents that call at the same time.
const AGENTS: usize = 6;
/// Calls of each agent, on one connection.
const CALLS: usize = 9;

/// A call of `echo` without a session, which describes itself.
fn echo(text: &str) -> String {
    let body = json!({
        "jsonrpc": "2.0", "id": 9, "method": "tools/call",
        "params": {"name": "echo", "arguments": {"text": text}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }},
    })
    .to_string();
    format!(
        "POST /mcp/peer HTTP/1.1\r\nHost: {NAME}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: tools/call\r\nMcp-Name: echo\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Short and long texts, of one TLS record and of several.
fn sent(agent: usize, call: usize) -> String {
    let length = [1, 9_000, 40_000][call % 3];
    format!("{agent}-{call}-{}", "ж".repeat(length))
}

#[test]
fn every_call_under_tls_gets_its_own_answer() {
    let (home, pair) = (Home::new(), Pair::new());
    pair.write(&home);
    let peer = Peer::new(&home, "peer");
    let config = format!("hosts: [{NAME}]\n{TLS}\nservers:\n{}", peer.entry("listing", ""));
    let mut gate = Gate::start_in(home, &config);
    thread::scope(|scope| {
        for agent in 0..AGENTS {
            let (gate, pair) = (&gate, &pair);
            scope.spawn(move || {
                let mut connection = pair.connect(gate, "mcp").unwrap();
                for call in 0..CALLS {
                    let text = sent(agent, call);
                    connection.send(echo(&text).as_bytes());
                    let reply = connection.reply();
                    assert_eq!(reply.status, 200, "agent {agent}, call {call}");
                    assert!(reply.body.contains(&text), "agent {agent}, call {call}");
                }
            });
        }
        // The verb is an HTTP client of its own; it trusts the certificate of its gateway.
        let output = gate.home.run(&["tool", "call", "peer__echo", r#"{"text":"from a verb"}"#]);
        assert!(String::from_utf8_lossy(&output.stdout).contains("from a verb"), "{output:?}");
    });
    // A stop ends open TLS connections properly, and every call has its outcome.
    let idle = pair.connect(&gate, "mcp").unwrap();
    assert_eq!(gate.stop().0, Some(0));
    drop(idle);
    let verified = gate.home.run(&["audit", "verify", "-o", "json"]);
    let verified: Value = serde_json::from_slice(&verified.stdout).unwrap();
    assert_eq!(verified["ok"], true, "{verified}");
    let rows = verified["rows"].as_u64().unwrap();
    let calls = u64::try_from(2 * (AGENTS * CALLS + 1)).unwrap();
    assert!(rows >= calls, "{rows} rows for {calls} intents and outcomes");
}

/// Headers in which clients claim an address.
const CLAIMS: &str = "X-Forwarded-For: 203.0.113.9\r\nForwarded: for=203.0.113.9\r\n\
                      X-Real-IP: 203.0.113.9";

#[test]
fn behind_a_proxy_many_requests_share_connections_and_no_header_names_the_peer() {
    let config = format!("{OPEN}\nbehind_proxy: [127.0.0.2, 127.0.0.4]");
    let gate = Gate::start(&config);
    let head = |token: &str| {
        format!(
            "GET /api/v1/status HTTP/1.1\r\nHost: {NAME}\r\n{CLAIMS}\r\n\
             Authorization: Bearer {token}\r\n\r\n"
        )
    };
    let (good, bad) = (head(&admin_token(&gate.home)), head("guessed-by-somebody-else-1234"));
    thread::scope(|scope| {
        for source in ["127.0.0.2", "127.0.0.4", "127.0.0.2", "127.0.0.4"] {
            let (gate, good, bad) = (&gate, &good, &bad);
            scope.spawn(move || {
                // A proxy sends the requests of many clients over one connection.
                let mut connection = connect_from(source, gate);
                for _ in 0..25 {
                    for (head, status) in [(good, 200), (bad, 401)] {
                        connection.send(head.as_bytes());
                        assert_eq!(connection.reply().status, status, "{source}");
                    }
                }
            });
        }
    });
    // Not from a named proxy: what the headers claim does not help.
    let mut other = connect_from("127.0.0.3", &gate);
    drop(other.try_send(good.as_bytes()));
    assert_eq!(other.try_head().map_or(403, |head| head.status), 403);
    let rows = good.replace("/api/v1/status", "/api/v1/audit?kind=refused&limit=1000");
    let peers = eventually("the refused are rows", || {
        let mut connection = connect_from("127.0.0.2", &gate);
        connection.send(rows.as_bytes());
        let rows = connection.reply().json();
        let peers: Vec<Value> =
            rows["items"].as_array()?.iter().map(|row| row["client"].clone()).collect();
        (!peers.is_empty()).then_some(peers)
    });
    let known = [json!("127.0.0.2"), json!("127.0.0.4")];
    assert!(peers.iter().all(|peer| known.contains(peer)), "{peers:?}");
}

/// The default of `limits.result`.
const LARGEST: usize = 64 * 1024 * 1024;

/// A result of a tool whose whole message has `bytes` bytes if its id has one digit.
fn result_of(bytes: usize) -> Value {
    let empty = json!({"content": [{"type": "text", "text": ""}]});
    let frame = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{empty}}}"#);
    json!({"content": [{"type": "text", "text": "x".repeat(bytes - frame.len())}]})
}

#[test]
fn results_pass_up_to_64_mib_and_are_refused_above() {
    // Ids that toolgate gives to requests have a few digits.
    let (fits, above) = (result_of(LARGEST - 16), result_of(LARGEST + 1));
    let length = fits["content"][0]["text"].as_str().unwrap().len();
    let server = Server::start(Script {
        newer: false,
        tools: [tool("fits"), tool("above"), tool("small")].join(",").into(),
        results: HashMap::from([("fits", fits), ("above", above)]),
    });
    let gate =
        Gate::start(&format!("servers:\n  peer: {{ url: 'http://{}/mcp' }}", server.address));
    let agent = Agent::open(&gate, "peer");
    let passed = agent.call("fits", &json!({}));
    assert_eq!(passed["content"][0]["text"].as_str().map(str::len), Some(length));
    let refused = agent.call("above", &json!({}));
    assert_eq!(refused["isError"], true);
    assert_eq!(refused["_meta"]["error_code"], "outcome_unknown", "{refused}");
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("67108864"), "the limit is named: {text}");
    assert_eq!(agent.call("small", &json!({}))["isError"], Value::Null, "the server is still used");
}

/// An agent that calls and never reads an answer: toolgate holds a few answers and drops the others,
/// and other grants are served meanwhile.
#[test]
fn an_agent_that_does_not_read_is_bounded() {
    /// Twice as many as a grant has room for.
    const ANSWERS: usize = 16;
    // Larger than what the system buffers for a connection that is not read.
    let large = json!({"content": [{"type": "text", "text": "x".repeat(8_000_000)}]});
    let server = Server::start(Script {
        newer: false,
        tools: [tool("large"), tool("small")].join(",").into(),
        results: HashMap::from([("large", large)]),
    });
    let servers = format!("  peer: {{ url: 'http://{}/mcp' }}\n", server.address);
    let (gate, silent, other) = two_grants(Home::new(), "result: 8MiB", &servers);
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "large", "arguments": {}}})
    .to_string();
    let mut held: Vec<Connection> = Vec::new();
    let mut leave_unread = || {
        for _ in 0..ANSWERS {
            let mut connection = silent.begin(&call);
            assert_eq!(other.call("small", &json!({}))["isError"], Value::Null);
            // The answer itself, the start of a stream in which it is to come, or its refusal.
            assert!([200, 503].contains(&connection.head().status));
            held.push(connection);
        }
        let sent = held.len();
        eventually("every call has ended", || {
            let rows = Api::admin(&gate).get("audit?kind=outcome&tool=large&limit=100");
            (rows["items"].as_array()?.len() >= sent).then_some(())
        });
        gate.resident_kib()
    };
    let before = leave_unread();
    let grown = leave_unread().saturating_sub(before);
    // Unread, they would be at least 128 MB more.
    assert!(grown < 64 * 1024, "{grown} KiB more for answers that are not read");
    other.call("large", &json!({}));
    drop(held);
    eventually("the room is free again", || {
        Some(silent.send(&call)).filter(|reply| reply.status == 200)
    });
}
