use super::{Incoming, Message, Notification, Payload, Request, Response};
use crate::{Limits, Refusal, code};

mod strict;

fn agent(body: &str) -> Result<Message<'_>, Refusal> {
    match super::parse_agent(body.as_bytes(), &Limits::default())? {
        Incoming::One(message) => Ok(message),
        Incoming::Batch(_) => panic!("not a batch: {body}"),
    }
}

fn server(body: &str) -> Result<Message<'_>, Refusal> {
    match super::parse_server(body.as_bytes(), &Limits::default())? {
        Incoming::One(message) => Ok(message),
        Incoming::Batch(_) => panic!("not a batch: {body}"),
    }
}

/// Refused by both readers, with this code and these words.
fn check_refused(body: &str, code: i32, words: &str) {
    for (side, refusal) in [("agent", agent(body)), ("server", server(body))] {
        let refusal = refusal.expect_err(body);
        assert_eq!(refusal.code, code, "{side} {body}: {refusal}");
        assert!(refusal.message.contains(words), "{side} {body}: {refusal}");
    }
}

/// Refused only from an agent.
fn check_strict(body: &str, code: i32, words: &str) {
    server(body).expect(body);
    let refusal = agent(body).expect_err(body);
    assert_eq!(refusal.code, code, "{body}: {refusal}");
    assert!(refusal.message.contains(words), "{body}: {refusal}");
}

/// Read by both, and as the same.
fn check_read(body: &str, expected: &Message<'_>) {
    assert_eq!(agent(body).as_ref(), Ok(expected), "{body}");
    assert_eq!(server(body).as_ref(), Ok(expected), "{body}");
}

#[test]
fn requests() {
    for (id, spelled) in [
        ("1", "1"),
        ("-7", "-7"),
        ("1.0", "1.0"),
        ("1e0", "1e0"),
        ("1e400", "1e400"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        (r#""a\u0062""#, r#""a\u0062""#),
        (r#""""#, r#""""#),
    ] {
        let raw = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        let request = Request { raw: &raw, id: spelled, method: "ping".into(), params: None };
        check_read(&raw, &Message::Request(request));
    }
}

#[test]
fn members_in_any_order_with_unknown_ones_and_layout() {
    let raw = "{ \"x\" : [ 1 ] ,\n\t\"params\" : { \"a\" : 1.0 },\r\n \"m\\u0065thod\":\"a\\/b\", \
               \"id\": \"7\", \"jsonrpc\": \"2.\\u0030\" }";
    let body = format!(" \n{raw}\r\n\t ");
    let request =
        Request { raw, id: "\"7\"", method: "a/b".into(), params: Some("{ \"a\" : 1.0 }") };
    check_read(&body, &Message::Request(request));
}

#[test]
fn notifications() {
    let raw = r#"{"jsonrpc":"2.0","method":"notifications/x","params":[1,{}]}"#;
    let method = "notifications/x".into();
    let params = Some("[1,{}]");
    check_read(raw, &Message::Notification(Notification { raw, method, params }));
}

#[test]
fn responses() {
    for (payload, expected) in [
        (r#""result":{"a":1e400}"#, Payload::Result(r#"{"a":1e400}"#)),
        (r#""result":null"#, Payload::Result("null")),
        (r#""error":{"code":-1}"#, Payload::Error(r#"{"code":-1}"#)),
    ] {
        let raw = format!(r#"{{"jsonrpc":"2.0","id":"r",{payload}}}"#);
        let response = Response { raw: &raw, id: Some("\"r\""), payload: expected, is_error: None };
        check_read(&raw, &Message::Response(response));
    }
}

#[test]
fn parsing_a_large_result_finds_whether_it_is_an_error() {
    let padding = "x".repeat(toolgate_json::peek::LARGE);
    for (members, expected) in [
        (r#""isError":true"#, true),
        (r#""a":{"isError":true}, "isError" : true ,"b":1"#, true),
        (r#""isError":false"#, false),
        (r#""isError":"true""#, false),
        (r#""isError":true,"isError":true"#, false),
        (r#""a":{"isError":true}"#, false),
        (r#""a":"\"isError\":true""#, false),
    ] {
        let raw =
            format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":["{padding}"],{members}}}}}"#);
        match server(&raw) {
            Ok(Message::Response(response)) => {
                assert_eq!(response.is_error, Some(expected), "{members}");
            }
            other => panic!("{members}: {other:?}"),
        }
    }
}

#[test]
fn a_server_may_leave_the_id_out_of_an_error() {
    for raw in [
        r#"{"jsonrpc":"2.0","error":{"code":1}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":1}}"#,
    ] {
        let payload = Payload::Error(r#"{"code":1}"#);
        let response = Response { raw, id: None, payload, is_error: None };
        assert_eq!(server(raw), Ok(Message::Response(response)));
        check_strict(raw, code::INVALID_REQUEST, "needs the `id`");
    }
}

#[test]
fn a_server_may_send_null_for_no_params() {
    let raw = r#"{"jsonrpc":"2.0","method":"notifications/m","params":null}"#;
    let method = "notifications/m".into();
    let expected = Message::Notification(Notification { raw, method, params: None });
    assert_eq!(server(raw), Ok(expected));
    check_strict(raw, code::INVALID_REQUEST, "`params` must be an object or an array");
}

#[test]
fn bodies_that_are_not_json() {
    for (body, words) in [
        ("", "EOF"),
        (" \n", "EOF"),
        ("{", "EOF"),
        ("nul", "EOF"),
        ("{'a':1}", "key must be a string at line 1 column 2"),
        (r#"{"jsonrpc":"2.0","method":"ping","id":01}"#, "invalid number"),
        (r#"{"jsonrpc":"2.0","method":"ping","id":NaN}"#, "expected value"),
        ("\n{\"jsonrpc\":\"2.0\",\n\"method\" \"ping\"}", "expected `:` at line 3 column 10"),
        (r#"{"jsonrpc":"2.0","method":"ping",}"#, "trailing comma"),
        (r#"{"jsonrpc":"2.0","method":"ping"} {}"#, "trailing characters at line 1 column 35"),
        (r#"{"jsonrpc":"2.0","method":"ping"}]"#, "trailing characters"),
        ("[{}] 1", "trailing characters"),
        ("1 2", "trailing characters"),
        ("{\"jsonrpc\":\"2.0\",\"method\":\"ping\"}\u{a0}", "trailing characters"),
        ("{\"jsonrpc\":\"2.0\",\"method\":\"pi\nng\"}", "control character"),
        ("{\"jsonrpc\":\"2.0\",\"method\":\"\\x\"}", "invalid escape"),
        ("\u{feff}{}", "byte order mark"),
    ] {
        check_refused(body, code::PARSE_ERROR, words);
    }
}

#[test]
fn bodies_that_are_not_utf8() {
    for bad in [&b"\xff"[..], b"\xc0\xaf", b"\xed\xa0\x80", b"\xe2\x82", b"\xf8\x88\x80\x80\x80"] {
        let body = [&br#"{"jsonrpc":"2.0","method":""#[..], bad, br#""}"#].concat();
        for refusal in [
            super::parse_agent(&body, &Limits::default()).unwrap_err(),
            super::parse_server(&body, &Limits::default()).unwrap_err(),
        ] {
            assert_eq!(refusal.code, code::PARSE_ERROR);
            assert_eq!(refusal.message, "not UTF-8 at byte 27; send JSON as UTF-8");
        }
    }
}

#[test]
fn json_that_is_no_message() {
    for (body, words) in [
        ("1", "must be a JSON object"),
        ("null", "must be a JSON object"),
        (r#""x""#, "must be a JSON object"),
        ("[]", "at least one message"),
        ("{}", "`jsonrpc` is missing"),
        (r#"{"method":"ping","id":1}"#, "`jsonrpc` is missing"),
        (r#"{"jsonrpc":"1.0","method":"ping","id":1}"#, "`jsonrpc` must be \"2.0\" (at byte 11)"),
        (r#"{"jsonrpc":2.0,"method":"ping","id":1}"#, "`jsonrpc` must be"),
        (r#"{"jsonrpc":"2.0","id":1}"#, "none of `method`, `result` and `error`"),
        (r#"{"jsonrpc":"2.0","method":1}"#, "`method` must be a string (at byte 26)"),
        (r#"{"jsonrpc":"2.0","method":"\ud800"}"#, "`method` must be a string"),
        (r#"{"jsonrpc":"2.0","method":"notifications/m","id":null}"#, "not null"),
        (r#"{"jsonrpc":"2.0","method":"m","id":true}"#, "`id` must be a string or a number"),
        (r#"{"jsonrpc":"2.0","method":"m","id":[1]}"#, "`id` must be a string or a number"),
        (r#"{"jsonrpc":"2.0","method":"m","id":{}}"#, "`id` must be a string or a number"),
        (r#"{"jsonrpc":"2.0","method":"m","id":"\ud83d"}"#, "`id` must be a string or a number"),
        (r#"{"jsonrpc":"2.0","method":"notifications/m","params":"x"}"#, "`params` must be"),
        (r#"{"jsonrpc":"2.0","method":"notifications/m","params":1}"#, "`params` must be"),
        (r#"{"jsonrpc":"2.0","method":"m","id":1,"result":1}"#, "`method` beside `result`"),
        (r#"{"jsonrpc":"2.0","method":"m","id":1,"error":{}}"#, "`method` beside `result`"),
        (r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{}}"#, "both `result` and `error`"),
        (r#"{"jsonrpc":"2.0","result":1}"#, "needs the `id`"),
        (r#"{"jsonrpc":"2.0","id":null,"result":1}"#, "needs the `id`"),
    ] {
        check_refused(body, code::INVALID_REQUEST, words);
    }
}

#[test]
fn a_refusal_names_the_request() {
    let mut cases = vec![
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","Id":2}"#, Some("1")),
        (r#"{"id":"a\u0062","method":"m"}"#, Some(r#""a\u0062""#)),
        (r#"{"jsonrpc":"2.0","id":1}"#, Some("1")),
        (r#"{"jsonrpc":"2.0","params":1,"method":"m","id":1e0}"#, Some("1e0")),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}"#, None),
        (r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#, None),
        (r#"{"jsonrpc":"2.0","method":"m","params":1}"#, None),
        (r#"{"jsonrpc":"1.0","id":1,"result":1}"#, None),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m""#, None),
    ];
    let deep =
        format!(r#"{{"jsonrpc":"2.0","method":"m","params":{},"id":9}}"#, nested("[", "]", 64));
    cases.push((&deep, Some("9")));
    for (body, id) in cases {
        assert_eq!(agent(body).expect_err(body).id.as_deref(), id, "{body}");
    }
}

#[test]
fn a_refusal_is_short() {
    let body = format!(r#"{{"jsonrpc":"2.0","{0}":1,"{0}":1}}"#, "ы".repeat(1000));
    let message = agent(&body).unwrap_err().message;
    assert!(message.len() < 256 && message.contains('…'), "{message}");
}

fn nested(open: &str, close: &str, levels: usize) -> String {
    format!(
        "{}{}{}",
        open.repeat(levels),
        if close == "}" { "0" } else { "" },
        close.repeat(levels)
    )
}

#[test]
fn depth() {
    for method in ["ping", "tools/call"] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[\"]\\\"\", ", "]")] {
            let body = |levels: usize| {
                let params = nested(open, close, levels).replace(", ]", "]");
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#)
            };
            // The message itself is one level.
            agent(&body(63)).expect("63 levels of params");
            check_strict(&body(64), code::INVALID_REQUEST, "nests deeper than 64 levels");
        }
    }
    let answer = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{}}}"#, nested("[", "]", 64));
    check_strict(&answer, code::INVALID_REQUEST, "nests deeper");
}

#[test]
fn bombs() {
    const LEVELS: usize = 1_000_000;
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let open_only = open.repeat(LEVELS);
        check_refused(&open_only, code::PARSE_ERROR, "EOF");
        let params = nested(open, close, LEVELS);
        let inside =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        check_strict(&inside, code::INVALID_REQUEST, "nests deeper");
        let other = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","x":{params}}}"#);
        check_strict(&other, code::INVALID_REQUEST, "nests deeper");
    }
    let whole = nested("[", "]", LEVELS);
    let Ok(Incoming::Batch(batch)) = super::parse_agent(whole.as_bytes(), &Limits::default())
    else {
        panic!("a batch of one array")
    };
    assert!(matches!(batch[..], [Err(Refusal { code: code::INVALID_REQUEST, .. })]));
}

#[test]
fn batches() {
    let limits = Limits { depth: 4, batch: 3 };
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let body = format!(" [ {ping} ,1, {{\"id\":2}} ] ");
    for parse in [super::parse_agent, super::parse_server] {
        let Ok(Incoming::Batch(batch)) = parse(body.as_bytes(), &limits) else { panic!("a batch") };
        let [Ok(Message::Request(request)), Err(number), Err(empty)] = &batch[..] else {
            panic!("{batch:?}")
        };
        assert_eq!((request.raw, request.id), (ping, "1"));
        assert_eq!(number.code, code::INVALID_REQUEST);
        assert_eq!(number.message, "each message of a batch must be a JSON object (at byte 45)");
        assert_eq!((empty.id.as_deref(), empty.code), (Some("2"), code::INVALID_REQUEST));

        let full = format!("[{ping},{ping},{ping}]");
        assert!(matches!(parse(full.as_bytes(), &limits), Ok(Incoming::Batch(_))));
        let over = format!("[{ping},{ping},{ping},{ping}]");
        let refusal = parse(over.as_bytes(), &limits).unwrap_err();
        assert_eq!(refusal.code, code::INVALID_REQUEST);
        assert_eq!(refusal.message, "a batch may hold 3 messages; send fewer");
    }
    // The array is a level of its own.
    let deep = r#"[{"jsonrpc":"2.0","id":1,"method":"m","params":[[]]}]"#;
    for (depth, fits) in [(4, true), (3, false)] {
        let limits = Limits { depth, batch: 3 };
        let Ok(Incoming::Batch(batch)) = super::parse_agent(deep.as_bytes(), &limits) else {
            panic!("a batch")
        };
        assert_eq!(batch[0].is_ok(), fits);
    }
}
