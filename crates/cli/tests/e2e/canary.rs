//! Secrets of an agent go nowhere; secrets of the configuration go to their server and nowhere
//! else.

use std::fs;

use serde_json::json;

use crate::agent::{Agent, opening, path};
use crate::gate::{Gate, Home};
use crate::peer::Peer;
use crate::upstream::{SESSION, Upstream};
use crate::wire::{Connection, Reply, get};

/// What an agent's request carries besides its body.
const SECRETS: &str = "Authorization: Bearer CANARY-authorization\r\n\
    Cookie: session=CANARY-cookie\r\n\
    Proxy-Authorization: Basic CANARY-proxy\r\n\
    X-Api-Key: CANARY-key\r\n\
    X-Forwarded-For: CANARY-forwarded\r\n\
    User-Agent: CANARY-agent\r\n\
    Origin: http://localhost:9\r\n\
    Referer: http://localhost/CANARY-referer\r\n\
    Baggage: CANARY-baggage\r\n";

/// The agent's own token, which is in those headers.
const TOKEN: &str = "CANARY-authorization";

/// What the configuration gives to its servers.
const KEY: &str = "KEEPSAKE-key-of-the-upstream";
const CHILD_KEY: &str = "KEEPSAKE-key-of-the-child";

fn send(gate: &Gate, server: &str, session: &str, body: &str) -> Reply {
    let mut connection = Connection::open(&gate.mcp());
    let head = format!(
        "POST {}?token=CANARY-query HTTP/1.1\r\nHost: localhost\r\n{SECRETS}{session}\
         Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n",
        path(server)
    );
    connection.send(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
    connection.reply()
}

/// Opens an agent session and makes every kind of request, good and bad, with secrets in it.
fn visit(gate: &Gate, server: &str) -> String {
    let opened = send(gate, server, "", &opening("2025-11-25"));
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let header = format!("Mcp-Session-Id: {session}\r\n");
    let arguments = json!({"secret": "CANARY-argument", "CANARY-name": ["CANARY-deep"]});
    let call = |name: &str| {
        let params = json!({"name": name, "arguments": arguments});
        format!(r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{params}}}"#)
    };
    let reply = send(gate, server, &header, &call("echo"));
    assert_eq!(reply.status, 200);
    assert!(reply.body.contains("CANARY-argument"), "arguments do reach the server: {reply:?}");
    for body in [
        r#"{"jsonrpc":"2.0","method":"notifications/CANARY-method"}"#,
        r#"{"jsonrpc":"2.0","id":9,"method":"CANARY/method","params":{"x":"CANARY-argument"}}"#,
        r#"{"jsonrpc":"2.0","id":"CANARY-id","result":{"x":"CANARY-result"}}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"CANARY-argument","name":1}}"#,
        r#"{"CANARY-argument": "#,
    ] {
        send(gate, server, &header, body);
    }
    send(gate, server, "Mcp-Session-Id: CANARY-session\r\n", &call("echo"));
    send(gate, "CANARY-server", &header, &call("echo"));
    session
}

#[test]
fn secrets_stay_where_they_belong() {
    let upstream = Upstream::start();
    let home = Home::new();
    let peer = Peer::new(&home, "child");
    fs::write(home.path("token"), format!("{KEY}-in-a-file\n")).unwrap();
    let config = format!(
        "policies: {{ open: {{ version: '1', default: allow }} }}\n\
         grants: [{{ label: visitor, token: 'env:AGENT_TOKEN', policy: open }}]\n\
         servers:\n{}  web:\n    url: http://{}/mcp?kept=KEEPSAKE-query\n    headers: \
         {{ X-Api-Key: 'env:UPSTREAM_KEY', Authorization: 'Bearer ${{UPSTREAM_KEY}}', \
         X-Filed: 'file:token' }}\n",
        peer.entry("", "env: { API_KEY: 'env:CHILD_KEY' }"),
        upstream.address
    );
    let mut gate = Gate::start_as(home, &config, |command| {
        command.args(["--log", "json"]);
        command.env("TOOLGATE_LOG", "trace");
        command.env("AGENT_TOKEN", TOKEN);
        command.env("UPSTREAM_KEY", KEY).env("CHILD_KEY", CHILD_KEY);
    });
    let sessions = [visit(&gate, "web"), visit(&gate, "child")];
    let agent = Agent::open_with(&gate, "child", TOKEN);
    let environment = agent.says("env");
    assert!(environment.contains(&format!("API_KEY={CHILD_KEY}")), "{environment}");
    agent.call("crash", &json!({"secret": "CANARY-argument"}));
    let metrics = get(&gate.admin(), "/metrics").body;
    let admin_token = fs::read_to_string(gate.home.path(".local/share/toolgate/admin.token"));
    assert_eq!(gate.stop().0, Some(0));

    // Towards the servers: what is configured, and nothing of the agent but its bodies.
    let requests = upstream.requests();
    assert!(requests.iter().any(|request| request.starts_with("DELETE")), "{requests:?}");
    for request in &requests {
        let (head, _) = request.split_once("\r\n\r\n").unwrap();
        assert!(!head.contains("CANARY"), "{head}");
        assert!(!head.contains(&sessions[0]), "{head}");
        let lower = head.to_ascii_lowercase();
        assert!(!lower.contains("\r\norigin:") && !lower.contains("\r\ncookie:"), "{head}");
        assert!(lower.contains(&format!("\r\nhost: {}", upstream.address)), "{head}");
        assert!(lower.contains(&format!("\r\nx-api-key: {}", KEY.to_lowercase())), "{head}");
        assert!(lower.contains(&format!("\r\nauthorization: bearer {}", KEY.to_lowercase())));
        assert!(lower.contains("-in-a-file\r\n"), "{head}");
        assert!(head.contains(" /mcp?kept=KEEPSAKE-query "), "{head}");
    }
    assert!(!environment.contains("CANARY") && !environment.contains(KEY), "{environment}");
    let received = serde_json::to_string(&peer.received()).unwrap();
    assert!(!received.contains("CANARY-authorization") && !received.contains("CANARY-cookie"));
    assert!(!received.contains("CANARY-query") && !received.contains("CANARY-session"));

    // In the data folder: names of arguments, and no values or tokens.
    let data = gate.home.data_text();
    assert!(data.contains("CANARY-name"));
    for secret in [TOKEN, "CANARY-argument", "CANARY-deep", "CANARY-cookie", "KEEPSAKE"] {
        assert!(!data.contains(secret), "`{secret}` is in the data folder");
    }

    // In the log and in the metrics: nothing of either.
    let log = gate.log.text();
    assert!(log.contains("\"DEBUG\""), "the log is as talkative as it can be");
    let secrets =
        ["CANARY", "KEEPSAKE", SESSION, &sessions[0], &sessions[1], admin_token.unwrap().trim()]
            .map(str::to_owned);
    for secret in secrets {
        for (place, text) in [("log", &log), ("metrics", &metrics)] {
            let found = text.lines().find(|line| line.contains(&secret));
            assert!(found.is_none(), "`{secret}` is in the {place}: {}", found.unwrap());
        }
    }
}
