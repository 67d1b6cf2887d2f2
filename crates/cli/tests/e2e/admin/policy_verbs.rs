//! `policy list|show|apply|remove|rollback` and the names that `check` and `explain` know.

use std::fs;

use serde_json::{Value, json};

use super::verdict;
use crate::agent::Agent;
use crate::api::Api;
use crate::gate::{Gate, eventually};
use crate::peer::gate_with_peer;

const CLOSED: &str = "version: '1'\ndefault: deny\ntools: { pid: {} }\n";
const OPEN: &str = "version: '1'\ndefault: allow\n";

fn run(gate: &Gate, words: &[&str]) -> (Option<i32>, String, String) {
    let output = gate.home.run(words);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn json(gate: &Gate, words: &[&str]) -> Value {
    let (code, printed, error) = run(gate, &[words, &["-o", "json"]].concat());
    assert_eq!(code, Some(0), "{words:?}: {error}");
    serde_json::from_str(&printed).unwrap()
}

/// Waits until the tools of all servers are known.
fn list_servers(api: &Api) {
    eventually("the server is listed", || {
        api.get("tools");
        let known = api.get("known_tools");
        known["unlisted"].as_array().unwrap().iter().all(|it| it != "peer").then_some(())
    });
}

#[test]
fn policies_are_applied_rolled_back_and_removed() {
    let (gate, _peer) = gate_with_peer("", "listing", "");
    let file = gate.home.path("mine.yaml");
    let path = file.to_str().unwrap();
    fs::write(&file, CLOSED).unwrap();
    let applied = json(&gate, &["policy", "apply", path]);
    assert_eq!((&applied["name"], &applied["version"]), (&json!("mine"), &json!(1)));
    assert_eq!(applied["problems"], json!([]));
    let made =
        Api::admin(&gate).expect(201, "POST", "grants", r#"{"label":"one","policy":"mine"}"#);
    let agent = Agent::open_with(&gate, "peer", made["token"].as_str().unwrap());
    assert_eq!(verdict(&agent, "echo"), "policy_denied");

    fs::write(&file, OPEN).unwrap();
    let (code, printed, said) = run(&gate, &["policy", "apply", path]);
    assert_eq!((code, printed.as_str()), (Some(0), ""), "{said}");
    assert_eq!(said, "policy `mine` version 2 is active\n");
    assert_eq!(verdict(&agent, "echo"), "sent");
    assert_eq!(run(&gate, &["policy", "show", "mine"]).1, OPEN);
    assert_eq!(run(&gate, &["policy", "show", "mine", "--version", "1"]).1, CLOSED);

    let (code, _, said) = run(&gate, &["policy", "rollback", "mine"]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(said, "policy `mine` is rolled back to the earlier version, as version 3\n");
    assert_eq!(verdict(&agent, "echo"), "policy_denied");
    let back = json(&gate, &["policy", "rollback", "mine", "--to", "2"]);
    assert_eq!((&back["version"], &back["source"]), (&json!(4), &json!("store")));
    assert_eq!(verdict(&agent, "echo"), "sent");
    let (code, _, said) = run(&gate, &["policy", "rollback", "mine", "--to", "9"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("has no version 9; versions: 1, 2, 3, 4"), "{said}");

    let listed = json(&gate, &["policy", "list"]);
    let names: Vec<_> = listed["items"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["mine", "recommended"]);
    let (code, _, said) = run(&gate, &["policy", "remove", "mine"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("the grant `one` uses it"), "{said}");
    Api::admin(&gate).expect(204, "DELETE", "grants/one", "");
    assert_eq!(run(&gate, &["policy", "remove", "mine"]).0, Some(0));
    assert_eq!(run(&gate, &["policy", "show", "mine"]).0, Some(2));
    let back = json(&gate, &["policy", "rollback", "mine"]);
    assert_eq!(back["version"], 5, "a removed policy comes back with its last version");
    assert_eq!(run(&gate, &["policy", "show", "mine"]).1, OPEN);

    fs::write(&file, "version: '1'\ndefault: alow\n").unwrap();
    let (code, _, said) = run(&gate, &["policy", "apply", path]);
    assert_eq!(code, Some(1), "an invalid policy is a finding");
    assert!(said.contains("did you mean `allow`?") && said.contains(":2:10: error["), "{said}");
}

#[test]
fn a_policy_of_the_file_takes_precedence_and_is_reported() {
    let (gate, _peer) =
        gate_with_peer("policies: { base: { version: '1', default: deny } }", "", "");
    let file = gate.home.path("base.yaml");
    fs::write(&file, OPEN).unwrap();
    let (code, _, said) = run(&gate, &["policy", "apply", file.to_str().unwrap()]);
    assert_eq!(code, Some(2));
    assert!(said.contains("`base` is defined in toolgate.yaml, which takes precedence"), "{said}");
    assert_eq!(run(&gate, &["policy", "rollback", "base"]).0, Some(2));
    assert!(run(&gate, &["policy", "show", "base"]).1.contains("deny"));
}

/// Keys are compared with the tools that servers list: in `PUT`, and in `policy check --data`.
#[test]
fn unknown_tools_are_warnings() {
    let (gate, _peer) = gate_with_peer("", "listing", "");
    let api = Api::admin(&gate);
    list_servers(&api);
    let text = "version: '1'\ndefault: allow\ntools: { ehco: { action: deny }, echo: {}, wholly_other: {} }\n";
    let put = api.expect(200, "PUT", "policies/mine", text);
    let problems = put["problems"].as_array().unwrap();
    assert_eq!(problems.len(), 2, "{put}");
    assert_eq!([&problems[0]["code"], &problems[1]["code"]], ["TG0103", "TG0103"]);
    assert_eq!(problems[0]["hint"], "did you mean `echo`?");
    assert_eq!(problems[1]["hint"], "check the name with `toolgate tool list`");
    let file = gate.home.path("mine.yaml");
    fs::write(&file, text).unwrap();
    let path = file.to_str().unwrap();
    let data = gate.home.path(".local/share/toolgate");
    let checked = json(&gate, &["policy", "check", path, "--data", data.to_str().unwrap()]);
    assert_eq!(
        (&checked["valid"], &checked["problems"][0]["code"]),
        (&json!(true), &json!("TG0103"))
    );
    let alone = json(&gate, &["policy", "check", path]);
    assert_eq!(alone["problems"], json!([]));
}

#[test]
fn explain_resolves_names_as_a_call_does() {
    let (gate, _peer) = gate_with_peer("", "listing", "");
    let api = Api::admin(&gate);
    list_servers(&api);
    api.expect(
        200,
        "PUT",
        "policies/mine",
        "version: '1'\ndefault: allow\ntools: { echo: { action: deny } }\n",
    );
    let explain = |body: &str| api.expect(200, "POST", "policies/mine/explain", body);
    let denied = explain(r#"{"tool":"peer__echo"}"#);
    assert_eq!(
        (&denied["effect"], &denied["rule"]),
        (&json!("deny"), &json!("/tools/echo/action"))
    );
    assert_eq!(denied["rules"], json!([{ "rule": "/tools/echo/action", "effect": "deny" }]));
    assert_eq!(denied.get("unknown"), None);
    let unknown = explain(r#"{"tool":"peer__ehco"}"#);
    assert_eq!(
        (&unknown["unknown"], &unknown["suggestions"]),
        (&json!(true), &json!(["peer__echo"]))
    );
    assert_eq!(explain(r#"{"tool":"my_permissions"}"#).get("unknown"), None);
    // A server out of reach is like none.
    api.expect(201, "POST", "grants", r#"{"label":"none","policy":"mine","servers":[]}"#);
    let out_of_reach = explain(r#"{"tool":"peer__echo","grant":"none"}"#);
    assert_eq!(out_of_reach["unknown"], true, "{out_of_reach}");
}

/// The meaning of `server__tool` depends on the servers, and so does the hash of its policy.
#[test]
fn audit_show_finds_the_line_of_a_key_with_a_prefix() {
    let (gate, _peer) = gate_with_peer("", "", "");
    let api = Api::admin(&gate);
    let text = "version: '1'\ndefault: allow\ntools:\n  peer__echo: { action: deny }\n";
    api.expect(200, "PUT", "policies/mine", text);
    let made = api.expect(201, "POST", "grants", r#"{"label":"one","policy":"mine"}"#);
    let agent = Agent::open_with(&gate, "peer", made["token"].as_str().unwrap());
    assert_eq!(verdict(&agent, "echo"), "policy_denied");
    let rows = api.get("audit?grant=one&tool=echo");
    let call = rows["items"][0]["call_id"].as_str().unwrap();
    let (code, shown, error) = run(&gate, &["audit", "show", call]);
    assert_eq!(code, Some(0), "{error}");
    assert!(shown.contains("policy mine version 1:4:"), "{shown}");
    assert!(!shown.contains("changed since"), "{shown}");
}
