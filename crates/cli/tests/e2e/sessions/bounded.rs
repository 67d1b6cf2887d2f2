//! However much strangers send, and however many they are: memory is bounded, others are served,
//! and the audit records it in a few rows.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;

use rustix::process::{Resource, getrlimit};
use serde_json::json;

use super::{audited, open, session_rows, text};
use crate::agent::Agent;
use crate::gate::{GUARD, Gate, eventually};
use crate::program::{Card, Program};

const MIB: usize = 1024 * 1024;
/// The largest frame.
const FRAME: usize = 16 * MIB;
/// More than all unfinished frames together may take, what a debug build needs besides included.
const ENOUGH_KIB: usize = 256 * 1024;

/// A WebSocket of which only bytes are known.
fn dial(gate: &Gate) -> TcpStream {
    let address = gate.address("sessions");
    let mut stream = TcpStream::connect(&address).unwrap();
    stream.set_read_timeout(Some(GUARD)).unwrap();
    stream.set_write_timeout(Some(GUARD)).unwrap();
    let head = format!(
        "GET /sessions HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut reply = Vec::new();
    while !reply.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        assert_eq!(stream.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&reply));
        reply.push(byte[0]);
    }
    assert!(reply.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&reply));
    stream
}

/// A text of this length as a client frames it, with a mask that changes nothing; of its payload
/// only so much.
fn begun(length: usize, come: usize) -> Vec<u8> {
    let mut frame = vec![0x81, 0xff];
    frame.extend((length as u64).to_be_bytes());
    frame.extend([0; 4]);
    frame.resize(frame.len() + come, b'x');
    frame
}

fn others_are_served(agent: &Agent, good: &mut Program) {
    thread::scope(|scope| {
        let call = scope.spawn(|| agent.call("find", &json!({})));
        good.serve("still here");
        assert_eq!(text(&call.join().unwrap()), "still here");
    });
}

fn rows(gate: &Gate, what: &str) -> usize {
    session_rows(&gate.home).iter().filter(|(found, _)| found == what).count()
}

#[test]
fn frames_that_are_never_finished() {
    let gate = Gate::start("");
    let mut good = Program::register(&gate, &Card::new("good", "find"));
    let agent = open(&gate);
    let half = begun(FRAME, 12 * MIB);
    // The oldest may be closed while the others are still sending: then sending fails.
    let mut sockets = Vec::new();
    for _ in 0..40 {
        let mut socket = dial(&gate);
        drop(socket.write_all(&half));
        sockets.push(socket);
    }
    audited(&gate.home, "unfinished_frames");
    others_are_served(&agent, &mut good);
    eventually("memory is bounded", || (gate.resident_kib() < ENOUGH_KIB).then_some(()));
    // Valid messages are handled all the same.
    let mut large = Program::dial(&gate);
    large.say(&"x".repeat(FRAME));
    assert_eq!(large.hear()["error"]["code"], -32700);
    assert!(rows(&gate, "unfinished_frames") <= 11, "ten a minute, and one for the rest");
}

#[test]
fn the_buffer_of_a_large_frame_is_freed() {
    let gate = Gate::start("");
    let large = "x".repeat(FRAME);
    let mut programs = Vec::new();
    for _ in 0..40 {
        let mut program = Program::dial(&gate);
        program.say(&large);
        assert_eq!(program.hear()["error"]["code"], -32700);
        programs.push(program);
    }
    eventually("memory is given back", || (gate.resident_kib() < ENOUGH_KIB).then_some(()));
}

#[test]
fn sockets_that_never_register() {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let count = usize::try_from((limit / 3).min(10_000)).unwrap();
    let gate = Gate::start("");
    let mut good = Program::register(&gate, &Card::new("good", "find"));
    let agent = open(&gate);
    others_are_served(&agent, &mut good);
    let before = gate.resident_kib();
    let mut silent = Vec::with_capacity(count);
    for number in 0..count {
        silent.push(dial(&gate));
        if number % 500 == 0 {
            others_are_served(&agent, &mut good);
        }
    }
    let late = Program::register(&gate, &Card::new("late", "other"));
    others_are_served(&agent, &mut good);
    // A debug build needs more than a release build; it is a bound, not a figure.
    let grown = gate.resident_kib().saturating_sub(before);
    assert!(grown < 128 * 1024, "{grown} KiB for {count} sockets");
    if count > 4_096 / 2 {
        audited(&gate.home, "too_many_sockets");
        let mut last = Vec::new();
        silent[0].read_to_end(&mut last).unwrap();
        assert_eq!(last[2..4], 4002_u16.to_be_bytes(), "the oldest has made room");
    }
    assert!(rows(&gate, "too_many_sockets") <= 11, "ten a minute, and one for the rest");
    drop((silent, late));
}

/// Sessions that have left are kept for their grace, so that a program which registers under ever
/// new uids and leaves must not fill the memory with them.
#[test]
fn programs_that_register_and_leave_in_a_loop_are_refused() {
    const UIDS: [&str; 24] = [
        "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r",
        "s", "t", "u", "v", "w", "x",
    ];
    let gate = Gate::start("sessions: { reconnection_grace_secs: 3600, cache: false }");
    let mut back = Program::register(&gate, &Card::new("good", "find"));
    drop(back);
    let fat = |uid: &'static str| {
        let tool = |index: usize| {
            let description = format!("{uid}{index}{}", "x".repeat(MIB / 3 - 1024));
            json!({"name": format!("t{index}"), "description": description, "input_schema": {"type": "object"}})
        };
        Card::new(uid, "").with((0..9).map(tool).collect())
    };
    let register = |card: &Card| {
        let mut program = Program::dial(&gate);
        let answer = program.ask("session.register", &card.params());
        answer["error"].is_object().then_some(answer)
    };
    let refused = UIDS.into_iter().find_map(|uid| register(&fat(uid)));
    // The end of the last sockets may be noticed a little later.
    let refused = refused.unwrap_or_else(|| {
        let mut next = 0;
        eventually("sessions that have left are bounded", || {
            next += 1;
            register(&Card::new(format!("thin-{next}").leak(), "find"))
        })
    });
    assert_eq!(refused["error"]["code"], -32011, "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("have left"), "{refused}");
    audited(&gate.home, "too_many_away");
    // One that was there before comes back.
    back = Program::register(&gate, &Card::new("good", "find"));
    others_are_served(&open(&gate), &mut back);
}
