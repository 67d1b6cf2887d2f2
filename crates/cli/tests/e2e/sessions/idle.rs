//! Idle sessions: by default nothing happens to them.

use serde_json::{Value, json};

use super::{code, open, text, tool};
use crate::gate::{Gate, eventually};
use crate::program::{Card, Program};
use crate::wire::Events;

/// What people see of one session.
fn seen(gate: &Gate, uid: &str) -> Value {
    let output = gate.home.run(&["session", "list", "-o", "jsonl"]);
    let items = String::from_utf8(output.stdout).unwrap();
    let mut items = items.lines().map(|item| serde_json::from_str::<Value>(item).unwrap());
    items.find(|item| item["session_id"] == uid).unwrap_or_default()
}

#[test]
fn hidden_until_it_is_called_by_its_id() {
    let gate = Gate::start("sessions: { cache: false, kinds: { test: { idle_timeout_secs: 1 } } }");
    let agent = open(&gate);
    let mut stream = Events::of(agent.get("Accept: text/event-stream\r\n"));
    // An agent that lists after each change is notified of the next.
    let mut told_until = |visible: bool| {
        while tool(&agent, "find").is_some() != visible {
            let (_, message) = stream.message().unwrap();
            assert_eq!(message["method"], "notifications/tools/list_changed", "{message}");
        }
    };
    let mut program = Program::dial(&gate);
    let params = Card::new("u1", "find").of("test", "trade").params();
    let answer = program.ask("session.register", &params);
    assert_eq!(answer["result"]["idle_timeout_secs"], 1);
    eventually("it is idle", || (seen(&gate, "u1")["hidden"] == true).then_some(()));
    assert!(tool(&agent, "find").is_none());
    assert_eq!(code(&agent.call("find", &json!({}))), "no_live_session");
    std::thread::scope(|scope| {
        let call = scope.spawn(|| agent.call("find", &json!({"session_id": "u1"})));
        let (id, _) = program.called();
        // It is in use, so it is not idle.
        told_until(true);
        assert_eq!(seen(&gate, "u1")["hidden"], false);
        program.answer(&id, "here");
        assert_eq!(text(&call.join().unwrap()), "here");
    });
    told_until(false);
    // No socket was closed.
    assert_eq!(program.ask("ping", &json!({}))["result"], json!({}));
}

#[test]
fn asked_to_end_only_where_that_is_wanted() {
    let gate = Gate::start(
        "sessions: { graceful_kill_grace_ms: 1234, kinds: { test: { idle_timeout_secs: 1, idle: shutdown } } }",
    );
    let mut other = Program::register(&gate, &Card::new("other", "find"));
    let mut program = Program::register(&gate, &Card::new("u1", "find").of("test", "trade"));
    let request = program.hear();
    assert_eq!(request["method"], "session.shutdown", "{request}");
    assert_eq!(request["params"], json!({"reason": "idle", "grace_ms": 1234}));
    let id = request["id"].as_str().unwrap();
    assert!(!id.is_empty());
    program.say(&json!({"jsonrpc": "2.0", "id": id, "result": {}}).to_string());
    program.notify("session.bye", &json!({"reason": "idle"}));
    assert_eq!(program.closed(), Some(1000));
    eventually("it is gone", || seen(&gate, "u1").is_null().then_some(()));
    // The first message that the other one receives is the answer to its own request.
    assert_eq!(other.ask("ping", &json!({}))["result"], json!({}));
    let rows = super::session_rows(&gate.home);
    assert!(!rows.iter().any(|(what, _)| what == "answer_dropped"), "{rows:?}");
}
