use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{compact, compact_bytes, error, notification, request, result};

/// The very bytes, and they are JSON.
fn check(written: &Bytes, expected: &str) {
    assert_eq!(written, expected);
    serde_json::from_slice::<Value>(written).expect(expected);
}

#[test]
fn messages() {
    check(&request(7, "ping", None), r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#);
    check(
        &request(u64::MAX, "a/\"b\"", Some("{\"n\":1.0}")),
        r#"{"jsonrpc":"2.0","id":18446744073709551615,"method":"a/\"b\"","params":{"n":1.0}}"#,
    );
    check(&request("\"x\"", "m", None), r#"{"jsonrpc":"2.0","id":"x","method":"m"}"#);
    check(&notification("n", None), r#"{"jsonrpc":"2.0","method":"n"}"#);
    check(&notification("n", Some("[]")), r#"{"jsonrpc":"2.0","method":"n","params":[]}"#);
    check(&result("1e0", "{ }"), r#"{"jsonrpc":"2.0","id":1e0,"result":{ }}"#);
    check(
        &error(Some("\"x\""), -32602, "no\n\u{1}", Some("{\"a\":1}")),
        r#"{"jsonrpc":"2.0","id":"x","error":{"code":-32602,"message":"no\n\u0001","data":{"a":1}}}"#,
    );
    check(
        &error(None, -32700, "", None),
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":""}}"#,
    );
}

#[test]
fn one_line() {
    for (raw, expected) in [
        ("{\"a\":\"\\n\"}", "{\"a\":\"\\n\"}"),
        ("{\r\n\t\"a\" :\n1\r}\n", "{\t\"a\" :1}"),
        ("\n", ""),
        ("", ""),
    ] {
        assert_eq!(compact(raw), expected);
        assert_eq!(compact_bytes(Bytes::copy_from_slice(raw.as_bytes())), expected);
    }
    let same = Bytes::from_static(b"{ }");
    assert_eq!(compact_bytes(same.clone()).as_ptr(), same.as_ptr());
    assert!(matches!(compact("{ }"), std::borrow::Cow::Borrowed(_)));
}

proptest! {
    #[test]
    fn errors_read_back(code: i32, message in any::<String>()) {
        let written = error(Some("1"), code, &message, None);
        let expected = json!({"jsonrpc":"2.0","id":1,"error":{"code":code,"message":message}});
        prop_assert_eq!(serde_json::from_slice::<Value>(&written).unwrap(), expected);
    }

    #[test]
    fn a_pretty_message_on_one_line_says_the_same(text in any::<String>(), n: i64) {
        let value = json!({"a": [text, {"b": n}], "c": {}});
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        let line = compact(&pretty);
        prop_assert!(!line.contains(['\n', '\r']));
        prop_assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), value);
    }
}
