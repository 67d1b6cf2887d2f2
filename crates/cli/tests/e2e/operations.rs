//! What an operator meets: a configuration that appears later, a log that is JSON only, checks before
//! a start, metrics and the status.

use serde_json::Value;

use crate::agent::Agent;
use crate::api::Api;
use crate::gate::{Gate, Home, eventually};
use crate::peer::Peer;
use crate::wire::get;

#[test]
fn a_configuration_that_is_created_after_the_start_is_used() {
    // Without a file the default ports are used; another test may have them for a moment.
    let gate = eventually("ports 4000 to 4002 are free", || {
        let home = Home::new();
        let command = home.command(&["serve", "--ready-json"]);
        Gate::run(home, command).ok()
    });
    assert!(Api::admin(&gate).get("status")["reload"].is_null());
    gate.home.configure("version: 1\nservers: { later: { command: cat } }\n");
    gate.log.wait_for("configuration reloaded");
    let status = Api::admin(&gate).get("status");
    assert_eq!(
        (&status["reload"]["result"], &status["server_counts"]["total"]),
        (&"ok".into(), &1.into())
    );
    gate.home.configure("version: 1\nservrs: {}\n");
    gate.log.wait_for("configuration not reloaded");
    let status = Api::admin(&gate).get("status");
    assert_eq!(status["reload"]["result"], "rejected");
    assert!(status["reload"]["error"].as_str().unwrap().contains("servrs"), "{status}");
    assert!(status["attention"].to_string().contains("the last reload was rejected"), "{status}");
}

#[test]
fn a_json_log_is_json_only() {
    let config =
        "grants: [{ label: a, token: env:T }]\nservers: { s: { command: no such program } }";
    let mut gate = Gate::start_as(Home::new(), config, |command| {
        command.args(["--log", "json"]).env("T", "a-token-of-a-grant-0123456");
    });
    gate.configure("servrs: {}");
    gate.log.wait_for("configuration not reloaded");
    gate.stop();
    let text = gate.log.text();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("not JSON: {line}")))
        .collect();
    let up = lines.iter().find(|line| line["message"] == "toolgate is up");
    assert_eq!(up.unwrap()["mcp"], gate.ready()["mcp"], "{text}");
    let warned = |code: &str| {
        lines.iter().any(|line| line["message"].as_str().unwrap_or_default().contains(code))
    };
    assert!(warned("TG1020") && warned("TG1021"), "{text}");
    // A start that fails is JSON too.
    let output = gate.home.run(&["serve", "--log", "json", "--config", "nosuch.yaml"]);
    assert_eq!(output.status.code(), Some(2));
    for line in String::from_utf8(output.stderr).unwrap().lines() {
        assert!(serde_json::from_str::<Value>(line).is_ok(), "{line}");
    }
}

#[test]
fn an_unknown_log_filter_is_refused() {
    let home = Home::new();
    let output = home.command(&["serve"]).env("TOOLGATE_LOG", "banana").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(printed.contains("`banana`") && printed.contains("off, error, warn"), "{printed}");
}

#[test]
fn config_check_and_serve_refuse_the_same_listeners() {
    let home = Home::new();
    let listen = "{ mcp: 0.0.0.0:0, sessions: 0.0.0.0:0, admin: 0.0.0.0:0 }";
    home.configure(&format!("version: 1\nlisten: {listen}\n"));
    for (verb, status) in [(&["config", "check", "toolgate.yaml"][..], 1), (&["serve"][..], 2)] {
        let output = home.run(verb);
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(status), "{printed}");
        assert_eq!(printed.matches("error[TG1022]").count(), 3, "{printed}");
        assert!(
            printed.contains("toolgate.yaml:2:16: error[TG1022]: `listen.mcp` is 0.0.0.0:0"),
            "{printed}"
        );
        assert!(printed.contains("hint: listen on 127.0.0.1, or configure `grants`"), "{printed}");
    }
}

#[test]
fn calls_and_their_ends_are_counted_by_server_decision_and_code() {
    let home = Home::new();
    let peer = Peer::new(&home, "peer");
    let gate = Gate::start_in(home, &format!("servers:\n{}", peer.entry("", "timeout: 60s")));
    let text = get(&gate.admin(), "/metrics").body;
    for line in [
        r#"toolgate_calls_total{server="peer",decision="allow",code="ok"} 0"#,
        r#"toolgate_calls_total{server="peer",decision="deny",code="policy_denied"} 0"#,
        r#"toolgate_reloads_total{result="rejected"} 0"#,
        "toolgate_sessions 0",
    ] {
        assert!(text.lines().any(|other| other == line), "{line} is missing:\n{text}");
    }
    for part in ["toolgate_build_info{version=", r#"toolgate_children{server="peer"} "#] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    let agent = Agent::open(&gate, "peer");
    assert!(agent.says("env").contains("PATH="));
    let expected = [
        r#"toolgate_call_duration_seconds_count{server="peer"} 1"#,
        r#"toolgate_admission_duration_seconds_count{server="peer"} 1"#,
    ];
    eventually("the call is counted", || {
        let text = get(&gate.admin(), "/metrics").body;
        expected.iter().all(|line| text.lines().any(|other| other == *line)).then_some(())
    });
}
