//! `toolgate doctor`, and a clock that was far ahead.

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::api::Api;
use crate::gate::{Gate, Home, eventually};
use crate::peer::gate_with_peer;

const DATA: &str = ".local/share/toolgate";

fn doctor(home: &Home, words: &[&str]) -> (Option<i32>, Value) {
    let words: Vec<&str> = ["doctor", "-o", "json"].iter().chain(words).copied().collect();
    let output = home.run(&words);
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    let found = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{printed}"));
    (output.status.code(), found)
}

fn check<'v>(found: &'v Value, id: &str) -> &'v Value {
    let checks = found["checks"].as_array().unwrap();
    checks.iter().find(|check| check["id"] == id).unwrap_or_else(|| panic!("no {id}: {found}"))
}

/// As after a jump of the clock that was undone: the high-water mark is a year ahead.
fn jump(home: &Home) {
    let sql = rusqlite::Connection::open(home.path(DATA).join("toolgate.db")).unwrap();
    let year = 365 * 86_400 * 1_000_000_i64;
    sql.execute("UPDATE state SET mark = mark + ?1", [year]).unwrap();
}

fn accepted(home: &Home) -> usize {
    let output = home.run(&["audit", "list", "--after", "0", "--limit", "1000", "-o", "jsonl"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let rows = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    rows.filter(|row| {
        let message = row["message"].as_str().unwrap_or_default();
        row["kind"] == "admin"
            && row["person"] == "admin"
            && message.starts_with("accepted the clock")
    })
    .count()
}

#[test]
fn a_clock_that_was_ahead_is_found_and_accepted_offline() {
    let mut gate = Gate::start("");
    let (code, found) = doctor(&gate.home, &[]);
    assert_eq!((code, &found["ok"]), (Some(0), &json!(true)), "{found}");
    for id in ["configuration", "data_folder", "clock", "audit_chain", "gateway"] {
        assert_eq!(check(&found, id)["status"], "ok", "{found}");
    }
    assert_eq!(gate.stop().0, Some(0));
    let home = gate.into_home();
    jump(&home);
    let (code, found) = doctor(&home, &[]);
    assert_eq!((code, &found["ok"]), (Some(1), &json!(false)), "{found}");
    let clock = check(&found, "clock");
    assert_eq!(clock["status"], "fail");
    assert!(clock["fix"].as_str().unwrap().contains("--accept-clock"), "{clock}");
    assert_eq!(accepted(&home), 0, "looking changes nothing");
    let (code, found) = doctor(&home, &["--accept-clock"]);
    assert_eq!((code, check(&found, "clock")["status"].as_str()), (Some(0), Some("ok")), "{found}");
    assert_eq!(accepted(&home), 1);
    assert_eq!(home.run(&["audit", "verify"]).status.code(), Some(0));
}

#[test]
fn a_running_gateway_continues_when_the_clock_is_accepted() {
    let policy = "policies:\n  slow: { version: '1', default: deny, tools: { echo: { action: allow, limits: [\
                  { counter: often, max: 1, window: 1s, scope: grant },\
                  { counter: long, max: 3, window: 30d, scope: grant }] } } }\n\
                  grants: [{ label: g, token: env:G, policy: slow }]";
    let home = Home::new();
    let peer = crate::peer::Peer::new(&home, "peer");
    let config = format!("{policy}\nservers:\n{}", peer.entry("", ""));
    let token = "a-token-of-a-grant-0123456";
    let start = |home| {
        Gate::start_as(home, &config, |command| {
            command.env("G", token);
        })
    };
    let mut gate = start(home);
    assert_eq!(gate.stop().0, Some(0));
    jump(&gate.home);
    let gate = start(gate.into_home());
    let agent = Agent::open_with(&gate, "peer", token);
    let verdict = || {
        let result = agent.call("echo", &json!({}));
        result["_meta"]["error_code"].as_str().unwrap_or("sent").to_owned()
    };
    assert_eq!(verdict(), "sent");
    assert_eq!(verdict(), "rate_limited");
    let (code, found) = doctor(&gate.home, &["--accept-clock"]);
    assert_eq!(code, Some(0), "{found}");
    assert_eq!(check(&found, "clock")["status"], "ok");
    // Time moves again, so the window of a second ends; the count of the day stays.
    eventually("the window ends", || (verdict() == "sent").then_some(()));
    eventually("the window ends", || (verdict() == "sent").then_some(()));
    let sent =
        || peer.received().iter().filter(|message| message["method"] == "tools/call").count();
    assert_eq!(sent(), 3);
    eventually("the longer window is full", || {
        let result = agent.call("echo", &json!({}));
        (result["_meta"]["rule"] == "/tools/echo/limits/long").then_some(())
    });
    assert_eq!(sent(), 3, "what was counted before stays counted");
    assert_eq!(accepted(&gate.home), 1);
    Api::admin(&gate).expect(200, "POST", "clock/accept", "{}");
    assert_eq!(verdict(), "rate_limited", "nothing is refilled");
}

#[test]
fn damage_is_reported_with_a_fix() {
    let (mut gate, _peer) = gate_with_peer("", "", "");
    Agent::open(&gate, "peer").call("echo", &json!({}));
    assert_eq!(gate.stop().0, Some(0));
    let sql = rusqlite::Connection::open(gate.home.path(DATA).join("toolgate.db")).unwrap();
    sql.execute("UPDATE audit SET tool = 'other' WHERE tool IS NOT NULL", []).unwrap();
    drop(sql);
    gate.home.configure("version: 1\nlisen: {}\n");
    let (code, found) = doctor(&gate.home, &[]);
    assert_eq!(code, Some(1));
    assert_eq!(check(&found, "audit_chain")["status"], "fail", "{found}");
    assert_eq!(check(&found, "configuration")["status"], "fail", "{found}");
    let table = gate.home.run(&["doctor"]);
    assert!(String::from_utf8(table.stdout).unwrap().contains("fail  audit_chain"));
}
