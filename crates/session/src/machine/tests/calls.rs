//! Calls: order, slots, deadlines, quarantine, cancellation, loss.

use serde_json::{Value, json};

use super::{Harness, OK, cancelled, card, secs, sent};
use crate::{CallNumber, Glob, Input, Output, SessionSettings, ToolSettings};

#[test]
fn one_call_at_a_time_in_order_of_arrival() {
    let mut harness = Harness::new();
    harness.join(1, "u1", "client", &["a", "b"]);
    assert_eq!(
        harness.call(1, "a", r#"{"Ключ":"Ёлка"}"#),
        [sent(1, 1, 1, "a", r#"{"Ключ":"Ёлка"}"#)]
    );
    assert!(harness.call(2, "b", "{}").is_empty());
    assert!(harness.call(3, "a", "{}").is_empty());
    assert_eq!(harness.reply(1, 1, 1), [format!("answer 1 {OK}"), sent(1, 2, 2, "b", "{}")]);
    assert_eq!(harness.reply(1, 2, 2), [format!("answer 2 {OK}"), sent(1, 3, 3, "a", "{}")]);
    assert_eq!(harness.reply(1, 3, 3), [format!("answer 3 {OK}")]);
    assert_eq!(harness.reply(1, 3, 3), ["event answer_dropped -"], "nothing is answered twice");
}

#[test]
fn errors_of_clients_are_results() {
    let mut harness = Harness::new();
    harness.join(1, "u1", "client", &["a"]);
    harness.call(1, "a", "{}");
    let error = json!({"jsonrpc": "2.0", "id": format!("mgr-1-{:032x}", 1), "error": {"code": -5, "message": "нет"}});
    let lines = harness.say(1, &error);
    assert_eq!(
        lines,
        [
            r#"answer 1 ok {"content":[{"text":"нет (code -5)","type":"text"}],"isError":true,"_meta":{"client_error":{"code":-5,"message":"нет"}}}"#
        ]
    );
}

#[test]
fn a_tool_may_take_several_calls_at_once() {
    let tool = |name: &str, n: u32| json!({"name": name, "input_schema": {}, "concurrency": n});
    let mut params = card("u1", "client", "trade", &["one"]);
    params["tools"] =
        json!([tool("two", 2), tool("three", 3), {"name": "one", "input_schema": {}}]);
    let mut harness = Harness::new();
    harness.open(1, None).ask(1, "session.register", params.clone());
    let starts = |lines: Vec<String>| lines.iter().filter(|line| line.starts_with("send")).count();
    let order = ["three", "three", "two", "three", "one", "three"];
    let started: Vec<usize> = order
        .iter()
        .enumerate()
        .map(|(n, name)| starts(harness.call(n as u64 + 1, name, "{}")))
        .collect();
    // Two of `three`; `two` would be the third beside them, and no call overtakes it.
    assert_eq!(started, [1, 1, 0, 0, 0, 0]);
    assert_eq!(starts(harness.reply(1, 1, 1)), 1, "`two` beside one `three`");
    assert_eq!(starts(harness.reply(1, 2, 2)), 1, "`three` beside `two`");
    assert_eq!(starts(harness.reply(1, 3, 3)), 0, "`one` runs alone");
    assert_eq!(starts(harness.reply(1, 4, 4)), 1);
    assert_eq!(starts(harness.reply(1, 5, 5)), 1);
    // The operator's setting overrides the tool's.
    let mut settings = SessionSettings::default();
    let one = ToolSettings { concurrency: Some(1), ..ToolSettings::default() };
    settings.common.tools.insert("three".to_owned(), one);
    let mut harness = Harness::with(settings);
    harness.open(1, None).ask(1, "session.register", params);
    assert_eq!(starts(harness.call(1, "three", "{}")), 1);
    assert_eq!(starts(harness.call(2, "three", "{}")), 0);
}

#[test]
fn a_timeout_keeps_the_slot_until_the_late_answer() {
    let mut harness = Harness::new();
    harness.join(1, "u1", "client", &["a"]);
    harness.call(1, "a", "{}");
    harness.pass(secs(30));
    harness.call(2, "a", "{}");
    let lines = harness.pass(secs(30));
    let expected = ["answer 1 upstream_timeout unknown".to_owned(), cancelled(1, 1, 1, "timeout")];
    assert_eq!(lines, expected);
    assert_eq!(
        harness.reply(1, 1, 1),
        ["event late_answer u1".to_owned(), sent(1, 2, 2, "a", "{}")]
    );
}

#[test]
fn a_quarantine_ends() {
    let mut harness = Harness::new();
    harness.join(1, "u1", "client", &["a"]);
    harness.call(1, "a", "{}");
    harness.pass(secs(60));
    harness.call(2, "a", "{}");
    assert!(harness.pass(secs(29)).is_empty());
    assert_eq!(harness.pass(secs(1)), [sent(1, 2, 2, "a", "{}")]);
    assert_eq!(harness.reply(1, 1, 1), ["event answer_dropped -"]);
}

#[test]
fn a_deadline_in_the_queue_has_no_effect() {
    let mut harness = Harness::new();
    harness.join(1, "u1", "client", &["a"]);
    harness.call(1, "a", "{}");
    harness.call(2, "a", "{}");
    let lines = harness.pass(secs(60));
    assert_eq!(
        lines,
        [
            "answer 1 upstream_timeout unknown".to_owned(),
            cancelled(1, 1, 1, "timeout"),
            "answer 2 upstream_timeout not_started".to_owned(),
        ]
    );
}

#[test]
fn deadlines_follow_their_precedence() {
    let mut params = card("s-1", "server", "trade", &["plain"]);
    params["tools"] = json!([
        {"name": "plain", "input_schema": {}},
        {"name": "own", "input_schema": {}, "timeout_ms": 5000},
        {"name": "set", "input_schema": {}, "timeout_ms": 5000},
    ]);
    let mut settings = SessionSettings::default();
    let seven = ToolSettings { timeout: Some(secs(7)), ..ToolSettings::default() };
    settings.kinds.get_mut("server").unwrap().tools.insert("set".to_owned(), seven);
    let allowed = |settings: &SessionSettings, name: &str, arguments: &str| {
        let mut harness = Harness::with(settings.clone());
        harness.open(1, None).ask(1, "session.register", params.clone());
        harness.resolve(name, arguments).unwrap().allowed
    };
    assert_eq!(allowed(&settings, "plain", "{}"), Some(secs(3600)));
    assert_eq!(allowed(&settings, "own", "{}"), Some(secs(5)));
    assert_eq!(allowed(&settings, "set", "{}"), Some(secs(7)));
    assert_eq!(allowed(&settings, "own", r#"{"_v8_call_options":{"no_deadline":true}}"#), None);
    settings.session_timeouts = vec![(Glob::lenient("s-*"), secs(9))];
    assert_eq!(allowed(&settings, "plain", "{}"), Some(secs(9)));
    assert_eq!(allowed(&settings, "own", "{}"), Some(secs(9)));
    assert_eq!(allowed(&settings, "set", "{}"), Some(secs(7)));
}

#[test]
fn unanswered_calls_make_a_session_unresponsive() {
    let mut harness = Harness::new();
    harness.join(1, "u1", "client", &["a"]);
    for call in 1..=3 {
        harness.call(call, "a", "{}");
        let lines = harness.pass(secs(60));
        assert_eq!(lines.contains(&"event unresponsive u1".to_owned()), call == 3);
        harness.pass(secs(30));
    }
    assert_eq!(harness.gate.operator_list(harness.now)["sessions"][0]["unresponsive"], true);
    // Agents are informed.
    harness.call(4, "a", "{}");
    harness.now = harness.now.after(secs(60));
    let outputs = harness.gate.handle(Input::Wake, harness.now).list;
    let text = outputs.iter().find_map(|output| match output {
        Output::Answer(answer) => answer.result.as_ref().err().map(crate::SessionFailure::text),
        _ => None,
    });
    assert!(text.unwrap().contains("time out repeatedly"));
    harness.pass(secs(30));
    harness.call(5, "a", "{}");
    harness.reply(1, 5, 5);
    assert_eq!(harness.gate.operator_list(harness.now)["sessions"][0]["unresponsive"], false);
}

#[test]
fn cancelled_while_queued_is_never_sent() {
    let mut harness = Harness::new();
    harness.join(1, "u1", "client", &["a"]);
    harness.call(1, "a", "{}");
    harness.call(2, "a", "{}");
    assert_eq!(harness.cancel(2), ["answer 2 cancelled not_started cancelled"]);
    assert!(harness.cancel(2).is_empty());
    assert_eq!(harness.reply(1, 1, 1), [format!("answer 1 {OK}")]);
}

#[test]
fn cancelled_while_running_waits_for_the_client() {
    let mut harness = Harness::new();
    harness.join(1, "u1", "client", &["a"]);
    harness.call(1, "a", "{}");
    assert_eq!(harness.cancel(1), [cancelled(1, 1, 1, "cancelled by the caller")]);
    assert!(harness.cancel(1).is_empty(), "it is sent once");
    assert_eq!(harness.reply(1, 1, 1), [format!("answer 1 {OK} cancelled")]);
    // A client that ignores it gets its time.
    harness.call(2, "a", "{}");
    harness.cancel(2);
    harness.call(3, "a", "{}");
    let lines = harness.pass(secs(30));
    assert_eq!(
        lines,
        ["answer 2 cancelled unknown cancelled".to_owned(), sent(1, 3, 3, "a", "{}")]
    );
}

#[test]
fn queued_calls_survive_a_lost_socket() {
    let mut harness = Harness::new();
    harness.join(1, "u1", "client", &["a"]);
    harness.call(1, "a", "{}");
    harness.call(2, "a", "{}");
    assert_eq!(harness.close(1), ["event lost u1"]);
    assert!(harness.pass(secs(29)).is_empty());
    assert_eq!(harness.route("a", r#"{"session_id":"u1"}"#), "session_gone");
    assert_eq!(harness.route("a", "{}"), "no_live_session");
    assert_eq!(
        harness.pass(secs(1)),
        ["event expired u1", "answer 1 session_gone unknown", "answer 2 session_gone not_started"]
    );
}

#[test]
fn queued_calls_continue_after_a_reconnect_and_nothing_is_sent_twice() {
    let mut harness = Harness::new();
    harness.join(1, "u1", "client", &["a"]);
    harness.call(1, "a", "{}");
    harness.call(2, "a", "{}");
    harness.close(1);
    harness.pass(secs(20));
    let lines = harness.join(2, "u1", "client", &["a"]);
    assert!(!lines.iter().any(|line| line.contains("tool.call")), "{lines:?}");
    assert_eq!(harness.reply(2, 1, 1), [format!("answer 1 {OK}"), sent(2, 2, 2, "a", "{}")]);
    // Its grace period is over and it is back: nothing more happens.
    assert_eq!(harness.reply(2, 2, 2), [format!("answer 2 {OK}")]);
    assert!(harness.pass(secs(600)).is_empty());
}

#[test]
fn a_new_process_does_not_block_the_queue_for_an_hour() {
    let mut harness = Harness::new();
    let mut params = card("u1", "server", "trade", &["a"]);
    params["pid"] = 1.into();
    harness.open(1, None).ask(1, "session.register", params.clone());
    harness.call(1, "a", "{}");
    harness.close(1);
    params["pid"] = 2.into();
    harness.open(2, None).ask(2, "session.register", params);
    let lines = harness.pass(secs(30));
    assert_eq!(lines[0], "answer 1 upstream_timeout unknown");
}

#[test]
fn a_server_is_waited_for() {
    let mut harness = Harness::new();
    harness.join(1, "u1", "server", &["a"]);
    harness.close(1);
    harness.call(1, "a", r#"{"session_id":"u1"}"#);
    harness.call(2, "a", "{}");
    assert_eq!(
        harness.pass(secs(10)),
        ["answer 1 session_gone not_started", "answer 2 no_live_session not_started"]
    );
    harness.call(3, "a", "{}");
    harness.pass(secs(5));
    let lines = harness.join(2, "u1", "server", &["a"]);
    assert_eq!(lines.last(), Some(&sent(2, 1, 3, "a", "{}")));
    assert!(harness.pass(secs(20)).is_empty());
}

#[test]
fn a_full_queue_is_busy() {
    let mut settings = SessionSettings::default();
    settings.common.queue = 2;
    let mut harness = Harness::with(settings);
    harness.join(1, "u1", "client", &["a"]);
    for call in 1..=3 {
        harness.call(call, "a", "{}");
    }
    let failure = harness.resolve("a", "{}").unwrap_err();
    assert_eq!(failure.error_code(), "session_busy");
    assert_eq!(failure.meta()["retry_after_s"], 1);
}

#[test]
fn changes_between_resolve_and_call() {
    type Change = fn(&mut Harness);
    let cases: [(Change, &str); 4] = [
        (
            |harness| drop(harness.tell(1, "session.bye", Value::Null)),
            "answer 1 session_gone not_started",
        ),
        (
            |harness| {
                harness.tell(1, "session.bye", Value::Null);
                harness.join(2, "u1", "client", &["a"]);
            },
            "answer 1 session_gone not_started",
        ),
        (
            |harness| drop(harness.tell(1, "session.tools_changed", json!({"tools": []}))),
            "answer 1 session_mismatch not_started",
        ),
        (
            |harness| {
                let changed = json!({"name": "a", "description": "new", "input_schema": {}});
                harness.tell(1, "session.tools_changed", json!({"tools": [changed]}));
            },
            "answer 1 session_mismatch not_started",
        ),
    ];
    for (change, expected) in cases {
        let mut harness = Harness::new();
        harness.join(1, "u1", "client", &["a"]);
        let target = harness.resolve("a", "{}").unwrap();
        change(&mut harness);
        let call = crate::SessionCall { call: crate::CallNumber(1), target, random: 0 };
        assert_eq!(harness.input(crate::Input::Call(call)), [expected]);
    }
}

#[test]
fn a_tool_removed_while_its_call_is_queued() {
    let mut harness = Harness::new();
    harness.join(1, "u1", "client", &["a", "b"]);
    harness.call(1, "a", "{}");
    harness.call(2, "b", "{}");
    let tools = json!({"tools": [{"name": "a", "input_schema": {}}]});
    let lines = harness.tell(1, "session.tools_changed", tools);
    assert_eq!(lines, ["answer 2 session_mismatch not_started"]);
    assert_eq!(harness.reply(1, 1, 1), [format!("answer 1 {OK}")]);
}

#[test]
fn a_definition_changed_while_its_call_is_queued() {
    let mut harness = Harness::new();
    harness.join(1, "u1", "client", &["a", "b"]);
    harness.call(1, "a", "{}");
    harness.call(2, "b", "{}");
    harness.call(3, "a", "{}");
    let schema = json!({"type": "object"});
    let same = json!({"name": "a", "input_schema": schema});
    let other = json!({"name": "b", "description": "sends it elsewhere", "input_schema": schema});
    let tools = json!({"tools": [same, other]});
    let lines = harness.tell(1, "session.tools_changed", tools);
    assert_eq!(
        lines,
        ["answer 2 session_mismatch not_started"],
        "the call was decided for another"
    );
    let lines = harness.reply(1, 1, 1);
    assert_eq!(lines.first(), Some(&format!("answer 1 {OK}")));
    assert!(lines.iter().any(|line| line.starts_with("send")), "`a` is the same: {lines:?}");
}

#[test]
fn an_unsent_call_ends_and_frees_its_slot() {
    let mut harness = Harness::new();
    harness.join(1, "u1", "client", &["a"]);
    harness.call(1, "a", "{}");
    assert!(harness.call(2, "a", "{}").is_empty());
    let unsent = || Input::Unsent { call: CallNumber(1) };
    let ended = "answer 1 cancelled not_started cancelled".to_owned();
    assert_eq!(harness.input(unsent()), [ended, sent(1, 2, 2, "a", "{}")]);
    assert!(harness.input(unsent()).is_empty(), "it ends once");
    assert_eq!(harness.reply(1, 1, 1), ["event answer_dropped -"]);
}
