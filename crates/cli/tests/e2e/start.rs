//! `serve` from nothing to ready, and everything that keeps it from getting there.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::gate::{Gate, Home, eventually};
use crate::wire::get;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// A start that must fail with exit code 2; its stderr.
#[track_caller]
fn refused(home: Home, words: &[&str]) -> String {
    let command = home.command(words);
    match Gate::run(home, command) {
        Err((status, printed)) => {
            assert_eq!(status.code(), Some(2), "{printed}");
            printed
        }
        Ok(gate) => panic!("toolgate started: {}", gate.ready()),
    }
}

#[track_caller]
fn refused_with(config: &str) -> String {
    let home = Home::new();
    home.configure(&format!("version: 1\n{config}\n"));
    refused(home, &["serve", "--ready-json"])
}

#[test]
fn nothing_configured_on_an_empty_machine() {
    // The usual ports are this test's alone in this suite; another program may hold them for
    // a moment.
    let mut gate = eventually("ports 4000 to 4002 are free", || {
        let home = Home::new();
        let command = home.command(&["serve", "--ready-json"]);
        match Gate::run(home, command) {
            Ok(gate) => Some(gate),
            Err((_, printed)) => {
                assert!(printed.contains("cannot listen on 127.0.0.1:400"), "{printed}");
                None
            }
        }
    });
    let mut expected = serde_json::json!({
        "ready": true,
        "mcp": "http://127.0.0.1:4001",
        "sessions": "ws://127.0.0.1:4000/sessions",
        "admin": "http://127.0.0.1:4002",
    });
    expected["pid"] = gate.pid().into();
    assert_eq!(*gate.ready(), expected);
    assert_eq!(get(&gate.mcp(), "/readyz").status, 200);
    assert_eq!(get(&gate.admin(), "/readyz").status, 200);

    let data = gate.home.path(".local/share/toolgate");
    let token_file = data.join("admin.token");
    assert_eq!((mode(&data), mode(&token_file)), (0o700, 0o600));
    let token = fs::read_to_string(&token_file).unwrap();
    assert!(token.trim().len() >= 32, "{token}");

    let (code, rest) = gate.stop();
    assert_eq!((code, rest.as_str()), (Some(0), ""), "one line on stdout and no more");
    let printed = gate.log.text();
    assert!(!printed.contains(token.trim()), "the admin token was printed");
    let token_file = token_file.display().to_string();
    for words in [
        "toolgate is up",
        "http://127.0.0.1:4001",
        "ws://127.0.0.1:4000/sessions",
        "http://127.0.0.1:4002",
        &token_file,
        "configuration  none",
        "No servers yet",
        "toolgate server add everything -- npx",
        "claude mcp add",
        "every user and program on this machine may call",
        "Denied: connections from other machines",
    ] {
        assert!(printed.contains(words), "{words} is missing in\n{printed}");
    }
}

/// The way of docs/quickstart.md on an empty HOME, without anything to install.
#[test]
fn three_commands_lead_to_a_governed_call_within_a_minute() {
    let since = Instant::now();
    // 1: `toolgate serve`; the configuration only chooses free ports.
    let gate = Gate::start("");
    // 2: a program that publishes tools.
    let mut program = gate.home.command(&["demo", "onec", "--uid", "demo-1", "--base", "trade"]);
    let mut program = program.spawn().unwrap();
    // 3: a call, as an agent would make it.
    let called = eventually("the tool can be called", || {
        let output = gate.home.run(&["tool", "call", "infobase_info"]);
        output.status.success().then_some(output)
    });
    assert!(since.elapsed() < Duration::from_mins(1), "{:?}", since.elapsed());
    drop(program.kill());
    program.wait().unwrap();
    assert!(String::from_utf8_lossy(&called.stdout).contains("УправлениеТорговлей"));
    let rows = gate.home.run(&["audit", "list", "-o", "jsonl"]);
    let rows = String::from_utf8(rows.stdout).unwrap();
    let rows = rows.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let rows: Vec<_> = rows.filter(|row| row["tool"] == "infobase_info").collect();
    let of = |kind: &str| rows.iter().find(|row| row["kind"] == kind).unwrap();
    assert_eq!(
        (&of("intent")["policy"], &of("outcome")["outcome"]),
        (&"recommended".into(), &"ok".into())
    );
    assert_eq!(gate.home.run(&["audit", "verify"]).status.code(), Some(0));
}

#[test]
fn a_listener_that_is_off_is_null() {
    let gate = Gate::start("listen: { mcp: 127.0.0.1:0, sessions: off, admin: off }");
    let ready = gate.ready().as_object().unwrap();
    assert_eq!(ready.keys().collect::<Vec<_>>(), ["admin", "mcp", "pid", "ready", "sessions"]);
    assert!(ready["mcp"].is_string() && ready["sessions"].is_null() && ready["admin"].is_null());
    gate.log.wait_for("admin          off");
}

#[test]
fn the_start_text_has_lines_to_paste() {
    let home = Home::new();
    fs::create_dir(home.path(".cursor")).unwrap();
    let config = "servers: { first: { command: 'true' }, second: { command: 'true' } }";
    let gate = Gate::start_in(home, config);
    let url = format!("http://{}/mcp", gate.mcp());
    gate.log.wait_for(&format!("\"toolgate\": {{\"url\": \"{url}\"}}"));
    gate.log.wait_for(&format!("{url}/first"));
    gate.log.wait_for(&format!("{url}/second"));
    gate.log.wait_for(&gate.home.file().display().to_string());
}

#[test]
fn the_start_text_states_who_may_call() {
    let one = "policies: { open: { version: '1', default: allow } }\n\
        grants:\n- { label: a, token_sha256: 0000000000000000000000000000000000000000000000000000000000000000, policy: open }\n";
    let two = one.to_owned()
        + "- { label: b, token_sha256: 1111111111111111111111111111111111111111111111111111111111111111, policy: open }\n";
    let paste = "/mcp --header \"Authorization: Bearer <token of a grant>\"";
    let cases = [
        ("", vec!["every user and program on this machine may call", "/mcp\n"]),
        (
            one,
            vec![
                "Open: agents with the token of the one grant, under its policy. Denied: calls",
                paste,
            ],
        ),
        (&two, vec!["Open: agents with the token of one of 2 grants, under its policy.", paste]),
        ("local: off", vec!["Denied: every call."]),
    ];
    for (config, words) in cases {
        let gate = Gate::start(config);
        for words in words {
            gate.log.wait_for(words);
        }
        gate.log.wait_for("Anyone who can read the admin token can change these settings");
    }
}

#[test]
fn where_the_data_folder_is() {
    type Case = (&'static str, &'static [&'static str], &'static [&'static str], &'static str);
    let cases: &[Case] = &[
        ("", &[], &["XDG_DATA_HOME"], "XDG_DATA_HOME/toolgate"),
        ("data: ./from-file", &[], &["XDG_DATA_HOME"], "from-file"),
        ("data: ./from-file", &[], &["TOOLGATE_DATA"], "TOOLGATE_DATA"),
        ("data: ./from-file", &["--data", "from-flag"], &["TOOLGATE_DATA"], "from-flag"),
    ];
    for (config, words, variables, expected) in cases {
        let gate = Gate::start_as(Home::new(), config, |command| {
            command.args(*words);
            let home = command.get_current_dir().unwrap().to_owned();
            for name in *variables {
                command.env(name, home.join(name));
            }
        });
        let folder = gate.home.path(expected);
        assert!(folder.join("admin.token").exists(), "{config} {words:?} {variables:?}");
        assert_eq!(mode(&folder), 0o700);
    }
}

#[test]
fn a_data_folder_serves_one_at_a_time() {
    let mut gate = Gate::start("data: ./data");
    let token = fs::read_to_string(gate.home.path("data/admin.token")).unwrap();
    let second = gate.home.run(&["serve", "--ready-json"]);
    let printed = String::from_utf8(second.stderr).unwrap();
    assert_eq!((second.status.code(), second.stdout.as_slice()), (Some(2), &b""[..]));
    assert!(
        printed.contains(&format!("(pid {})", gate.pid())) && printed.contains("--data"),
        "{printed}"
    );
    assert_eq!(get(&gate.mcp(), "/readyz").status, 200, "the first one is not disturbed");

    assert_eq!(gate.stop().0, Some(0));
    let mut command = gate.home.command(&["serve", "--ready-json"]);
    command.env("TOOLGATE_DATA", gate.home.path("data"));
    let again = Gate::run(Home::new(), command).map_err(|(_, printed)| printed).unwrap();
    let kept = fs::read_to_string(gate.home.path("data/admin.token")).unwrap();
    assert_eq!(kept, token, "the admin token is created once");
    drop(again);
}

#[test]
fn a_port_that_is_taken() {
    for listener in ["mcp", "sessions", "admin", "metrics"] {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let mut listen = serde_json::json!({"mcp": "off", "sessions": "off", "admin": "off"});
        listen[listener] = address.to_string().into();
        let printed = refused_with(&format!("listen: {listen}"));
        for words in [&format!("cannot listen on {address}"), &format!("`listen.{listener}`")] {
            assert!(printed.contains(words), "{words} is missing in {printed}");
        }
    }
}

#[test]
fn every_problem_of_the_configuration_in_one_run() {
    let printed = refused_with("lissten: {}\nservers:\n  a: { comand: x }\n  b: { url: nonsense }");
    for words in
        ["toolgate.yaml:2:1", "`listen`", "toolgate.yaml:4:8", "`command`", "toolgate.yaml:5:", "^"]
    {
        assert!(printed.contains(words), "{words} is missing in\n{printed}");
    }
    assert!(printed.contains("cannot be used"), "{printed}");
}

#[test]
fn a_configuration_that_is_not_there() {
    for words in [&["--config", "missing.yaml"][..], &[]] {
        let home = Home::new();
        let mut command = home.command(&["serve", "--ready-json"]);
        command.args(words);
        if words.is_empty() {
            command.env("TOOLGATE_CONFIG", home.path("missing.yaml"));
        }
        let (status, printed) = Gate::run(home, command).err().unwrap();
        assert_eq!(status.code(), Some(2));
        assert!(printed.contains("missing.yaml") && printed.contains("no such file"), "{printed}");
        assert!(printed.contains("--config"), "{printed}");
    }
}

#[test]
fn doors_that_would_stand_open() {
    let cases = [
        ("listen: { mcp: 0.0.0.0:0 }", "there is no grant"),
        ("listen: { mcp: '[::]:0' }", "there is no grant"),
        ("listen: { sessions: 0.0.0.0:0 }", "session tokens"),
        ("listen: { admin: 0.0.0.0:0 }", "without TLS"),
    ];
    for (config, reason) in cases {
        let printed = refused_with(config);
        assert!(
            printed.contains("toolgate refuses to start with this configuration"),
            "{config}: {printed}"
        );
        assert!(printed.contains(reason) && printed.contains("127.0.0.1"), "{config}: {printed}");
    }
}

#[test]
fn the_log_can_be_json() {
    let mut gate = Gate::start_as(Home::new(), "", |command| {
        command.args(["--log", "json"]);
    });
    gate.stop();
    let line = gate.log.line_with(&["\"stopped\""]);
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&line["level"], &line["message"]), (&"INFO".into(), &"stopped".into()));
}
