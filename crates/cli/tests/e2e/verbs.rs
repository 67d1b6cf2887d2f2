//! Verbs that need a running gateway, as an operator types them.

use std::process::Output;

use serde_json::{Value, json};

use crate::agent::{Agent, NEWEST, initialize};
use crate::api::{Api, admin_token};
use crate::gate::{Gate, Home};
use crate::peer::{Peer, gate_with_peer};

const OPEN: &str = "policies:\n  open: { version: '1', default: allow }";

/// The output of a verb that must succeed.
#[track_caller]
fn ok(gate: &Gate, words: &[&str]) -> String {
    let (code, stdout, stderr) = printed(&gate.home.run(words));
    assert_eq!(code, Some(0), "{words:?}: {stderr}");
    stdout
}

/// What a verb complained about, and how it ended.
#[track_caller]
fn refused(gate: &Gate, words: &[&str]) -> String {
    let (code, stdout, stderr) = printed(&gate.home.run(words));
    assert_eq!((code, stdout.as_str()), (Some(2), ""), "{words:?}: {stderr}");
    stderr
}

fn printed(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn verdict(agent: &Agent) -> String {
    let result = agent.call("echo", &json!({}));
    result["_meta"]["error_code"].as_str().unwrap_or("sent").to_owned()
}

#[test]
fn grants_and_freezes() {
    let (gate, _peer) = gate_with_peer(OPEN, "", "");
    let words = ["grant", "create", "-o", "json", "laptop", "--policy", "open", "--server", "peer"];
    let made = json_of(&ok(&gate, &words));
    let keys: Vec<_> = made.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["id", "label", "token"]);
    let token = made["token"].as_str().unwrap();
    let agent = Agent::open_with(&gate, "peer", token);
    assert_eq!(verdict(&agent), "sent");

    let id = json_of(&ok(&gate, &["freeze", "-o", "json", "--grant", "laptop"]))["id"].clone();
    assert_eq!(verdict(&agent), "frozen");
    ok(&gate, &["unfreeze", id.as_str().unwrap()]);
    assert_eq!(verdict(&agent), "sent");
    ok(&gate, &["freeze", "--all"]);
    ok(&gate, &["freeze", "--server", "peer"]);
    ok(&gate, &["unfreeze", "--all"]);
    assert_eq!(verdict(&agent), "frozen");
    ok(&gate, &["unfreeze", "--server", "peer"]);
    assert_eq!(verdict(&agent), "sent");
    assert!(refused(&gate, &["unfreeze", "--all"]).contains("no freeze of everything"));

    let list = json_of(&ok(&gate, &["grant", "list", "-o", "json"]));
    assert_eq!(list["items"][0]["label"], "laptop");
    assert_eq!(ok(&gate, &["grant", "list", "-o", "jsonl"]).lines().count(), 1);
    let table = ok(&gate, &["grant", "list"]);
    assert!(table.starts_with("LABEL   STATE   POLICY  SERVERS"), "{table}");
    assert!(refused(&gate, &["grant", "create", "laptop"]).contains("`laptop` is taken"));
    assert!(refused(&gate, &["grant", "revoke", "nobody"]).contains("no grant `nobody`"));

    let other = json_of(&ok(&gate, &["grant", "rotate", "-o", "json", "laptop"]));
    assert_eq!(other["id"], made["id"], "rotation keeps the id");
    let agent = Agent::open_with(&gate, "peer", other["token"].as_str().unwrap());
    assert_eq!(verdict(&agent), "sent");
    ok(&gate, &["grant", "revoke", made["id"].as_str().unwrap()]);
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    assert_eq!(agent.send(ping).status, 401);

    assert_eq!(initialize(&gate, "peer", NEWEST).status, 401);
    ok(&gate, &["local", "enable"]);
    assert_eq!(initialize(&gate, "peer", NEWEST).status, 200);
    assert!(!gate.log.text().contains(token), "a token is in the log");
}

#[test]
fn people_have_what_their_roles_say() {
    let gate = Gate::start("");
    let made = ok(&gate, &["person", "create", "-o", "json", "duty", "--role", "viewer"]);
    let token = json_of(&made)["token"].as_str().unwrap().to_owned();
    let as_duty = |words: &[&str]| {
        let mut command = gate.home.command(words);
        printed(&command.env("TOOLGATE_ADMIN_TOKEN", &token).output().unwrap())
    };
    assert_eq!(as_duty(&["person", "list"]).0, Some(0));
    let (code, _, why) = as_duty(&["person", "create", "x", "--role", "admin"]);
    assert_eq!(code, Some(2));
    assert!(why.contains("needs the role `admin`"), "{why}");
    assert!(refused(&gate, &["person", "rotate", "admin"]).contains("admin.token"));
    let other = json_of(&ok(&gate, &["person", "rotate", "-o", "json", "duty"]));
    assert_eq!(as_duty(&["person", "list"]).0, Some(2), "the old token is worth nothing");
    Api::with(&gate, other["token"].as_str().unwrap()).get("status");
    ok(&gate, &["person", "revoke", "duty"]);
    Api::with(&gate, other["token"].as_str().unwrap()).expect(401, "GET", "status", "");
}

#[test]
fn servers_are_added_tried_and_removed() {
    let home = Home::new();
    let (file, added) = (Peer::new(&home, "peer"), Peer::new(&home, "added"));
    let mut gate = Gate::start_in(home, &format!("servers:\n{}", file.entry("", "")));
    let [script, folder] = added.arguments();
    ok(&gate, &["server", "add", "added", "--", "sh", &script, &folder, "listing"]);
    let agent = Agent::open(&gate, "added");
    assert_eq!(verdict(&agent), "sent");
    let tested = json_of(&ok(&gate, &["server", "test", "-o", "json", "added"]));
    assert_eq!((&tested["ok"], &tested["tools"]), (&true.into(), &json!(["echo", "pid"])));
    let list = json_of(&ok(&gate, &["server", "list", "-o", "json"]));
    let sources: Vec<_> = list["items"].as_array().unwrap().iter().map(|s| &s["source"]).collect();
    assert_eq!(sources, ["file", "store"]);

    assert!(
        refused(&gate, &["server", "add", "added", "--url", "http://127.0.0.1:1/"])
            .contains("already")
    );
    assert!(
        refused(&gate, &["server", "add", "Bad", "--url", "http://127.0.0.1:1/"]).contains("Bad")
    );
    let literal =
        ["server", "add", "x", "--url", "http://127.0.0.1:1/", "--header", "X-Api-Key=plain"];
    assert!(!refused(&gate, &literal).contains("plain"), "a secret must be a reference");
    ok(&gate, &["server", "add", "dead", "--url", "http://127.0.0.1:1/mcp"]);
    let (code, stdout, _) = printed(&gate.home.run(&["server", "test", "-o", "json", "dead"]));
    assert_eq!((code, &json_of(&stdout)["ok"]), (Some(1), &false.into()), "{stdout}");
    assert!(refused(&gate, &["server", "remove", "peer"]).contains("toolgate.yaml"));

    // They are there after a restart, until they are removed.
    assert_eq!(gate.stop().0, Some(0));
    let gate = Gate::start_in(gate.into_home(), &format!("servers:\n{}", file.entry("", "")));
    assert_eq!(verdict(&Agent::open(&gate, "added")), "sent");
    ok(&gate, &["server", "remove", "added"]);
    assert_eq!(initialize(&gate, "added", NEWEST).status, 404);
    let changes = Api::admin(&gate).changes();
    assert_eq!(
        changes,
        [
            "admin: added the server `added`",
            "admin: added the server `dead`",
            "admin: removed the server `added`"
        ]
    );
}

#[test]
fn a_gateway_that_is_not_there() {
    let home = Home::new();
    let (code, _, why) = printed(&home.run(&["grant", "list"]));
    assert_eq!(code, Some(2));
    assert!(why.contains("no gateway runs on the data folder"), "{why}");
    assert!(!why.contains("os error"), "{why}");

    let gate = Gate::start("");
    let url = gate.ready()["admin"].as_str().unwrap().to_owned();
    let token = admin_token(&gate.home);
    let elsewhere = |url: &str, token: &str| {
        let mut command = home.command(&["grant", "list", "-o", "json", "--admin", url]);
        printed(&command.env("TOOLGATE_ADMIN_TOKEN", token).output().unwrap())
    };
    assert_eq!(elsewhere(&url, &token).1, "{\"items\":[],\"next\":null}\n");
    let (code, _, why) = elsewhere(&url, "a-wrong-token-of-20-characters");
    assert_eq!(code, Some(2));
    assert!(why.contains("does not accept the token from the variable"), "{why}");
    assert_eq!(elsewhere("http://127.0.0.1:1", &token).0, Some(2));
    assert_eq!(elsewhere("not an address", &token).0, Some(2));
}
