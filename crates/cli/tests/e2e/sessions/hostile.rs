//! Hostile programs and hostile agents: what they must not get, and what they must not stop.

use std::fs;
use std::thread;
use std::time::Instant;

use serde_json::{Value, json};

use super::{code, open, text, tools};
use crate::agent::Agent;
use crate::api::Api;
use crate::gate::{Gate, Home, eventually};
use crate::program::{Card, Program, tool_of};

fn gate_with_policy(config: &str, policy: &str) -> Gate {
    let home = Home::new();
    let file = home.path("policy.yaml");
    fs::write(&file, policy).unwrap();
    Gate::start_as(home, config, |command| {
        command.arg("--policy").arg(&file);
    })
}

fn names(agent: &Agent) -> Vec<String> {
    tools(agent).iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_rule_on_any_name_of_a_tool_holds() {
    let policy = "version: '1'\ndefault: allow\nhide: [Skryt]\ntools:\n  \
        session__session_list: { action: deny }\n  Udalit: { action: deny }\n  \
        Zakryt: { action: deny }\n";
    let gate = gate_with_policy("sessions: { ascii_names: true }", policy);
    let own = ["session_list", "Удалить", "Закрыть", "Скрыть"];
    let list: Vec<Value> = own.iter().map(|name| tool_of(name)).collect();
    let _program = Program::register(&gate, &Card::new("u1", "").with(json!(list)));
    let agent = open(&gate);
    assert!(!names(&agent).contains(&"Skryt".to_owned()), "{:?}", names(&agent));
    // A second session takes a transliteration: the first tool has another name, not other rules.
    let rival = Card::new("u2", "").with(json!([tool_of("Zakryt")]));
    let _rival = Program::register(&gate, &rival);
    let moved = eventually("the name has moved", || {
        names(&agent).into_iter().find(|name| name.starts_with("Zakryt_"))
    });
    for name in ["session__session_list", "Udalit", &moved, "Zakryt"] {
        let arguments = json!({"session_id": if name == "Zakryt" { "u2" } else { "u1" }});
        assert_eq!(code(&agent.call(name, &arguments)), "policy_denied", "{name}");
    }
    let permissions = agent.call("my_permissions", &json!({}));
    for tool in permissions["structuredContent"]["tools"].as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        if name.starts_with("Zakryt") || name == "Udalit" || name == "session__session_list" {
            assert_eq!(tool["effect"], "deny", "{tool}");
        }
        assert_ne!(name, "Skryt");
    }
}

#[test]
fn a_server_that_is_added_has_its_names_to_itself() {
    let gate = Gate::start("");
    let list = ["files__get_x", "Files__get_y", "files_get"].map(tool_of);
    let _program = Program::register(&gate, &Card::new("u1", "").with(json!(list)));
    let agent = Agent::open_at(&gate, "/mcp", "2025-11-25").unwrap();
    assert!(names(&agent).contains(&"files__get_x".to_owned()));
    let api = Api::admin(&gate);
    let server = json!({"name": "files", "command": "/bin/false"});
    api.expect(201, "POST", "servers", &server.to_string());
    eventually("the names of the server are free", || {
        let shown = names(&agent);
        let moved = ["session__files__get_x", "session__Files__get_y", "files_get"];
        let left = ["files__get_x", "Files__get_y"];
        (moved.iter().all(|name| shown.iter().any(|shown| shown == name))
            && !left.iter().any(|name| shown.iter().any(|shown| shown == name)))
        .then_some(())
    });
    // It means the server, which cannot run; the session is not asked.
    assert_eq!(code(&agent.call("files__get_x", &json!({}))), "upstream_unavailable");
    let mut shown = names(&agent);
    let count = shown.len();
    shown.sort_unstable();
    shown.dedup();
    assert_eq!(shown.len(), count, "a name is listed twice");
    api.expect(204, "DELETE", "servers/files", "");
    eventually("the session has its names again", || {
        names(&agent).contains(&"files__get_x".to_owned()).then_some(())
    });
}

#[test]
fn keys_that_1c_cannot_tell_apart_do_not_reach_it() {
    let gate = Gate::start("");
    let schema = json!({"type": "object", "properties": {"all": {}, "row": {"type": "object"}}});
    let tool = json!({"name": "close", "input_schema": schema});
    let mut program = Program::register(&gate, &Card::new("u1", "").with(json!([tool])));
    let agent = open(&gate);
    for arguments in [
        json!({"all": false, "ALL": true}),
        json!({"ALL": true}),
        json!({"ａll": true}),
        json!({"row": {"x": [{"b": 1, "B": 2}]}}),
        json!({"Session_ID": "u2"}),
        json!({"_V8_Call_Options": {}}),
    ] {
        assert_eq!(code(&agent.call("close", &arguments)), "invalid_arguments", "{arguments}");
    }
    thread::scope(|scope| {
        let call = scope.spawn(|| agent.call("close", &json!({"all": 1, "Other": 2})));
        let called = program.serve("done");
        assert_eq!(called["arguments"], json!({"all": 1, "Other": 2}), "the first that came");
        assert_eq!(text(&call.join().unwrap()), "done");
    });
}

#[test]
fn no_schema_stops_others() {
    let gate = Gate::start("");
    let nested =
        format!("{}{{\"const\":2}}{}", r#"{"anyOf":[{"const":1},"#.repeat(28), "]}".repeat(28));
    let nested: Value = serde_json::from_str(&nested).unwrap();
    let flat = json!({"enum": (0..1_500).map(|n| format!("v{n}")).collect::<Vec<_>>()});
    let tool = |name: &str, items: &Value| {
        let schema = json!({"type": "object", "properties": {"a": {"items": items}}});
        json!({"name": name, "input_schema": schema})
    };
    let hostile = json!([tool("nested", &nested), tool("flat", &flat)]);
    let _hostile = Program::register(&gate, &Card::new("bad", "").with(hostile));
    let mut neighbour = Program::register(&gate, &Card::new("good", "find"));
    let numbers: Vec<u32> = (0..400_000).collect();
    let arguments = json!({"a": numbers});
    let attackers: Vec<Agent> = (0..4).map(|_| open(&gate)).collect();
    let agent = open(&gate);
    thread::scope(|scope| {
        let attacks: Vec<_> = attackers
            .iter()
            .enumerate()
            .map(|(at, attacker)| {
                let (name, arguments) = (if at % 2 == 0 { "nested" } else { "flat" }, &arguments);
                scope.spawn(move || attacker.call(name, arguments))
            })
            .collect();
        let began = Instant::now();
        for _ in 0..3 {
            let call = scope.spawn(|| agent.call("find", &json!({})));
            neighbour.serve("here");
            assert_eq!(text(&call.join().unwrap()), "here");
        }
        assert!(began.elapsed().as_secs() < 20, "neighbours waited {:?}", began.elapsed());
        for attack in attacks {
            let result = attack.join().unwrap();
            assert!(["invalid_arguments", "session_busy"].contains(&code(&result)), "{result}");
        }
    });
}

#[test]
fn a_policy_refuses_before_arguments_are_checked() {
    let gate =
        gate_with_policy("", "version: '1'\ndefault: allow\ntools:\n  x: { action: deny }\n");
    let tool = json!({"name": "x", "input_schema": {"type": "object", "required": ["y"]}});
    let _program = Program::register(&gate, &Card::new("u1", "").with(json!([tool])));
    assert_eq!(code(&open(&gate).call("x", &json!({}))), "policy_denied");
}

#[test]
fn a_schema_that_asks_for_too_much_makes_its_tool_uncallable_and_no_other() {
    let gate = Gate::start("");
    let remote = json!({"name": "remote", "input_schema": {"$ref": "https://example.com/s"}});
    let list = json!([remote, tool_of("find")]);
    let mut program = Program::register(&gate, &Card::new("u1", "").with(list));
    let agent = open(&gate);
    assert_eq!(code(&agent.call("remote", &json!({}))), "invalid_arguments");
    thread::scope(|scope| {
        let call = scope.spawn(|| agent.call("find", &json!({})));
        program.serve("here");
        assert_eq!(text(&call.join().unwrap()), "here");
    });
}

/// A call runs, another waits behind it; what people do meanwhile decides the second one.
fn while_queued(gate: &Gate, agent: &Agent, meanwhile: impl FnOnce(), expected: &str) {
    let mut program = Program::register(gate, &Card::new("u1", "find"));
    let second = open(gate);
    thread::scope(|scope| {
        let first = scope.spawn(|| agent.call("find", &json!({"n": 1})));
        let (id, _) = program.called();
        let queued = scope.spawn(|| second.call("find", &json!({"n": 2})));
        eventually("the second call waits", || {
            let list = Api::admin(gate).get("sessions");
            (list["items"][0]["queued"] == 1).then_some(())
        });
        meanwhile();
        program.answer(&id, "done");
        assert_eq!(text(&first.join().unwrap()), "done");
        let refused = queued.join().unwrap();
        assert_eq!(code(&refused), expected, "{refused}");
        assert_eq!(refused["_meta"]["effect"], "not_started", "{refused}");
    });
    // The program is asked something: nothing came before that.
    program.say(r#"{"jsonrpc":"2.0","id":77,"method":"ping"}"#);
    let answer = program.hear();
    assert_eq!(answer["id"], 77, "the session was called: {answer}");
}

#[test]
fn a_freeze_stops_calls_that_wait_for_their_turn() {
    let gate = Gate::start("");
    let freeze = || drop(Api::admin(&gate).expect(201, "POST", "freeze", r#"{"all":true}"#));
    while_queued(&gate, &open(&gate), freeze, "frozen");
    eventually("the row tells that nothing was sent", || {
        let output =
            gate.home.run(&["audit", "list", "--after", "0", "-o", "jsonl", "--tool", "find"]);
        let rows = String::from_utf8(output.stdout).unwrap();
        rows.lines()
            .map(|row| serde_json::from_str::<Value>(row).unwrap())
            .any(|row| {
                row["kind"] == "outcome"
                    && row["error_code"] == "frozen"
                    && row["effect"] == "not_started"
            })
            .then_some(())
    });
}
