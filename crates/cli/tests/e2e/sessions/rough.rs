//! Programs that send too much, too large frames, or nothing do not affect others.

use std::thread;

use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use super::{audited, open, text};
use crate::agent::Agent;
use crate::gate::{Gate, eventually};
use crate::program::{Card, Program};

/// A well-behaved program still serves.
fn others_are_served(agent: &Agent, good: &mut Program) {
    thread::scope(|scope| {
        let call = scope.spawn(|| agent.call("find", &json!({})));
        good.serve("still here");
        assert_eq!(text(&call.join().unwrap()), "still here");
    });
}

#[test]
fn a_frame_above_the_limit_closes_its_socket_alone() {
    let gate = Gate::start("");
    let mut good = Program::register(&gate, &Card::new("good", "find"));
    let mut large = Program::dial(&gate);
    let limit = 16 * 1024 * 1024;
    // The last byte is one too many; how far the other side reads is its affair.
    let sent = large.send(Message::text("x".repeat(limit + 1)));
    assert!(sent.is_err() || matches!(large.closed(), None | Some(1009)));
    audited(&gate.home, "frame_too_large");
    others_are_served(&open(&gate), &mut good);
    // A frame of exactly the limit is read.
    let mut exact = Program::dial(&gate);
    exact.say(&"x".repeat(limit));
    assert_eq!(exact.hear()["error"]["code"], -32700);
}

#[test]
fn a_program_that_sends_too_much_is_slowed_down() {
    let gate = Gate::start("");
    let mut good = Program::register(&gate, &Card::new("good", "find"));
    let agent = open(&gate);
    let flooding = thread::scope(|scope| {
        let gate = &gate;
        let flood = scope.spawn(move || {
            let mut flooder = Program::dial(gate);
            // Each answer would complete another session's call, if its id could be guessed.
            let frame =
                r#"{"jsonrpc":"2.0","id":"mgr-1-00000000000000000000000000000000","result":{}}"#;
            for _ in 0..400 {
                flooder.say(frame);
            }
            flooder
        });
        for _ in 0..20 {
            others_are_served(&agent, &mut good);
        }
        flood.join().unwrap()
    });
    audited(&gate.home, "flooding");
    audited(&gate.home, "answer_dropped");
    let dropped = super::session_rows(&gate.home);
    let rows = dropped.iter().filter(|(what, _)| what == "answer_dropped").count();
    assert!(rows <= 11, "ten a minute, and one for the rest: {rows}");
    drop(flooding);
}

#[test]
fn sockets_that_never_register_give_way() {
    let gate = Gate::start("limits: { connections: 64 }");
    let mut good = Program::register(&gate, &Card::new("good", "find"));
    let agent = open(&gate);
    let mut silent: Vec<Program> = (0..100).map(|_| Program::dial(&gate)).collect();
    assert_eq!(silent[0].closed(), Some(4002), "the oldest has made room");
    let mut late = Program::register(&gate, &Card::new("late", "other"));
    others_are_served(&agent, &mut good);
    assert_eq!(late.ask("ping", &json!({}))["result"], json!({}));
    audited(&gate.home, "too_many_sockets");
}

#[test]
fn a_socket_that_does_not_register_in_time_is_closed() {
    let gate = Gate::start("sessions: { reconnection_grace_secs: 0, register_within_secs: 1 }");
    let mut silent = Program::dial(&gate);
    assert_eq!(silent.closed(), Some(4002));
    audited(&gate.home, "not_registered");
}

#[test]
fn a_socket_without_any_sign_of_life_is_given_up() {
    let gate = Gate::start(
        "sessions: { ws_ping_interval_ms: 500, ws_ping_timeout_ms: 5000, reconnection_grace_secs: 1 }",
    );
    // A program that does not read does not answer pings either.
    let mut silent = Program::register(&gate, &Card::new("u1", "find"));
    audited(&gate.home, "lost");
    audited(&gate.home, "expired");
    assert_eq!(silent.closed(), Some(4003));
}

#[test]
fn a_client_that_reads_nothing_is_cut_off_and_comes_to_no_harm_for_others() {
    let gate = Gate::start("");
    let mut good = Program::register(&gate, &Card::new("good", "find"));
    let mut deaf = Program::dial(&gate);
    // Every one of these is answered, and none of the answers is read.
    let ping = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;
    for _ in 0..150 {
        deaf.say(ping);
    }
    others_are_served(&open(&gate), &mut good);
    eventually("both are still known, or the deaf one is gone", || {
        let list = open(&gate).call("session_list", &json!({}));
        (list["structuredContent"]["sessions"][0]["session_id"] == "good").then_some(())
    });
}
