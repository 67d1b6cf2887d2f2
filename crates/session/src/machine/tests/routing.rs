//! Targets of calls, and every reason for a refusal.

use serde_json::{Value, json};

use super::{Harness, card, only};
use crate::{Reach, SessionFailure, SessionSettings};

/// Two clients and a server; `both` is served by all, `own` has arguments named like selectors.
fn harness() -> Harness {
    let mut harness = Harness::with(SessionSettings {
        servers: vec!["files".to_owned()],
        ..SessionSettings::default()
    });
    for (socket, uid, kind, base) in
        [(1, "c1", "client", "trade"), (2, "c2", "client", "bp"), (3, "s1", "server", "trade")]
    {
        let mut params = card(uid, kind, base, &["both", uid, "session_list", "files__x"]);
        let own = json!({"type": "object", "properties": {"kind": {}, "infobase_name": {}}});
        params["tools"].as_array_mut().unwrap().push(json!({"name": "own", "input_schema": own}));
        let hidden = json!({"name": "secret", "input_schema": {}, "visibility": "internal"});
        params["tools"].as_array_mut().unwrap().push(hidden);
        harness.open(socket, None).ask(socket, "session.register", params);
    }
    harness
}

#[test]
fn calls_find_their_session() {
    let cases = [
        ("c1", "{}", "c1 {}"),
        ("c1", r#"{"session_id":"c1","a":1}"#, r#"c1 {"a":1}"#),
        ("c1", r#"{"session_id":"c2"}"#, "session_mismatch"),
        ("both", "{}", "session_id_required"),
        ("both", r#"{"session_id":"s1"}"#, "s1 {}"),
        ("both", r#"{"session_id":"zz"}"#, "unknown_session"),
        ("both", r#"{"session_id":""}"#, "invalid_arguments"),
        ("both", r#"{"session_id":["c1"]}"#, "invalid_arguments"),
        ("both", r#"{"infobase_name":"bp","a":1}"#, r#"c2 {"a":1}"#),
        ("both", r#"{"infobase_name":"BP"}"#, "c2 {}"),
        ("both", r#"{"infobase_name":"trade"}"#, "session_id_required"),
        ("both", r#"{"infobase_name":"Trade","kind":"client"}"#, "c1 {}"),
        ("both", r#"{"infobase_name":"trade","kind":"client"}"#, "c1 {}"),
        ("both", r#"{"kind":"server"}"#, "s1 {}"),
        ("both", r#"{"kind":"Server"}"#, "unknown_session"),
        ("both", r#"{"kind":"test"}"#, "unknown_session"),
        ("both", r#"{"kind":7}"#, "invalid_arguments"),
        ("both", r#"{"session_id":"c1","kind":"client"}"#, "c1 {}"),
        ("both", r#"{"session_id":"c1","kind":"server"}"#, "invalid_arguments"),
        ("own", r#"{"kind":"server"}"#, "session_id_required"),
        (
            "own",
            r#"{"session_id":"s1","kind":"x","infobase_name":1}"#,
            r#"s1 {"kind":"x","infobase_name":1}"#,
        ),
        ("c1", r#"{"bad-key":1}"#, "invalid_arguments"),
        ("c1", r#"{"a":[{"b":{"1x":1}}]}"#, "invalid_arguments"),
        ("c1", r#"{"Контрагент":{"ИНН_2":"x-y"}}"#, r#"c1 {"Контрагент":{"ИНН_2":"x-y"}}"#),
        ("c1", r#"{"all":1,"ALL":2}"#, "invalid_arguments"),
        ("c1", r#"{"a":[{"b":1,"Ｂ":2}]}"#, "invalid_arguments"),
        ("c1", r#"{"Session_ID":"c1"}"#, "invalid_arguments"),
        ("c1", "[]", "invalid_arguments"),
        ("c1", r#"{"_v8_call_options":{"no_deadline":true}}"#, "invalid_arguments"),
        ("s1", r#"{"_v8_call_options":{"no_deadline":true}}"#, "s1 {}"),
        ("secret", r#"{"session_id":"c1"}"#, "unknown_tool"),
        ("nothing", "{}", "unknown_tool"),
        ("session_list", r#"{"session_id":"c1"}"#, "unknown_tool"),
        ("session__session_list", r#"{"session_id":"c1"}"#, "c1 {}"),
        ("files__x", r#"{"session_id":"c1"}"#, "unknown_tool"),
        ("session__files__x", r#"{"session_id":"c1"}"#, "c1 {}"),
    ];
    let harness = harness();
    for (name, arguments, expected) in cases {
        assert_eq!(harness.route(name, arguments), expected, "{name} {arguments}");
    }
}

#[test]
fn names_of_infobases_match_in_any_case() {
    let mut harness = Harness::new();
    for (socket, base) in [(1, "Склад Ёлки"), (2, "Straße"), (3, "БП")] {
        let params = card(&format!("u{socket}"), "client", base, &["find"]);
        harness.open(socket, None).ask(socket, "session.register", params);
    }
    for (base, expected) in [
        ("склад ёлки", "u1 {}"),
        ("СКЛАД ЁЛКИ", "u1 {}"),
        ("Склад Елки", "unknown_session"),
        ("STRASSE", "u2 {}"),
        ("бп", "u3 {}"),
        ("бп ", "unknown_session"),
        ("BП", "unknown_session"),
    ] {
        let arguments = json!({"infobase_name": base}).to_string();
        assert_eq!(harness.route("find", &arguments), expected, "{base}");
    }
    // Bases that differ only by case are not told apart, so toolgate does not choose.
    harness.open(4, None).ask(4, "session.register", card("u4", "client", "бп", &["find"]));
    assert_eq!(harness.route("find", r#"{"infobase_name":"БП"}"#), "session_id_required");
}

#[test]
fn keys_are_unrestricted_if_the_operator_allows_it() {
    let mut settings = SessionSettings::default();
    settings.common.identifier_keys = false;
    let mut harness = Harness::with(settings);
    harness.join(1, "u1", "client", &["a"]);
    assert_eq!(harness.route("a", r#"{"bad-key":1}"#), r#"u1 {"bad-key":1}"#);
}

#[test]
fn a_lost_session_is_still_a_candidate() {
    let mut harness = harness();
    harness.close(1);
    harness.close(2);
    assert_eq!(harness.route("both", "{}"), "session_id_required");
    assert_eq!(harness.route("both", r#"{"session_id":"c1"}"#), "session_gone");
    assert_eq!(harness.route("both", r#"{"infobase_name":"bp"}"#), "session_gone");
    assert_eq!(harness.route("c1", "{}"), "no_live_session");
    assert_eq!(harness.route("both", r#"{"session_id":"s1"}"#), "s1 {}");
}

#[test]
fn grants_see_only_their_own() {
    let cases = [
        (Reach { infobase_name: only("trade"), ..Reach::default() }, "c2", "c1 s1"),
        (Reach { kind: only("client"), ..Reach::default() }, "s1", "c1 c2"),
        (Reach { session_id: only("c*"), ..Reach::default() }, "s1", "c1 c2"),
        (Reach { kind: only("nobody"), ..Reach::default() }, "c1", ""),
    ];
    for (reach, outside, inside) in cases {
        let mut harness = harness();
        harness.reach = reach;
        let selector = format!(r#"{{"session_id":"{outside}"}}"#);
        let all: Vec<&str> = inside.split_whitespace().collect();
        let expected = if all.is_empty() { "unknown_tool" } else { "unknown_session" };
        assert_eq!(harness.route("both", &selector), expected);
        assert_eq!(harness.route(outside, "{}"), "unknown_tool", "not even that it exists");
        let list = harness.gate.session_list(&harness.reach, harness.now);
        let ids =
            list["sessions"].as_array().unwrap().iter().map(|s| s["session_id"].as_str().unwrap());
        assert_eq!(ids.collect::<Vec<_>>(), all);
        let listed = harness
            .gate
            .published(&harness.reach)
            .tools
            .iter()
            .map(|t| t.json.clone())
            .collect::<String>();
        assert!(!listed.contains(outside), "{listed}");
        if let Err(failure) = harness.resolve("both", "{}") {
            assert!(!failure.result(false).to_string().contains(&format!("\"{outside}\"")));
        }
    }
}

#[test]
fn failures_name_cause_and_candidates() {
    let mut harness = harness();
    let failure = harness.resolve("both", "{}").unwrap_err();
    assert_eq!(
        failure.result(false),
        json!({
            "content": [{"type": "text", "text": "Several sessions serve `both`: select one with `session_id`. Sessions that serve it: `c1` (trade, client), `c2` (bp, client), `s1` (trade, server). Nothing was sent."}],
            "isError": true,
            "structuredContent": {"_meta": {"error_code": "session_id_required"}},
            "_meta": {
                "error_code": "session_id_required", "effect": "not_started",
                "candidates": [
                    {"session_id": "c1", "infobase_name": "trade", "kind": "client"},
                    {"session_id": "c2", "infobase_name": "bp", "kind": "client"},
                    {"session_id": "s1", "infobase_name": "trade", "kind": "server"},
                ],
            },
        })
    );
    harness.tell(3, "session.bye", Value::Null);
    let failure = harness.resolve("s1", "{}").unwrap_err();
    assert_eq!(
        failure.result(true),
        json!({
            "content": [{"type": "text", "text": "No session serves `s1` now: one of kind `server` (configuration `server`) must connect first. It was last seen with infobase `trade` at 2023-11-14T22:13:20Z. Nothing was sent. Ask for it to be started, then try again."}],
            "isError": true,
            "_meta": {"error_code": "no_live_session", "effect": "not_started", "tool": "s1", "kind": "server", "config_id": "server", "infobase_name": "trade", "host_id": "unknown", "last_seen": "2023-11-14T22:13:20Z"},
        })
    );
    let long = SessionFailure::UnknownSession {
        candidates: (0..60)
            .map(|n| crate::Candidate {
                session_id: format!("u{n}").into(),
                infobase_name: "b".into(),
                kind: "k".into(),
            })
            .collect(),
    };
    assert_eq!(long.meta()["candidates"].as_array().unwrap().len(), 50);
    assert_eq!(long.meta()["more_candidates"], 10);
}
