//! What an operator sees and does from the command line: state, freezes, grants, the audit.

use std::fs;
use std::process::Output;

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::api::Api;
use crate::gate::{Gate, Home, eventually};
use crate::peer::Peer;

const TOKEN: &str = "a-token-of-the-desk-0123456789";

/// A gateway with one server and the grant `desk` of the file, which may echo twice a day.
fn gate() -> Gate {
    let home = Home::new();
    let peer = Peer::new(&home, "files");
    let config = format!(
        "servers:\n{}policies:\n  two: {{ version: '1', default: deny, tools: {{ echo: {{ rate_limit: 2/day }} }} }}\n\
         grants:\n  - {{ label: desk, token: 'env:DESK_TOKEN', policy: two }}\n",
        peer.entry("listing", "")
    );
    Gate::start_as(home, &config, |command| {
        command.env("DESK_TOKEN", TOKEN);
    })
}

fn text(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Stdout and stderr of a verb that must succeed.
#[track_caller]
fn ok(gate: &Gate, words: &[&str]) -> (String, String) {
    let (code, out, err) = text(&gate.home.run(words));
    assert_eq!(code, Some(0), "{words:?}: {err}");
    (out, err)
}

#[track_caller]
fn rows(gate: &Gate, words: &[&str]) -> Vec<Value> {
    let words = [&["audit", "list", "-o", "jsonl"], words].concat();
    let (out, _) = ok(gate, &words);
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn code_of(agent: &Agent) -> String {
    let result = agent.call("echo", &json!({}));
    result["_meta"]["error_code"].as_str().unwrap_or("sent").to_owned()
}

#[test]
fn freezes_name_the_person_and_the_reason_and_are_marked_in_lists() {
    let gate = gate();
    let (out, err) =
        ok(&gate, &["freeze", "-o", "json", "--grant", "desk", "--reason", "it misbehaves"]);
    let id = serde_json::from_str::<Value>(&out).unwrap()["id"].as_str().unwrap().to_owned();
    assert_eq!(err, "");
    let (_, err) = ok(&gate, &["freeze", "--grant", "file:desk"]);
    assert!(err.contains("grant `file:desk` was frozen already") && err.contains(&id), "{err}");
    ok(&gate, &["freeze", "--server", "files"]);

    let (list, _) = ok(&gate, &["freeze", "list"]);
    assert_eq!(list.lines().count(), 3, "{list}");
    let line = list.lines().find(|line| line.contains("grant `desk`")).unwrap();
    assert!(line.contains("admin") && line.contains("it misbehaves"), "{list}");
    let (grants, _) = ok(&gate, &["grant", "list"]);
    assert!(grants.lines().nth(1).unwrap().contains("frozen"), "{grants}");
    let (servers, _) = ok(&gate, &["server", "list"]);
    assert!(servers.contains("frozen"), "{servers}");
    let (json, _) = ok(&gate, &["server", "list", "-o", "json"]);
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["items"][0]["frozen"], true);

    let (out, err) = ok(&gate, &["unfreeze", "--grant", "file:desk"]);
    assert_eq!((out.as_str(), err.as_str()), ("", "ended the freeze of grant `desk`\n"));
    let (_, err) = ok(&gate, &["unfreeze", "--server", "files"]);
    assert_eq!(err, "ended the freeze of server `files`\n");
    assert_eq!(ok(&gate, &["freeze", "list"]).1, "nothing is frozen\n");
}

#[test]
fn grants_are_changed_restored_and_ready_to_paste() {
    let gate = gate();
    let create = ["grant", "create", "laptop", "--policy", "two", "--session", "kind=server"];
    let (out, err) = ok(&gate, &create);
    let token = out.lines().find_map(|line| line.strip_prefix("token")).unwrap().trim().to_owned();
    let url = format!("http://{}/mcp", gate.mcp());
    let line = format!(
        "claude mcp add --transport http toolgate {url} --header \"Authorization: Bearer {token}\""
    );
    assert!(err.contains(&line) && err.contains("Cursor:") && err.contains("VS Code:"), "{err}");

    let (out, _) = ok(
        &gate,
        &["grant", "update", "laptop", "--server", "files", "--all-sessions", "-o", "json"],
    );
    let item: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&item["servers"], &item["sessions"]), (&json!(["files"]), &Value::Null), "{item}");
    let (code, _, err) = text(&gate.home.run(&["grant", "update", "laptp", "--no-policy"]));
    assert!(code == Some(2) && err.contains("did you mean `laptop`?"), "{err}");
    let (code, _, err) = text(&gate.home.run(&["grant", "update", "laptop", "--policy", "tow"]));
    assert!(code == Some(2) && err.contains("did you mean `two`?"), "{err}");
    let (code, _, err) = text(&gate.home.run(&["grant", "update", "laptop"]));
    assert!(code == Some(64) && err.contains("--policy"), "{err}");
    let (code, _, err) = text(&gate.home.run(&["grant", "create", "x", "--session", "base=x"]));
    assert!(code == Some(64) && err.contains("KEY=GLOB"), "{err}");

    let agent = Agent::open_with(&gate, "files", TOKEN);
    assert_eq!(code_of(&agent), "sent");
    let (_, err) = ok(&gate, &["grant", "revoke", "desk"]);
    assert!(err.contains("revoked the grant `desk`"), "{err}");
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    assert_eq!(agent.send(ping).status, 401);
    ok(&gate, &["grant", "restore", "desk"]);
    let agent = Agent::open_with(&gate, "files", TOKEN);
    assert_eq!(code_of(&agent), "sent");
    assert_eq!(code_of(&agent), "rate_limited", "counters are kept");
    let (code, _, err) = text(&gate.home.run(&["grant", "restore", "laptop"]));
    assert!(code == Some(2) && err.contains("create another grant"), "{err}");
}

#[test]
fn an_admin_calls_with_the_rights_of_a_grant() {
    let gate = gate();
    let (list, _) = ok(&gate, &["tool", "list", "--as", "desk"]);
    assert!(list.contains("files__echo"), "{list}");
    let call = ["tool", "call", "--as", "desk", "files__echo"];
    ok(&gate, &call);
    ok(&gate, &call);
    let (code, out, _) = text(&gate.home.run(&call));
    assert_eq!(code, Some(1));
    assert!(out.starts_with("[POLICY DENIED]"), "{out}");
    // The agent of the grant finds the same counter spent.
    assert_eq!(code_of(&Agent::open_with(&gate, "files", TOKEN)), "rate_limited");
    let intents = rows(&gate, &["--kind", "intent"]);
    assert_eq!(intents.len(), 2);
    for row in &intents {
        assert_eq!([&row["grant"], &row["person"], &row["via"]], ["desk", "admin", "cli"], "{row}");
    }
    eventually("the ends name the person too", || {
        let ends = rows(&gate, &["--kind", "outcome", "--person", "admin"]);
        (ends.len() == 2).then_some(())
    });
    let admin = rows(&gate, &["--kind", "admin", "--person", "admin"]);
    assert!(admin[0]["message"].as_str().unwrap().contains("rights of the grant `desk`"));

    let (code, _, err) = text(&gate.home.run(&["tool", "call", "--as", "desk", "files__ech"]));
    assert_eq!(code, Some(1), "{err}");
    let (code, _, err) = text(&gate.home.run(&["tool", "list", "--as", "dsk"]));
    assert!(code == Some(2) && err.contains("did you mean `desk`?"), "{err}");
    ok(&gate, &["freeze", "--grant", "desk"]);
    let (code, out, _) = text(&gate.home.run(&call));
    assert!(code == Some(1) && out.starts_with("[FROZEN]"), "{out}");
    ok(&gate, &["grant", "revoke", "desk"]);
    let (code, _, err) = text(&gate.home.run(&call));
    assert!(code == Some(2) && err.contains("was revoked"), "{err}");
}

#[test]
fn a_delegated_token_is_for_its_grant_and_not_for_people() {
    let gate = gate();
    let api = Api::admin(&gate);
    let made = api.expect(201, "POST", "grants/desk/delegate", "");
    let token = made["token"].as_str().unwrap();
    assert_eq!(Api::with(&gate, token).ask("GET", "status", "").status, 401);
    let person = Agent::open_with(&gate, "files", token);
    assert_eq!(code_of(&person), "sent");
    // The session of the person is not the agent's, although the grant is the same.
    let agent = Agent::open_with(&gate, "files", TOKEN);
    assert_eq!(code_of(&agent), "sent");
    let rows = rows(&gate, &["--kind", "intent", "--after", "0"]);
    let people: Vec<&Value> = rows.iter().map(|row| &row["person"]).collect();
    assert_eq!(people[0], "admin");
    assert!(people[1].is_null(), "{people:?}");
    ok(&gate, &["grant", "revoke", "desk"]);
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    assert_eq!(person.send(ping).status, 401, "it ends with its grant");
}

#[test]
fn the_audit_is_read_newest_first_filtered_and_exported() {
    let gate = gate();
    let agent = Agent::open_with(&gate, "files", TOKEN);
    for _ in 0..3 {
        code_of(&agent);
    }
    agent.call("pid", &json!({}));
    let all = eventually("every outcome and every denial is recorded", || {
        let all = rows(&gate, &[]);
        let of_kind = |kind: &str| all.iter().filter(|row| row["kind"] == kind).count();
        (of_kind("outcome") == 2 && of_kind("denied") == 2).then_some(all)
    });
    let seqs: Vec<u64> = all.iter().map(|row| row["seq"].as_u64().unwrap()).collect();
    assert!(seqs.is_sorted_by(|a, b| a > b), "newest first: {seqs:?}");
    let ascending = rows(&gate, &["--after", "0"]);
    assert!(ascending.iter().rev().eq(all.iter()), "--after is ascending");

    assert_eq!(rows(&gate, &["--code", "rate_limited"]).len(), 1);
    assert_eq!(rows(&gate, &["--kind", "denied", "--grant", "desk", "--server", "files"]).len(), 2);
    assert_eq!(rows(&gate, &["--until", "2020-01-01"]).len(), 0);
    assert_eq!(rows(&gate, &["--since", "1h"]).len(), all.len());
    let (table, err) = ok(&gate, &["audit", "list", "--limit", "1"]);
    let more = all.len() - 1;
    assert_eq!(table.lines().count(), 2);
    assert!(err.starts_with(&format!("{more} more rows; continue with `--before ")), "{err}");
    let (table, err) = ok(&gate, &["audit", "list", "--code", "rate_limited"]);
    assert_eq!(err, "");
    let call = table.lines().nth(1).unwrap().split_whitespace().nth(4).unwrap();
    assert!(table.contains("desk") && table.contains("/tools/echo/rate_limit"), "{table}");
    let (shown, _) = ok(&gate, &["audit", "show", call]);
    assert!(shown.contains("rate_limited"), "{shown}");

    let mut narrow = gate.home.command(&["audit", "list"]);
    let (_, table, _) = text(&narrow.env("COLUMNS", "120").output().unwrap());
    assert!(table.lines().all(|line| line.chars().count() <= 120), "{table}");

    let file = gate.home.path("export.csv");
    let path = file.to_str().unwrap();
    let (out, err) = ok(&gate, &["audit", "export", "-o", "csv", "--excel", "--write", path]);
    assert_eq!((out.as_str(), err.contains("rows to")), ("", true), "{err}");
    let csv = fs::read_to_string(&file).unwrap();
    assert!(csv.starts_with("\u{feff}seq,time,kind,call_id,"), "{csv}");
    assert_eq!(csv.matches("\r\n").count(), all.len() + 1);
    let (lines, _) = ok(&gate, &["audit", "export", "--kind", "denied"]);
    assert_eq!(lines.lines().count(), 2);
    let (code, _, err) = text(&gate.home.run(&["audit", "export", "--excel"]));
    assert!(code == Some(64) && err.contains("-o csv"), "{err}");
}

#[test]
fn status_shows_the_state_and_what_needs_attention() {
    let gate = gate();
    let (screen, _) = ok(&gate, &["status"]);
    for part in [
        "mode        grants",
        "listeners   mcp",
        "files",
        "two  ",
        "freezes     none",
        "attention   nothing",
    ] {
        assert!(screen.contains(part), "{part}:\n{screen}");
    }
    ok(&gate, &["grant", "create", "idle"]);
    ok(&gate, &["freeze", "--all", "--reason", "maintenance"]);
    let (screen, _) = ok(&gate, &["status"]);
    assert!(screen.contains("everything is frozen; `toolgate unfreeze f-"), "{screen}");
    assert!(screen.contains("by admin: maintenance"), "{screen}");
    assert!(screen.contains("grant `idle` has no policy"), "{screen}");
    let (json, _) = ok(&gate, &["status", "-o", "json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["attention"].as_array().unwrap().len(), 2, "{json}");
    assert_eq!(json["freezes"][0]["reason"], "maintenance");
    let (code, _, err) = text(&Home::new().run(&["status"]));
    assert!(code == Some(2) && err.contains("toolgate serve"), "{err}");
}

#[test]
fn servers_are_confirmed_and_their_test_is_one_sentence() {
    let gate = gate();
    let (out, err) = ok(&gate, &["server", "add", "dead", "--url", "http://127.0.0.1:1/mcp"]);
    assert_eq!(out, "");
    assert!(err.starts_with("added the server `dead`; `toolgate server test dead`"), "{err}");
    let (_, err) = ok(&gate, &["server", "add", "absent", "--", "no-such-program"]);
    let warned = "warning[TG1020]: the program `no-such-program` is not found; install it";
    assert!(err.starts_with(warned) && err.contains("added the server `absent`"), "{err}");
    let (code, out, err) = text(&gate.home.run(&["server", "test", "dead"]));
    assert_eq!((code, err.as_str()), (Some(1), "connecting to server `dead` ...\n"));
    assert!(out.starts_with("server `dead` failed after "), "{out}");
    let (out, _) = ok(&gate, &["server", "test", "files"]);
    assert!(out.contains("with 2 tools\n  echo\n  pid\n"), "{out}");
    let (code, _, err) = text(&gate.home.run(&["server", "test", "file"]));
    assert!(code == Some(2) && err.contains("did you mean `files`?"), "{err}");
    assert_eq!(ok(&gate, &["server", "remove", "dead"]).1, "removed the server `dead`\n");
}
