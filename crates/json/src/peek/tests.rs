use super::{LARGE, is_sound, items, members, peek};
use crate::Error;

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
        let error = peek(json, path).expect_err(json);
        assert!(matches!(error, Error::Duplicate(_)), "{error}");
    }
    // Keys that were not requested may repeat.
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
    assert!(matches!(peek("{\"a\":", &["a"]), Err(Error::Syntax(_))));
    assert!(matches!(items("[1,"), Err(Error::Syntax(_))));
}

#[test]
fn deep_values_are_skipped() {
    let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    let json = format!(r#"{{"deep":{deep},"a":1}}"#);
    assert_eq!(peek(&json, &["a"]), Ok(Some("1")));
    assert_eq!(peek(&json, &["deep"]), Ok(Some(deep.as_str())));
}

#[test]
fn small_parts_of_large_texts_are_read() {
    let large = " ".repeat(LARGE);
    assert!(is_sound("{\"a\":1}", &large));
    assert!(!is_sound("{\"a\":}", &large));
    assert!(is_sound("{\"a\":}", "known to be valid"));
    assert!(is_sound(&large, &large));
}
