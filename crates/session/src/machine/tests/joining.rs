//! Register, takeover, reconnect, re-binding, bye.

use serde_json::{Value, json};

use super::{Harness, OK, card, only, secs, sent};
use crate::{Input, SessionSettings, SocketToken};

const WELCOME: &str = r#"send 1 {"jsonrpc":"2.0","id":1,"result":{"heartbeat_interval_ms":15000,"idle_timeout_secs":0,"server_version":"toolgate/0.1.0","session_id":"u1"}}"#;

fn welcome_back(socket: u64) -> String {
    format!(
        r#"send {socket} {{"jsonrpc":"2.0","id":1,"result":{{"heartbeat_interval_ms":15000,"idle_timeout_secs":0,"reconnected":true,"server_version":"toolgate/0.1.0","session_id":"u1"}}}}"#
    )
}

fn error(socket: u64, code: i32, message: &str) -> String {
    format!(
        r#"send {socket} {{"jsonrpc":"2.0","id":1,"error":{{"code":{code},"message":"{message}"}}}}"#
    )
}

#[test]
fn register_is_answered() {
    let mut harness = Harness::new();
    assert_eq!(harness.join(1, "u1", "client", &["find"]), ["event registered u1", WELCOME]);
    let again = harness.ask(1, "session.register", card("u1", "client", "trade", &[]));
    assert_eq!(again, [error(1, -32600, "a register was already accepted on this socket")]);
}

#[test]
fn bad_registers_name_their_field() {
    let good = card("u1", "client", "trade", &[]);
    let with = |key: &str, value: Value| {
        let mut card = good.clone();
        card[key] = value;
        card
    };
    let without = |key: &str| {
        let mut card = good.clone();
        card.as_object_mut().unwrap().remove(key);
        card
    };
    let cases = [
        (Value::Null, "`params` is missing"),
        (json!([]), "`params` must be an object"),
        (without("client_uid"), "`client_uid` is missing"),
        (with("client_uid", "".into()), "`client_uid` must not be empty"),
        (with("client_uid", 7.into()), "`client_uid` must be a string"),
        (with("client_uid", "x".repeat(600).into()), "`client_uid` is longer than 512 bytes"),
        (with("client_uid", "a\nb".into()), "`client_uid` has control characters"),
        (without("kind"), "`kind` is missing"),
        (without("version"), "`version` is missing"),
        (with("infobase_name", "".into()), "`infobase_name` must not be empty"),
        (without("ib_session_number"), "`ib_session_number` is missing"),
        (
            with("ib_session_number", (-1).into()),
            "`ib_session_number` must be a whole number from 0 to 4294967295",
        ),
        (
            with("ib_session_number", "7".into()),
            "`ib_session_number` must be a whole number from 0 to 4294967295",
        ),
        (with("pid", 1.5.into()), "`pid` must be a whole number from 0 to 4294967295"),
        (without("tools"), "`tools` is missing"),
        (with("tools", json!({})), "`tools` must be an array"),
        (with("tools", json!([7])), "`tools[0]` must be an object"),
        (with("tools", json!([{}])), "`tools[0].name` is missing"),
        (with("tools", json!([{"name": "a"}])), "`tools[0].input_schema` is missing"),
        (
            with("tools", json!([{"name": "a", "input_schema": []}])),
            "`tools[0].input_schema`: must be an object",
        ),
        (
            with("tools", json!([{"name": "a", "input_schema": {}, "visibility": "secret"}])),
            "`tools[0].visibility` must be `public` or `internal`",
        ),
        (
            with("tools", json!([{"name": "a", "input_schema": {}, "concurrency": 0}])),
            "`tools[0].concurrency` must be a whole number above 0",
        ),
    ];
    for (params, message) in cases {
        let mut harness = Harness::new();
        harness.open(1, None);
        let expected = ["event register_refused -".to_owned(), error(1, -32602, message)];
        assert_eq!(harness.ask(1, "session.register", params), expected);
        // The socket stays, and a valid register is still accepted.
        assert_eq!(
            harness.ask(1, "session.register", good.clone()),
            ["event registered u1", WELCOME]
        );
    }
}

#[test]
fn optional_fields_may_be_absent() {
    let mut harness = Harness::new();
    harness.open(1, None);
    let mut params = card("u1", "client", "trade", &["a"]);
    params["extras"] = json!({"deep": [1]});
    params["resources"] = json!([]);
    params["config_id"] = Value::Null;
    harness.ask(1, "session.register", params);
    let list = harness.gate.session_list(&harness.reach, harness.now.after(secs(3)));
    assert_eq!(
        list["sessions"],
        json!([{
            "session_id": "u1", "kind": "client", "config_id": "client", "version": "1",
            "infobase_name": "trade", "ib_session_number": 7, "host_id": "unknown", "pid": null,
            "state": "active", "tools": 1, "inflight": 0, "queued": 0, "last_call_secs_ago": null,
            "last_answer_secs_ago": null, "registered_secs_ago": 3, "disconnected_secs_ago": null,
        }])
    );
}

#[test]
fn malformed_frames_are_answered_and_tolerated() {
    let mut harness = Harness::new();
    harness.join(1, "u1", "client", &[]);
    let parse = |what: &str| {
        vec![
            "event bad_frame -".to_owned(),
            format!(
                r#"send 1 {{"jsonrpc":"2.0","id":null,"error":{{"code":-32700,"message":"parse error: {what}"}}}}"#
            ),
        ]
    };
    assert_eq!(
        harness.say_text(1, r#"{"jsonrpc":"2.0","id":1}"#),
        parse("has none of `method`, `result` and `error`")
    );
    assert_eq!(harness.say_text(1, "[]"), parse("must be one object"));
    assert_eq!(
        harness.ask(1, "ping", Value::Null),
        [r#"send 1 {"jsonrpc":"2.0","id":1,"result":{}}"#]
    );
    assert_eq!(harness.ask(1, "tools/list", json!({})), [error(1, -32601, "no such method")]);
    assert!(harness.tell(1, "whatever", json!({})).is_empty());
    assert_eq!(harness.say_text(9, "x"), Vec::<String>::new(), "an unknown socket");
}

#[test]
fn bye_as_request_and_notification() {
    let mut harness = Harness::new();
    harness.join(1, "u1", "client", &["find"]);
    let bye = harness.ask(1, "session.bye", json!({"reason": "x"}));
    assert_eq!(
        bye,
        [r#"send 1 {"jsonrpc":"2.0","id":1,"result":{}}"#, "close 1 1000 bye", "event bye u1"]
    );
    harness.join(2, "u2", "client", &["find"]);
    assert_eq!(harness.tell(2, "session.bye", Value::Null), ["close 2 1000 bye", "event bye u2"]);
    assert_eq!(harness.route("find", "{}"), "no_live_session");
    assert!(harness.ask(2, "ping", Value::Null).is_empty(), "nothing is sent after the close");
    harness.open(3, None);
    assert_eq!(harness.tell(3, "session.bye", Value::Null), ["close 3 1000 bye"]);
}

#[test]
fn tools_changed_as_request_and_notification() {
    let mut harness = Harness::new();
    harness.join(1, "u1", "client", &["a"]);
    let params = |name: &str| json!({"tools": [{"name": name, "input_schema": {}}]});
    assert!(harness.tell(1, "session.tools_changed", params("b")).is_empty());
    assert_eq!(harness.names(), ["b"]);
    let answer = harness.ask(1, "session.tools_changed", params("c"));
    assert_eq!(answer, [r#"send 1 {"jsonrpc":"2.0","id":1,"result":{}}"#]);
    assert_eq!(harness.names(), ["c"]);
    let wrong = harness.ask(1, "session.tools_changed", json!({}));
    assert_eq!(wrong, ["event bad_frame u1".to_owned(), error(1, -32602, "`tools` is missing")]);
    harness.open(2, None);
    assert!(harness.tell(2, "session.tools_changed", params("d")).is_empty());
    let early = harness.ask(2, "session.tools_changed", params("d"));
    assert_eq!(early, [error(2, -32600, "send session.register first")]);
    assert_eq!(harness.names(), ["c"]);
}

#[test]
fn the_newest_socket_wins() {
    let mut harness = Harness::new();
    harness.join(1, "u1", "client", &["find"]);
    harness.call(1, "find", "{}");
    let lines = harness.join(2, "u1", "client", &["find"]);
    let expected = ["event taken_over u1", "close 1 4001 superseded", "event reconnected u1"];
    assert_eq!(lines[..3], expected);
    assert_eq!(lines[3], welcome_back(2));
    // Only answers are accepted from the old socket.
    assert!(harness.ask(1, "ping", Value::Null).is_empty());
    assert!(harness.tell(1, "session.bye", Value::Null).is_empty());
    assert_eq!(harness.reply(1, 1, 1), [format!("answer 1 {OK}")]);
    assert!(harness.close(1).is_empty());
    assert_eq!(harness.call(2, "find", "{}"), [sent(2, 2, 2, "find", "{}")]);
    assert_eq!(harness.reply(2, 2, 2), [format!("answer 2 {OK}")]);
}

#[test]
fn only_the_same_program_takes_over() {
    const IN_USE: &str = "this `client_uid` is live and may not be taken over: it needs the same token, kind and infobase_name";
    let cases =
        [(Some(2), "client", "trade"), (Some(1), "server", "trade"), (Some(1), "client", "bp")];
    for (token, kind, base) in cases {
        let mut harness = Harness::new();
        harness.open(1, Some(1)).ask(1, "session.register", card("u1", "client", "trade", &["a"]));
        harness.open(2, token);
        let refused = harness.ask(2, "session.register", card("u1", kind, base, &["b"]));
        assert_eq!(refused, ["event takeover_refused u1".to_owned(), error(2, -32010, IN_USE)]);
        assert_eq!(harness.names(), ["a"]);
        // Once it has lost its socket, the old session ends as after a bye.
        harness.close(1);
        let lines = harness.ask(2, "session.register", card("u1", kind, base, &["b"]));
        assert_eq!(lines[..2], ["event ended u1", "event registered u1"]);
        assert!(!lines[2].contains("reconnected"));
    }
}

#[test]
fn tokens_have_bounds() {
    let token = SocketToken {
        id: Some(1),
        kinds: only("server"),
        infobases: only("tr*"),
        uids: only("s-*"),
    };
    let cases = [
        ("s-1", "client", "trade", "`kind`"),
        ("s-1", "server", "bp", "`infobase_name`"),
        ("x", "server", "trade", "`client_uid`"),
    ];
    let mut harness = Harness::new();
    harness.open_with(1, token);
    for (uid, kind, base, field) in cases {
        let lines = harness.ask(1, "session.register", card(uid, kind, base, &[]));
        let message = format!("{field} is outside the bounds of this token");
        assert_eq!(lines, [format!("event outside_bounds {uid}"), error(1, -32602, &message)]);
    }
    let lines = harness.ask(1, "session.register", card("s-1", "server", "trade", &[]));
    assert_eq!(lines[0], "event registered s-1");
    assert_eq!(
        harness.input(Input::Revoke { token: Some(1) }),
        ["close 1 1008 the token is no longer valid", "event ended s-1"]
    );
}

#[test]
fn a_conflict_over_one_uid_is_reported() {
    let mut harness = Harness::new();
    for socket in 1..=7 {
        let lines = harness.join(socket, "u1", "client", &[]);
        assert_eq!(lines.contains(&"event conflict u1".to_owned()), socket == 7, "{socket}");
        harness.pass(secs(5));
    }
    let conflict = |harness: &Harness| {
        harness.gate.operator_list(harness.now)["sessions"][0]["conflict"].clone()
    };
    assert_eq!(conflict(&harness), json!(["unknown", "unknown"]));
    harness.pass(secs(60));
    assert_eq!(conflict(&harness), Value::Null);
}

#[test]
fn a_late_answer_binds_an_anonymous_socket_again() {
    let cases = [
        // token of the new socket, re-binding on, whether it is bound
        (Some(1), true, true),
        (Some(2), true, false),
        (None, true, false),
        (Some(1), false, false),
    ];
    for (token, rebind, bound) in cases {
        let mut harness = Harness::with(SessionSettings {
            rebind,
            ping_interval: None,
            ..SessionSettings::default()
        });
        harness.open(1, Some(1)).ask(
            1,
            "session.register",
            card("u1", "client", "trade", &["find"]),
        );
        harness.call(1, "find", "{}");
        harness.close(1);
        harness.open(2, token);
        let lines = harness.reply(2, 1, 1);
        if bound {
            assert_eq!(lines, ["event rebound u1".to_owned(), format!("answer 1 {OK}")]);
            assert_eq!(harness.call(2, "find", "{}"), [sent(2, 2, 2, "find", "{}")]);
            // It may register later, once.
            let lines =
                harness.ask(2, "session.register", card("u1", "client", "trade", &["find"]));
            assert_eq!(lines, ["event reconnected u1".to_owned(), welcome_back(2)]);
        } else {
            assert_eq!(lines, ["event answer_dropped u1"]);
            let anonymous = &harness.gate.operator_list(harness.now)["anonymous"];
            assert_eq!(anonymous.as_array().unwrap().len(), 1);
        }
    }
}

#[test]
fn a_bound_socket_may_turn_out_to_be_another_session() {
    let mut harness = Harness::new();
    harness.join(1, "u1", "client", &["find"]);
    harness.join(2, "u2", "client", &["other"]);
    harness.call(1, "find", "{}");
    harness.close(1);
    harness.open(3, None);
    harness.reply(3, 1, 1);
    // After a refusal it is unchanged.
    let refused = harness.ask(3, "session.register", card("u2", "server", "trade", &[]));
    assert_eq!(refused[0], "event takeover_refused u2");
    assert_eq!(harness.call(2, "find", "{}"), [sent(3, 2, 2, "find", "{}")]);
    let lines = harness.ask(3, "session.register", card("u3", "client", "trade", &["find"]));
    assert_eq!(lines[..2], ["event lost u1", "event registered u3"]);
    // The socket that its call was sent to may still answer it.
    assert_eq!(harness.reply(3, 2, 2), [format!("answer 2 {OK}")]);
}

#[test]
fn a_live_or_timed_out_session_is_not_bound_again() {
    let mut harness = Harness::new();
    harness.join(1, "u1", "client", &["find"]);
    harness.call(1, "find", "{}");
    harness.open(2, None);
    assert_eq!(
        harness.reply(2, 1, 1),
        ["event answer_dropped u1"],
        "its own socket is still there"
    );
    harness.pass(secs(60));
    harness.close(1);
    harness.open(3, None);
    assert_eq!(harness.reply(3, 1, 1), ["event answer_dropped u1"], "its call has ended");
}
