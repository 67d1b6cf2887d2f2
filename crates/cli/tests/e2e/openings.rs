//! How many agent sessions a grant may open, and which of them start a process.

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::api::Api;
use crate::gate::{Gate, Home};
use crate::peer::Peer;
use crate::wire::{Connection, Reply};

const MAY: &str = "may-token-0123456789-0123456789";
const NOTHING: &str = "nothing-token-0123456789-012345";
const DENIED: &str = "denied-token-0123456789-0123456";

/// A gateway with a server, and grants that may call it, may nothing, and have no policy.
fn gate(more: &str, keys: &str) -> (Gate, Peer) {
    let home = Home::new();
    let peer = Peer::new(&home, "peer");
    let config = format!(
        "policies:\n  open: {{ version: '1', default: allow }}\n  \
         shut: {{ version: '1', default: deny }}\ngrants:\n  \
         - {{ label: may, token: 'env:MAY', policy: open }}\n  \
         - {{ label: denied, token: 'env:DENIED', policy: shut }}\n  \
         - {{ label: nothing, token: 'env:NOTHING' }}\n{more}\nservers:\n{}",
        peer.entry("listing", keys)
    );
    let gate = Gate::start_as(home, &config, |command| {
        command.env("MAY", MAY).env("NOTHING", NOTHING).env("DENIED", DENIED);
    });
    (gate, peer)
}

fn initialize(gate: &Gate, path: &str, token: &str, capabilities: &Value) -> Reply {
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities,
        "clientInfo": {"name": "e2e", "version": "1"}});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    post(gate, path, token, "", &body)
}

fn post(gate: &Gate, path: &str, token: &str, headers: &str, body: &Value) -> Reply {
    let (address, body) = (gate.mcp(), body.to_string());
    let mut connection = Connection::open(&address);
    connection.send(
        format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             {headers}Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .as_bytes(),
    );
    connection.reply()
}

/// A request of protocol 2026-07-28.
fn modern(gate: &Gate, path: &str, token: &str, session: &str, client: &str) -> Reply {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": client, "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let body =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}});
    let headers = format!(
        "Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\nToolgate-Session: {session}\r\n"
    );
    post(gate, path, token, &headers, &body)
}

#[test]
fn forty_sessions_of_a_grant_that_may_nothing_start_no_child() {
    for keys in ["", "instances: shared"] {
        let (gate, peer) = gate("", keys);
        for token in [NOTHING, DENIED] {
            for number in 0..20 {
                let agent = Agent::open_with(&gate, "peer", token);
                assert_eq!(agent.request("tools/list", &json!({}))["result"]["tools"], json!([]));
                assert_eq!(agent.request("ping", &json!({}))["result"], json!({}));
                let denied = agent.call("echo", &json!({"text": "x"}));
                assert_eq!(denied["_meta"]["error_code"], "policy_denied", "{denied}");
                let capabilities = json!({"experimental": {format!("c{number}"): {}}});
                assert_eq!(initialize(&gate, "/mcp", token, &capabilities).status, 200);
                let reply = modern(&gate, "/mcp/peer", token, &format!("s{number}"), "c");
                assert_eq!(reply.status, 200, "{reply:?}");
            }
        }
        // toolgate itself lists the shared server.
        let own = usize::from(!keys.is_empty());
        assert_eq!(peer.started().len(), own, "{keys}");
        let agent = Agent::open_with(&gate, "peer", MAY);
        assert!(agent.works());
        assert_eq!(peer.started().len(), 1);
    }
}

#[test]
fn what_is_frozen_starts_no_child_until_it_is_lifted() {
    for what in [r#"{"grant":"may"}"#, r#"{"server":"peer"}"#, r#"{"all":true}"#] {
        let (gate, peer) = gate("", "");
        let api = Api::admin(&gate);
        let id = api.expect(201, "POST", "freeze", what)["id"].as_str().unwrap().to_owned();
        let agent = Agent::open_with(&gate, "peer", MAY);
        let listed = agent.request("tools/list", &json!({}));
        assert_eq!(listed["error"]["data"]["error_code"], "frozen", "{listed}");
        let refused = agent.call("echo", &json!({"text": "x"}));
        assert_eq!(refused["_meta"]["error_code"], "frozen", "{refused}");
        assert_eq!(initialize(&gate, "/mcp", MAY, &json!({})).status, 200);
        modern(&gate, "/mcp/peer", MAY, "s", "c");
        assert_eq!(peer.started(), Vec::<u32>::new(), "{what}");

        api.ask("DELETE", &format!("freeze/{id}"), "");
        assert!(agent.works(), "the agent session goes on");
        assert_eq!(peer.started().len(), 1);
    }
}

#[test]
fn opening_sessions_at_all_servers_multiplies_no_children() {
    let (gate, peer) = gate("", "");
    for number in 0..24 {
        let capabilities = json!({"experimental": {format!("c{number}"): {}}});
        assert_eq!(initialize(&gate, "/mcp", MAY, &capabilities).status, 200);
    }
    let agent = Agent::open_at_with(&gate, "/mcp", MAY);
    agent.request("tools/list", &json!({}));
    assert!(peer.started().len() <= 4, "{:?}", peer.started());
}

#[test]
fn a_grant_has_its_own_number_of_agent_sessions() {
    let (gate, _peer) = gate("agent_sessions: { max: 7, per_grant: 3 }", "");
    let held: Vec<_> = (0..3).map(|_| Agent::open_with(&gate, "peer", NOTHING)).collect();
    let refused = initialize(&gate, "/mcp", NOTHING, &json!({}));
    assert_eq!(refused.status, 429, "{refused:?}");
    assert!(refused.body.contains("agent_sessions.per_grant"), "{refused:?}");
    for (session, client) in [("a", "one"), ("b", "one"), ("b", "two")] {
        let refused = modern(&gate, "/mcp/peer", NOTHING, session, client);
        assert_eq!(refused.status, 429, "{refused:?}");
    }
    // Clients without sessions count alike, whatever they call themselves.
    for (session, client, status) in [
        ("a", "one", 200),
        ("a", "one", 200),
        ("b", "one", 200),
        ("a", "two", 200),
        ("c", "x", 429),
    ] {
        let reply = modern(&gate, "/mcp/peer", DENIED, session, client);
        assert_eq!(reply.status, status, "{session} {client}: {reply:?}");
    }
    // All places are used then, and no session was evicted.
    assert_eq!(initialize(&gate, "/mcp/peer", MAY, &json!({})).status, 200);
    assert_eq!(initialize(&gate, "/mcp/peer", MAY, &json!({})).status, 503);
    for agent in &held {
        assert_eq!(agent.request("ping", &json!({}))["result"], json!({}));
    }
    let first = held.first().unwrap();
    assert_eq!(first.delete_with(first.authorization()).status, 200);
    assert!(Agent::open_with(&gate, "peer", MAY).works(), "a place that was given back");
}
