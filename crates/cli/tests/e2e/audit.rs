//! The audit as people read it, while the gateway runs and after it stopped.

use std::fs;

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::gate::{Gate, Home, eventually};
use crate::peer::{Peer, gate_with_peer};

const DATA: &str = ".local/share/toolgate";
const POLICY: &str = "version: '1'\ndefault: deny\ntools:\n  echo: { action: allow, limits: \
                      [{ counter: c, max: 9, window: 30d, scope: grant }] }\n";

fn run(home: &Home, words: &[&str]) -> (Option<i32>, String, String) {
    let output = home.run(&[&["audit"], words].concat());
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn rows(home: &Home) -> Vec<Value> {
    let (code, out, err) = run(home, &["list", "-o", "jsonl"]);
    assert_eq!(code, Some(0), "{err}");
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A gateway that was asked for `echo`, which passed, and for `pid`, which did not.
fn used() -> Gate {
    let home = Home::new();
    let peer = Peer::new(&home, "files");
    let file = home.path("policy.yaml");
    fs::write(&file, POLICY).unwrap();
    let gate = Gate::start_as(home, &format!("servers:\n{}", peer.entry("", "")), |command| {
        command.arg("--policy").arg(file);
    });
    let agent = Agent::open(&gate, "files");
    agent.call("echo", &json!({}));
    eventually("the outcome is written", || {
        rows(&gate.home).iter().any(|row| row["kind"] == "outcome").then_some(())
    });
    agent.call("pid", &json!({}));
    gate
}

#[test]
fn it_is_read_while_the_gateway_runs_and_after() {
    let mut gate = used();
    for stopped in [false, true] {
        if stopped {
            assert_eq!(gate.stop().0, Some(0));
        }
        let all = rows(&gate.home);
        let count = all.len();
        let verified = run(&gate.home, &["verify", "-o", "json"]);
        let expected = json!({"ok": true, "rows": count, "first_bad": null});
        let found: Value = serde_json::from_str(&verified.1).unwrap();
        assert_eq!((verified.0, found), (Some(0), expected));
        let denied =
            run(&gate.home, &["list", "-o", "json", "--tool", "pid", "--decision", "deny"]);
        let denied: Value = serde_json::from_str(&denied.1).unwrap();
        assert_eq!(denied["items"].as_array().unwrap().len(), 1, "{denied}");
        assert_eq!(
            (&denied["items"][0]["kind"], &denied["next"]),
            (&json!("denied"), &json!(null))
        );
        let first = run(&gate.home, &["list", "-o", "json", "--limit", "1"]);
        let first: Value = serde_json::from_str(&first.1).unwrap();
        assert_eq!((&first["items"], &first["next"]), (&json!([all[0]]), &json!(1)));
        let (code, table, _) = run(&gate.home, &["tail"]);
        assert_eq!((code, table.lines().count()), (Some(0), count + 1), "{table}");
        assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");

        let intent = all.iter().find(|row| row["kind"] == "intent").unwrap();
        let call = intent["call_id"].as_str().unwrap();
        let (code, story, _) = run(&gate.home, &["show", call]);
        assert_eq!(code, Some(0));
        for words in ["Grant local asked by ", "echo of server files", "from 0 to 1", "ended: ok"] {
            assert!(story.contains(words), "{words}: {story}");
        }
    }
    let (code, _, err) = run(&gate.home, &["show", "ffff"]);
    assert!(code == Some(1) && err.contains("audit list"), "{err}");
}

#[test]
fn an_edit_is_found_and_named() {
    let mut gate = used();
    assert_eq!(gate.stop().0, Some(0));
    let file = gate.home.path(DATA).join("toolgate.db");
    let edit = rusqlite::Connection::open(&file).unwrap();
    edit.execute("UPDATE audit SET tool = 'other' WHERE seq = 2", []).unwrap();
    drop(edit);
    let (code, out, err) = run(&gate.home, &["verify", "-o", "json"]);
    let found: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, found), (Some(1), json!({"ok": false, "rows": 2, "first_bad": 2})));
    assert!(err.contains("broken at row 2: its hash"), "{err}");
    fs::write(&file, "this is no database, whatever its name says").unwrap();
    let (code, _, err) = run(&gate.home, &["verify"]);
    assert!(code == Some(2) && err.contains("cannot be read"), "{err}");
}

#[test]
fn checkpoints_elsewhere_show_what_was_cut_off() {
    let config = "audit: { checkpoints: { rows: 1, file: elsewhere.jsonl } }";
    let (mut gate, _peer) = gate_with_peer(config, "", "");
    Agent::open(&gate, "peer").call("echo", &json!({}));
    assert_eq!(gate.stop().0, Some(0));
    let home = gate.into_home();
    let written = fs::read_to_string(home.path("elsewhere.jsonl")).unwrap();
    assert!(written.lines().count() >= 1, "{written}");
    let verify = |words: &[&str]| run(&home, &[&["verify"], words].concat());
    let elsewhere = ["--checkpoints", "elsewhere.jsonl"];
    assert_eq!(verify(&elsewhere).0, Some(0));

    // Whoever has the folder cuts off the end, and what was signed of it.
    let database = rusqlite::Connection::open(home.path(DATA).join("toolgate.db")).unwrap();
    let last: i64 = database.query_row("SELECT max(seq) FROM audit", [], |row| row.get(0)).unwrap();
    database.execute("DELETE FROM audit WHERE seq = ?1", [last]).unwrap();
    database.execute("DELETE FROM checkpoint WHERE seq >= ?1", [last]).unwrap();
    drop(database);
    assert_eq!(verify(&[]).0, Some(0), "the folder alone cannot tell");
    let (code, _, said) = verify(&elsewhere);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains(&format!("row {last}")), "{said}");
    fs::write(home.path("elsewhere.jsonl"), "{}\n").unwrap();
    assert_eq!(verify(&elsewhere).0, Some(2));
}

#[test]
fn a_folder_without_an_audit() {
    for verb in [&["verify"][..], &["list"], &["tail"], &["show", "ab"]] {
        let home = Home::new();
        let (code, out, err) = run(&home, verb);
        assert_eq!((code, out.as_str()), (Some(2), ""));
        assert!(err.contains("there is no audit in") && err.contains("--data"), "{err}");
        assert!(!home.path(DATA).exists());
    }
}
