//! Policies and grants, from the file to the tool that is not called.

use std::fs;

use serde_json::{Value, json};

use crate::agent::{Agent, NEWEST, initialize, initialize_with};
use crate::gate::{Gate, Home, configuration, eventually};
use crate::peer::Peer;
use crate::wire::get;

const TOKENS: [(&str, &str); 2] =
    [("ONE", "the-first-token-of-all-of-them"), ("TWO", "the-second-token-of-all-of-them")];

const ECHO_ALONE: &str = "version: '1'\ndefault: deny\ntools:\n  echo: { action: allow }\n";

fn with_policy(home: Home, servers: &str, document: &str) -> Gate {
    let file = home.path("policy.yaml");
    fs::write(&file, document).unwrap();
    Gate::start_as(home, &format!("servers:\n{servers}"), |command| {
        command.arg("--policy").arg(file);
    })
}

/// `error_code` and `rule` of a refusal, or `sent`.
fn verdict(agent: &Agent, tool: &str) -> String {
    let result = agent.call(tool, &json!({}));
    match &result["_meta"]["error_code"] {
        Value::Null => "sent".to_owned(),
        code => format!("{code} {}", result["_meta"]["rule"]).replace('"', ""),
    }
}

#[test]
fn a_policy_decides_and_changes_while_agents_are_connected() {
    let home = Home::new();
    let peer = Peer::new(&home, "files");
    let gate = with_policy(home, &peer.entry("", ""), ECHO_ALONE);
    let agent = Agent::open(&gate, "files");
    assert_eq!(verdict(&agent, "echo"), "sent");
    assert_eq!(verdict(&agent, "pid"), "policy_denied (default deny)");
    let refused = agent.call("pid", &json!({}));
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("[POLICY DENIED] ") && refused["isError"] == true, "{refused}");
    assert!(refused["_meta"]["call_id"].is_string());

    let change = |document: &str| {
        let (new, file) = (gate.home.path("policy.new"), gate.home.path("policy.yaml"));
        fs::write(&new, document).unwrap();
        fs::rename(new, file).unwrap();
    };
    change(&ECHO_ALONE.replace("echo", "pid"));
    eventually("the new policy decides", || (verdict(&agent, "pid") == "sent").then_some(()));
    assert_eq!(verdict(&agent, "echo"), "policy_denied (default deny)");

    // An invalid document, and one that fails its own test, never become active.
    change("version: '1'\ndefault: alow\n");
    gate.log.wait_for("configuration not reloaded");
    assert_eq!(verdict(&agent, "pid"), "sent");
    let wrong = "tests:\n  - { call: { tool: echo }, expect: allow }\n";
    change(&format!("{}{wrong}", ECHO_ALONE.replace("echo", "pid")));
    gate.log.wait_for("test `");
    assert_eq!(verdict(&agent, "pid"), "sent");
    let metrics = get(&gate.admin(), "/metrics").body;
    assert!(metrics.contains("reloads_total{result=\"rejected\"} 2"), "{metrics}");
    assert!(metrics.contains("reloads_total{result=\"ok\"} 1"), "{metrics}");
}

#[test]
fn a_policy_that_cannot_be_used_ends_the_start() {
    let failing = "version: '1'\ndefault: deny\ntests:\n  - { call: { tool: a }, expect: allow }\n";
    for (document, words) in
        [("version: '1'\ndefault: alow\n", "policy.yaml:2:10"), (failing, "test `")]
    {
        let home = Home::new();
        home.configure(&configuration(""));
        fs::write(home.path("policy.yaml"), document).unwrap();
        let output = home.run(&["serve", "--policy", "policy.yaml"]);
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{printed}");
        assert!(printed.contains(words), "{printed}");
    }
    let home = Home::new();
    home.configure(&configuration(""));
    let output = home.run(&["serve", "--policy", "no-such-file.yaml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("no-such-file.yaml"));
}

#[test]
fn without_a_policy_everything_passes_and_is_written_down() {
    let home = Home::new();
    let peer = Peer::new(&home, "files");
    let mut gate = Gate::start_in(home, &format!("servers:\n{}", peer.entry("", "")));
    let agent = Agent::open(&gate, "files");
    for tool in ["delete_all", "echo"] {
        agent.request("tools/call", &json!({"name": tool, "arguments": {"secret": "value-7"}}));
    }
    peer.is_called("delete_all");
    assert_eq!(gate.stop().0, Some(0));
    let text = gate.home.data_text();
    for word in ["delete_all", "shadow_hold", "recommended", "secret"] {
        assert!(text.contains(word), "{word} is not in the data folder");
    }
    assert!(!text.contains("value-7"));
}

#[test]
fn limits_outlive_a_restart() {
    let limited = "version: '1'\ndefault: deny\ntools:\n  echo: { action: allow, limits: \
                   [{ counter: c, max: 2, window: 30d, scope: grant }] }\n";
    let mut home = Home::new();
    let peer = Peer::new(&home, "files");
    let mut verdicts = Vec::new();
    for _ in 0..2 {
        let mut gate = with_policy(home, &peer.entry("", ""), limited);
        let agent = Agent::open(&gate, "files");
        verdicts.extend([verdict(&agent, "echo"), verdict(&agent, "echo")]);
        assert_eq!(gate.stop().0, Some(0));
        home = gate.into_home();
    }
    let spent = "rate_limited /tools/echo/limits/c";
    assert_eq!(verdicts, ["sent", "sent", spent, spent]);
}

fn granted(home: Home, servers: &str) -> Gate {
    let config = format!(
        "policies:\n  open: {{ version: '1', default: allow }}\ngrants:\n  \
         - {{ label: one, token: 'env:ONE', policy: open, servers: [files] }}\n  \
         - {{ label: two, token: 'env:TWO' }}\n{servers}"
    );
    Gate::start_as(home, &config, |command| {
        command.envs(TOKENS);
    })
}

#[test]
fn a_token_opens_what_its_grant_may_reach_and_nothing_else() {
    let home = Home::new();
    let (files, other) = (Peer::new(&home, "files"), Peer::new(&home, "other"));
    let servers = format!("servers:\n{}{}", files.entry("", ""), other.entry("", ""));
    let gate = granted(home, &servers);
    for headers in ["", "Authorization: Bearer wrong\r\n", "Authorization: Basic eDp5\r\n"] {
        let reply = initialize_with(&gate, "/mcp/files", NEWEST, headers);
        assert_eq!(reply.status, 401, "{reply:?}");
        assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
    }
    let [(_, one), (_, two)] = TOKENS;
    let agent = Agent::open_with(&gate, "files", one);
    assert_eq!(verdict(&agent, "echo"), "sent");
    let bearer = format!("Authorization: Bearer {one}\r\n");
    assert_eq!(initialize_with(&gate, "/mcp/other", NEWEST, &bearer).status, 404);
    // A grant without a policy may look, and do nothing.
    let second = Agent::open_with(&gate, "other", two);
    assert_eq!(verdict(&second, "echo"), "policy_denied (no policy)");
    // The agent session of another is not there.
    let mut thief = Agent::open_with(&gate, "files", two);
    thief.session.clone_from(&agent.session);
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    assert_eq!(thief.send(ping).status, 404);
    assert_eq!(agent.send(ping).status, 200);
    assert_eq!(initialize(&gate, "files", NEWEST).status, 401);
}

#[test]
fn a_grant_that_is_taken_out_bites_at_once() {
    let home = Home::new();
    let peer = Peer::new(&home, "files");
    let servers = format!("servers:\n{}", peer.entry("", ""));
    let gate = granted(home, &servers);
    let agent = Agent::open_with(&gate, "files", TOKENS[0].1);
    assert_eq!(verdict(&agent, "echo"), "sent");
    gate.configure(&format!("grants: [{{ label: two, token: 'env:TWO' }}]\n{servers}"));
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    eventually("the token is refused", || (agent.send(ping).status == 401).then_some(()));
}

#[test]
fn a_policy_for_local_mode_with_grants_is_wrong_usage() {
    let home = Home::new();
    fs::write(home.path("policy.yaml"), ECHO_ALONE).unwrap();
    home.configure("version: 1\ngrants: [{ label: two, token: 'env:TWO' }]\n");
    let mut command = home.command(&["serve", "--policy", "policy.yaml"]);
    let output = command.envs(TOKENS).output().unwrap();
    assert_eq!(output.status.code(), Some(64));
    assert!(String::from_utf8(output.stderr).unwrap().contains("`--policy`"));
}
