//! Connecting and registering: rules and answers.

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::{audited, open};
use crate::gate::{Gate, Home, eventually};
use crate::program::{Card, Program, tool_of};
use crate::wire::get;

#[test]
fn a_program_registers() {
    let gate = Gate::start("");
    let mut program = Program::dial(&gate);
    let card = Card::new("u1", "find");
    let answer = program.ask("session.register", &card.params());
    let expected = json!({
        "session_id": "u1",
        "server_version": format!("toolgate/{}", env!("CARGO_PKG_VERSION")),
        "heartbeat_interval_ms": 15000,
        "idle_timeout_secs": 0,
    });
    assert_eq!(answer["result"], expected);
    assert_eq!(program.ask("session.register", &card.params())["error"]["code"], -32600);
    assert_eq!(program.ask("ping", &json!({}))["result"], json!({}));
    assert_eq!(program.ask("no.such", &json!({}))["error"]["code"], -32601);
    let changed = json!({"tools": [tool_of("other")]});
    assert_eq!(program.ask("session.tools_changed", &changed)["result"], json!({}));
    audited(&gate.home, "registered");
}

#[test]
fn what_is_wrong_is_named_and_the_socket_stays() {
    let gate = Gate::start("");
    let mut program = Program::dial(&gate);
    let whole = Card::new("u1", "find").params();
    let without = |key: &str| {
        let mut params = whole.clone();
        params.as_object_mut().unwrap().remove(key);
        params
    };
    let with = |key: &str, value: Value| {
        let mut params = whole.clone();
        params[key] = value;
        params
    };
    let cases = [
        (without("client_uid"), "client_uid"),
        (without("kind"), "kind"),
        (without("version"), "version"),
        (without("infobase_name"), "infobase_name"),
        (without("ib_session_number"), "ib_session_number"),
        (without("tools"), "tools"),
        (with("client_uid", json!("")), "client_uid"),
        (with("infobase_name", json!("")), "infobase_name"),
        (with("ib_session_number", json!(-1)), "ib_session_number"),
        (with("tools", json!([{"name": "x"}])), "input_schema"),
    ];
    for (params, field) in cases {
        let error = program.ask("session.register", &params)["error"].clone();
        assert_eq!(error["code"], -32602, "{error}");
        assert!(error["message"].as_str().unwrap().contains(field), "{error}");
    }
    for frame in [
        "no json",
        "[]",
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{}}"#,
    ] {
        program.say(frame);
        let answer = program.hear();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(-32700)));
    }
    program.send(Message::binary(vec![1, 2, 3])).unwrap();
    program.notify("no.such", &json!({}));
    let tools = json!({"tools": []});
    program.notify("session.tools_changed", &tools);
    assert_eq!(program.ask("session.tools_changed", &tools)["error"]["code"], -32600);
    assert_eq!(program.ask("session.register", &whole)["result"]["session_id"], "u1");
}

#[test]
fn a_live_uid_is_taken_over_only_by_its_own_kind() {
    let gate = Gate::start("");
    let card = Card::new("u1", "find");
    let mut first = Program::register(&gate, &card);
    let mut other = Program::dial(&gate);
    for stranger in [card.clone().of("server", "trade"), card.clone().of("client", "other")] {
        let error = other.ask("session.register", &stranger.params())["error"].clone();
        assert_eq!(error["code"], -32010, "{error}");
    }
    let mut second = Program::dial(&gate);
    let answer = second.ask("session.register", &card.params());
    assert_eq!(answer["result"]["reconnected"], true, "{answer}");
    assert_eq!(first.closed(), Some(4001));
    for what in ["takeover_refused", "taken_over", "reconnected"] {
        audited(&gate.home, what);
    }
}

#[test]
fn programs_without_a_valid_token_are_rejected() {
    let home = Home::new();
    let config = "sessions: { tokens: [env:OPEN, { token: env:BOUND, kinds: [server], infobases: ['trade_*'], uids: ['u2', 'srv-*'] }] }";
    let (open, bound) = ("CANARY-open-token-0123456789", "CANARY-bound-token-0123456789");
    let mut gate = Gate::start_as(home, config, |command| {
        command.env("OPEN", open).env("BOUND", bound);
    });
    for token in ["", "/", "/CANARY-wrong", "/CANARY-open-token-0123456788"] {
        let mut stranger = Program::dial_at(&gate, token).unwrap();
        assert_eq!(stranger.closed(), Some(1008), "{token}");
    }
    let card = Card::new("u1", "find");
    let mut program = Program::register_at(&gate, &format!("/{open}"), &card);
    let mut bounded = Program::dial_at(&gate, &format!("/{bound}")).unwrap();
    for (uid, kind, base, field) in [
        ("u2", "client", "trade_dev", "`kind`"),
        ("u2", "server", "other", "`infobase_name`"),
        ("u3", "server", "trade_dev", "`client_uid`"),
        ("U2", "server", "trade_dev", "`client_uid`"),
        ("xsrv-1", "server", "trade_dev", "`client_uid`"),
    ] {
        let params = Card::new(uid, "find").of(kind, base).params();
        let error = bounded.ask("session.register", &params)["error"].clone();
        assert_eq!(error["code"], -32602, "{error}");
        assert!(error["message"].as_str().unwrap().starts_with(field), "{error}");
    }
    let params = Card::new("u2", "find").of("server", "trade_dev").params();
    assert_eq!(bounded.ask("session.register", &params)["result"]["session_id"], "u2");
    // Another token is another owner.
    let mut thief = Program::dial_at(&gate, &format!("/{open}")).unwrap();
    assert_eq!(thief.ask("session.register", &params)["error"]["code"], -32010);
    for what in ["token_refused", "outside_bounds", "takeover_refused"] {
        audited(&gate.home, what);
    }
    assert_eq!(program.ask("ping", &json!({}))["result"], json!({}));
    assert!(!get(&gate.admin(), "/metrics").body.contains("CANARY"));
    gate.stop();
    assert!(!gate.log.text().contains("CANARY"), "{}", gate.log.text());
    assert!(!gate.home.data_text().contains("CANARY"));
}

#[test]
fn a_token_that_is_taken_away_closes_its_sockets() {
    let home = Home::new();
    let (one, two) = ("token-number-one-0123456789", "token-number-two-0123456789");
    let gate = Gate::start_as(home, "sessions: { tokens: [env:ONE, env:TWO] }", |command| {
        command.env("ONE", one).env("TWO", two);
    });
    let mut stays = Program::register_at(&gate, &format!("/{one}"), &Card::new("u1", "find"));
    let mut goes = Program::register_at(&gate, &format!("/{two}"), &Card::new("u2", "find"));
    gate.configure("sessions: { tokens: [env:ONE] }");
    assert_eq!(goes.closed(), Some(1008));
    assert_eq!(stays.ask("ping", &json!({}))["result"], json!({}));
}

#[test]
fn other_requests_are_refused_with_directions() {
    let gate = Gate::start("");
    let address = gate.address("sessions");
    for (path, status) in [("/sessions", 426), ("/", 404), ("/mcp", 404), ("/sessionsx", 404)] {
        assert_eq!(get(&address, path).status, status, "{path}");
    }
    let origins = [
        ("https://evil.example.com", Some(403)),
        ("null", Some(403)),
        ("http://localhost:8080", None),
    ];
    for (origin, refused) in origins {
        let status = match Program::dial_as(&gate, "", &[("Origin", origin)]) {
            Ok(_) => None,
            Err(Error::Http(response)) => Some(response.status().as_u16()),
            Err(error) => panic!("{error}"),
        };
        assert_eq!(status, refused, "{origin}");
    }
}

#[test]
fn a_stop_closes_every_socket_without_session_shutdown() {
    let mut gate = Gate::start("");
    let mut program = Program::register(&gate, &Card::new("u1", "find"));
    let mut anonymous = Program::dial(&gate);
    gate.signal(rustix::process::Signal::TERM);
    for program in [&mut program, &mut anonymous] {
        assert_eq!(program.closed(), Some(1012));
    }
    assert_eq!(gate.wait().0, Some(0));
}

#[test]
fn people_see_connected_sessions() {
    let gate = Gate::start("");
    let _program = Program::register(&gate, &Card::new("u1", "find").of("client", "trade"));
    let _anonymous = Program::dial(&gate);
    let items = eventually("both are listed", || {
        let output = gate.home.run(&["session", "list", "-o", "jsonl"]);
        let items = String::from_utf8(output.stdout).unwrap();
        let items: Vec<Value> =
            items.lines().map(|item| serde_json::from_str(item).unwrap()).collect();
        (items.len() == 2).then_some(items)
    });
    assert_eq!((&items[0]["session_id"], &items[0]["state"]), (&json!("u1"), &json!("active")));
    assert_eq!((&items[1]["session_id"], &items[1]["state"]), (&Value::Null, &json!("anonymous")));
    assert_eq!(items[1]["peer"], "127.0.0.1");
    assert!(items[1]["what_to_do"].as_str().unwrap().contains("registers again"), "{items:?}");
    let built_in = open(&gate).call("session_list", &json!({}));
    assert_eq!(built_in["structuredContent"]["sessions"].as_array().unwrap().len(), 1);
    let table = gate.home.run(&["session", "list"]);
    assert!(String::from_utf8(table.stdout).unwrap().contains("u1"));
    assert!(String::from_utf8(table.stderr).unwrap().contains("a socket from 127.0.0.1: "));
}

#[test]
fn two_programs_that_take_one_uid_from_each_other_are_named() {
    let gate = Gate::start("");
    let mut programs = Vec::new();
    let hosts = ["left", "right"];
    // More than five a minute; a slow run repeats until it is fast enough.
    let (item, table) = eventually("the conflict is seen", || {
        for host in hosts.repeat(4) {
            let mut program = Program::dial(&gate);
            let mut params = Card::new("u1", "find").params();
            params["host_id"] = host.into();
            let answer = program.ask("session.register", &params);
            assert_eq!(answer["result"]["session_id"], "u1", "{answer}");
            programs.push(program);
        }
        let output = gate.home.run(&["session", "list", "-o", "jsonl"]);
        let item: Value = serde_json::from_slice(&output.stdout).unwrap();
        let table = gate.home.run(&["session", "list"]);
        (!item["conflict"].is_null()).then_some((item, String::from_utf8(table.stderr).unwrap()))
    });
    assert_eq!(item["conflict"], json!(hosts), "{item}");
    assert_eq!(item["state"], "active");
    assert!(table.contains("(hosts left, right)"), "{table}");
    audited(&gate.home, "conflict");
    // An agent does not see the hosts of a conflict.
    let list = open(&gate).call("session_list", &json!({}));
    assert!(list["structuredContent"]["sessions"][0].get("conflict").is_none(), "{list}");
}
