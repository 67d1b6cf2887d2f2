//! What a server could read otherwise than the policy did: names, arguments, resources and lists in
//! other spellings. The server's own record decides.

use std::fs;

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::gate::{Gate, Home};
use crate::recorder::{Era, Recorder};
use crate::sessionless::Sessionless;

const POLICY: &str = "version: '1'
default: allow
hide: [delete_account]
tools:
  fetch: { require: [{ conditions: [{ path: args.u, op: host_in, value: [allowed.com] }] }] }
  pay: { require: [{ conditions: [{ path: args.n, op: in, value: [0, 0.1, 9007199254740992] }] }] }
  wipe: { deny_if: [{ conditions: [{ path: args.all, op: eq, value: true }] }] }
  'drop_*': { action: deny }
  ops/wipe: { action: deny }
resources: { hide: ['file:///etc/*'] }
prompts: { hide: ['secret_*'] }
";

fn gate_with(policy: &str, server: &Recorder) -> Gate {
    let home = Home::new();
    let file = home.path("policy.yaml");
    fs::write(&file, policy).unwrap();
    Gate::start_as(home, &format!("servers:\n{}", server.entry("web", "")), |command| {
        command.arg("--policy").arg(file);
    })
}

/// A server that lists two tools and has an answer to everything.
fn server() -> Recorder {
    Recorder::answering(Era::Sessionful, |message| match message["method"].as_str()? {
        "tools/list" => {
            let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
            Some(json!({"tools": [tool("read_a"), tool("Delete_Account"), tool("ops/wipe")]}))
        }
        "initialize" => None,
        _ => Some(json!({"content": [], "contents": [], "messages": []})),
    })
}

/// How many messages of this method a raw `params` causes at the server.
fn sent(agent: &Agent, server: &Recorder, method: &str, params: &str) -> usize {
    let before = server.of(method).len();
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
    let reply = agent.send(&body);
    assert!(reply.status < 500, "{reply:?}");
    server.of(method).len() - before
}

#[test]
fn arguments_that_readers_take_for_others_are_not_executed() {
    let server = server();
    let gate = gate_with(POLICY, &server);
    let agent = Agent::open(&gate, "web");
    let cases = [
        ("fetch", r#"{"u":"https://allowed.com/"}"#, 1),
        ("fetch", r#"{"u":"https://allowed.com\\@evil.com/"}"#, 0),
        ("fetch", r#"{"u":"https://evil.com\\@allowed.com/"}"#, 0),
        ("fetch", r#"{"u":"https://allowed.com\t.evil.com/"}"#, 0),
        ("fetch", r#"{"u":"https://evil.com/","U":"https://allowed.com/"}"#, 0),
        ("fetch", r#"{"u":"https://allowed.com/","U":"https://evil.com/"}"#, 0),
        ("pay", r#"{"n":0}"#, 1),
        ("pay", r#"{"n":9007199254740992}"#, 1),
        ("pay", r#"{"n":9007199254740993}"#, 0),
        ("pay", r#"{"n":0e9999999999}"#, 0),
        ("pay", r#"{"n":1e-400}"#, 0),
        ("pay", r#"{"n":0.10000000000000000555}"#, 0),
        ("wipe", r#"{"all":false}"#, 1),
        ("wipe", r#"{"all":true}"#, 0),
        ("wipe", r#"{"all":false,"ALL":true}"#, 0),
        ("wipe", r#"{"ALL":true}"#, 0),
        ("wipe", r#"{"all":false,"ａll":true}"#, 0),
        ("wipe", r#"{"all":false,"all\u200b":true}"#, 0),
        ("wipe", r#"{"all":false,"all":true}"#, 0),
    ];
    for (tool, arguments, expected) in cases {
        let params = format!(r#"{{"name":"{tool}","arguments":{arguments}}}"#);
        let executed = sent(&agent, &server, "tools/call", &params);
        assert_eq!(executed, expected, "{tool} {arguments}");
    }
}

#[test]
fn names_that_servers_take_for_others_are_not_executed() {
    let server = server();
    let gate = gate_with(POLICY, &server);
    for lists_first in [false, true] {
        let agent = Agent::open(&gate, "web");
        if lists_first {
            agent.request("tools/list", &json!({}));
        }
        for name in [
            "delete_account",
            "delete_account ",
            "DELETE_ACCOUNT",
            "ｄelete_account",
            "delete\u{200b}_account",
            "delete_account\u{0}",
            "DROP_everything",
            "READ_A",
            "Ops/Wipe",
            "ops/wipe",
        ] {
            let params = json!({"name": name, "arguments": {}}).to_string();
            assert_eq!(sent(&agent, &server, "tools/call", &params), 0, "{name:?} {lists_first}");
        }
        for name in ["secret_a", "SECRET_a", "secret_a\u{200b}", "ｓecret_a"] {
            let params = json!({"name": name}).to_string();
            assert_eq!(sent(&agent, &server, "prompts/get", &params), 0, "{name:?}");
        }
        assert_eq!(sent(&agent, &server, "tools/call", r#"{"name":"read_a","arguments":{}}"#), 1);
        assert_eq!(sent(&agent, &server, "prompts/get", r#"{"name":"greet"}"#), 1);
    }
}

#[test]
fn a_hidden_resource_is_read_in_no_spelling() {
    let server = server();
    let gate = gate_with(POLICY, &server);
    let agent = Agent::open(&gate, "web");
    for uri in [
        "file:///etc/passwd",
        "file:///%65tc/passwd",
        "file:////etc/passwd",
        "FILE:///etc/passwd",
        "file:/etc/passwd",
        "file://localhost/etc/passwd",
        "file:///x/../etc/passwd",
    ] {
        for method in ["resources/read", "resources/subscribe"] {
            let params = json!({"uri": uri}).to_string();
            assert_eq!(sent(&agent, &server, method, &params), 0, "{method} {uri}");
        }
        let params = json!({"ref": {"type": "ref/resource", "uri": uri},
            "argument": {"name": "a", "value": ""}});
        assert_eq!(sent(&agent, &server, "completion/complete", &params.to_string()), 0, "{uri}");
    }
    assert_eq!(sent(&agent, &server, "resources/read", r#"{"uri":"file:///tmp/a"}"#), 1);
    // Without a section the default decides.
    let gate = gate_with("version: '1'\ndefault: deny\ntools: { read_a: {} }\n", &server);
    let agent = Agent::open(&gate, "web");
    assert_eq!(sent(&agent, &server, "resources/read", r#"{"uri":"file:///tmp/a"}"#), 0);
    assert_eq!(sent(&agent, &server, "prompts/get", r#"{"name":"greet"}"#), 0);
    assert_eq!(sent(&agent, &server, "tools/call", r#"{"name":"read_a","arguments":{}}"#), 1);
}

#[test]
fn a_list_that_cannot_be_read_shows_no_hidden_tool() {
    let lists = [
        json!({"tools": {"a": {"name": "delete_account"}}}),
        json!({"tools": [["delete_account"]]}),
        json!({"tools": [{"name": ["delete_account"]}]}),
        json!({"tools": "delete_account"}),
        json!({"Tools": [{"name": "delete_account"}], "tools": []}),
        json!([{"name": "delete_account"}]),
    ];
    for list in lists {
        let reported = list.clone();
        let server = Recorder::answering(Era::Sessionful, move |message| {
            (message["method"] == "tools/list").then(|| reported.clone())
        });
        let gate = gate_with(POLICY, &server);
        for path in ["/mcp/web", "/mcp"] {
            let agent = Agent::open_at(&gate, path, "2025-11-25").unwrap();
            let shown = agent.request("tools/list", &json!({}));
            let names = shown["result"]["tools"].to_string();
            assert!(!names.contains("delete_account"), "{path} {list}: {shown}");
        }
    }
}

#[test]
fn a_filter_of_changes_with_an_unknown_member_is_rejected() {
    let server = server();
    let gate = gate_with(POLICY, &server);
    for path in ["/mcp/web", "/mcp"] {
        let client = Sessionless::new(&gate, path);
        for filter in [
            json!({"x/jobs": [1]}),
            json!({"toolsListChanged": true, "everything": true}),
            json!({"ToolsListChanged": true}),
            json!({"resourceSubscriptions": "file:///tmp/a"}),
        ] {
            let params: Value = json!({"notifications": filter, "_meta": client.meta()});
            let body = json!({"jsonrpc": "2.0", "id": 7, "method": "subscriptions/listen",
                "params": params});
            let headers =
                "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\n";
            let reply = client.begin(headers, &body.to_string()).reply();
            assert_eq!(reply.json()["error"]["code"], -32602, "{path} {filter}: {reply:?}");
        }
    }
    assert!(server.of("subscriptions/listen").is_empty());
}
