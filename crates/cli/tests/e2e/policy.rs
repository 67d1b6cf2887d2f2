//! `toolgate policy …`: exit codes, shapes for programs, and every text that people see.

use std::fs;
use std::io::Write as _;
use std::process::{Output, Stdio};

use serde_json::{Value, json};

use crate::gate::Home;
use crate::golden;

#[path = "policy/files.rs"]
mod files;

const GOOD: &str = r#"version: "1"
default: deny
hide: ["admin_*"]
tools:
  "get_*": {}
  close: { rate_limit: 30/minute }
  refund:
    deny_if: [{ conditions: [{ path: args.amount, op: gt, value: 100 }], on_deny: too much }]
    approve: {}
tests:
  - name: thirty a minute
    call: { tool: close, times: 31 }
    expect: [{ allow: 30 }, { deny: rate_limited }]
  - { call: { tool: refund, args: { amount: 1 } }, expect: hold }
"#;

/// Two errors and one warning.
const BAD: &str = r#"version: "1"
default: dney
tols: {}
tools:
  x: { limits: [{ counter: c, window: minute, max: 0 }] }
"#;

const WARNED: &str = r#"version: "1"
default: allow
tools:
  x: { limits: [{ counter: c, window: minute, max: 0 }] }
"#;

/// One test fails, and its name tries to be markup and a terminal command.
const FAILING: &str = r#"version: "1"
default: deny
tools: { close: { rate_limit: 30/minute }, x: { action: deny } }
tests:
  - { name: "a <b> & \"c\" \e[31m", call: { tool: close }, expect: deny }
  - { call: { tool: x }, expect: { deny: /tools/x/action } }
"#;

const UNTIDY: &str = "version:   '1'\ndefault: deny   # closed\n\n\n\ntools: {close:   {}}\n";

const INTERCEPT: &str = r#"version: "1"
tools:
  create_charge:
    rules:
      - name: cap
        conditions: [{ path: args.amount, op: lte, value: 500 }]
        on_deny: over the cap
      - rate_limit: 5/hour
"#;

fn home() -> Home {
    let home = Home::new();
    for (name, text) in [
        ("good.yaml", GOOD),
        ("bad.yaml", BAD),
        ("warned.yaml", WARNED),
        ("failing.yaml", FAILING),
        ("untidy.yaml", UNTIDY),
        ("intercept.yaml", INTERCEPT),
    ] {
        fs::write(home.path(name), text).unwrap();
    }
    home
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Runs `toolgate policy` with these arguments, and perhaps a text on stdin.
fn policy(home: &Home, words: &[&str], stdin: Option<&[u8]>) -> Output {
    let words: Vec<&str> = ["policy"].iter().chain(words).copied().collect();
    let Some(stdin) = stdin else { return home.run(&words) };
    let mut child = home.command(&words).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(stdin).unwrap();
    child.wait_with_output().unwrap()
}

/// The one line of JSON on stdout, and the exit code.
fn as_json(home: &Home, words: &[&str]) -> (Option<i32>, Value) {
    let output = policy(home, words, None);
    let stdout = text(&output.stdout);
    assert_eq!(stdout.lines().count(), 1, "{words:?}: {stdout}");
    (output.status.code(), serde_json::from_str(&stdout).unwrap())
}

/// Everything a person sees after typing this.
fn seen(home: &Home, words: &[&str]) -> String {
    let output = policy(home, words, None);
    let typed = words.join(" ");
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    let code = output.status.code().unwrap();
    format!("$ toolgate policy {typed}\n-- stdout\n{stdout}-- stderr\n{stderr}-- exit {code}\n")
}

#[test]
fn what_people_see() {
    let home = home();
    let explain = ["explain", "--at", "2026-01-05T12:00:30Z", "--tool"];
    let explained = |words: &[&'static str]| [&explain[..], words].concat();
    let cases: Vec<(&str, Vec<&str>)> = vec![
        ("check-good", vec!["check", "good.yaml"]),
        ("check-bad", vec!["check", "bad.yaml"]),
        ("check-several", vec!["check", "good.yaml", "warned.yaml", "missing.yaml", "bad.yaml"]),
        ("check-sarif", vec!["check", "-o", "sarif", "bad.yaml", "warned.yaml"]),
        ("test-good", vec!["test", "good.yaml"]),
        ("test-failing", vec!["test", "failing.yaml"]),
        ("test-junit", vec!["test", "-o", "junit", "failing.yaml"]),
        ("test-junit-bad", vec!["test", "-o", "junit", "bad.yaml"]),
        ("explain-allow", explained(&["close", "--policy", "good.yaml"])),
        (
            "explain-deny",
            explained(&["pay/refund", "--policy", "good.yaml", "--args", r#"{"amount":101}"#]),
        ),
        ("explain-hide", explained(&["admin_all", "--policy", "good.yaml"])),
        ("explain-default", explained(&["purge", "--policy", "good.yaml", "--class", "Read"])),
        ("explain-recommended", explained(&["delete_file"])),
        ("explain-bad", explained(&["x", "--policy", "bad.yaml"])),
        ("explain-grant", explained(&["x", "--grant", "laptop"])),
        ("fmt", vec!["fmt", "untidy.yaml"]),
        ("fmt-check", vec!["fmt", "--check", "untidy.yaml"]),
        ("import", vec!["import", "intercept.yaml"]),
        ("import-bad", vec!["import", "bad.yaml"]),
    ];
    for (name, words) in cases {
        golden::check(&format!("policy/{name}.txt"), &seen(&home, &words));
    }
}

#[test]
fn check_for_programs() {
    let home = home();
    let good = json!({"file": "good.yaml", "valid": true, "problems": []});
    assert_eq!(as_json(&home, &["check", "-o", "json", "good.yaml"]), (Some(0), good.clone()));

    let warned = json!({"file": "warned.yaml", "valid": true, "problems": [{
        "code": "TG0109", "severity": "warning", "line": 4, "column": 57,
        "message": "`max: 0` admits nothing", "hint": "write `action: deny`, or a larger number",
    }]});
    let (code, found) = as_json(&home, &["check", "-o", "json", "warned.yaml"]);
    assert_eq!(code, Some(0));
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&found), keys(&warned));
    assert_eq!(found["valid"], true);
    let problem = &found["problems"][0];
    assert_eq!(keys(problem), keys(&warned["problems"][0]));
    assert_eq!(problem["code"], "TG0109");
    assert_eq!((&problem["severity"], &problem["line"]), (&"warning".into(), &4.into()));

    let (code, found) = as_json(&home, &["check", "-o", "json", "bad.yaml"]);
    assert_eq!((code, &found["valid"]), (Some(1), &false.into()));
    let codes: Vec<_> =
        found["problems"].as_array().unwrap().iter().map(|p| p["code"].clone()).collect();
    assert_eq!(codes, ["TG0008", "TG0005", "TG0109"]);

    let (code, found) = as_json(&home, &["check", "-o", "json", "good.yaml", "bad.yaml"]);
    assert_eq!((code, &found[0]), (Some(1), &good));
    assert_eq!(found[1]["file"], "bad.yaml");
}

#[test]
fn sarif_points_into_its_rules() {
    let output = policy(&home(), &["check", "-o", "sarif", "bad.yaml"], None);
    let log: Value = serde_json::from_slice(&output.stdout).unwrap();
    let run = &log["runs"][0];
    let results = run["results"].as_array().unwrap();
    assert_eq!((log["version"].as_str(), results.len()), (Some("2.1.0"), 3));
    for result in results {
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(run["tool"]["driver"]["rules"][index]["id"], result["ruleId"]);
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "bad.yaml");
        assert!(place["region"]["startLine"].as_u64().unwrap() >= 2);
    }
}

#[test]
fn test_for_programs() {
    let home = home();
    let expected = json!({
        "file": "good.yaml", "passed": true, "problems": [],
        "tests": [
            {"name": "thirty a minute", "line": 11, "passed": true, "failure": null},
            {"name": "tests/1", "line": 14, "passed": true, "failure": null},
        ],
        "coverage": {"rules": 4, "reached": 2, "unreached": ["(hidden)", "/tools/refund/deny_if/0"]},
    });
    assert_eq!(as_json(&home, &["test", "-o", "json", "good.yaml"]), (Some(0), expected.clone()));

    let (code, found) = as_json(&home, &["test", "-o", "json", "failing.yaml"]);
    assert_eq!((code, &found["passed"]), (Some(1), &false.into()));
    assert_eq!(found["tests"][0]["failure"], "line 5, call 1: expected deny, got allow");

    let (code, found) = as_json(&home, &["test", "-o", "json", "bad.yaml"]);
    assert_eq!((code, &found["coverage"]), (Some(1), &Value::Null));
    assert_eq!(found["problems"].as_array().unwrap().len(), 3);

    let output = policy(&home, &["test", "-o", "json", "--write", "out.json", "good.yaml"], None);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(0), ""));
    let written = fs::read_to_string(home.path("out.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), expected);
}

#[test]
fn explain_for_programs() {
    let home = home();
    let explain = |words: &[&str]| {
        let all = [&["explain", "-o", "json"][..], words].concat();
        let output = policy(&home, &all, None);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}", text(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let found =
        explain(&["--policy", "good.yaml", "--tool", "refund", "--args", r#"{"amount":1e3}"#]);
    let expected = json!({
        "effect": "deny", "rule": "/tools/refund/deny_if/0",
        "message": found["message"],
        "rules": [
            {"rule": "/tools/refund", "effect": "allow"},
            {"rule": "/tools/refund/deny_if/0", "effect": "deny"},
            {"rule": "/tools/refund/approve", "effect": "hold"},
        ],
        "class": "financial",
    });
    assert_eq!(found, expected);
    assert!(found["message"].as_str().unwrap().starts_with("too much"), "{found}");

    let policy = r#"{"version":"1","default":"deny","tools":{"x":{"require":[{"conditions":[
        {"path":"grant.label","op":"eq","value":"laptop"},
        {"path":"identity.name","op":"eq","value":"ann"},
        {"path":"identity.groups","op":"contains","value":"ops"},
        {"path":"client.name","op":"eq","value":"cursor"},
        {"path":"server","op":"eq","value":"files"},
        {"path":"session.kind","op":"eq","value":"client"},
        {"path":"session.infobase_name","op":"eq","value":"trade"},
        {"path":"session.host_id","op":"eq","value":"h1"},
        {"path":"time.hour","op":"eq","value":12}]}]}}}"#;
    fs::write(home.path("facts.json"), policy).unwrap();
    let mut facts = vec![
        ("--label", "laptop"),
        ("--identity", "ann"),
        ("--group", "ops"),
        ("--client", "cursor"),
        ("--server", "files"),
        ("--session-kind", "client"),
        ("--session-infobase", "trade"),
        ("--session-host", "h1"),
        ("--at", "2026-01-05T12:30:00Z"),
    ];
    let asked = |facts: &[(&'static str, &'static str)]| {
        let printed = facts.iter().flat_map(|(name, value)| [*name, *value]);
        let words: Vec<&str> =
            ["--policy", "facts.json", "--tool", "x"].into_iter().chain(printed).collect();
        explain(&words)
    };
    assert_eq!(asked(&facts)["effect"], "allow");
    // Each fact matters: leave any one away (but for the identity that groups need).
    for at in 0..facts.len() {
        let left = facts.remove(at);
        if left.0 != "--identity" && left.0 != "--at" {
            assert_eq!(asked(&facts)["effect"], "deny", "without {left:?}");
        }
        facts.insert(at, left);
    }

    let recommended = [("get_x", "allow", "read"), ("run_x", "hold", "execute")];
    for (tool, effect, class) in recommended {
        let found = explain(&["--tool", tool]);
        assert_eq!((&found["effect"], &found["class"]), (&effect.into(), &class.into()));
    }
    assert_eq!(explain(&["--tool", "get_x", "--class", "destructive"])["effect"], "hold");
    assert_eq!(explain(&["--tool", "get_x"])["rule"], "");
}
