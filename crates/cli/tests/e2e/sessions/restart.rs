//! Sessions leave and toolgate restarts: what agents still see, and the answers they get.

use serde_json::json;

use super::{audited, code, open, tool};
use crate::gate::{Gate, eventually};
use crate::program::{Card, Program};

#[test]
fn after_a_goodbye_in_either_form_the_tool_stays_and_names_the_missing_session() {
    for request in [true, false] {
        let gate = Gate::start("");
        let card = Card::new("u1", "find").of("client", "trade");
        let mut program = Program::register(&gate, &card);
        if request {
            assert_eq!(program.ask("session.bye", &json!({"reason": "x"}))["result"], json!({}));
        } else {
            program.notify("session.bye", &json!({}));
        }
        assert_eq!(program.closed(), Some(1000));
        let agent = open(&gate);
        let schema = tool(&agent, "find").unwrap()["inputSchema"].clone();
        assert!(schema["properties"]["session_id"].get("enum").is_none(), "{schema}");
        assert!(schema.get("required").is_none(), "{schema}");
        let result = agent.call("find", &json!({}));
        assert_eq!(code(&result), "no_live_session");
        let meta = &result["_meta"];
        assert_eq!(
            (&meta["tool"], &meta["kind"], &meta["config_id"]),
            (&json!("find"), &json!("client"), &json!("client"))
        );
        audited(&gate.home, "bye");
    }
}

#[test]
fn a_session_that_does_not_come_back_is_gone_after_its_grace() {
    let gate = Gate::start("sessions: { reconnection_grace_secs: 1 }");
    drop(Program::register(&gate, &Card::new("u1", "find")));
    let agent = open(&gate);
    let gone = agent.call("find", &json!({"session_id": "u1"}));
    assert!(["session_gone", "no_live_session"].contains(&code(&gone)), "{gone}");
    audited(&gate.home, "lost");
    eventually("nobody serves it any more", || {
        let list = agent.call("session_list", &json!({}));
        list["structuredContent"]["sessions"].as_array().unwrap().is_empty().then_some(())
    });
    assert_eq!(code(&agent.call("find", &json!({}))), "no_live_session");
}

#[test]
fn the_showcase_survives_a_restart() {
    let mut gate = Gate::start("");
    let mut program = Program::register(&gate, &Card::new("u1", "Найти"));
    audited(&gate.home, "registered");
    assert_eq!(gate.stop().0, Some(0));
    assert_eq!(program.closed(), Some(1012));
    let gate = Gate::start_in(gate.into_home(), "");
    let agent = open(&gate);
    assert!(tool(&agent, "Найти").is_some());
    let result = agent.call("Найти", &json!({}));
    assert_eq!(code(&result), "no_live_session");
    let meta = &result["_meta"];
    assert_eq!((&meta["infobase_name"], &meta["host_id"]), (&json!("trade"), &json!("unknown")));
    assert!(meta["last_seen"].as_str().unwrap().ends_with('Z'), "{meta}");
    let text = super::text(&result);
    assert!(text.contains("last seen with infobase `trade` at 20"), "{text}");
    // It comes back, and everything works again.
    let mut program = Program::register(&gate, &Card::new("u1", "Найти"));
    std::thread::scope(|scope| {
        let call = scope.spawn(|| agent.call("Найти", &json!({})));
        program.serve("снова");
        assert_eq!(super::text(&call.join().unwrap()), "снова");
    });
    let reset = agent.call("tools_cache_reset", &json!({"config_id": "client"}));
    assert_eq!(reset["structuredContent"]["removed"], 1);
    assert!(tool(&agent, "Найти").is_some(), "live sessions are untouched");
}
