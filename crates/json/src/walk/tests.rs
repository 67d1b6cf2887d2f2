use std::collections::HashMap;

use proptest::prelude::*;
use serde_json::value::RawValue;

use super::{Malformed, Walk};

/// All members in their order, and what follows the object.
fn walked(json: &str) -> Option<(Vec<(&str, &str)>, &str)> {
    let mut walk = Walk::object(json).ok()?;
    let mut members = Vec::new();
    while let Some(key) = walk.key().ok()? {
        members.push((key.text, walk.value().ok()?.text));
    }
    Some((members, walk.rest()))
}

/// The texts of a list's elements.
fn elements(json: &str) -> Result<Vec<&str>, Malformed> {
    let mut walk = Walk::list(json)?;
    let mut elements = Vec::new();
    while let Some(element) = walk.element()? {
        elements.push(element.text);
    }
    Ok(elements)
}

#[test]
fn members_in_their_order() {
    let json = " { \"a\\\"b\" : [1, {\"}\":\"]\"}] ,\n\"\":-1.50e2,\"c\":\"\\\\\", \"d\":{} } tail";
    let members = vec![
        (r#""a\"b""#, r#"[1, {"}":"]"}]"#),
        (r#""""#, "-1.50e2"),
        (r#""c""#, r#""\\""#),
        (r#""d""#, "{}"),
    ];
    assert_eq!(walked(json), Some((members, " tail")));
    assert_eq!(walked(" {\t}"), Some((vec![], "")));
}

#[test]
fn a_nested_object_is_walked_through_once() {
    let key = |walk: &mut Walk<'static>| walk.key().map(|key| key.map(|key| key.text));
    let value = |walk: &mut Walk<'static>| walk.value().map(|value| value.text);
    let mut walk = Walk::object(r#"{"a":{"b":{"c":1}, "d":2 },"e":3}"#).unwrap();
    assert_eq!(key(&mut walk), Ok(Some("\"a\"")));
    let mut inner = walk.enter().unwrap();
    assert_eq!(key(&mut inner), Ok(Some("\"b\"")));
    assert_eq!(value(&mut inner), Ok("{\"c\":1}"));
    assert_eq!(key(&mut inner), Ok(Some("\"d\"")));
    assert!(inner.enter().is_none());
    assert_eq!(value(&mut inner), Ok("2"));
    assert_eq!(key(&mut inner), Ok(None));
    assert_eq!(walk.leave(&inner), Ok(r#"{"b":{"c":1}, "d":2 }"#));
    assert_eq!(key(&mut walk), Ok(Some("\"e\"")));
}

#[test]
fn elements_of_a_list() {
    assert_eq!(
        elements(" [1, \"x,]\" ,{\"a\":[2]},[] ] "),
        Ok(vec!["1", "\"x,]\"", "{\"a\":[2]}", "[]"])
    );
    assert_eq!(elements("[]"), Ok(vec![]));
    for json in ["", "{}", "[", "[1", "[1,]", "[,]", "[1 2]", "[1}", "[] x", "[]]"] {
        assert_eq!(elements(json), Err(Malformed), "{json}");
    }
}

#[test]
fn what_does_not_come_out_even() {
    for json in [
        "",
        "[]",
        "{",
        "{,}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1",
        "{\"a\":1,}",
        "{\"a\":1 2}",
        "{a:1}",
        "{\"a\":\"",
        "{\"a\":[}",
        "{\"a\" 1}",
        "{\"a\":1]}",
    ] {
        assert_eq!(walked(json), None, "{json}");
    }
}

/// Text of any length: what is looked for must be found behind sixteen and sixty-four bytes too.
fn string() -> impl Strategy<Value = String> {
    proptest::collection::vec(
        prop_oneof![8 => "[a-zа-я{}\\[\\],: ]", 1 => Just("\\\"".to_owned()), 1 => Just("\\\\".to_owned())],
        0..90,
    )
    .prop_map(|parts| format!("\"{}\"", parts.concat()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn finds_what_a_reader_finds(
        members in proptest::collection::hash_map("[a-z]{1,20}", (string(), "[ \n]{0,3}"), 0..6),
    ) {
        let inside: Vec<String> = members.iter()
            .map(|(key, (text, space))| format!("{space}\"{key}\"{space}:{space}[{text},{{\"k\":{text}}}]{space}"))
            .collect();
        let json = format!("{{{}}}", inside.join(","));
        let read: HashMap<String, &RawValue> = serde_json::from_str(&json).unwrap();
        let (found, rest) = walked(&json).expect("valid JSON comes out even");
        prop_assert_eq!(rest, "");
        prop_assert_eq!(found.len(), read.len());
        for (key, value) in found {
            prop_assert_eq!(read[key.trim_matches('"')].get(), value);
        }
    }

    #[test]
    fn any_text_is_survived(json in ".{0,80}", braces in r#"[{}\[\]":, \\a1]{0,80}"#) {
        walked(&json);
        walked(&braces);
        walked(&format!("{{{braces}"));
        elements(&braces).unwrap_or_default();
    }
}
