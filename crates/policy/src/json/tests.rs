use proptest::prelude::*;

use super::{Arguments, Malformed, Raw, Value, Walk, member};

/// The text of a raw value.
fn text(raw: Result<Option<Raw<'_>>, Malformed>) -> Result<Option<&str>, Malformed> {
    raw.map(|raw| raw.map(|raw| raw.text))
}

#[test]
fn members_are_found_by_their_meaning() {
    let raw = r#" { "a" : 1.50 , "b\u0063" : "x\ny", "deep": {"a": [1, {"z": "}"}]}, "e": "" } "#;
    let arguments = Arguments::new(raw);
    assert_eq!(text(arguments.get("a")), Ok(Some("1.50")));
    assert_eq!(text(arguments.get("bc")), Ok(Some(r#""x\ny""#)));
    assert_eq!(text(arguments.get("e")), Ok(Some(r#""""#)));
    assert_eq!(text(arguments.get("missing")), Ok(None));
    let deep = arguments.get("deep").unwrap().unwrap().text;
    assert_eq!(text(member(deep, "a")), Ok(Some(r#"[1, {"z": "}"}]"#)));
    let mut list = Walk::list(member(deep, "a").unwrap().unwrap().text).unwrap();
    assert_eq!(text(list.element()), Ok(Some("1")));
    assert_eq!(text(list.element()), Ok(Some(r#"{"z": "}"}"#)));
    assert_eq!(text(list.element()), Ok(None));
}

#[test]
fn what_is_ambiguous_or_broken_is_malformed() {
    for (raw, name) in [
        (r#"{"a":1,"a":2}"#, "a"),
        (r#"{"a":1,"\u0061":2}"#, "a"),
        (r#"{"a":1"#, "a"),
        (r#"{"a" 1}"#, "a"),
        (r#"{"a":}"#, "a"),
        (r#"{"a":1}}"#, "a"),
        (r#"{"a":1} x"#, "a"),
        (r"{a:1}", "a"),
        (r#"{"a":1,,"b":2}"#, "b"),
        (r#"{"a":"\ud800"}"#, "\u{fffd}\\"),
        ("", "a"),
    ] {
        let result = Arguments::new(raw).get(name).and_then(|v| v.map(Value::of).transpose());
        if raw.contains("ud800") {
            assert_eq!(Value::read(r#""\ud800""#).err(), Some(Malformed));
        } else {
            assert_eq!(result.err(), Some(Malformed), "{raw}");
        }
    }
    assert_eq!(text(Arguments::new("[1,2]").get("a")), Ok(None));
    assert_eq!(text(Arguments::new("null").get("a")), Ok(None));
}

#[test]
fn surrogate_pairs_become_one_character() {
    assert!(matches!(Value::read(r#""\ud83d\ude00""#), Ok(Value::String(s)) if s == "😀"));
}

proptest! {
    #[test]
    fn any_text_is_survived(raw in ".{0,60}", name in "[a-c]{0,2}") {
        let outcomes = [
            Arguments::new(&raw).get(&name).is_ok(),
            Value::read(&raw).is_ok(),
            Walk::list(&raw).and_then(|mut list| list.element().map(|_| ())).is_ok(),
        ];
        prop_assert!(outcomes.len() == 3);
    }

    #[test]
    fn agrees_with_serde_json(map in proptest::collection::btree_map("[a-c\"\\\\é]{0,3}", any::<Option<i32>>(), 0..6)) {
        let raw = serde_json::to_string(&map).unwrap();
        let arguments = Arguments::new(&raw);
        for (key, value) in &map {
            let expected = serde_json::to_string(value).unwrap();
            prop_assert_eq!(text(arguments.get(key)), Ok(Some(expected.as_str())));
        }
    }
}

#[test]
fn objects_among_the_arguments_are_looked_into_alike_first_or_later() {
    let raw = r#"{"a":{"x":1,"y":{"x":2},"t":1,"t":2},"b":{"x":3,"t":1,"t":2},"c":{"x":4,"y"}}"#;
    let arguments = Arguments::new(raw);
    let objects: Vec<_> =
        ["a", "b", "a"].map(|name| arguments.get(name).unwrap().unwrap().text).to_vec();
    for object in objects {
        for name in ["x", "y", "t", "none"] {
            assert_eq!(arguments.within(object, name), member(object, name), "{object} {name}");
        }
    }
    let broken = Arguments::new(raw);
    let object = broken.get("c").unwrap().unwrap().text;
    assert_eq!(broken.within(object, "x"), Err(Malformed));
    assert_eq!(broken.within(object, "x"), member(object, "x"));
}
