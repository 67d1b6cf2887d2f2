//! Sessions that fall silent, become idle or are stopped, and what is known of those that left.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Harness, card, only, secs};
use crate::{Input, Reach, SessionMachine, SessionSettings, ShowcaseEntry};

#[test]
fn silent_or_unregistered_sockets_are_closed() {
    let mut harness = Harness::with(SessionSettings::default());
    harness.open(1, None);
    harness.join(2, "u1", "client", &["find"]);
    assert_eq!(harness.pass(secs(20)), ["ping 1", "ping 2"]);
    harness.input(Input::Alive { socket: crate::SocketId(1) });
    let lines = harness.pass(secs(10));
    assert_eq!(
        lines,
        [
            "event not_registered -",
            "close 1 4002 no session.register in time",
            "close 2 4003 no sign of life",
            "event lost u1"
        ]
    );
    assert_eq!(harness.pass(secs(30)), ["event expired u1"]);
}

#[test]
fn idle_sessions_hide_or_are_asked_to_end() {
    let mut settings = SessionSettings {
        ping_interval: None,
        dead_after: Duration::from_hours(1),
        ..SessionSettings::default()
    };
    settings.common.idle_timeout = Some(secs(60));
    let mut harness = Harness::with(settings.clone());
    harness.join(1, "u1", "client", &["find"]);
    harness.pass(secs(59));
    assert_eq!(harness.route("find", "{}"), "u1 {}");
    assert_eq!(harness.pass(secs(1)), ["event idle u1"]);
    assert_eq!(harness.route("find", "{}"), "no_live_session");
    // A call by its id wakes it.
    harness.call(1, "find", r#"{"session_id":"u1"}"#);
    assert_eq!(harness.route("find", "{}"), "u1 {}");
    harness.reply(1, 1, 1);
    assert_eq!(harness.pass(secs(60)), ["event idle u1"]);
    settings.common.idle = crate::Idle::Shutdown;
    let mut harness = Harness::with(settings);
    harness.join(1, "u1", "client", &["find"]);
    let lines = harness.pass(secs(60));
    assert_eq!(
        lines[1],
        r#"send 1 {"jsonrpc":"2.0","id":"shutdown-1","method":"session.shutdown","params":{"reason":"idle","grace_ms":5000}}"#
    );
}

#[test]
fn a_reconnect_resets_the_idle_clock() {
    let mut settings = SessionSettings {
        ping_interval: None,
        dead_after: Duration::from_hours(1),
        ..SessionSettings::default()
    };
    settings.common.idle_timeout = Some(secs(60));
    let mut harness = Harness::with(settings);
    harness.join(1, "u1", "client", &["find"]);
    harness.pass(secs(50));
    harness.close(1);
    harness.pass(secs(9));
    harness.join(2, "u1", "client", &["find"]);
    assert!(harness.pass(secs(59)).is_empty());
    assert_eq!(harness.pass(secs(1)), ["event idle u1"]);
    // A hidden session that reconnects is visible again.
    assert_eq!(harness.route("find", "{}"), "no_live_session");
    harness.join(3, "u1", "client", &["find"]);
    assert_eq!(harness.route("find", "{}"), "u1 {}");
}

#[test]
fn stopping_closes_every_socket() {
    let mut harness = Harness::new();
    harness.join(1, "u1", "client", &["find"]);
    harness.open(2, None);
    harness.call(1, "find", "{}");
    let lines = harness.input(Input::Stop);
    assert_eq!(
        lines,
        [
            "close 1 1012 service restart",
            "close 2 1012 service restart",
            "answer 1 session_gone unknown"
        ]
    );
}

/// `_meta` of the refusal of a call to `find`.
fn missing(harness: &Harness) -> Value {
    let failure = harness.resolve("find", "{}").unwrap_err();
    assert_eq!(failure.error_code(), "no_live_session");
    Value::Object(failure.meta())
}

#[test]
fn a_missing_session_is_named_with_base_host_and_time() {
    let mut harness = Harness::new();
    for (socket, uid, base, host) in [(1, "u1", "trade", "pc-1"), (2, "u2", "Склад", "pc-2")] {
        let mut params = card(uid, "client", base, &["find"]);
        params["config_id"] = "УТ".into();
        params["host_id"] = host.into();
        harness.open(socket, None).ask(socket, "session.register", params);
    }
    harness.pass(secs(60));
    harness.close(2);
    harness.pass(secs(20));
    harness.tell(1, "session.bye", Value::Null);
    harness.pass(secs(100));
    let text = harness.resolve("find", "{}").unwrap_err().text();
    assert_eq!(
        text,
        "No session serves `find` now: one of kind `client` (configuration `УТ`) must connect first. It was last seen with infobase `trade` on host `pc-1` at 2023-11-14T22:14:40Z. Nothing was sent. Ask for it to be started, then try again."
    );
    let expected = json!({
        "error_code": "no_live_session", "effect": "not_started", "tool": "find",
        "kind": "client", "config_id": "УТ",
        "infobase_name": "trade", "host_id": "pc-1", "last_seen": "2023-11-14T22:14:40Z",
    });
    assert_eq!(missing(&harness), expected);
    // A grant that reaches only the other base learns nothing of this one.
    harness.reach = Reach { infobase_name: only("Склад"), ..Reach::default() };
    let other = missing(&harness);
    assert_eq!(other["infobase_name"], "Склад");
    assert_eq!(other["host_id"], "pc-2");
    assert_eq!(other["last_seen"], "2023-11-14T22:14:20Z", "when its socket was lost");
}

#[test]
fn where_a_tool_was_served_outlives_a_restart() {
    let mut harness = Harness::new();
    harness.join(1, "u1", "client", &["find"]);
    harness.pass(secs(60));
    harness.tell(1, "session.bye", Value::Null);
    let before = missing(&harness);
    let entries: Vec<ShowcaseEntry> =
        harness.gate.showcase().map(|entry| entry.as_ref().clone()).collect();
    assert_eq!(harness.now.since(entries[0].last_seen), secs(60), "leaving does not prolong life");
    harness.gate = SessionMachine::new(SessionSettings::default(), entries, harness.now);
    assert_eq!(missing(&harness), before);
    assert_eq!(before["last_seen"], "2023-11-14T22:14:20Z");
    assert_eq!(before["host_id"], "unknown");
}

#[test]
fn a_lost_session_is_named_while_it_is_awaited() {
    let mut harness = Harness::new();
    harness.join(1, "u1", "client", &["find"]);
    harness.pass(secs(5));
    harness.close(1);
    harness.pass(secs(5));
    let missing = missing(&harness);
    assert_eq!(missing["infobase_name"], "trade");
    assert_eq!(missing["last_seen"], "2023-11-14T22:13:25Z");
}

#[test]
fn of_an_imported_tool_only_the_kind_is_known() {
    let file = r#"{"version":1,"entries":[{"kind":"client","config_id":"УТ","tools":[{"name":"find","input_schema":{}}],"last_seen_at":"2023-11-14T10:00:00Z"}]}"#;
    let mut harness = Harness::new();
    let entries = crate::import(file).unwrap();
    harness.gate = SessionMachine::new(SessionSettings::default(), entries, harness.now);
    let failure = harness.resolve("find", "{}").unwrap_err();
    assert!(failure.text().contains("It was last seen at 2023-11-14T10:00:00Z."), "{failure:?}");
    assert_eq!(missing(&harness)["infobase_name"], Value::Null);
    assert_eq!(missing(&harness)["host_id"], Value::Null);
}

#[test]
fn an_anonymous_socket_is_shown_with_its_address() {
    let mut harness = Harness::new();
    harness.open(1, None);
    harness.pass(secs(3));
    let list = harness.gate.operator_list(harness.now);
    let socket = &list["anonymous"][0];
    assert_eq!(socket["peer"], "192.0.2.7");
    assert_eq!(socket["opened_secs_ago"], 3);
}
