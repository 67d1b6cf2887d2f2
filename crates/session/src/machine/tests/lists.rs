//! Lists, the showcase, and notifications of views.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Harness, card, only, secs};
use crate::{
    Input, Millis, Output, Reach, SessionMachine, SessionSettings, ShowcaseEntry, export, import,
};

#[test]
fn views_are_notified_of_real_changes_only_and_batched() {
    let mut harness = Harness::new();
    harness.watch();
    harness.join(1, "u1", "client", &["a"]);
    harness.join(2, "u2", "client", &["a", "b"]);
    assert!(harness.pass(Duration::from_millis(199)).is_empty());
    assert_eq!(harness.pass(Duration::from_millis(1)), ["changed 1"]);
    // Nothing that an agent could see.
    harness.close(2);
    harness.join(3, "u2", "client", &["a", "b"]);
    harness.join(4, "u2", "client", &["a", "b"]);
    assert!(harness.pass(secs(1)).is_empty());
    harness.tell(1, "session.tools_changed", json!({"tools": []}));
    assert_eq!(harness.pass(secs(1)), ["changed 1"]);
}

#[test]
fn views_are_not_notified_of_invisible_changes() {
    let mut harness = Harness::new();
    harness.reach = Reach { kind: only("server"), ..Reach::default() };
    harness.watch();
    harness.join(1, "u1", "client", &["a"]);
    assert!(harness.pass(secs(1)).is_empty());
    harness.join(2, "u2", "server", &["a"]);
    assert_eq!(harness.pass(secs(1)), ["changed 1"]);
    harness.input(Input::Unwatch { view: crate::ViewId(1) });
    harness.tell(2, "session.bye", Value::Null);
    assert!(harness.pass(secs(1)).is_empty());
}

#[test]
fn a_name_published_twice_is_listed_once() {
    let mut harness = Harness::new();
    harness.open(1, None);
    let mut params = card("u1", "client", "trade", &["a", "a"]);
    params["tools"][0]["description"] = "first".into();
    let lines = harness.ask(1, "session.register", params);
    assert_eq!(lines[0], "event doubled_tool u1");
    let published = harness.gate.published(&harness.reach);
    assert_eq!(published.tools.len(), 1);
    assert!(published.tools[0].json.contains(r#""description":"first""#));
}

#[test]
fn the_showcase_outlives_sessions_and_restarts() {
    let mut harness = Harness::new();
    harness.join(1, "u1", "client", &["a"]);
    let live = harness.gate.published(&harness.reach).tools[0].json.clone();
    assert!(live.contains(r#""enum":["u1"]"#) && !live.contains("required"));
    harness.tell(1, "session.bye", Value::Null);
    let kept = harness.gate.published(&harness.reach).tools[0].json.clone();
    assert!(kept.contains("session_id") && !kept.contains("enum") && !kept.contains("required"));
    let entries: Vec<ShowcaseEntry> = harness
        .gate
        .showcase()
        .map(|e| {
            let tools = e.tools.values().map(|tool| tool.raw.get());
            ShowcaseEntry::restore(e.key.clone(), tools, e.last_seen, e.publishers.iter().cloned())
        })
        .collect();
    harness.gate = SessionMachine::new(SessionSettings::default(), entries, harness.now);
    assert_eq!(harness.gate.published(&harness.reach).tools[0].json, kept);
    assert_eq!(harness.route("a", "{}"), "no_live_session");
    // Five days after the last register, even without any other event.
    harness.watch();
    assert!(harness.pass(secs(5 * 86_400 - 1)).is_empty());
    assert_eq!(harness.pass(secs(2)), ["changed 1"]);
    assert!(harness.names().is_empty());
}

#[test]
fn equal_tools_of_kept_entries_are_one() {
    let entry = |base: &str| {
        let infobase_name = Some(base.to_owned());
        let key =
            crate::EntryKey { kind: "c".to_owned(), config_id: "c".to_owned(), infobase_name };
        ShowcaseEntry::restore(key, [r#"{"name":"a","input_schema":{}}"#], Millis(1), [])
    };
    let gate =
        SessionMachine::new(SessionSettings::default(), ["x", "y", "z"].map(entry), Millis(2));
    assert_eq!(gate.published(&Reach::default()).tools[0].definitions.len(), 1);
}

#[test]
fn only_a_register_prolongs_the_life_of_an_entry() {
    let mut harness = Harness::new();
    harness.join(1, "u1", "client", &["a"]);
    let began = harness.now;
    let seen = |harness: &Harness| {
        let entry = harness.gate.showcase().next().unwrap();
        (entry.last_seen, entry.tools.keys().map(ToString::to_string).collect::<Vec<_>>())
    };
    harness.pass(secs(100));
    harness.call(1, "a", "{}");
    harness.reply(1, 1, 1);
    let tools = json!({"tools": [{"name": "b", "input_schema": {}}]});
    harness.tell(1, "session.tools_changed", tools);
    assert_eq!(
        seen(&harness),
        (began, vec!["b".to_owned()]),
        "the newest tools, and no longer life"
    );
    harness.join(2, "u1", "client", &["c"]);
    assert_eq!(seen(&harness), (harness.now, vec!["c".to_owned()]));
}

#[test]
fn entries_have_their_own_keys() {
    let mut harness = Harness::new();
    let register =
        |harness: &mut Harness, socket: u64, base: &str, config_id: Option<&str>, tool: &str| {
            let mut params = card(&format!("u{socket}"), "client", base, &[tool]);
            if let Some(id) = config_id {
                params["config_id"] = id.into();
            }
            harness.open(socket, None).ask(socket, "session.register", params);
            harness.tell(socket, "session.bye", Value::Null);
        };
    register(&mut harness, 1, "trade", None, "a");
    register(&mut harness, 2, "bp", None, "b");
    assert_eq!(harness.names(), ["a", "b"], "two bases do not overwrite each other");
    register(&mut harness, 3, "trade", Some("УТ"), "c");
    register(&mut harness, 4, "bp", Some("УТ"), "d");
    assert_eq!(harness.names(), ["a", "b", "d"], "one configuration does");
    harness.reach = Reach { infobase_name: only("trade"), ..Reach::default() };
    assert_eq!(harness.names(), ["a", "d"], "a grant that may reach a publisher sees its entry");
    harness.reach = Reach { session_id: only("u2"), ..Reach::default() };
    assert_eq!(harness.names(), ["b"]);
}

#[test]
fn imported_entries_give_way() {
    let file = r#"{"version":1,"entries":[{"kind":"client","config_id":"client","tools":[{"name":"old","input_schema":{}}],"last_seen_at":1700000000}]}"#;
    let mut harness = Harness::new();
    harness.gate =
        SessionMachine::new(SessionSettings::default(), import(file).unwrap(), harness.now);
    assert_eq!(harness.names(), ["old"]);
    harness.reach = Reach { kind: only("client"), ..Reach::default() };
    assert_eq!(harness.names(), ["old"]);
    for reach in [
        Reach { kind: only("server"), ..Reach::default() },
        Reach { infobase_name: only("*"), ..Reach::default() },
        Reach { session_id: only("*"), ..Reach::default() },
    ] {
        harness.reach = reach;
        assert!(harness.names().is_empty());
    }
    harness.reach = Reach::default();
    harness.join(1, "u1", "client", &["new"]);
    assert_eq!(harness.names(), ["new"]);
    let all: Vec<&ShowcaseEntry> = harness.gate.showcase().map(|entry| &**entry).collect();
    assert_eq!(
        export(all),
        r#"{"version":1,"entries":[{"kind":"client","config_id":"client","tools":[{"input_schema":{"type":"object"},"name":"new"}],"last_seen_at":"2023-11-14T22:13:20Z"}]}"#
    );
}

#[test]
fn every_change_is_sent_to_the_store() {
    let mut harness = Harness::new();
    harness.open(1, None);
    let text = json!({"jsonrpc": "2.0", "id": 1, "method": "session.register", "params": card("u1", "client", "trade", &["a"])}).to_string();
    let outputs =
        harness.gate.handle(Input::Frame { socket: crate::SocketId(1), text: &text }, harness.now);
    let kept: Vec<&Arc<ShowcaseEntry>> = outputs
        .list
        .iter()
        .filter_map(|o| if let Output::Keep(entry) = o { Some(entry) } else { None })
        .collect();
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].last_seen, harness.now);
    let (result, outputs) =
        harness.gate.tools_cache_reset(None, &Reach::default(), harness.now).unwrap();
    assert_eq!(result, json!({"removed": 1, "scope": "all", "enabled": true}));
    assert!(matches!(outputs.list[..], [Output::Forget(_)]));
    assert_eq!(harness.names(), ["a"], "live sessions are untouched");
}

#[test]
fn tools_cache_reset_is_bounded() {
    let cases = [
        (None, Reach::default(), Some((2, "all"))),
        (Some(r#"{"config_id":"client"}"#), Reach::default(), Some((1, "by_config_id"))),
        (Some(r#"{"config_id":"other"}"#), Reach::default(), Some((0, "by_config_id"))),
        (Some("{}"), Reach { kind: only("server"), ..Reach::default() }, Some((1, "all"))),
        (Some(r#"{"config_id":7}"#), Reach::default(), None),
        (Some(r#"{"config":"x"}"#), Reach::default(), None),
    ];
    for (arguments, reach, expected) in cases {
        let mut harness = Harness::new();
        harness.join(1, "u1", "client", &["a"]);
        harness.join(2, "u2", "server", &["b"]);
        let result = harness
            .gate
            .tools_cache_reset(arguments, &reach, harness.now)
            .ok()
            .map(|(result, _)| result);
        let expected = expected
            .map(|(removed, scope)| json!({"removed": removed, "scope": scope, "enabled": true}));
        assert_eq!(result, expected, "{arguments:?}");
    }
}

#[test]
fn ascii_names_are_called_and_shown() {
    let mut harness =
        Harness::with(SessionSettings { ascii_names: true, ..SessionSettings::default() });
    harness.join(1, "u1", "client", &["ПровестиЗаказ"]);
    let tool = &harness.gate.published(&harness.reach).tools[0];
    assert!(
        tool.json.starts_with(r#"{"name":"ProvestiZakaz","title":"ПровестиЗаказ","#),
        "{}",
        tool.json
    );
    let lines = harness.call(1, "ProvestiZakaz", "{}");
    assert_eq!(lines, [super::sent(1, 1, 1, "ПровестиЗаказ", "{}")]);
    assert_eq!(harness.route("ПровестиЗаказ", "{}"), "unknown_tool");
}

#[test]
fn backward_clock_steps_are_ignored() {
    let mut harness = Harness::new();
    harness.join(1, "u1", "client", &["a"]);
    let later = harness.now;
    harness.now = Millis(5);
    harness.call(1, "a", "{}");
    harness.now = later;
    assert!(harness.pass(secs(59)).is_empty());
    assert_eq!(harness.pass(secs(1))[0], "answer 1 upstream_timeout unknown");
}

#[test]
fn everything_is_counted() {
    let mut harness = Harness::new();
    harness.join(1, "u1", "client", &["a"]);
    harness.join(2, "u2", "server", &["b"]);
    harness.open(3, None);
    harness.call(1, "a", "{}");
    harness.call(2, "a", "{}");
    harness.close(2);
    let counts = crate::SessionCounts {
        sockets: 2,
        anonymous: 1,
        sessions: 2,
        disconnected: 1,
        queued: 1,
        inflight: 1,
    };
    assert_eq!(harness.gate.counts(), counts);
}

#[test]
fn only_common_promises_are_published() {
    let mut harness = Harness::new();
    let mut params = card("u1", "client", "trade", &["a", "b"]);
    params["tools"][0]["output_schema"] = json!({"type": "object"});
    params["tools"][0]["annotations"] = json!({"readOnlyHint": true});
    params["tools"][0]["icons"] = json!([{"src": "https://example.com/i.png"}]);
    params["tools"][0]["_meta"] = json!({"x/y": 1.0});
    params["tools"][0]["title"] = "Найти".into();
    harness.open(1, None).ask(1, "session.register", params.clone());
    let item = |harness: &Harness| harness.gate.published(&harness.reach).tools[0].json.clone();
    assert!(item(&harness).contains(r#""outputSchema":{"type":"object"}"#), "{}", item(&harness));
    assert!(item(&harness).contains(r#""annotations":{"readOnlyHint":true},"#));
    assert!(item(&harness).contains(r#""icons":[{"src":"https://example.com/i.png"}]"#));
    assert!(item(&harness).contains(r#""_meta":{"x/y":1.0}"#));
    assert!(harness.gate.has_output_schema("a", &harness.reach));
    assert!(!harness.gate.has_output_schema("b", &harness.reach));
    params["client_uid"] = "u2".into();
    params["tools"][0]["output_schema"] = json!({"type": "object", "required": ["x"]});
    harness.open(2, None).ask(2, "session.register", params);
    assert!(!item(&harness).contains("outputSchema") && item(&harness).contains("annotations"));
    assert!(item(&harness).contains(r#""title":"Найти""#));
}
