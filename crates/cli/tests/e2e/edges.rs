//! Edges: reloads under bound addresses, a thread for health, bodies that trickle, settings and
//! unknown paths.

use std::fs;

use rustix::process::Signal;
use serde_json::json;

use crate::agent::{Agent, initialize_with};
use crate::api::Api;
use crate::gate::{Gate, Home, LISTEN, eventually};
use crate::peer::{Peer, gate_with_peer};
use crate::wire::{Connection, get};

const TOKEN: &str = "a-token-of-more-than-20-characters";

#[test]
fn settings_with_unknown_values_are_rejected() {
    let home = Home::new();
    for (text, place) in [
        ("servers: { a: { command: x, pin: second } }", "2:34"),
        ("servers: { a: { url: 'http://127.0.0.1:1/', validate: maybe } }", "2:55"),
        ("servers: { a: { command: x, results: hide } }", "2:38"),
    ] {
        home.configure(&format!("version: 1\n{text}\n"));
        for (words, code) in [(&["serve"][..], 2), (&["config", "check"][..], 1)] {
            let output = home.run(words);
            let printed = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(code), "{text}: {printed}");
            assert!(printed.contains(&format!("toolgate.yaml:{place}:")), "{text}: {printed}");
        }
    }
    home.configure("version: 1\nservers: { a: { command: x, pin: strict, validate: true } }\n");
    assert_eq!(home.run(&["config", "check"]).status.code(), Some(0));
}

/// `config check` reports the places that `serve` cannot use.
#[test]
fn places_that_cannot_be_used_are_reported_by_both() {
    for (place, key) in [
        ("data: ./file", "`data`"),
        ("audit: { checkpoints: { file: ./none/copy } }", "`audit.checkpoints.file`"),
        ("audit: { checkpoints: { file: ./folder } }", "`audit.checkpoints.file`"),
        ("audit: { checkpoints: { syslog: /none/socket } }", "`audit.checkpoints.syslog`"),
    ] {
        let home = Home::new();
        fs::write(home.path("file"), "").unwrap();
        fs::create_dir(home.path("folder")).unwrap();
        home.configure(&format!("version: 1\n{LISTEN}\n{place}\n"));
        assert_eq!(home.run(&["serve"]).status.code(), Some(2), "{place}");
        let output = home.run(&["config", "check"]);
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{place}: {printed}");
        assert!(printed.contains(key) && printed.contains("not valid: 1 problem"), "{printed}");
        let output = home.run(&["config", "check", "-o", "json"]);
        let judged: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(
            (&judged["valid"], &judged["problems"][0]["code"]),
            (&json!(false), &json!("TG1015"))
        );
    }
    let home = Home::new();
    home.configure("version: 1\ndata: ./new\naudit: { checkpoints: { file: ./copy } }\n");
    assert_eq!(home.run(&["config", "check"]).status.code(), Some(0));
}

#[test]
fn a_server_added_at_run_time_is_held_to_the_same() {
    let gate = Gate::start("");
    let api = Api::admin(&gate);
    for key in [r#""pin":"second""#, r#""validate":"maybe""#, r#""results":"hide""#] {
        let entry = format!(r#"{{"name":"a","command":"sh",{key}}}"#);
        let reply = api.ask("POST", "servers", &entry);
        assert_eq!(reply.status, 422, "{key}: {reply:?}");
    }
}

#[test]
fn what_a_child_writes_to_stderr_reaches_the_log_and_no_agent() {
    let home = Home::new();
    let peer = Peer::new(&home, "peer");
    let config = format!("servers:\n{}", peer.entry("", "env: { PAPER: 'env:PAPER' }"));
    let gate = Gate::start_as(home, &config, |command| {
        command.env("PAPER", "of paper");
    });
    let agent = Agent::open(&gate, "peer");
    let failed = agent.call("crash", &json!({})).to_string();
    assert!(failed.contains("exited with code 9"), "{failed}");
    assert!(!failed.contains("paper"), "{failed}");
    // The log has the line, without the value that toolgate gave to the child.
    gate.log.wait_for("stderr: out ***");
    assert!(!gate.log.text().contains("out of paper"));
}

#[test]
fn a_child_that_dies_at_its_start_tells_agents_nothing_either() {
    let (gate, _peer) = gate_with_peer("", "exits", "");
    for path in ["/mcp/peer", "/mcp"] {
        let reply = initialize_with(&gate, path, "2025-11-25", "");
        assert!(!reply.body.contains("database"), "{reply:?}");
    }
    gate.log.wait_for("my database is missing");
}

/// A gateway that other machines can reach, and what must not become of it.
#[test]
fn a_reload_is_judged_by_the_addresses_that_are_bound() {
    let listen = "listen: { mcp: '0.0.0.0:0', sessions: '0.0.0.0:0', admin: '0.0.0.0:0' }";
    let loopback = "listen: { mcp: '127.0.0.1:0', sessions: off, admin: off }";
    let policies = "policies: { p: { version: '1', default: allow } }";
    let grants = "grants: [{ label: a, token: 'env:T', policy: p }]";
    let tokens = "sessions: { tokens: ['env:S'] }";
    let shield = "behind_proxy: [127.0.0.0/8]";
    let whole = [listen, policies, grants, tokens, shield].join("\n");
    let home = Home::new();
    let gate = Gate::start_as(home, &whole, |command| {
        command.env("T", TOKEN).env("S", "another-token-of-20-characters");
    });
    let unsafe_ones = [
        ([listen, policies, "", tokens, shield], "`listen.mcp`"),
        ([loopback, policies, "", tokens, shield], "`listen.mcp`"),
        ([loopback, "", "local: on", tokens, shield], "`listen.mcp`"),
        ([listen, policies, grants, "", shield], "`listen.sessions`"),
        ([loopback, policies, grants, "", shield], "`listen.sessions`"),
        ([listen, policies, grants, tokens, ""], "`listen.admin`"),
        ([loopback, policies, grants, tokens, ""], "`listen.admin`"),
    ];
    for (before, (parts, why)) in unsafe_ones.into_iter().enumerate() {
        gate.configure(&parts.join("\n"));
        eventually("the reload is refused", || {
            let text = gate.log.text();
            (text.matches("configuration not reloaded").count() > before).then_some(())
        });
        let text = gate.log.text();
        let last = text.rsplit("configuration not reloaded").next().unwrap();
        assert!(last.contains(why), "{parts:?}: {last}");
        assert_eq!(initialize_with(&gate, "/mcp", "2025-11-25", "").status, 401, "{parts:?}");
    }
    // The file before stays active.
    Agent::open_at_with(&gate, "/mcp", TOKEN);
}

#[test]
fn health_is_answered_while_every_other_thread_is_blocked() {
    let home = Home::new();
    let peer = Peer::new(&home, "peer");
    let config = format!("servers:\n{}", peer.entry("", ""));
    let mut gate = Gate::start_as(home, &config, |command| {
        command.env("TOKIO_WORKER_THREADS", "2").env("TOOLGATE_FAILPOINT", "before-send:block");
    });
    let agent = Agent::open(&gate, "peer");
    let body = r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"pid"}}"#;
    let mut waiting = Vec::new();
    eventually("both workers are blocked", || {
        if gate.log.text().matches("thread blocked at failpoint").count() >= 2 {
            return Some(());
        }
        if waiting.len() < 8 {
            waiting.push(agent.begin(body));
        }
        None
    });
    for listener in [gate.mcp(), gate.admin()] {
        for _ in 0..3 {
            let reply = get(&listener, "/healthz");
            assert_eq!((reply.status, reply.body.as_str()), (200, "ok\n"));
        }
    }
    gate.signal(Signal::KILL);
    gate.wait();
}

#[test]
fn a_body_that_trickles_is_given_up() {
    let gate = Gate::start("limits: { body_read: 1s }");
    let address = gate.mcp();
    let mut connection = Connection::open(&address);
    connection.send(
        format!(
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: 1000\r\n\r\n{{"
        )
        .as_bytes(),
    );
    let reply = connection.reply();
    assert_eq!(reply.status, 408, "{reply:?}");
    assert!(reply.body.contains("limits.body_read"), "{reply:?}");
}

#[test]
fn one_person_holds_a_share_of_the_streams_of_events() {
    let gate = Gate::start_as(
        Home::new(),
        "people: [{ name: duty, token: 'env:T', roles: [viewer] }]",
        |command| {
            command.env("T", TOKEN);
        },
    );
    let duty = Api::with(&gate, TOKEN);
    let mut held = Vec::new();
    let status = loop {
        let mut stream = duty.begin("GET", "/api/v1/events", "", "");
        let status = stream.head().status;
        if status != 200 || held.len() > 64 {
            break status;
        }
        held.push(stream);
    };
    assert_eq!((status, held.len()), (503, 8));
    let mut other = Api::admin(&gate).begin("GET", "/api/v1/events", "", "");
    assert_eq!(other.head().status, 200);
}

#[test]
fn a_gateway_leaves_no_core_dump() {
    let gate = Gate::start("");
    let limits = fs::read_to_string(format!("/proc/{}/limits", gate.pid())).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(line.split_whitespace().nth(4), Some("0"), "{line}");
}
