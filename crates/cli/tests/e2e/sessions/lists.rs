//! What agents see of sessions, and their notifications of changes.

use std::fs;

use serde_json::{Value, json};

use super::{code, open, tool, tools};
use crate::agent::Agent;
use crate::gate::{Gate, Home};
use crate::peer::Peer;
use crate::program::{Card, Program, tool_of};
use crate::wire::Events;

fn names(agent: &Agent) -> Vec<String> {
    tools(agent).iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn typed(name: &str, kind: &str) -> Value {
    json!({"name": name, "input_schema": {"type": "object", "properties": {"x": {"type": kind}}, "required": ["x"]}})
}

#[test]
fn built_ins_then_sessions_then_servers() {
    let home = Home::new();
    let peer = Peer::new(&home, "peer");
    let gate = Gate::start_in(home, &format!("servers:\n{}", peer.entry("", "names: bare")));
    let card = Card::new("u1", "").with(json!([
        tool_of("echo"), tool_of("session_list"), tool_of("peer__x"), tool_of("find"),
        {"name": "inner", "input_schema": {"type": "object"}, "visibility": "internal"},
    ]));
    let mut program = Program::register(&gate, &card);
    let own = ["session_list", "tools_cache_reset", "my_permissions"];
    let of_sessions = ["echo", "find", "session__peer__x", "session__session_list"];
    assert_eq!(names(&open(&gate)), [&own[..], &of_sessions[..]].concat());
    let everything = Agent::open_at(&gate, "/mcp", "2025-11-25").ok().unwrap();
    assert_eq!(names(&everything)[..7], [&own[..], &of_sessions[..]].concat());
    // The server has a tool of that name too; on its own endpoint it keeps it.
    std::thread::scope(|scope| {
        let call = scope.spawn(|| everything.call("echo", &json!({})));
        program.serve("the session's");
        assert_eq!(super::text(&call.join().unwrap()), "the session's");
    });
    let of_server = Agent::open(&gate, "peer").call("echo", &json!({})).to_string();
    assert!(!of_server.contains("the session's"), "{of_server}");
    assert_eq!(code(&everything.call("inner", &json!({}))), "unknown_tool");
}

#[test]
fn all_three_selectors_if_asked_for() {
    let gate = Gate::start("sessions: { selectors: any }");
    let mut trade = Program::register(&gate, &Card::new("u1", "find").of("client", "Торговля"));
    let mut stock = Program::register(&gate, &Card::new("u2", "find").of("server", "Склад"));
    let agent = open(&gate);
    let schema = tool(&agent, "find").unwrap()["inputSchema"].clone();
    for selector in ["session_id", "infobase_name", "kind"] {
        assert_eq!(schema["properties"][selector]["type"], "string", "{schema}");
    }
    assert!(!schema["required"].to_string().contains("session_id"), "{schema}");
    let description = schema["properties"]["session_id"]["description"].as_str().unwrap();
    assert!(description.contains("`u2` (Склад, server)"), "{description}");
    let served_by = |program: &mut Program, arguments: Value| {
        std::thread::scope(|scope| {
            let call = scope.spawn(|| agent.call("find", &arguments));
            program.serve("found");
            assert_eq!(super::text(&call.join().unwrap()), "found", "{arguments}");
        });
    };
    served_by(&mut trade, json!({"infobase_name": "ТОРГОВЛЯ"}));
    served_by(&mut stock, json!({"infobase_name": "склад"}));
    served_by(&mut stock, json!({"kind": "server"}));
    assert_eq!(code(&agent.call("find", &json!({}))), "session_id_required");
}

#[test]
fn two_sessions_with_one_tool() {
    let gate = Gate::start("");
    let _one =
        Program::register(&gate, &Card::new("one", "").with(json!([typed("get", "string")])));
    let agent = open(&gate);
    let schema = tool(&agent, "get").unwrap()["inputSchema"].clone();
    assert_eq!(schema["properties"]["session_id"]["enum"], json!(["one"]));
    assert_eq!(schema["required"], json!(["x"]));
    // The same schema, written differently.
    let mut two =
        Program::register(&gate, &Card::new("two", "").with(json!([typed("get", "string")])));
    let schema = tool(&agent, "get").unwrap()["inputSchema"].clone();
    assert_eq!(schema["properties"]["session_id"]["enum"], json!(["one", "two"]));
    assert!(schema["required"].as_array().unwrap().contains(&json!("session_id")), "{schema}");
    // Another schema.
    two.ask("session.tools_changed", &json!({"tools": [typed("get", "integer")]}));
    let schema = tool(&agent, "get").unwrap()["inputSchema"].clone();
    assert_eq!(schema["type"], "object");
    for combinator in ["oneOf", "anyOf", "allOf"] {
        assert!(schema.get(combinator).is_none(), "{schema}");
    }
    assert!(schema["properties"]["x"]["anyOf"].is_array(), "{schema}");
    let wrong = agent.call("get", &json!({"session_id": "two", "x": "text"}));
    assert_eq!(code(&wrong), "invalid_arguments", "checked against the chosen one's own");
}

#[test]
fn as_the_other_manager_does_if_asked_for() {
    let gate = Gate::start("sessions: { conflict: oneof }");
    let _one =
        Program::register(&gate, &Card::new("one", "").with(json!([typed("get", "string")])));
    let _two =
        Program::register(&gate, &Card::new("two", "").with(json!([typed("get", "integer")])));
    let schema = tool(&open(&gate), "get").unwrap()["inputSchema"].clone();
    let branches = schema["oneOf"].as_array().unwrap();
    assert_eq!(branches.len(), 2);
    for branch in branches {
        assert_eq!(branch["properties"]["session_id"]["enum"].as_array().unwrap().len(), 1);
    }
}

#[test]
fn names_in_ascii_are_shown_called_and_judged_under_both() {
    let home = Home::new();
    let file = home.path("policy.yaml");
    // One is named as clients call it, the other as agents see it.
    let policy = "version: '1'\ndefault: allow\ntools:\n  УдалитьЗаказ: { action: deny }\n  SpryatatZakaz: { action: hide }\n";
    fs::write(&file, policy).unwrap();
    let gate = Gate::start_as(home, "sessions: { ascii_names: true }", |command| {
        command.arg("--policy").arg(&file);
    });
    let tools = ["ПровестиЗаказ", "УдалитьЗаказ", "СпрятатьЗаказ", "plain"].map(tool_of);
    let mut program = Program::register(&gate, &Card::new("u1", "").with(json!(tools)));
    let agent = open(&gate);
    assert_eq!(names(&agent)[3..], ["ProvestiZakaz", "UdalitZakaz", "plain"]);
    assert_eq!(tool(&agent, "ProvestiZakaz").unwrap()["title"], "ПровестиЗаказ");
    assert!(tool(&agent, "plain").unwrap().get("title").is_none());
    std::thread::scope(|scope| {
        let call = scope.spawn(|| agent.call("ProvestiZakaz", &json!({"Номер": 1})));
        let called = program.serve("проведён");
        assert_eq!(called, json!({"name": "ПровестиЗаказ", "arguments": {"Номер": 1}}));
        assert_eq!(super::text(&call.join().unwrap()), "проведён");
    });
    for refused in ["UdalitZakaz", "SpryatatZakaz"] {
        assert_eq!(code(&agent.call(refused, &json!({}))), "policy_denied", "{refused}");
    }
    // The original name is not callable.
    assert_eq!(code(&agent.call("ПровестиЗаказ", &json!({}))), "unknown_tool");
    // Who has gone is still known by the same name.
    program.ask("session.bye", &json!({}));
    assert_eq!(code(&agent.call("ProvestiZakaz", &json!({}))), "no_live_session");
}

#[test]
fn agents_are_notified_of_visible_changes() {
    let home = Home::new();
    let gate = Gate::start_as(
        home,
        "policies: { all: { version: '1', default: allow } }\n\
         grants:\n\
         - { label: a, token: env:A, policy: all, sessions: { infobase_name: [trade] } }\n\
         - { label: b, token: env:B, policy: all, sessions: { infobase_name: [stock] } }",
        |command| {
            command.env("A", TOKENS[0]).env("B", TOKENS[1]);
        },
    );
    let agents = TOKENS.map(|token| Agent::open_with(&gate, "sessions", token));
    let mut streams = agents.each_ref().map(|agent| {
        assert_eq!(names(agent), ["session_list", "tools_cache_reset", "my_permissions"]);
        Events::of(agent.get(&format!("Accept: text/event-stream\r\n{}", agent.authorization())))
    });
    let changed = |stream: &mut Events| {
        let (_, message) = stream.message().unwrap();
        assert_eq!(message["method"], "notifications/tools/list_changed", "{message}");
    };
    let mut trade = Program::register(&gate, &Card::new("u1", "find").of("client", "trade"));
    changed(&mut streams[0]);
    assert!(names(&agents[0]).contains(&"find".to_owned()));
    trade.ask("session.tools_changed", &json!({"tools": [tool_of("find"), tool_of("more")]}));
    changed(&mut streams[0]);
    assert!(names(&agents[0]).contains(&"more".to_owned()));
    // The first notification of the other one is about a session in its reach.
    let _stock = Program::register(&gate, &Card::new("u2", "other").of("client", "stock"));
    changed(&mut streams[1]);
    assert_eq!(names(&agents[1])[3..], ["other"]);
}

const TOKENS: [&str; 2] = ["token-of-the-grant-a-0123456789", "token-of-the-grant-b-0123456789"];
