//! The showcase in the store: whole after a kill, and bounded.

use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::{audited, code, open, session_rows, text, tools};
use crate::agent::Agent;
use crate::gate::{Gate, Home, eventually};
use crate::program::{Card, Program};

/// A tools cache of an existing installation with one tool `old` for each configuration.
fn cache(config_ids: impl Iterator<Item = String>) -> String {
    let now = jiff::Timestamp::now().to_string();
    let tool = json!({"name": "old", "input_schema": {"type": "object"}});
    let entries: Vec<Value> = config_ids
        .map(|id| json!({"kind": "client", "config_id": id, "tools": [tool], "last_seen_at": now}))
        .collect();
    json!({"version": 1, "entries": entries}).to_string()
}

fn import(home: &Home, cache: &str) -> String {
    fs::write(home.path("tools_cache.json"), cache).unwrap();
    let output = home.run(&["import", "tools_cache.json", "--write"]);
    let printed = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{printed}");
    printed
}

fn of_sessions(agent: &Agent) -> Vec<String> {
    let names = tools(agent).into_iter().map(|tool| tool["name"].as_str().unwrap().to_owned());
    names.filter(|name| ["old", "new"].contains(&name.as_str())).collect()
}

/// Times the showcase was written.
fn written(home: &Home) -> usize {
    session_rows(home).iter().filter(|(what, _)| what == "showcase").count()
}

/// A program takes the place of an imported entry: one goes, another comes. The process is killed
/// before each commit in turn, until one that it survives for long enough.
#[test]
fn a_kill_at_any_commit_leaves_it_as_it_was_or_as_it_became() {
    let mut seen = Vec::new();
    for count in 1.. {
        let home = Home::new();
        import(&home, &cache(["client".to_owned()].into_iter()));
        home.configure(&format!("version: 1\n{}\n", crate::gate::LISTEN));
        let mut command = home.command(&["serve", "--ready-json"]);
        command.env("TOOLGATE_FAILPOINT", format!("before-commit:{count}"));
        // It may be killed before it is ready.
        let Ok(mut gate) = Gate::run(home, command) else { continue };
        if let Ok(mut program) = Program::dial_at(&gate, "") {
            let params = Card::new("u1", "new").params();
            let request =
                json!({"jsonrpc": "2.0", "id": 1, "method": "session.register", "params": params});
            if program.send(Message::text(request.to_string())).is_ok() {
                eventually("it is written, or the process is killed", || {
                    (written(&gate.home) > 1 || gate.is_gone()).then_some(())
                });
            }
        }
        if !gate.is_gone() {
            gate.signal(Signal::KILL);
        }
        gate.wait();
        let gate = Gate::start_in(gate.into_home(), "");
        let now = of_sessions(&open(&gate));
        assert!(now == ["old"] || now == ["new"], "killed at commit {count}: {now:?}");
        seen.extend(now);
        if seen.last().is_some_and(|name| name == "new") {
            break;
        }
    }
    assert!(seen.contains(&"old".to_owned()), "it was never killed early enough");
}

#[test]
fn entries_beyond_the_limit_are_reported_and_evict_nothing() {
    const ROOM: usize = 4096;
    let home = Home::new();
    let printed = import(&home, &cache((0..=ROOM).map(|number| format!("c{number}"))));
    assert!(printed.contains("1 entries were left out: the showcase is full"), "{printed}");
    let gate = Gate::start_in(home, "");
    let mut program = Program::register(&gate, &Card::new("u1", "new"));
    audited(&gate.home, "showcase_full");
    gate.log.line_with(&["the tools of client/client are not kept", "4096 entries"]);
    // It is served as any other.
    let agent = open(&gate);
    assert_eq!(of_sessions(&agent), ["new", "old"]);
    std::thread::scope(|scope| {
        let call = scope.spawn(|| agent.call("new", &json!({})));
        program.serve("here");
        assert_eq!(text(&call.join().unwrap()), "here");
    });
    program.ask("session.bye", &json!({}));
    assert_eq!(of_sessions(&agent), ["old"]);
    assert_eq!(code(&agent.call("new", &json!({}))), "unknown_tool");
    // There is room again.
    let reset = agent.call("tools_cache_reset", &json!({"config_id": "c7"}));
    assert_eq!(reset["structuredContent"]["removed"], 1);
    let mut program = Program::register(&gate, &Card::new("u1", "new"));
    program.ask("session.bye", &json!({}));
    assert_eq!(of_sessions(&agent), ["new", "old"]);
}
