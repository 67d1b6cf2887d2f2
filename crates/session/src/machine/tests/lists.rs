//! Lists, the showcase, and who is told.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Bed, card, only, secs};
use crate::{Entry, Input, Millis, Output, Reach, Sessions, Settings, export, import};

#[test]
fn views_are_told_of_real_changes_only_and_not_at_once() {
    let mut bed = Bed::new();
    bed.watch();
    bed.join(1, "u1", "client", &["a"]);
    bed.join(2, "u2", "client", &["a", "b"]);
    assert!(bed.pass(Duration::from_millis(199)).is_empty());
    assert_eq!(bed.pass(Duration::from_millis(1)), ["changed 1"]);
    // Nothing that an agent could see.
    bed.close(2);
    bed.join(3, "u2", "client", &["a", "b"]);
    bed.join(4, "u2", "client", &["a", "b"]);
    assert!(bed.pass(secs(1)).is_empty());
    bed.tell(1, "session.tools_changed", json!({"tools": []}));
    assert_eq!(bed.pass(secs(1)), ["changed 1"]);
}

#[test]
fn views_are_not_told_of_what_they_cannot_see() {
    let mut bed = Bed::new();
    bed.reach = Reach { kind: only("server"), ..Reach::default() };
    bed.watch();
    bed.join(1, "u1", "client", &["a"]);
    assert!(bed.pass(secs(1)).is_empty());
    bed.join(2, "u2", "server", &["a"]);
    assert_eq!(bed.pass(secs(1)), ["changed 1"]);
    bed.input(Input::Unwatch { view: crate::ViewId(1) });
    bed.tell(2, "session.bye", Value::Null);
    assert!(bed.pass(secs(1)).is_empty());
}

#[test]
fn a_name_that_one_session_publishes_twice_counts_once() {
    let mut bed = Bed::new();
    bed.open(1, None);
    let mut params = card("u1", "client", "trade", &["a", "a"]);
    params["tools"][0]["description"] = "first".into();
    let lines = bed.ask(1, "session.register", params);
    assert_eq!(lines[0], "event doubled_tool u1");
    let published = bed.gate.published(&bed.reach);
    assert_eq!(published.tools.len(), 1);
    assert!(published.tools[0].json.contains(r#""description":"first""#));
}

#[test]
fn the_showcase_outlives_sessions_and_restarts() {
    let mut bed = Bed::new();
    bed.join(1, "u1", "client", &["a"]);
    let live = bed.gate.published(&bed.reach).tools[0].json.clone();
    assert!(live.contains(r#""enum":["u1"]"#) && !live.contains("required"));
    bed.tell(1, "session.bye", Value::Null);
    let kept = bed.gate.published(&bed.reach).tools[0].json.clone();
    assert!(kept.contains("session_id") && !kept.contains("enum") && !kept.contains("required"));
    let entries: Vec<Entry> = bed
        .gate
        .showcase()
        .map(|e| {
            let tools = e.tools.values().map(|tool| tool.raw.get());
            Entry::restore(e.key.clone(), tools, e.last_seen, e.publishers.iter().cloned())
        })
        .collect();
    bed.gate = Sessions::new(Settings::default(), entries, bed.now);
    assert_eq!(bed.gate.published(&bed.reach).tools[0].json, kept);
    assert_eq!(bed.route("a", "{}"), "no_live_session");
    // Five days after the last register, also when nobody comes by.
    bed.watch();
    assert!(bed.pass(secs(5 * 86_400 - 1)).is_empty());
    assert_eq!(bed.pass(secs(2)), ["changed 1"]);
    assert!(bed.names().is_empty());
}

#[test]
fn equal_tools_of_kept_entries_are_one() {
    let entry = |base: &str| {
        let infobase_name = Some(base.to_owned());
        let key = crate::Key { kind: "c".to_owned(), config_id: "c".to_owned(), infobase_name };
        Entry::restore(key, [r#"{"name":"a","input_schema":{}}"#], Millis(1), [])
    };
    let gate = Sessions::new(Settings::default(), ["x", "y", "z"].map(entry), Millis(2));
    assert_eq!(gate.published(&Reach::default()).tools[0].definitions.len(), 1);
}

#[test]
fn only_a_register_prolongs_the_life_of_an_entry() {
    let mut bed = Bed::new();
    bed.join(1, "u1", "client", &["a"]);
    let began = bed.now;
    let seen = |bed: &Bed| {
        let entry = bed.gate.showcase().next().unwrap();
        (entry.last_seen, entry.tools.keys().map(ToString::to_string).collect::<Vec<_>>())
    };
    bed.pass(secs(100));
    bed.call(1, "a", "{}");
    bed.reply(1, 1, 1);
    let tools = json!({"tools": [{"name": "b", "input_schema": {}}]});
    bed.tell(1, "session.tools_changed", tools);
    assert_eq!(seen(&bed), (began, vec!["b".to_owned()]), "the newest tools, and no longer life");
    bed.join(2, "u1", "client", &["c"]);
    assert_eq!(seen(&bed), (bed.now, vec!["c".to_owned()]));
}

#[test]
fn entries_have_their_own_keys() {
    let mut bed = Bed::new();
    let register = |bed: &mut Bed, socket: u64, base: &str, config_id: Option<&str>, tool: &str| {
        let mut params = card(&format!("u{socket}"), "client", base, &[tool]);
        if let Some(id) = config_id {
            params["config_id"] = id.into();
        }
        bed.open(socket, None).ask(socket, "session.register", params);
        bed.tell(socket, "session.bye", Value::Null);
    };
    register(&mut bed, 1, "trade", None, "a");
    register(&mut bed, 2, "bp", None, "b");
    assert_eq!(bed.names(), ["a", "b"], "two bases do not overwrite each other");
    register(&mut bed, 3, "trade", Some("УТ"), "c");
    register(&mut bed, 4, "bp", Some("УТ"), "d");
    assert_eq!(bed.names(), ["a", "b", "d"], "one configuration does");
    bed.reach = Reach { infobase_name: only("trade"), ..Reach::default() };
    assert_eq!(bed.names(), ["a", "d"], "whoever may reach one of its publishers sees an entry");
    bed.reach = Reach { session_id: only("u2"), ..Reach::default() };
    assert_eq!(bed.names(), ["b"]);
}

#[test]
fn imported_entries_give_way() {
    let file = r#"{"version":1,"entries":[{"kind":"client","config_id":"client","tools":[{"name":"old","input_schema":{}}],"last_seen_at":1700000000}]}"#;
    let mut bed = Bed::new();
    bed.gate = Sessions::new(Settings::default(), import(file).unwrap(), bed.now);
    assert_eq!(bed.names(), ["old"]);
    bed.reach = Reach { kind: only("client"), ..Reach::default() };
    assert_eq!(bed.names(), ["old"]);
    for reach in [
        Reach { kind: only("server"), ..Reach::default() },
        Reach { infobase_name: only("*"), ..Reach::default() },
        Reach { session_id: only("*"), ..Reach::default() },
    ] {
        bed.reach = reach;
        assert!(bed.names().is_empty());
    }
    bed.reach = Reach::default();
    bed.join(1, "u1", "client", &["new"]);
    assert_eq!(bed.names(), ["new"]);
    let all: Vec<&Entry> = bed.gate.showcase().map(|entry| &**entry).collect();
    assert_eq!(
        export(all),
        r#"{"version":1,"entries":[{"kind":"client","config_id":"client","tools":[{"input_schema":{"type":"object"},"name":"new"}],"last_seen_at":"2023-11-14T22:13:20Z"}]}"#
    );
}

#[test]
fn the_store_hears_of_every_change() {
    let mut bed = Bed::new();
    bed.open(1, None);
    let text = json!({"jsonrpc": "2.0", "id": 1, "method": "session.register", "params": card("u1", "client", "trade", &["a"])}).to_string();
    let outputs =
        bed.gate.handle(Input::Frame { socket: crate::SocketId(1), text: &text }, bed.now);
    let kept: Vec<&Arc<Entry>> = outputs
        .list
        .iter()
        .filter_map(|o| if let Output::Keep(entry) = o { Some(entry) } else { None })
        .collect();
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].last_seen, bed.now);
    let (result, outputs) = bed.gate.tools_cache_reset(None, &Reach::default(), bed.now).unwrap();
    assert_eq!(result, json!({"removed": 1, "scope": "all", "enabled": true}));
    assert!(matches!(outputs.list[..], [Output::Forget(_)]));
    assert_eq!(bed.names(), ["a"], "live sessions are untouched");
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
        let mut bed = Bed::new();
        bed.join(1, "u1", "client", &["a"]);
        bed.join(2, "u2", "server", &["b"]);
        let result =
            bed.gate.tools_cache_reset(arguments, &reach, bed.now).ok().map(|(result, _)| result);
        let expected = expected
            .map(|(removed, scope)| json!({"removed": removed, "scope": scope, "enabled": true}));
        assert_eq!(result, expected, "{arguments:?}");
    }
}

#[test]
fn ascii_names_are_called_and_shown() {
    let mut bed = Bed::with(Settings { ascii_names: true, ..Settings::default() });
    bed.join(1, "u1", "client", &["ПровестиЗаказ"]);
    let tool = &bed.gate.published(&bed.reach).tools[0];
    assert!(
        tool.json.starts_with(r#"{"name":"ProvestiZakaz","title":"ПровестиЗаказ","#),
        "{}",
        tool.json
    );
    let lines = bed.call(1, "ProvestiZakaz", "{}");
    assert_eq!(lines, [super::sent(1, 1, 1, "ПровестиЗаказ", "{}")]);
    assert_eq!(bed.route("ПровестиЗаказ", "{}"), "unknown_tool");
}

#[test]
fn time_that_goes_backwards_is_not_believed() {
    let mut bed = Bed::new();
    bed.join(1, "u1", "client", &["a"]);
    let later = bed.now;
    bed.now = Millis(5);
    bed.call(1, "a", "{}");
    bed.now = later;
    assert!(bed.pass(secs(59)).is_empty());
    assert_eq!(bed.pass(secs(1))[0], "answer 1 upstream_timeout unknown");
}

#[test]
fn everything_is_counted() {
    let mut bed = Bed::new();
    bed.join(1, "u1", "client", &["a"]);
    bed.join(2, "u2", "server", &["b"]);
    bed.open(3, None);
    bed.call(1, "a", "{}");
    bed.call(2, "a", "{}");
    bed.close(2);
    let counts = crate::Counts {
        sockets: 2,
        anonymous: 1,
        sessions: 2,
        disconnected: 1,
        queued: 1,
        inflight: 1,
    };
    assert_eq!(bed.gate.counts(), counts);
}

#[test]
fn what_only_some_promise_is_not_shown() {
    let mut bed = Bed::new();
    let mut params = card("u1", "client", "trade", &["a", "b"]);
    params["tools"][0]["output_schema"] = json!({"type": "object"});
    params["tools"][0]["annotations"] = json!({"readOnlyHint": true});
    params["tools"][0]["icons"] = json!([{"src": "https://example.com/i.png"}]);
    params["tools"][0]["_meta"] = json!({"x/y": 1.0});
    params["tools"][0]["title"] = "Найти".into();
    bed.open(1, None).ask(1, "session.register", params.clone());
    let item = |bed: &Bed| bed.gate.published(&bed.reach).tools[0].json.clone();
    assert!(item(&bed).contains(r#""outputSchema":{"type":"object"}"#), "{}", item(&bed));
    assert!(item(&bed).contains(r#""annotations":{"readOnlyHint":true},"#));
    assert!(item(&bed).contains(r#""icons":[{"src":"https://example.com/i.png"}]"#));
    assert!(item(&bed).contains(r#""_meta":{"x/y":1.0}"#));
    assert!(bed.gate.has_output_schema("a", &bed.reach));
    assert!(!bed.gate.has_output_schema("b", &bed.reach));
    params["client_uid"] = "u2".into();
    params["tools"][0]["output_schema"] = json!({"type": "object", "required": ["x"]});
    bed.open(2, None).ask(2, "session.register", params);
    assert!(!item(&bed).contains("outputSchema") && item(&bed).contains("annotations"));
    assert!(item(&bed).contains(r#""title":"Найти""#));
}
