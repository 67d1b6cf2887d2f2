//! Programs that register in a loop: the audit stays small and complete, memory is bounded, and
//! neighbours are served.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::{Value, json};

use super::{open, text};
use crate::agent::Agent;
use crate::gate::{Gate, Home};
use crate::program::{Card, Program};

/// Programs that register at the same time.
const PROGRAMS: usize = 4;

/// Says that a program is done, also when it panics.
struct Done<'a>(&'a AtomicUsize);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Calls the neighbour until every program is done; at least once.
fn neighbour_is_served(agent: &Agent, neighbour: &mut Program, running: &AtomicUsize) {
    loop {
        thread::scope(|scope| {
            let call = scope.spawn(|| agent.call("find", &json!({"session_id": "neighbour"})));
            neighbour.serve("still here");
            assert_eq!(text(&call.join().unwrap()), "still here");
        });
        if running.load(Ordering::Relaxed) == 0 {
            return;
        }
    }
}

/// Runs the programs at the same time, and the neighbour beside them.
fn beside_a_neighbour(gate: &Gate, program: impl Fn(usize) + Sync) {
    let mut neighbour = Program::register(gate, &Card::new("neighbour", "find"));
    let agent = open(gate);
    let running = AtomicUsize::new(PROGRAMS);
    thread::scope(|scope| {
        for number in 0..PROGRAMS {
            let (program, running) = (&program, &running);
            scope.spawn(move || {
                let _done = Done(running);
                program(number);
            });
        }
        neighbour_is_served(&agent, &mut neighbour, &running);
    });
}

fn rows_of(home: &Home, uid: &str) -> Vec<Value> {
    let data = ".local/share/toolgate";
    let (mut rows, mut after) = (Vec::new(), 0);
    loop {
        let from = after.to_string();
        let verb = ["audit", "list", "-o", "jsonl", "--data", data, "--limit", "1000", "--after"];
        let output = home.run(&[&verb[..], &[&from]].concat());
        let page = String::from_utf8(output.stdout).unwrap();
        let page: Vec<Value> =
            page.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let Some(last) = page.last() else { break };
        after = last["seq"].as_u64().unwrap();
        rows.extend(page);
    }
    rows.retain(|row| row["kind"] == "session" && row["session_id"] == uid);
    rows
}

/// How many events of this kind the rows stand for.
fn events(rows: &[Value], what: &str) -> u64 {
    let of_kind = rows.iter().filter(|row| row["message"].as_str().unwrap().starts_with(what));
    of_kind.map(|row| row["count"].as_u64().unwrap_or(1)).sum()
}

#[test]
fn a_storm_of_takeovers_is_a_few_rows_that_carry_the_number() {
    const REGISTERS: usize = 60;
    let gate = Gate::start("");
    beside_a_neighbour(&gate, |_| {
        // No socket is closed by its program, so every register but the first takes over.
        let sockets = (0..REGISTERS).map(|_| Program::register(&gate, &Card::new("fought", "x")));
        drop(sockets.collect::<Vec<_>>());
    });
    let home = gate.into_home();
    let rows = rows_of(&home, "fought");
    let registers = u64::try_from(PROGRAMS * REGISTERS).unwrap();
    let begun = events(&rows, "registered") + events(&rows, "reconnected");
    assert_eq!(begun, registers, "{rows:?}");
    let ended = events(&rows, "lost");
    assert!(events(&rows, "taken_over") + ended >= registers - 1, "{rows:?}");
    assert!(rows.len() < 60, "{} rows for {registers} registers", rows.len());
}

#[test]
fn programs_with_large_lists_do_not_fill_the_memory() {
    const REGISTERS: usize = 20;
    /// The lists are 600 MB together, and there are several copies of each. With limits the peak was
    /// 472,684 KiB; without limits 12 registers of each program took 1,002,660 KiB.
    const ENOUGH_KIB: usize = 1024 * 1024;
    // On a busy machine 8 MB take longer than a program may be silent.
    let patient = "ws_ping_timeout_ms: 600000, register_within_secs: 600";
    let gate = Gate::start(&format!("sessions: {{ {patient} }}"));
    beside_a_neighbour(&gate, |number| {
        for turn in 0..REGISTERS {
            let name: &'static str = format!("fat-{number}-{turn}").leak();
            let tool = |index: usize| {
                let description = "x".repeat(50_000);
                json!({
                    "name": format!("{name}-{index}"), "description": description,
                    "input_schema": {"type": "object"},
                })
            };
            let card = Card::new(name, "").of(name, "trade").with((0..150).map(tool).collect());
            let mut program = Program::dial(&gate);
            let answer = program.ask("session.register", &card.params());
            // Once the lists that are held take all the room, more are rejected.
            let rejected = answer["error"]["code"] == -32011;
            assert!(rejected || answer["result"]["session_id"] == name, "{answer}");
            program.notify("session.bye", &json!({}));
        }
    });
    let peak = gate.peak_kib();
    assert!(peak < ENOUGH_KIB, "{peak} KiB");
}
