//! `toolgate tool`: what an agent sees and gets, from the command line.

use std::fs;

use serde_json::{Value, json};

use crate::gate::{Gate, Home};
use crate::golden;
use crate::peer::Peer;

const TOKEN: &str = "a-token-of-the-desk-0123456789";

fn gate(config: &str) -> Gate {
    let home = Home::new();
    let peer = Peer::new(&home, "files");
    let entry = peer.entry("listing", "");
    Gate::start_as(home, &format!("servers:\n{entry}{config}"), |command| {
        command.env("DESK_TOKEN", TOKEN);
    })
}

/// Exit code, stdout and stderr.
fn tool(gate: &Gate, words: &[&str]) -> (Option<i32>, String, String) {
    tool_as(gate, None, words)
}

fn tool_as(gate: &Gate, token: Option<&str>, words: &[&str]) -> (Option<i32>, String, String) {
    let mut command = gate.home.command(&[&["tool"], words].concat());
    if let Some(token) = token {
        command.env("TOOLGATE_TOKEN", token);
    }
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn tools_are_listed_for_people_and_for_programs() {
    let gate = gate("");
    let (code, table, err) = tool(&gate, &["list"]);
    assert_eq!(code, Some(0), "{err}");
    golden::check("tool/list.txt", &table);
    let (_, table, _) = tool(&gate, &["list", "--server", "files"]);
    golden::check("tool/list-server.txt", &table);

    let (_, list, _) = tool(&gate, &["list", "-o", "json"]);
    let list: Value = serde_json::from_str(&list).unwrap();
    let names: Vec<_> = list["items"].as_array().unwrap().iter().map(|t| &t["name"]).collect();
    assert!(names.contains(&&json!("files__echo")) && names.contains(&&json!("files__pid")));
    assert_eq!(list["next"], Value::Null);
    let (_, lines, _) = tool(&gate, &["list", "--server", "files", "-o", "jsonl"]);
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[1].contains(r#""x-unknown":1.0"#), "as it came: {}", lines[1]);
}

#[test]
fn one_tool_is_shown_with_its_arguments() {
    let gate = gate("");
    let (code, text, err) = tool(&gate, &["show", "files__echo"]);
    assert_eq!(code, Some(0), "{err}");
    golden::check("tool/show.txt", &text);
    let (_, json, _) = tool(&gate, &["show", "pid", "--server", "files", "-o", "json"]);
    assert_eq!(
        json,
        "{\"name\":\"pid\",\"inputSchema\":{\"type\":\"object\"},\"x-unknown\":1.0}\n"
    );
    for (wanted, printed) in [
        ("echo", "did you mean `files__echo`?"),
        ("files__ecko", "did you mean `files__echo`?"),
        ("zzz", "there is no tool `zzz` among"),
    ] {
        let (code, out, err) = tool(&gate, &["show", wanted]);
        assert_eq!((code, out.as_str()), (Some(2), ""));
        assert!(err.contains(printed), "{err}");
    }
}

#[test]
fn a_call_is_made_as_an_agent_would_make_it() {
    let gate = gate("");
    let (code, out, err) = tool(&gate, &["call", "files__echo", r#"{"text":"Привет","n":1.0}"#]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains(r#""text": "Привет""#), "{out}");
    let words = ["call", "echo", r#"{"n":1.0}"#, "--server", "files", "-o", "json"];
    let (_, out, _) = tool(&gate, &words);
    assert!(out.contains(r#""arguments":{"n":1.0}"#), "{out}");
    let (_, out, _) = tool(&gate, &["call", "mode", "--server", "files"]);
    assert_eq!(out, "listing\n");
    // Its own error comes back as what it is.
    let (code, out, err) = tool(&gate, &["call", "nonsense", "--server", "files"]);
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(err.contains("no such thing (JSON-RPC error -32601)"), "{err}");
    let audit = gate.home.run(&["audit", "list", "--after", "0", "-o", "jsonl"]);
    let rows = String::from_utf8(audit.stdout).unwrap();
    assert!(rows.contains(r#""tool":"mode""#) && rows.contains("toolgate-cli"), "{rows}");
}

#[test]
fn what_policy_denies_is_a_finding() {
    let config = "policies: { only: { file: only.yaml } }\n\
                  grants: [ { label: desk, token: 'env:DESK_TOKEN', policy: only } ]\n";
    let home = Home::new();
    fs::write(home.path("only.yaml"), "version: '1'\ndefault: deny\ntools: { echo: {} }\n")
        .unwrap();
    let peer = Peer::new(&home, "files");
    let config = format!("servers:\n{}{config}", peer.entry("listing", ""));
    let gate = Gate::start_as(home, &config, |command| {
        command.env("DESK_TOKEN", TOKEN);
    });
    let (code, out, err) = tool(&gate, &["list"]);
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(err.contains("TOOLGATE_TOKEN or --token-file"), "{err}");
    let (code, _, err) = tool_as(&gate, Some("a-token-of-nobody-0123456789"), &["list"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("does not know this token") && !err.contains("nobody"), "{err}");

    let file = gate.home.path("token");
    fs::write(&file, format!("{TOKEN}\n")).unwrap();
    let file = file.display().to_string();
    let (code, out, err) = tool(&gate, &["call", "files__pid", "--token-file", &file]);
    assert_eq!(code, Some(1), "{err}");
    assert!(out.starts_with("[POLICY DENIED]"), "{out}");
    let (code, _, err) = tool_as(&gate, Some(TOKEN), &["call", "files__echo"]);
    assert_eq!(code, Some(0), "{err}");
    let (code, _, err) = tool_as(&gate, Some(TOKEN), &["list", "--server", "nobody"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("no server `nobody`"), "{err}");
}

#[test]
fn unreachable_gateways_are_reported() {
    let home = Home::new();
    let run = |words: &[&str]| {
        let output = home.run(words);
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, err) = run(&["tool", "list"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("no gateway runs on the data folder") && err.contains("--url"), "{err}");
    let (code, err) = run(&["tool", "list", "--url", "http://127.0.0.1:1"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("cannot reach http://127.0.0.1:1/mcp"), "{err}");
    for arguments in ["[]", "{", "text"] {
        let (code, err) = run(&["tool", "call", "x", arguments]);
        assert_eq!(code, Some(64), "{err}");
        assert!(err.contains("not a JSON object"), "{err}");
    }
}
