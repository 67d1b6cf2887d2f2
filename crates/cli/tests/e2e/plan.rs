//! `toolgate policy plan`: what it compares, and how it exits.

use std::fs;

use serde_json::{Value, json};

use crate::api::Api;
use crate::gate::Gate;

const OPEN: &str = "version: \"1\"\ndefault: allow\n";

/// Plans a document for the policy `team`; the exit code, and what was printed.
fn plan(gate: &Gate, document: &str, more: &[&str]) -> (Option<i32>, String) {
    fs::write(gate.home.path("new.yaml"), document).unwrap();
    let file = gate.home.path("new.yaml");
    let output = gate.home.run(&[&["policy", "plan", file.to_str().unwrap()], more].concat());
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn a_plan_names_what_differs_and_exits_accordingly() {
    let gate = Gate::start("");
    let api = Api::admin(&gate);
    api.expect(200, "PUT", "policies/team", OPEN);
    api.expect(201, "POST", "grants", &json!({"label": "ci", "policy": "team"}).to_string());
    let same = plan(&gate, "# a comment\nversion: \"1\"\ndefault: allow\n", &[]);
    assert_eq!(same, (Some(0), String::new()));
    let tool = "tools:\n  tools_cache_reset: ";
    let cases = [
        ("{ action: deny }", "deny"),
        ("{ rate_limit: 3/minute }", "allow, 3/minute"),
        (
            "{ deny_if: [{ conditions: [{ path: args.x, op: eq, value: 1 }] }] }",
            "allow, deny_if args.x eq 1",
        ),
        ("{ concurrency: { max: 1 } }", "allow, concurrency 1"),
    ];
    for (entry, after) in cases {
        let (code, table) = plan(&gate, &format!("{OPEN}{tool}{entry}\n"), &[]);
        assert_eq!(code, Some(1), "{entry}: {table}");
        let line = table.lines().find(|line| line.contains("tools_cache_reset")).unwrap();
        assert!(line.starts_with("ci ") && line.trim_end().ends_with(after), "{line}");
    }
    let (code, text) = plan(&gate, &format!("{OPEN}mode: shadow\n"), &["-o", "json"]);
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &json["differences"][0]["after"]["terms"]), (Some(1), &json!(["shadow"])));
    // Counters that would start again are a difference, too.
    let limit = |counter: &str| {
        format!("{OPEN}{tool}{{ limits: [{{ counter: {counter}, window: day, max: 3 }}] }}\n")
    };
    api.expect(200, "PUT", "policies/team", &limit("a"));
    let (code, text) = plan(&gate, &limit("b"), &["--name", "team", "-o", "json"]);
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &json["resets"]), (Some(1), &json!([{"counter": "a", "window": "day"}])));
    // An invalid document, and a policy that does not exist, are errors.
    assert_eq!(plan(&gate, "version: \"1\"\ndefault: alow\n", &[]).0, Some(2));
    assert_eq!(api.get("policies/team")["version"], 2, "nothing was stored");
}
