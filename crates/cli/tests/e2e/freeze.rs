//! Freezes: of sessions too, twice, and while the configuration is invalid.

use std::fs;

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::api::Api;
use crate::gate::Gate;
use crate::peer::gate_with_peer;
use crate::program::{Card, Program};

fn verdict(agent: &Agent, tool: &str) -> String {
    let result = agent.call(tool, &json!({}));
    result["_meta"]["error_code"].as_str().unwrap_or("sent").to_owned()
}

#[test]
fn all_sessions_can_be_frozen_as_a_server() {
    let gate = Gate::start("");
    let api = Api::admin(&gate);
    let mut program = Program::register(&gate, &Card::new("u1", "ask"));
    let agent = Agent::open(&gate, "sessions");
    let made = api.expect(201, "POST", "freeze", r#"{"server":"sessions"}"#);
    assert_eq!(verdict(&agent, "ask"), "frozen");
    let id = made["id"].as_str().unwrap();
    api.expect(204, "DELETE", &format!("freeze/{id}"), "");
    let answered = std::thread::spawn(move || {
        program.serve("yes");
        program
    });
    assert_eq!(verdict(&agent, "ask"), "sent");
    answered.join().unwrap();
}

#[test]
fn what_is_frozen_already_keeps_its_id() {
    let (gate, _peer) =
        gate_with_peer("policies:\n  open: { version: '1', default: allow }", "", "");
    let api = Api::admin(&gate);
    let _program = Program::register(&gate, &Card::new("u1", "ask"));
    api.expect(201, "POST", "freeze", r#"{"grant":"local"}"#);
    api.expect(201, "POST", "grants", r#"{"label":"g","policy":"open"}"#);
    let cases = [
        (r#"{"grant":"g","reason":"it misbehaves"}"#, "grant", json!("g")),
        (r#"{"server":"peer"}"#, "server", json!("peer")),
        (r#"{"server":"sessions"}"#, "server", json!("sessions")),
        (r#"{"session":"u1"}"#, "session", json!("u1")),
        (r#"{"all":true}"#, "all", json!(true)),
    ];
    for (what, member, value) in cases {
        let made = api.expect(201, "POST", "freeze", what);
        assert_eq!(api.expect(200, "POST", "freeze", what), made, "{what}");
        let listed = api.get("freeze");
        let found = listed["items"].as_array().unwrap().iter();
        let found: Vec<&Value> = found.filter(|item| item["id"] == made["id"]).collect();
        assert_eq!((found.len(), &found[0][member]), (1, &value), "{what}");
    }
    let rows = api.changes();
    assert!(rows.iter().any(|row| row.contains("froze the grant `g`: it misbehaves")), "{rows:?}");
    for (what, status) in [
        (r#"{"session":"nobody"}"#, 404),
        (r#"{"session":"u1","all":true}"#, 400),
        (r#"{"server":"session"}"#, 404),
        (r#"{"server":"toolgate"}"#, 404),
        (r#"{"reason":"x"}"#, 400),
    ] {
        api.expect(status, "POST", "freeze", what);
    }
    let long = json!({"all": true, "reason": "x".repeat(600)}).to_string();
    api.expect(400, "POST", "freeze", &long);
}

#[test]
fn verbs_work_while_the_configuration_is_invalid() {
    for broken in [
        "version: 1\ndata: ./elsewhere\nlisen: {}\n",
        "version: 1\ndata: ./elsewhere\nlisten: { mcp: [\n",
        "data: ./elsewhere # there\n\tgrants: [ }{\n",
        "version: 1\ndata: \"./elsewhere\"\ngrants:\n  - { label: a, token: 'env:NOT_SET', policy: none }\n",
    ] {
        let (mut gate, _peer) = gate_with_peer("data: ./elsewhere", "", "");
        let agent = Agent::open(&gate, "peer");
        assert_eq!(verdict(&agent, "echo"), "sent");
        fs::write(gate.home.file(), broken).unwrap();
        let run = |words: &[&str]| {
            let output = gate.home.run(words);
            let printed = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(0), "{words:?} with {broken:?}: {printed}");
            String::from_utf8(output.stdout).unwrap()
        };
        let made: Value = serde_json::from_str(&run(&["freeze", "--all", "-o", "json"])).unwrap();
        assert_eq!(verdict(&agent, "echo"), "frozen");
        let listed: Value = serde_json::from_str(&run(&["freeze", "list", "-o", "json"])).unwrap();
        assert_eq!(listed["items"][0]["id"], made["id"]);
        run(&["unfreeze", "--all"]);
        assert_eq!(verdict(&agent, "echo"), "sent");
        run(&["grant", "create", "laptop"]);
        run(&["grant", "revoke", "laptop"]);
        run(&["session", "list"]);
        run(&["server", "list"]);
        run(&["person", "list"]);
        run(&["freeze", "--server", "sessions", "--reason", "for now"]);
        run(&["unfreeze", "--server", "sessions"]);
        assert_eq!(gate.stop().0, Some(0));
    }
}
