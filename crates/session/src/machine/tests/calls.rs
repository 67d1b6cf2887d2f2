//! Calls: order, room, deadlines, quarantine, cancelling, loss.

use serde_json::{Value, json};

use super::{Bed, OK, cancelled, card, secs, sent};
use crate::{CallId, Glob, Input, Output, Settings, ToolSettings};

#[test]
fn one_call_at_a_time_in_order_of_arrival() {
    let mut bed = Bed::new();
    bed.join(1, "u1", "client", &["a", "b"]);
    assert_eq!(bed.call(1, "a", r#"{"Ключ":"Ёлка"}"#), [sent(1, 1, 1, "a", r#"{"Ключ":"Ёлка"}"#)]);
    assert!(bed.call(2, "b", "{}").is_empty());
    assert!(bed.call(3, "a", "{}").is_empty());
    assert_eq!(bed.reply(1, 1, 1), [format!("answer 1 {OK}"), sent(1, 2, 2, "b", "{}")]);
    assert_eq!(bed.reply(1, 2, 2), [format!("answer 2 {OK}"), sent(1, 3, 3, "a", "{}")]);
    assert_eq!(bed.reply(1, 3, 3), [format!("answer 3 {OK}")]);
    assert_eq!(bed.reply(1, 3, 3), ["event answer_dropped -"], "nothing is answered twice");
}

#[test]
fn errors_of_clients_are_results() {
    let mut bed = Bed::new();
    bed.join(1, "u1", "client", &["a"]);
    bed.call(1, "a", "{}");
    let error = json!({"jsonrpc": "2.0", "id": format!("mgr-1-{:032x}", 1), "error": {"code": -5, "message": "нет"}});
    let lines = bed.say(1, &error);
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
    let mut bed = Bed::new();
    bed.open(1, None).ask(1, "session.register", params.clone());
    let starts = |lines: Vec<String>| lines.iter().filter(|line| line.starts_with("send")).count();
    let order = ["three", "three", "two", "three", "one", "three"];
    let started: Vec<usize> = order
        .iter()
        .enumerate()
        .map(|(n, name)| starts(bed.call(n as u64 + 1, name, "{}")))
        .collect();
    // Two of `three`; `two` would be the third beside them, and nobody overtakes it.
    assert_eq!(started, [1, 1, 0, 0, 0, 0]);
    assert_eq!(starts(bed.reply(1, 1, 1)), 1, "`two` beside one `three`");
    assert_eq!(starts(bed.reply(1, 2, 2)), 1, "`three` beside `two`");
    assert_eq!(starts(bed.reply(1, 3, 3)), 0, "`one` runs alone");
    assert_eq!(starts(bed.reply(1, 4, 4)), 1);
    assert_eq!(starts(bed.reply(1, 5, 5)), 1);
    // The operator's word counts more than the tool's.
    let mut settings = Settings::default();
    let one = ToolSettings { concurrency: Some(1), timeout: None };
    settings.common.tools.insert("three".to_owned(), one);
    let mut bed = Bed::with(settings);
    bed.open(1, None).ask(1, "session.register", params);
    assert_eq!(starts(bed.call(1, "three", "{}")), 1);
    assert_eq!(starts(bed.call(2, "three", "{}")), 0);
}

#[test]
fn a_timeout_keeps_the_slot_until_the_late_answer() {
    let mut bed = Bed::new();
    bed.join(1, "u1", "client", &["a"]);
    bed.call(1, "a", "{}");
    bed.pass(secs(30));
    bed.call(2, "a", "{}");
    let lines = bed.pass(secs(30));
    let expected = ["answer 1 upstream_timeout unknown".to_owned(), cancelled(1, 1, 1, "timeout")];
    assert_eq!(lines, expected);
    assert_eq!(bed.reply(1, 1, 1), ["event late_answer u1".to_owned(), sent(1, 2, 2, "a", "{}")]);
}

#[test]
fn a_quarantine_ends() {
    let mut bed = Bed::new();
    bed.join(1, "u1", "client", &["a"]);
    bed.call(1, "a", "{}");
    bed.pass(secs(60));
    bed.call(2, "a", "{}");
    assert!(bed.pass(secs(29)).is_empty());
    assert_eq!(bed.pass(secs(1)), [sent(1, 2, 2, "a", "{}")]);
    assert_eq!(bed.reply(1, 1, 1), ["event answer_dropped -"]);
}

#[test]
fn a_deadline_in_the_queue_has_no_effect() {
    let mut bed = Bed::new();
    bed.join(1, "u1", "client", &["a"]);
    bed.call(1, "a", "{}");
    bed.call(2, "a", "{}");
    let lines = bed.pass(secs(60));
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
fn deadlines_come_from_where_they_are_said() {
    let mut params = card("s-1", "server", "trade", &["plain"]);
    params["tools"] = json!([
        {"name": "plain", "input_schema": {}},
        {"name": "own", "input_schema": {}, "timeout_ms": 5000},
        {"name": "set", "input_schema": {}, "timeout_ms": 5000},
    ]);
    let mut settings = Settings::default();
    let seven = ToolSettings { timeout: Some(secs(7)), concurrency: None };
    settings.kinds.get_mut("server").unwrap().tools.insert("set".to_owned(), seven);
    let allowed = |settings: &Settings, name: &str, arguments: &str| {
        let mut bed = Bed::with(settings.clone());
        bed.open(1, None).ask(1, "session.register", params.clone());
        bed.resolve(name, arguments).unwrap().allowed
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
    let mut bed = Bed::new();
    bed.join(1, "u1", "client", &["a"]);
    for call in 1..=3 {
        bed.call(call, "a", "{}");
        let lines = bed.pass(secs(60));
        assert_eq!(lines.contains(&"event unresponsive u1".to_owned()), call == 3);
        bed.pass(secs(30));
    }
    assert_eq!(bed.gate.operator_list(bed.now)["sessions"][0]["unresponsive"], true);
    // Agents are told so.
    bed.call(4, "a", "{}");
    bed.now = bed.now.after(secs(60));
    let outputs = bed.gate.handle(Input::Wake, bed.now).list;
    let said = outputs.iter().find_map(|output| match output {
        Output::Answer(answer) => answer.result.as_ref().err().map(crate::Failure::text),
        _ => None,
    });
    assert!(said.unwrap().contains("time out again and again"));
    bed.pass(secs(30));
    bed.call(5, "a", "{}");
    bed.reply(1, 5, 5);
    assert_eq!(bed.gate.operator_list(bed.now)["sessions"][0]["unresponsive"], false);
}

#[test]
fn cancelled_while_queued_is_never_sent() {
    let mut bed = Bed::new();
    bed.join(1, "u1", "client", &["a"]);
    bed.call(1, "a", "{}");
    bed.call(2, "a", "{}");
    assert_eq!(bed.cancel(2), ["answer 2 cancelled not_started cancelled"]);
    assert!(bed.cancel(2).is_empty());
    assert_eq!(bed.reply(1, 1, 1), [format!("answer 1 {OK}")]);
}

#[test]
fn cancelled_while_running_waits_for_the_client() {
    let mut bed = Bed::new();
    bed.join(1, "u1", "client", &["a"]);
    bed.call(1, "a", "{}");
    assert_eq!(bed.cancel(1), [cancelled(1, 1, 1, "cancelled by the caller")]);
    assert!(bed.cancel(1).is_empty(), "it is said once");
    assert_eq!(bed.reply(1, 1, 1), [format!("answer 1 {OK} cancelled")]);
    // A client that ignores it is given its time.
    bed.call(2, "a", "{}");
    bed.cancel(2);
    bed.call(3, "a", "{}");
    let lines = bed.pass(secs(30));
    assert_eq!(
        lines,
        ["answer 2 cancelled unknown cancelled".to_owned(), sent(1, 3, 3, "a", "{}")]
    );
}

#[test]
fn what_waits_when_the_socket_is_lost() {
    let mut bed = Bed::new();
    bed.join(1, "u1", "client", &["a"]);
    bed.call(1, "a", "{}");
    bed.call(2, "a", "{}");
    assert_eq!(bed.close(1), ["event lost u1"]);
    assert!(bed.pass(secs(29)).is_empty());
    assert_eq!(bed.route("a", r#"{"session_id":"u1"}"#), "session_gone");
    assert_eq!(bed.route("a", "{}"), "no_live_session");
    assert_eq!(
        bed.pass(secs(1)),
        ["event expired u1", "answer 1 session_gone unknown", "answer 2 session_gone not_started"]
    );
}

#[test]
fn what_waits_goes_on_after_a_reconnect_and_nothing_is_sent_twice() {
    let mut bed = Bed::new();
    bed.join(1, "u1", "client", &["a"]);
    bed.call(1, "a", "{}");
    bed.call(2, "a", "{}");
    bed.close(1);
    bed.pass(secs(20));
    let lines = bed.join(2, "u1", "client", &["a"]);
    assert!(!lines.iter().any(|line| line.contains("tool.call")), "{lines:?}");
    assert_eq!(bed.reply(2, 1, 1), [format!("answer 1 {OK}"), sent(2, 2, 2, "a", "{}")]);
    // Its grace is over, it is back: nothing more happens.
    assert_eq!(bed.reply(2, 2, 2), [format!("answer 2 {OK}")]);
    assert!(bed.pass(secs(600)).is_empty());
}

#[test]
fn a_new_process_does_not_block_the_queue_for_an_hour() {
    let mut bed = Bed::new();
    let mut params = card("u1", "server", "trade", &["a"]);
    params["pid"] = 1.into();
    bed.open(1, None).ask(1, "session.register", params.clone());
    bed.call(1, "a", "{}");
    bed.close(1);
    params["pid"] = 2.into();
    bed.open(2, None).ask(2, "session.register", params);
    let lines = bed.pass(secs(30));
    assert_eq!(lines[0], "answer 1 upstream_timeout unknown");
}

#[test]
fn a_server_is_waited_for() {
    let mut bed = Bed::new();
    bed.join(1, "u1", "server", &["a"]);
    bed.close(1);
    bed.call(1, "a", r#"{"session_id":"u1"}"#);
    bed.call(2, "a", "{}");
    assert_eq!(
        bed.pass(secs(10)),
        ["answer 1 session_gone not_started", "answer 2 no_live_session not_started"]
    );
    bed.call(3, "a", "{}");
    bed.pass(secs(5));
    let lines = bed.join(2, "u1", "server", &["a"]);
    assert_eq!(lines.last(), Some(&sent(2, 1, 3, "a", "{}")));
    assert!(bed.pass(secs(20)).is_empty());
}

#[test]
fn a_full_queue_is_busy() {
    let mut settings = Settings::default();
    settings.common.queue = 2;
    let mut bed = Bed::with(settings);
    bed.join(1, "u1", "client", &["a"]);
    for call in 1..=3 {
        bed.call(call, "a", "{}");
    }
    let failure = bed.resolve("a", "{}").unwrap_err();
    assert_eq!(failure.error_code(), "session_busy");
    assert_eq!(failure.meta()["retry_after_s"], 1);
}

#[test]
fn what_changes_between_finding_and_letting_in() {
    type Change = fn(&mut Bed);
    let cases: [(Change, &str); 3] = [
        (|bed| drop(bed.tell(1, "session.bye", Value::Null)), "answer 1 session_gone not_started"),
        (
            |bed| {
                bed.tell(1, "session.bye", Value::Null);
                bed.join(2, "u1", "client", &["a"]);
            },
            "answer 1 session_gone not_started",
        ),
        (
            |bed| drop(bed.tell(1, "session.tools_changed", json!({"tools": []}))),
            "answer 1 session_mismatch not_started",
        ),
    ];
    for (change, expected) in cases {
        let mut bed = Bed::new();
        bed.join(1, "u1", "client", &["a"]);
        let target = bed.resolve("a", "{}").unwrap();
        change(&mut bed);
        let call = crate::Call { call: crate::CallId(1), target, random: 0 };
        assert_eq!(bed.input(crate::Input::Call(call)), [expected]);
    }
}

#[test]
fn a_tool_that_goes_while_its_call_waits() {
    let mut bed = Bed::new();
    bed.join(1, "u1", "client", &["a", "b"]);
    bed.call(1, "a", "{}");
    bed.call(2, "b", "{}");
    let tools = json!({"tools": [{"name": "a", "input_schema": {}}]});
    let lines = bed.tell(1, "session.tools_changed", tools);
    assert_eq!(lines, ["answer 2 session_mismatch not_started"]);
    assert_eq!(bed.reply(1, 1, 1), [format!("answer 1 {OK}")]);
}

#[test]
fn a_call_that_was_not_written_ends_and_makes_room() {
    let mut bed = Bed::new();
    bed.join(1, "u1", "client", &["a"]);
    bed.call(1, "a", "{}");
    assert!(bed.call(2, "a", "{}").is_empty());
    let unsent = || Input::Unsent { call: CallId(1) };
    let ended = "answer 1 cancelled not_started cancelled".to_owned();
    assert_eq!(bed.input(unsent()), [ended, sent(1, 2, 2, "a", "{}")]);
    assert!(bed.input(unsent()).is_empty(), "it ends once");
    assert_eq!(bed.reply(1, 1, 1), ["event answer_dropped -"]);
}
