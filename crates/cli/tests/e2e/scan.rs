//! `toolgate scan`: a real process that lists, judged and written as a policy.

use std::fs;
use std::process::Output;

use serde_json::{Value, json};

use crate::gate::{Gate, Home};
use crate::golden;

const FIRST: &str = r#"{"name":"get_user","description":"Returns a user","inputSchema":{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}},
{"name":"delete_*","description":"Deletes every user\ndefault: allow","inputSchema":{"type":"object"}},
{"name":"close_session","inputSchema":{"type":"object","properties":{"session_id":{"type":"string"}}}}"#;
const SECOND: &str = r#"{"name":"send_mail","description":"Sends an email. Do not call on your own initiative.","inputSchema":{"type":"object","properties":{"to":{"type":"string"},"text":{"type":"string"}},"required":["to"]}},
{"name":"odd","description":"Reads\u202e a file","inputSchema":{"type":"object"}},
{"name":"fetch","description":"Fetches a web page","inputSchema":{"type":"object","properties":{"url":{"type":"string"}},"required":["url"]}}"#;

fn home() -> Home {
    let home = Home::new();
    fs::write(home.path("one"), FIRST).unwrap();
    fs::write(home.path("two"), SECOND).unwrap();
    fs::write(home.path("server.sh"), include_str!("scan/server.sh")).unwrap();
    home
}

fn scan(home: &Home, options: &[&str]) -> Output {
    let words = ["scan"].iter().chain(options).chain(&["--", "sh", "server.sh", "one", "two"]);
    home.run(&words.copied().collect::<Vec<_>>())
}

fn json_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[test]
fn a_command_is_scanned_riskiest_first() {
    let home = home();
    let output = scan(&home, &[]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    golden::check("scan/table.txt", &String::from_utf8(output.stdout).unwrap());
    let environment = fs::read_to_string(home.path("one.env")).unwrap();
    assert!(!environment.contains("TOOLGATE"), "{environment}");

    let found = json_of(&scan(&home, &["-o", "json"]));
    assert_eq!(found["server"], "server.sh");
    let tools = found["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 6);
    let tool = |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap();
    assert_eq!(tool("delete_*")["class"], "destructive");
    assert_eq!(tool("delete_*")["recommended"], json!({"approve": {}}));
    assert_eq!(tool("close_session")["class"], "other");
    assert_eq!(tool("close_session")["level"], "low");
    assert!(tool("close_session")["confidence"].as_f64().unwrap() < 0.5);
    assert_eq!(tool("get_user")["parameters"], 1);
    assert_eq!(tool("odd")["level"], "critical", "its definition has hidden text");
    assert_eq!(tool("send_mail")["required"], 1);
    assert_eq!(tool("send_mail")["labels"], json!(["sends_out"]));
    assert!(tool("get_user")["signals"][0]["what"].is_string());
    assert_eq!(tool("get_user")["signals"][0]["where"], "name");
    assert_eq!(tool("get_user")["fingerprint"].as_str().unwrap().len(), 64);

    for (level, code) in [("critical", 1), ("high", 1)] {
        assert_eq!(scan(&home, &["--fail-on", level]).status.code(), Some(code), "{level}");
    }
    for (format, expected) in [("sarif", "\"2.1.0\""), ("markdown", "| tool |")] {
        let output = scan(&home, &["-o", format]);
        assert!(String::from_utf8_lossy(&output.stdout).contains(expected), "{output:?}");
    }
}

/// Over stdio in both eras, and over HTTP with a token: the same tools, definition by definition.
#[test]
fn both_eras_and_a_url_give_the_same() {
    let home = home();
    let fingerprints = |output: &Output| {
        let found = json_of(output);
        let tools = found["tools"].as_array().unwrap().iter();
        let mut all: Vec<String> =
            tools.map(|tool| format!("{} {}", tool["name"], tool["fingerprint"])).collect();
        all.sort();
        all
    };
    let sessionful = fingerprints(&scan(&home, &["-o", "json"]));
    assert_eq!(sessionful.len(), 6);
    let words = ["scan", "-o", "json", "--", "sh", "server.sh", "one", "two", "sessionless"];
    assert_eq!(fingerprints(&home.run(&words)), sessionful);

    let file = |name: &str| home.path(name).display().to_string();
    let config = format!(
        "policies: {{ open: {{ version: \"1\", default: allow }} }}\n\
         grants: [{{ label: g, token: env:G, policy: open }}]\n\
         servers:\n  lists: {{ command: sh, args: [{:?}, {:?}, {:?}], pin: off }}\n",
        file("server.sh"),
        file("one"),
        file("two")
    );
    // Hidden text is not listed by a gateway.
    fs::write(home.path("two"), SECOND.replace("\\u202e", "")).unwrap();
    let direct = fingerprints(&scan(&home, &["-o", "json"]));
    let gate = Gate::start_as(home, &config, |command| {
        command.env("G", "the-token-of-the-scan");
    });
    let url = format!("http://{}/mcp/lists", gate.mcp());
    let words = ["scan", "-o", "json", &url, "--header", "Authorization: env:BEARER"];
    let mut command = gate.home.command(&words);
    let output = command.env("BEARER", "Bearer the-token-of-the-scan").output().unwrap();
    assert_eq!(fingerprints(&output), direct, "{output:?}");
    let refused = gate.home.run(&["scan", &url]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
}

#[test]
fn a_policy_is_written_once() {
    let home = home();
    let output = scan(&home, &["--write", "policy.yaml"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = fs::read_to_string(home.path("policy.yaml")).unwrap();
    golden::check("scan/policy.yaml", &text);
    let checked = home.run(&["policy", "check", "-o", "json", "policy.yaml"]);
    assert_eq!(json_of(&checked)["valid"], true, "{checked:?}");

    fs::write(home.path("policy.yaml"), "mine").unwrap();
    let refused = scan(&home, &["--write", "policy.yaml"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert_eq!(fs::read_to_string(home.path("policy.yaml")).unwrap(), "mine");
    assert_eq!(scan(&home, &["--write", "policy.yaml", "--force"]).status.code(), Some(0));
    assert_eq!(fs::read_to_string(home.path("policy.yaml")).unwrap(), text);
}

#[test]
fn a_baseline_leaves_what_changed() {
    let home = home();
    let saved = scan(&home, &["-o", "json"]);
    fs::write(home.path("saved.json"), &saved.stdout).unwrap();
    let same = scan(&home, &["-o", "json", "--baseline", "saved.json"]);
    assert_eq!(same.status.code(), Some(0), "{same:?}");
    assert_eq!(json_of(&same)["tools"], json!([]));

    fs::write(home.path("one"), FIRST.replace("Returns a user", "Returns a user.")).unwrap();
    fs::write(home.path("two"), r#"{"name":"drop_all"}"#).unwrap();
    let later = scan(&home, &["-o", "json", "--baseline", "saved.json"]);
    assert_eq!(later.status.code(), Some(1), "{later:?}");
    let found = json_of(&later);
    let tools = found["tools"].as_array().unwrap().iter();
    let changes: Vec<String> =
        tools.map(|tool| format!("{} {}", tool["change"], tool["name"])).collect();
    assert_eq!(
        changes,
        [
            r#""added" "drop_all""#,
            r#""changed" "get_user""#,
            r#""removed" "fetch""#,
            r#""removed" "odd""#,
            r#""removed" "send_mail""#
        ]
    );
}

#[test]
fn all_servers_of_a_client_are_scanned() {
    let home = home();
    let folder = home.path("");
    let entry = |file: &str| json!({"command": "sh", "args": ["server.sh", file], "cwd": folder});
    let config = json!({"mcpServers": {
        "People & co": entry("one"),
        "mail": entry("two"),
        "again": entry("one"),
        "gone": {"command": "/nowhere/at/all"},
    }});
    fs::write(home.path("client.json"), config.to_string()).unwrap();
    let output = home.run(&["scan", "--config", "client.json", "-o", "json"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let found = json_of(&output);
    let servers = found["servers"].as_array().unwrap();
    assert_eq!(servers.len(), 4);
    let server = |name: &str| servers.iter().find(|one| one["server"] == name).unwrap();
    assert_eq!(server("mail")["tools"].as_array().unwrap().len(), 3);
    assert!(server("gone")["error"].is_string(), "{found}");
    assert_eq!(found["trifecta"]["present"], true);
    assert!(found["trifecta"]["sends_out"].as_array().unwrap().contains(&json!("mail/send_mail")));
    assert_eq!(found["shadowing"].as_array().unwrap().len(), 3);

    // The policy names the servers as `toolgate import` does.
    home.run(&["scan", "--config", "client.json", "--write", "all.yaml"]);
    let policy = fs::read_to_string(home.path("all.yaml")).unwrap();
    assert!(policy.contains("\"people---co/get_user\": {}"), "{policy}");
    assert_eq!(home.run(&["policy", "check", "all.yaml"]).status.code(), Some(0), "{policy}");
}

#[test]
fn a_baseline_names_servers_that_are_gone() {
    let home = home();
    let folder = home.path("");
    let entry = |file: &str| json!({"command": "sh", "args": ["server.sh", file], "cwd": folder});
    let configure = |servers: &Value| {
        fs::write(home.path("client.json"), json!({"mcpServers": servers}).to_string()).unwrap();
    };
    configure(&json!({"people": entry("one"), "mail": entry("two")}));
    let saved = home.run(&["scan", "--config", "client.json", "-o", "json"]);
    fs::write(home.path("saved.json"), &saved.stdout).unwrap();
    configure(&json!({"people": entry("one")}));
    let words = ["scan", "--config", "client.json", "--baseline", "saved.json"];
    let output = home.run(&words);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.starts_with("people\nno changes\n\nmail\n"), "{printed}");
    assert_eq!(printed.matches("removed: ").count(), 3, "{printed}");
}

#[test]
fn what_cannot_be_scanned_is_an_error() {
    let home = home();
    for (words, code, expected) in [
        (&["scan"][..], 64, "required"),
        (&["scan", "--", "/nowhere/at/all"], 2, "cannot be scanned"),
        (&["scan", "http://127.0.0.1:1/mcp", "--header", "X: secret"], 64, "not a reference"),
        (&["scan", "--config", "missing.json"], 2, "missing.json"),
        (&["scan", "--baseline", "missing.json", "--", "sh"], 2, "missing.json"),
    ] {
        let output = home.run(words);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {output:?}");
        assert!(
            String::from_utf8_lossy(&output.stderr).contains(expected),
            "{words:?}: {output:?}"
        );
        assert!(!String::from_utf8_lossy(&output.stderr).contains("X: secret\n"), "{output:?}");
    }
}
