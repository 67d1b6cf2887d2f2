//! `toolgate catalog`: search, show, import; and what `scan` and `server add` make of it.

use std::fs;
use std::process::Output;

use serde_json::{Value, json};

use crate::gate::{Gate, Home};
use crate::golden;

fn text(output: &Output) -> (Option<i32>, String, String) {
    let read = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), read(&output.stdout), read(&output.stderr))
}

fn ok(home: &Home, words: &[&str]) -> String {
    let (code, stdout, stderr) = text(&home.run(words));
    assert_eq!(code, Some(0), "{words:?}: {stderr}");
    stdout
}

fn json_of(home: &Home, words: &[&str]) -> Value {
    serde_json::from_str(&ok(home, words)).unwrap()
}

#[test]
fn servers_and_tools_are_found() {
    let home = Home::new();
    let all = json_of(&home, &["catalog", "search", "-o", "json"]);
    let items = all["items"].as_array().unwrap();
    assert!(items.len() >= 30, "{}", items.len());
    assert!(items.iter().all(|item| item["tools"].as_u64() > Some(0)), "{all}");
    let found = json_of(&home, &["catalog", "search", "-o", "json", "delete", "entities"]);
    assert_eq!(found["items"][0]["server"], "server-memory");
    assert_eq!(found["items"][0]["tool"], "delete_entities");
    assert_eq!(found["items"][0]["class"], "destructive");
    let lines = ok(&home, &["catalog", "search", "-o", "jsonl", "server-memory"]);
    assert_eq!(lines.lines().count(), 1, "{lines}");
    let table = ok(&home, &["catalog", "search", "server-memory"]);
    assert!(table.starts_with("NAME "), "{table}");
    let (code, stdout, stderr) = text(&home.run(&["catalog", "search", "no-such-thing"]));
    assert_eq!((code, stdout.as_str()), (Some(0), ""));
    assert!(stderr.contains("nothing found"), "{stderr}");
}

#[test]
fn a_server_and_a_tool_are_shown() {
    let home = Home::new();
    let server = ok(&home, &["catalog", "show", "server-memory"]);
    golden::check("catalog/server.txt", &server);
    let tool = ok(&home, &["catalog", "show", "server-memory", "delete_entities"]);
    golden::check("catalog/tool.txt", &tool);

    let shown = json_of(&home, &["catalog", "show", "server-memory", "-o", "json"]);
    for key in ["server", "version", "date"] {
        assert!(shown[key].is_string(), "{shown}");
    }
    let tools = shown["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 9);
    for tool in tools {
        for key in ["name", "class", "level", "fingerprint", "summary", "what_could_go_wrong"] {
            assert!(tool[key].is_string(), "{key}: {tool}");
        }
        assert!(tool["confidence"].is_f64() && tool["parameters"].is_u64(), "{tool}");
        assert!(tool["recommended"].is_object() && tool["labels"].is_array(), "{tool}");
        assert!(tool["signals"][0]["what"].is_string(), "{tool}");
    }
    let one =
        json_of(&home, &["catalog", "show", "server-memory", "delete_entities", "-o", "json"]);
    assert_eq!(one["tools"].as_array().unwrap().len(), 1);
    assert_eq!(one["tools"][0]["recommended"], json!({"approve": {}}));

    // The rule can be pasted.
    let rule = tool.split("Recommended rule\n").nth(1).unwrap().split("\n\n").next().unwrap();
    fs::write(
        home.path("p.yaml"),
        format!("version: \"1\"\ndefault: deny\n{}\n", rule.replace("\n  ", "\n").trim_start()),
    )
    .unwrap();
    ok(&home, &["policy", "check", "p.yaml"]);

    for (words, expected) in [
        (&["catalog", "show", "server-memori"][..], "did you mean `server-memory`?"),
        (&["catalog", "show", "zzz"], "toolgate scan"),
        (
            &["catalog", "show", "server-memory", "delete_entitys"],
            "did you mean `delete_entities`?",
        ),
    ] {
        let (code, _, stderr) = text(&home.run(words));
        assert!(code == Some(2) && stderr.contains(expected), "{stderr}");
    }
}

#[test]
fn a_registry_is_imported() {
    let home = Home::new();
    let server = json!({"name": "io.example/deploy", "version": "1.2.0",
        "description": "Deploys things\u{202e}\u{1b}[2J",
        "packages": [{"registryType": "npm", "identifier": "@example/deploy", "version": "1.2.0"}],
        "remotes": [{"type": "streamable-http", "url": "https://mcp.example/mcp"}]});
    fs::write(home.path("server.json"), server.to_string()).unwrap();
    let (code, stdout, stderr) = text(&home.run(&["catalog", "import", "server.json"]));
    assert_eq!((code, stdout.as_str()), (Some(0), ""), "{stderr}");
    assert!(stderr.starts_with("imported 1 new servers and replaced 0"), "{stderr}");
    let found = json_of(&home, &["catalog", "search", "-o", "json", "DEPLOY", "example"]);
    assert_eq!(found["items"][0]["server"], "io.example/deploy");
    assert_eq!(found["items"][0]["source"], "imported");
    let shown = ok(&home, &["catalog", "show", "io.example/deploy"]);
    assert!(shown.contains("npm @example/deploy 1.2.0"), "{shown}");
    assert!(!shown.contains('\u{202e}') && !shown.contains('\u{1b}'), "{shown}");

    let page = json!({"servers": [{"server": server}, {"server": {"name": "io.example/b"}}]});
    fs::write(home.path("page.json"), page.to_string()).unwrap();
    let (_, _, stderr) = text(&home.run(&["catalog", "import", "page.json"]));
    assert!(stderr.starts_with("imported 1 new servers and replaced 1"), "{stderr}");

    fs::write(home.path("bad.json"), "{\"mcpServers\":{}}").unwrap();
    for (file, expected) in [("bad.json", "neither a server"), ("missing.json", "missing.json")] {
        let (code, _, stderr) = text(&home.run(&["catalog", "import", file]));
        assert!(code == Some(2) && stderr.contains(expected), "{stderr}");
    }
    let after = json_of(&home, &["catalog", "search", "-o", "json", "io.example"]);
    assert_eq!(after["items"].as_array().unwrap().len(), 2, "a failed import changes nothing");
}

/// A server with the names of a known one and other definitions.
#[test]
fn scan_and_server_add_compare_with_the_catalogue() {
    let home = Home::new();
    let known = json_of(&home, &["catalog", "show", "server-memory", "-o", "json"]);
    let tools: Vec<String> = known["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| json!({"name": tool["name"], "inputSchema": {"type": "object"}}).to_string())
        .collect();
    fs::write(home.path("tools"), tools.join(",")).unwrap();
    fs::write(home.path("server.sh"), include_str!("scan/server.sh")).unwrap();
    let version = known["version"].as_str().unwrap();
    let expected = format!("0 of 9 definitions equal version {version} of server-memory");
    let scanned = ok(&home, &["scan", "--", "sh", "server.sh", "tools"]);
    assert!(scanned.contains(&expected), "{scanned}");
    let scanned = json_of(&home, &["scan", "-o", "json", "--", "sh", "server.sh", "tools"]);
    assert_eq!(scanned["catalogue"]["server"], "server-memory");
    assert_eq!(scanned["catalogue"]["different"].as_array().unwrap().len(), 9);

    let gate = Gate::start_in(home, "servers: {}\n");
    let script = gate.home.path("server.sh").display().to_string();
    let file = gate.home.path("tools").display().to_string();
    let (code, _, stderr) =
        text(&gate.home.run(&["server", "add", "memory", "--", "sh", &script, &file]));
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains(&expected), "{stderr}");
}
