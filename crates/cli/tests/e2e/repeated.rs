//! Headers that decide something are sent once: of two, one reader sees the first and another the last.

use serde_json::json;

use crate::agent::Agent;
use crate::api::admin_token;
use crate::gate::{Gate, Home};
use crate::peer::Peer;
use crate::wire::{Reply, ask};

const TOKENS: [(&str, &str); 2] =
    [("ONE", "a-token-of-the-grant-one-0123"), ("TWO", "a-token-of-the-grant-two-0123")];

fn post(agent: &Agent, headers: &str, body: &str) -> Reply {
    let Agent { address, path, .. } = agent;
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nAccept: application/json, text/event-stream\r\n\
         Content-Length: {length}\r\n{headers}\r\n{body}"
    );
    ask(address, &head)
}

#[test]
fn a_header_that_decides_something_is_sent_once() {
    let home = Home::new();
    let peer = Peer::new(&home, "peer");
    let config = format!(
        "policies:\n  open: {{ version: '1', default: allow }}\n\
         grants:\n  - {{ label: one, token: 'env:ONE', policy: open }}\n  \
         - {{ label: two, token: 'env:TWO', policy: open }}\nservers:\n{}",
        peer.entry("", "")
    );
    let gate = Gate::start_as(home, &config, |command| {
        command.envs(TOKENS);
    });
    let [one, two] = TOKENS.map(|(_, token)| Agent::open_with(&gate, "peer", token));
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "echo", "arguments": {"text": "x"}}})
    .to_string();
    let kind = "Content-Type: application/json\r\n";
    let session = |agent: &Agent| format!("Mcp-Session-Id: {}\r\n", agent.session);
    let version = "MCP-Protocol-Version: 2025-11-25\r\n";
    let usual = format!("{kind}{version}{}{}", session(&one), one.authorization());
    assert_eq!(post(&one, &usual, &call).status, 200);
    let ran = peer.received().len();
    let further = [
        session(&one),
        session(&two),
        version.to_owned(),
        "mcp-protocol-version: 2026-07-28\r\n".to_owned(),
        kind.to_owned(),
        "content-type: text/plain\r\n".to_owned(),
        "Mcp-Method: tools/call\r\nMcp-Method: tools/list\r\n".to_owned(),
        "Mcp-Name: echo\r\nmcp-name: pid\r\n".to_owned(),
        "Mcp-Param-Text: x\r\nMcp-Param-Text: y\r\n".to_owned(),
        format!("Content-Length: {}\r\n", call.len() + 1),
    ];
    for more in &further {
        let reply = post(&one, &format!("{usual}{more}"), &call);
        assert_eq!(reply.status, 400, "{more}: {reply:?}");
        let says = reply.body.is_empty() || reply.body.contains("must be sent once");
        assert!(says, "{more}: {reply:?}");
    }
    assert_eq!(peer.received().len(), ran, "nothing of them reached the server");
    for more in [one.authorization(), two.authorization()] {
        assert_eq!(post(&one, &format!("{usual}{more}"), &call).status, 401, "{more}");
    }
    assert_eq!(peer.received().len(), ran, "nothing of them reached the server");
    // The people's listener likewise.
    let address = gate.admin();
    let bearer = format!("Authorization: Bearer {}\r\n", admin_token(&gate.home));
    let status = |headers: &str| {
        let head = format!("GET /api/v1/status HTTP/1.1\r\nHost: {address}\r\n{headers}\r\n");
        ask(&address, &head).status
    };
    assert_eq!(status(&bearer), 200);
    for more in [bearer.as_str(), "Authorization: Bearer x\r\n"] {
        assert_eq!(status(&format!("{bearer}{more}")), 401);
        assert_eq!(status(&format!("{more}{bearer}")), 401);
    }
    assert_eq!(status(&format!("{bearer}Content-Type: a/b\r\nContent-Type: c/d\r\n")), 400);
}
