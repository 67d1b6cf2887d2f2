//! A thin client that comes back and does not register again: its late answer identifies it.

use std::thread;

use serde_json::{Value, json};

use super::{audited, code, open, text};
use crate::gate::{Gate, eventually};
use crate::program::{Card, Program};

fn state(gate: &Gate) -> Value {
    let list = open(gate).call("session_list", &json!({}));
    list["structuredContent"]["sessions"][0]["state"].clone()
}

#[test]
fn a_late_answer_on_a_new_socket_completes_its_call_and_binds_the_socket() {
    let gate = Gate::start("");
    let mut program = Program::register(&gate, &Card::new("u1", "find"));
    let agent = open(&gate);
    let mut back = thread::scope(|scope| {
        let call = scope.spawn(|| agent.call("find", &json!({})));
        let (id, _) = program.called();
        drop(program);
        eventually("it is lost", || (state(&gate) == "disconnected").then_some(()));
        let mut stranger = Program::dial(&gate);
        stranger.answer("mgr-1-00000000000000000000000000000000", "mine");
        audited(&gate.home, "answer_dropped");
        let mut back = Program::dial(&gate);
        back.answer(&id, "late");
        assert_eq!(text(&call.join().unwrap()), "late");
        back
    });
    assert_eq!(state(&gate), "active");
    audited(&gate.home, "rebound");
    // From now on it is the session's socket, tools and all.
    thread::scope(|scope| {
        let call = scope.spawn(|| agent.call("find", &json!({})));
        back.serve("as before");
        assert_eq!(text(&call.join().unwrap()), "as before");
    });
}

#[test]
fn nothing_is_bound_where_it_is_switched_off() {
    let gate = Gate::start("sessions: { rebind: false, reconnection_grace_secs: 1 }");
    let mut program = Program::register(&gate, &Card::new("u1", "find"));
    let agent = open(&gate);
    let result = thread::scope(|scope| {
        let call = scope.spawn(|| agent.call("find", &json!({})));
        let (id, _) = program.called();
        let mut back = Program::dial(&gate);
        drop(program);
        back.answer(&id, "late");
        call.join().unwrap()
    });
    assert_eq!((code(&result), &result["_meta"]["effect"]), ("session_gone", &json!("unknown")));
}
