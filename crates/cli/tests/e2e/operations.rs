//! What an operator meets: a configuration that appears later, a log that is JSON only, checks before
//! a start, metrics and the status.

use std::os::unix::fs::PermissionsExt as _;

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

#[test]
fn a_backup_of_a_running_gateway_can_be_started() {
    let gate = Gate::start("");
    assert_eq!(gate.home.run(&["grant", "create", "g"]).status.code(), Some(0));
    let to = gate.home.path("копия");
    let words = ["backup", to.to_str().unwrap()];
    let output = gate.home.run(&words);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let mode = |name: &str| std::fs::metadata(to.join(name)).unwrap().permissions().mode() & 0o777;
    for name in ["toolgate.db", "audit.key", "hash.key", "admin.token"] {
        assert_eq!(mode(name), 0o600, "{name}");
    }
    assert_eq!(gate.home.run(&words).status.code(), Some(2), "an existing folder stays");
    let data = to.to_str().unwrap();
    assert_eq!(gate.home.run(&["audit", "verify", "--data", data]).status.code(), Some(0));
    let home = Home::new();
    let restored = Gate::start_as(home, "", |command| {
        command.args(["--data", data]);
    });
    let grants = text_of(&restored.home.run(&["grant", "list", "--data", data]).stdout);
    assert!(grants.contains("g-"), "{grants}");
}

/// Every path, also with blanks.
#[test]
fn paths_in_cyrillic_work() {
    let home = Home::new();
    let folder = home.path("Дом и проект");
    let inside = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    std::fs::create_dir_all(inside("папка")).unwrap();
    std::fs::create_dir(inside(".cursor")).unwrap();
    let (config, data, policy) =
        (inside("настройки.yaml"), inside("данные"), inside("политика.yaml"));
    let server = inside("папка/сервер.sh");
    let program = env!("CARGO_BIN_EXE_toolgate");
    std::fs::write(&server, format!("#!/bin/sh\nexec {program} demo server safe\n")).unwrap();
    std::fs::set_permissions(&server, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::write(&policy, "version: '1'\ndefault: allow\n").unwrap();
    let entry = serde_json::json!({"mcpServers": {"Сервер": {"command": server, "args": ["да"]}}});
    std::fs::write(inside(".mcp.json"), entry.to_string()).unwrap();
    let here = |words: &[&str]| {
        let mut command = home.command(words);
        command.current_dir(&folder).env("HOME", &folder).env("TOOLGATE_DATA", &data);
        command
    };
    let run = |words: &[&str]| {
        let output = here(words).output().unwrap();
        let (out, err) = (text_of(&output.stdout), text_of(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{words:?}: {out}{err}");
        out
    };
    run(&["import", ".mcp.json", "--write", &config]);
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{text}{}\n", crate::gate::LISTEN)).unwrap();
    run(&["config", "check", &config]);
    run(&["policy", "test", &policy]);
    let gate = Gate::run(
        Home::new(),
        here(&["serve", "--ready-json", "--config", &config, "--policy", &policy]),
    );
    let gate = gate.unwrap_or_else(|(_, log)| panic!("{log}"));
    let called = run(&["tool", "call", "server__read_note", r#"{"text": "привет"}"#]);
    assert!(called.contains("done"), "{called}");
    run(&["client", "connect", "cursor", "--yes"]);
    assert!(run(&["doctor"]).contains("✓ server:server"));
    run(&["backup", &inside("копия")]);
    assert!(run(&["audit", "list"]).contains("read_note"));
    run(&["audit", "verify", "--data", &inside("копия")]);
    drop(gate);
}

#[test]
fn a_migration_is_shown_and_backed_up() {
    let home = Home::new();
    let data = home.path("data");
    std::fs::create_dir(&data).unwrap();
    let old = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../store-sqlite/tests/compat/schema-3");
    for file in std::fs::read_dir(old).unwrap().flatten() {
        std::fs::copy(file.path(), data.join(file.file_name())).unwrap();
    }
    let words = ["serve", "--dry-run", "--data", data.to_str().unwrap()];
    let shown = text_of(&home.run(&words).stdout);
    assert!(shown.contains("backups/schema-3-") && shown.contains("from schema 3 to"), "{shown}");
    assert!(!data.join("backups").exists(), "looking changes nothing");
    let mut gate = Gate::start_as(home, "", |command| {
        command.args(["--data", data.to_str().unwrap()]);
    });
    assert_eq!(gate.stop().0, Some(0));
    let home = gate.into_home();
    let copies: Vec<_> = std::fs::read_dir(data.join("backups")).unwrap().flatten().collect();
    assert_eq!(copies.len(), 1);
    assert!(
        copies[0].path().join("toolgate.db").exists()
            && copies[0].path().join("audit.key").exists()
    );
    let shown = text_of(&home.run(&words).stdout);
    assert_eq!(shown, "a start would migrate nothing\n");
    let sql = rusqlite::Connection::open(data.join("toolgate.db")).unwrap();
    sql.pragma_update(None, "user_version", 999).unwrap();
    drop(sql);
    for words in [&words[..], &["serve", "--data", data.to_str().unwrap()]] {
        let refused = home.run(words);
        assert_eq!(refused.status.code(), Some(2));
        let why = text_of(&refused.stderr);
        assert!(why.contains("schema 999, newer than") && !why.contains("damaged"), "{why}");
    }
}

#[test]
fn preflight_tells_by_its_exit_code() {
    let home = Home::new();
    let peer = crate::peer::Peer::new(&home, "peer");
    let config = format!(
        "policies:\n  p: {{ version: '1', default: deny, tools: {{ echo: {{ action: allow }}, pid: {{ approve: {{}} }}, tools_cache_reset: {{ action: deny }} }} }}\n\
         grants: [{{ label: ci, token: env:CI, policy: p }}]\nservers:\n{}",
        peer.entry("listing", "")
    );
    let gate = Gate::start_as(home, &config, |command| {
        command.env("CI", "a-token-of-a-grant-0123456");
    });
    // `serve` lists the server in the background.
    crate::gate::eventually("the tools are known", || {
        let list = gate.home.run(&["preflight", "peer__echo", "--grant", "ci"]);
        (list.status.code() == Some(0)).then_some(())
    });
    for (tools, code) in [
        (&["peer__echo"][..], 0),
        (&["peer__pid"], 11),
        (&["peer__echo", "peer__pid"], 11),
        (&["peer__ecko"], 12),
        (&["tools_cache_reset"], 10),
        (&["peer__echo", "tools_cache_reset"], 10),
        (&["my_permissions"], 0),
    ] {
        let words: Vec<&str> =
            ["preflight", "--grant", "ci", "-o", "json"].iter().chain(tools).copied().collect();
        let output = gate.home.run(&words);
        let shown = text_of(&output.stdout);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{tools:?}: {shown}{}",
            text_of(&output.stderr)
        );
    }
    let mut command = gate.home.command(&["preflight", "peer__echo"]);
    let output = command.env("TOOLGATE_TOKEN", "a-token-of-a-grant-0123456").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text_of(&output.stderr));
    assert_eq!(gate.home.run(&["preflight"]).status.code(), Some(64));
    assert_eq!(gate.home.run(&["preflight", "x", "--grant", "no"]).status.code(), Some(2));
    let mut gate = gate;
    let outlook =
        |home: &Home| home.run(&["preflight", "peer__echo", "--grant", "ci"]).status.code();
    for freeze in [&["--grant", "ci"][..], &["--server", "peer"], &["--all"]] {
        assert_eq!(gate.home.run(&[&["freeze"], freeze].concat()).status.code(), Some(0));
        assert_eq!(outlook(&gate.home), Some(10), "{freeze:?}");
        if freeze == ["--all"] {
            assert_eq!(gate.stop().0, Some(0));
            assert_eq!(outlook(&gate.home), Some(10), "without a gateway");
        } else {
            assert_eq!(gate.home.run(&[&["unfreeze"], freeze].concat()).status.code(), Some(0));
        }
    }
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
