//! Calls to sessions: requests, answers and errors.

use std::fs;
use std::thread;

use serde_json::{Value, json};

use super::{code, open, session_rows, text};
use crate::agent::Agent;
use crate::gate::{Gate, Home, eventually};
use crate::program::{Card, Program, tool_of};

/// Calls in the background while `meanwhile` plays the program.
fn while_calling<T>(
    agent: &Agent,
    tool: &str,
    arguments: &Value,
    meanwhile: impl FnOnce() -> T,
) -> (Value, T) {
    thread::scope(|scope| {
        let call = scope.spawn(|| agent.call(tool, arguments));
        let met = meanwhile();
        (call.join().unwrap(), met)
    })
}

#[test]
fn bytes_reach_the_program_and_come_back_as_they_are() {
    let gate = Gate::start("");
    let schema = json!({"type": "object", "properties": {"Сумма": {"type": "number"}}});
    let tools = json!([{"name": "НайтиЗаказ", "description": "Ищет", "input_schema": schema}]);
    let mut program = Program::register(&gate, &Card::new("u1", "").with(tools));
    for (endpoint, path) in [("sessions", "/mcp/sessions"), ("", "/mcp")] {
        let agent =
            Agent::open_at(&gate, path, "2025-11-25").unwrap_or_else(|_| panic!("{endpoint}"));
        let arguments = r#"{"Сумма":1.50, "Ёлка" : ["\u0401","Ё",1e5,{}],"session_id":"u1"}"#;
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"НайтиЗаказ","arguments":{arguments}}}}}"#
        );
        let reply = thread::scope(|scope| {
            let call = scope.spawn(|| agent.send(&body));
            let raw = program.hear_raw();
            assert!(
                raw.contains(r#""Сумма":1.50"#) && raw.contains(r#""\u0401","Ё",1e5,{}"#),
                "{raw}"
            );
            assert!(!raw.contains("session_id"), "{raw}");
            let frame: Value = serde_json::from_str(&raw).unwrap();
            let id = frame["id"].as_str().unwrap();
            assert!(id.starts_with("mgr-") && id.len() > 36, "{id}");
            program.say(&format!(
                r#"{{"jsonrpc":"2.0","id":"{id}","result":{{"content":[{{"type":"text","text":"\u0401лка — Ёлка"}},{{"type":"image","data":"AA==","mimeType":"image/png"}},{{"type":"resource","resource":{{"uri":"e1cib://data","text":"т"}}}},{{"type":"json","json":{{"Итог":1.50}}}}],"structured_content":{{"Итог":1.50}}}}}}"#
            ));
            call.join().unwrap()
        });
        let expected = r#"{"content":[{"type":"text","text":"\u0401лка — Ёлка"},{"type":"image","data":"AA==","mimeType":"image/png"},{"type":"resource","resource":{"uri":"e1cib://data","text":"т"}},{"type":"text","text":"{\"Итог\":1.50}"}],"isError":false,"structuredContent":{"Итог":1.50}}"#;
        assert!(reply.body.contains(expected), "{reply:?}");
    }
}

#[test]
fn errors_of_the_program_are_results_that_keep_code_and_message() {
    let gate = Gate::start("");
    let mut program = Program::register(&gate, &Card::new("u1", "find"));
    let agent = open(&gate);
    let (result, ()) = while_calling(&agent, "find", &json!({}), || {
        let (id, _) = program.called();
        program.say(&format!(
            r#"{{"jsonrpc":"2.0","id":"{id}","error":{{"code":-7,"message":"Поле не найдено"}}}}"#
        ));
    });
    assert_eq!(result["isError"], true);
    assert_eq!(text(&result), "Поле не найдено (code -7)");
}

#[test]
fn every_way_to_go_wrong_has_its_code() {
    let gate = Gate::start("");
    let strict =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let strict = json!({"name": "count", "input_schema": strict});
    let one = Card::new("one", "").with(json!([tool_of("find"), strict, tool_of("alone")]));
    let two = Card::new("two", "find").of("client", "stock");
    let mut programs = [Program::register(&gate, &one), Program::register(&gate, &two)];
    let agent = open(&gate);
    let cases = [
        ("nowhere", json!({}), "unknown_tool"),
        ("find", json!({}), "session_id_required"),
        ("find", json!({"session_id": "three"}), "unknown_session"),
        ("find", json!({"session_id": ""}), "invalid_arguments"),
        ("find", json!({"session_id": 7}), "invalid_arguments"),
        ("find", json!({"infobase_name": "nowhere"}), "unknown_session"),
        ("alone", json!({"session_id": "two"}), "session_mismatch"),
        ("count", json!({}), "invalid_arguments"),
        ("count", json!({"n": "SECRET-VALUE"}), "invalid_arguments"),
        ("find", json!({"session_id": "one", "foo-bar": 1}), "invalid_arguments"),
        ("find", json!({"session_id": "one", "a": [{"b c": 1}]}), "invalid_arguments"),
        (
            "find",
            json!({"session_id": "one", "_v8_call_options": {"no_deadline": true}}),
            "invalid_arguments",
        ),
    ];
    for (tool, arguments, expected) in cases {
        let result = agent.call(tool, &arguments);
        assert_eq!(code(&result), expected, "{tool} {arguments}: {result}");
        assert!(!result.to_string().contains("SECRET-VALUE"), "{result}");
        let nested = &result["structuredContent"]["_meta"]["error_code"];
        assert!(expected == "unknown_tool" || nested == expected, "{result}");
    }
    let result = agent.call("find", &json!({}));
    assert_eq!(
        result["_meta"]["candidates"],
        json!([
            {"session_id": "one", "infobase_name": "trade", "kind": "client"},
            {"session_id": "two", "infobase_name": "stock", "kind": "client"},
        ])
    );
    // Each of these leaves exactly one.
    for (arguments, at) in [
        (json!({"session_id": "two"}), 1),
        (json!({"infobase_name": "trade"}), 0),
        (json!({"session_id": "one", "infobase_name": "trade", "kind": "client"}), 0),
    ] {
        let program = &mut programs[at];
        let (result, params) = while_calling(&agent, "find", &arguments, || program.serve("here"));
        assert_eq!((text(&result), &params["arguments"]), ("here", &json!({})));
    }
}

#[test]
fn calls_run_one_at_a_time_in_order() {
    let gate = Gate::start("");
    let mut program = Program::register(&gate, &Card::new("u1", "find"));
    let agent = open(&gate);
    thread::scope(|scope| {
        let mut calls = Vec::new();
        let mut waiting = Vec::new();
        for n in 0..4 {
            let agent = &agent;
            calls.push(scope.spawn(move || agent.call("find", &json!({"n": n}))));
            if n == 0 {
                waiting.push(program.called());
            } else {
                eventually("it waits for its turn", || {
                    let list = agent.call("session_list", &json!({}));
                    (list["structuredContent"]["sessions"][0]["queued"] == n).then_some(())
                });
            }
        }
        for n in 0..4 {
            let (id, params) = waiting.pop().unwrap_or_else(|| program.called());
            assert_eq!(params["arguments"]["n"], n);
            program.answer(&id, &format!("done {n}"));
        }
        for (n, call) in calls.into_iter().enumerate() {
            assert_eq!(text(&call.join().unwrap()), format!("done {n}"));
        }
    });
}

#[test]
fn a_full_queue_is_busy_before_anything_is_counted() {
    let home = Home::new();
    let file = home.path("policy.yaml");
    let policy = "version: '1'\ndefault: allow\ntools:\n  find: { limits: [{ counter: c, max: 3, window: 30d, scope: grant }] }\n";
    fs::write(&file, policy).unwrap();
    let gate = Gate::start_as(home, "sessions: { queue: 1 }", |command| {
        command.arg("--policy").arg(&file);
    });
    let mut program = Program::register(&gate, &Card::new("u1", "find"));
    let agent = open(&gate);
    thread::scope(|scope| {
        let first = scope.spawn(|| agent.call("find", &json!({})));
        let (id, _) = program.called();
        let second = scope.spawn(|| agent.call("find", &json!({})));
        eventually("one waits for its turn", || {
            let list = agent.call("session_list", &json!({}));
            (list["structuredContent"]["sessions"][0]["queued"] == 1).then_some(())
        });
        let busy = agent.call("find", &json!({}));
        assert_eq!(code(&busy), "session_busy");
        assert!(busy["_meta"]["retry_after_s"].as_u64().unwrap() > 0, "{busy}");
        program.answer(&id, "first");
        program.serve("second");
        assert_eq!(text(&first.join().unwrap()), "first");
        assert_eq!(text(&second.join().unwrap()), "second");
    });
    let (third, _) = while_calling(&agent, "find", &json!({}), || program.serve("third"));
    assert_eq!(text(&third), "third", "what found no place was not counted");
    assert_eq!(code(&agent.call("find", &json!({}))), "rate_limited");
}

#[test]
fn concurrency_of_a_tool_follows_its_setting() {
    let gate = Gate::start("sessions: { tools: { find: { concurrency: 2 } } }");
    let mut program = Program::register(&gate, &Card::new("u1", "find"));
    let agent = open(&gate);
    thread::scope(|scope| {
        let calls = [0, 1].map(|n| {
            let agent = &agent;
            scope.spawn(move || agent.call("find", &json!({"n": n})))
        });
        let both = [program.called(), program.called()];
        // Answers may come in any order.
        for (id, params) in both.iter().rev() {
            program.answer(id, &params["arguments"]["n"].to_string());
        }
        let answers = calls.map(|call| call.join().unwrap());
        assert_eq!(answers.each_ref().map(text), ["0", "1"]);
    });
}

#[test]
fn a_timeout_keeps_the_slot_until_the_late_answer() {
    let gate = Gate::start("sessions: { tools: { slow: { timeout: 200ms } } }");
    let card = Card::new("u1", "").with(json!([tool_of("slow"), tool_of("next")]));
    let mut program = Program::register(&gate, &card);
    let agent = open(&gate);
    let (result, id) = while_calling(&agent, "slow", &json!({}), || program.called().0);
    assert_eq!(code(&result), "upstream_timeout");
    assert_eq!(result["_meta"]["effect"], "unknown");
    let cancel = program.hear();
    assert_eq!((&cancel["method"], &cancel["params"]["id"]), (&json!("tool.cancel"), &json!(id)));
    let (result, ()) = while_calling(&agent, "next", &json!({}), || {
        eventually("the next call waits", || {
            let other = open(&gate);
            let list = other.call("session_list", &json!({}));
            (list["structuredContent"]["sessions"][0]["queued"] == 1).then_some(())
        });
        program.answer(&id, "too late");
        program.serve("after it");
    });
    assert_eq!(text(&result), "after it");
}

#[test]
fn a_cancelled_call_is_not_answered() {
    let gate = Gate::start("");
    let mut program = Program::register(&gate, &Card::new("u1", "find"));
    let agent = open(&gate);
    let begun = agent.begin(
        r#"{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"find","arguments":{}}}"#,
    );
    let (id, _) = program.called();
    agent.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}"#);
    let cancel = program.hear();
    assert_eq!((&cancel["method"], &cancel["params"]["id"]), (&json!("tool.cancel"), &json!(id)));
    drop(begun);
    program.answer(&id, "whatever");
    let (result, _) = while_calling(&agent, "find", &json!({}), || program.serve("the next one"));
    assert_eq!(text(&result), "the next one");
}

#[test]
fn calls_are_in_the_audit_with_their_session() {
    let gate = Gate::start("");
    let mut program = Program::register(&gate, &Card::new("u1", "find").of("client", "base"));
    let agent = open(&gate);
    while_calling(&agent, "find", &json!({"a": 1}), || program.serve("yes"));
    agent.call("find", &json!({"session_id": "nobody"}));
    let rows = eventually("the outcome is written", || {
        let output =
            gate.home.run(&["audit", "list", "--after", "0", "-o", "jsonl", "--tool", "find"]);
        let rows = String::from_utf8(output.stdout).unwrap();
        let rows: Vec<Value> = rows.lines().map(|row| serde_json::from_str(row).unwrap()).collect();
        (rows.len() == 3).then_some(rows)
    });
    let of = |kind: &str| rows.iter().find(|row| row["kind"] == kind).unwrap();
    let row = of("intent");
    assert_eq!((&row["server"], &row["session_id"]), (&json!("sessions"), &json!("u1")), "{row}");
    assert_eq!(of("outcome")["outcome"], "ok");
    assert_eq!(of("denied")["error_code"], "unknown_session");
    let registered = session_rows(&gate.home);
    assert!(registered.contains(&("registered".to_owned(), json!("u1"))), "{registered:?}");
}
