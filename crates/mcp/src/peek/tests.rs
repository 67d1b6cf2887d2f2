use std::borrow::Cow;

use super::{items, members, peek, text};
use crate::code;

#[test]
fn values_at_a_path() {
    let json = r#" { "name" : "a\n", "_meta":{"progressToken": 1e0 ,"x":{"y":[1]}}, "n":null,
        "deep\u0065r": {"": {}}, "\ud800": 1, "_META": {} }"#;
    for (path, expected) in [
        (&["name"][..], Some(r#""a\n""#)),
        (&["_meta", "progressToken"], Some("1e0")),
        (&["_meta", "x", "y"], Some("[1]")),
        (&["n"], Some("null")),
        (&["deeper", ""], Some("{}")),
        (&["_meta", "missing"], None),
        (&["missing", "x"], None),
        (&["name", "x"], None),
        (&["n", "x"], None),
        (&["_meta", "x", "y", "0"], None),
        (&["Name"], None),
        (&[], Some(json)),
    ] {
        assert_eq!(peek(json, path), Ok(expected), "{path:?}");
    }
}

#[test]
fn no_object_has_no_members() {
    for json in ["null", "[]", "\"{\"", "1", "", "  "] {
        assert_eq!(peek(json, &["a"]), Ok(None), "{json}");
    }
}

#[test]
fn a_key_on_the_path_occurs_once() {
    for (json, path) in [
        (r#"{"a":1,"a":1}"#, &["a"][..]),
        (r#"{"a":1,"b":2,"\u0061":1}"#, &["a"]),
        (r#"{"b":{"a":1,"a":2}}"#, &["b", "a"]),
        (r#"{"b":{"a":1},"b":{}}"#, &["b", "a"]),
    ] {
        let refusal = peek(json, path).expect_err(json);
        assert_eq!(refusal.code, code::INVALID_PARAMS);
        assert!(refusal.message.contains("occurs twice"), "{refusal}");
    }
    // Keys that nobody asked for are nobody's business.
    assert_eq!(peek(r#"{"x":1,"x":2,"a":{"y":1,"y":2}}"#, &["a", "z"]), Ok(None));
}

#[test]
fn several_members_at_once() {
    let json = r#"{"b":2,"z":0,"a":1}"#;
    assert_eq!(members(json, ["a", "b", "c"]), Ok([Some("1"), Some("2"), None]));
    assert_eq!(members("[]", ["a"]), Ok([None]));
    members(r#"{"b":2,"a":0,"b":1}"#, ["a", "b"]).unwrap_err();
}

#[test]
fn elements_of_an_array() {
    let json = " [1.0, \"x\" ,{\"a\" : [ ]},1e400 ] ";
    let expected = vec!["1.0", "\"x\"", "{\"a\" : [ ]}", "1e400"];
    assert_eq!(items(json), Ok(Some(expected)));
    assert_eq!(items("[]"), Ok(Some(vec![])));
    for json in ["{}", "null", "", "\"[\""] {
        assert_eq!(items(json), Ok(None), "{json}");
    }
}

#[test]
fn broken_json_is_refused() {
    assert_eq!(peek("{\"a\":", &["a"]).unwrap_err().code, code::PARSE_ERROR);
    assert_eq!(items("[1,").unwrap_err().code, code::PARSE_ERROR);
}

#[test]
fn deep_values_are_skipped() {
    let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    let json = format!(r#"{{"deep":{deep},"a":1}}"#);
    assert_eq!(peek(&json, &["a"]), Ok(Some("1")));
    assert_eq!(peek(&json, &["deep"]), Ok(Some(deep.as_str())));
}

#[test]
fn texts() {
    for (raw, expected) in [
        (r#""""#, Some("")),
        (r#""plain ы""#, Some("plain ы")),
        (r#""\"\\\/\b\f\n\r\t\u0041\ud83d\ude00""#, Some("\"\\/\u{8}\u{c}\n\r\tA😀")),
        (r#""\ud800""#, None),
        (r#""\ude00\ud83d""#, None),
        ("1", None),
        ("null", None),
        ("\"", None),
        ("\"a\"b\"", None),
        ("", None),
    ] {
        assert_eq!(text(raw).as_deref(), expected, "{raw}");
    }
    assert!(matches!(text("\"plain\""), Some(Cow::Borrowed(_))));
}
