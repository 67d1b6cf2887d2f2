//! Side doors: messages that are no calls to look at. What the servers heard decides.

use std::fs;

use serde_json::{Value, json};
use toolgate_testkit::legacy::Legacy;

use crate::agent::Agent;
use crate::api::Api;
use crate::gate::{Gate, Home};
use crate::peer::Peer;
use crate::upstream::Upstream;

const DENY: &str = "version: '1'\ndefault: deny\n";

/// What may reach a server without a permit, written down once more.
const OPEN: [&str; 10] = [
    "initialize",
    "ping",
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "logging/setLevel",
    "resources/unsubscribe",
    "subscriptions/listen",
];

const METHODS: [&str; 14] = [
    "tools/call",
    "Tools/Call",
    "tools/call ",
    "tools\\/call",
    "\\u0074ools/call",
    "prompts/get",
    "resources/read",
    "resources/subscribe",
    "completion/complete",
    "tasks/list",
    "tasks/cancel",
    "x/y",
    "rpc.discover",
    "tools/call\\u0000",
];

fn is_open(message: &Value) -> bool {
    match message["method"].as_str() {
        Some(method) if message.get("id").is_some() => OPEN.contains(&method),
        Some(method) => method.starts_with("notifications/"),
        None => message.get("id").is_some(),
    }
}

/// All probes: each method with an id, without one, with null for one, and in batches.
fn probes() -> Vec<String> {
    let params =
        r#"{"name":"pid","arguments":{},"uri":"demo://a","taskId":"t","ref":{"name":"p"}}"#;
    let one = |method: &str, id: &str| {
        format!(r#"{{"jsonrpc":"2.0",{id}"method":"{method}","params":{params}}}"#)
    };
    let ping = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;
    let mut all = Vec::new();
    for method in METHODS {
        let (with, without) = (one(method, "\"id\":7,"), one(method, ""));
        let null = one(method, "\"id\":null,");
        let batches = [
            format!("[{with}]"),
            format!("[{without}]"),
            format!("[{ping},{without}]"),
            format!("[{null},{ping}]"),
        ];
        all.extend([with, without, null, one(&format!("notifications/../{method}"), "")]);
        all.extend(batches);
    }
    for odd in [
        r#"{"jsonrpc":"2.0","id":7,"method":"ping","method":"tools/call","params":{"name":"pid"}}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"ping","Method":"tools/call","params":{"name":"pid"}}"#,
        r#"{"jsonrpc":"2.0","id":7,"result":{},"method":"tools/call","params":{"name":"pid"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"name":"pid"}}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"notifications/cancelled","params":{"requestId":1}}"#,
    ] {
        all.push(odd.to_owned());
    }
    all
}

struct Servers {
    gate: Gate,
    peer: Peer,
    web: Upstream,
    old: Legacy,
}

fn servers(document: &str) -> Servers {
    let home = Home::new();
    let (peer, web) = (Peer::new(&home, "files"), Upstream::start());
    let old = Legacy::start().unwrap();
    let file = home.path("policy.yaml");
    fs::write(&file, document).unwrap();
    let config = format!(
        "servers:\n{}  web: {{ url: 'http://{}' }}\n  old: {{ url: '{}', type: sse }}\n",
        peer.entry("listing", ""),
        web.address,
        old.url()
    );
    let gate = Gate::start_as(home, &config, |command| {
        command.arg("--policy").arg(file);
    });
    Servers { gate, peer, web, old }
}

impl Servers {
    /// Every message that any server has heard.
    fn heard(&self) -> Vec<Value> {
        let body = |request: String| {
            let body = request.rsplit("\r\n").next().unwrap_or_default().to_owned();
            serde_json::from_str::<Value>(&body).ok()
        };
        let remote = self.web.requests().into_iter().chain(self.old.requests());
        self.peer.heard().into_iter().chain(remote.filter_map(body)).collect()
    }

    #[track_caller]
    fn heard_nothing_beyond_the_list(&self) {
        let beyond: Vec<_> = self.heard().into_iter().filter(|one| !is_open(one)).collect();
        assert_eq!(beyond, Vec::<Value>::new());
    }
}

#[test]
fn no_probe_reaches_a_server_under_default_deny_or_freeze() {
    for (document, frozen) in [(DENY, false), ("version: '1'\ndefault: allow\n", true)] {
        let all = servers(document);
        let mut agents = Vec::new();
        for version in ["2025-03-26", "2025-11-25"] {
            for path in ["/mcp/files", "/mcp/web", "/mcp/old", "/mcp"] {
                agents.push(Agent::open_at(&all.gate, path, version).unwrap());
            }
        }
        if frozen {
            Api::admin(&all.gate).expect(201, "POST", "freeze", r#"{"all":true}"#);
        }
        for agent in &agents {
            for probe in probes() {
                let reply = agent.send(&probe);
                assert!(reply.status < 500, "{probe}: {reply:?}");
            }
            // Whatever was passed on before this has arrived.
            assert!(agent.works());
        }
        all.heard_nothing_beyond_the_list();
        assert!(!all.heard().is_empty());
    }
}

#[test]
fn a_request_without_an_id_is_rejected_and_so_is_its_batch() {
    let all = servers("version: '1'\ndefault: allow\n");
    let call = r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"pid","arguments":{}}}"#;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for path in ["/mcp/files", "/mcp/web", "/mcp/old", "/mcp"] {
        let agent = Agent::open_at(&all.gate, path, "2025-03-26").unwrap();
        for body in [call.to_owned(), format!("[{call}]"), format!("[{ping},{call}]")] {
            let reply = agent.send(&body);
            assert_eq!((reply.status, &reply.json()["error"]["code"]), (400, &json!(-32600)));
        }
    }
    assert!(all.heard().iter().all(|message| message["method"] != "tools/call"));
}

#[test]
fn other_methods_are_decided_and_recorded() {
    let all = servers(DENY);
    let agent = Agent::open(&all.gate, "files");
    for method in ["x/y", "tasks/list"] {
        let error = &agent.request(method, &json!({}))["error"];
        assert_eq!(error["code"], -32602, "{error}");
        assert!(error["message"].as_str().unwrap().starts_with("[POLICY DENIED] "), "{error}");
        assert_eq!(error["data"]["error_code"], "policy_denied", "{error}");
        let rows = Api::admin(&all.gate).get("audit?limit=1000");
        let is_it = |row: &&Value| row["kind"] == "denied" && row["method"] == method;
        let row = rows["items"].as_array().unwrap().iter().find(is_it).unwrap().clone();
        assert!(row["tool"].is_null() || row["tool"] == "", "{row}");
    }
    all.heard_nothing_beyond_the_list();

    let open = servers("version: '1'\ndefault: allow\n");
    let agent = Agent::open(&open.gate, "files");
    assert_eq!(agent.request("x/y", &json!({}))["error"]["message"], "no such thing");
    open.peer.hears("x/y");
    let rows = Api::admin(&open.gate).get("audit?limit=1000");
    let is_it = |row: &Value| row["kind"] == "intent" && row["method"] == "x/y";
    assert!(rows["items"].as_array().unwrap().iter().any(is_it), "{rows}");
}

#[test]
fn names_that_are_too_long_or_imitate_are_rejected() {
    let all = servers("version: '1'\ndefault: allow\n");
    for path in ["/mcp/files", "/mcp"] {
        let agent = Agent::open_at(&all.gate, path, "2025-11-25").unwrap();
        let long = "n".repeat(257);
        for (method, params) in [
            ("tools/call", json!({"name": long, "arguments": {}})),
            ("prompts/get", json!({"name": long})),
            ("resources/read", json!({"uri": "u".repeat(8_193)})),
            ("completion/complete", json!({"ref": {"name": long}})),
            ("ping", json!({"x": "p".repeat(16 * 1024)})),
            (&*long, json!({})),
        ] {
            assert_eq!(agent.request(method, &params)["error"]["code"], -32602, "{method}");
        }
        for method in ["tools/call ", "Resources/Subscribe", "tools/ca\u{200b}ll", "PING"] {
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {}});
            let reply = agent.send(&body.to_string());
            assert_eq!(reply.json()["error"]["code"], -32601, "{method}: {reply:?}");
        }
    }
    let rows = Api::admin(&all.gate).get("audit?limit=1000");
    let long: Vec<_> = rows["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["error_code"] == "too_long")
        .collect();
    assert!(long.len() >= 6, "{rows}");
    assert!(long.iter().all(|row| row["kind"] == "denied" && row.to_string().len() < 1_000));
    all.heard_nothing_beyond_the_list();
}
