use super::{Edit, EditError};

const RAW: &str = r#"{"id":1,"params":{"name":"a","_meta":{}},"x":[ ]}"#;

/// The first occurrence of `what`, as a slice of [`RAW`].
fn part(what: &str) -> &'static str {
    RAW.get(RAW.find(what).unwrap()..).unwrap().get(..what.len()).unwrap()
}

#[test]
fn nothing_changed_is_the_same() {
    assert_eq!(Edit::new(RAW).finish(), RAW);
    assert_eq!(Edit::new("").finish(), "");
}

#[test]
fn parts_are_replaced_whatever_the_order_of_calls() {
    let expected = r#"{"id":"gate-7","params":{"name":"srv__a","_meta":{}},"x":null}"#;
    let changes = [("1", "\"gate-7\""), ("\"a\"", "\"srv__a\""), ("[ ]", "null")];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut edit = Edit::new(RAW);
        for index in order {
            let (what, with): (&str, &str) = changes[index];
            edit = edit.replace(part(what), with).unwrap();
        }
        assert_eq!(edit.finish(), expected);
    }
}

#[test]
fn the_whole_and_neighbours_can_be_replaced() {
    assert_eq!(Edit::new(RAW).replace(RAW, "{}").unwrap().finish(), "{}");
    let edit = Edit::new(RAW).replace(part("\"id\""), "A").unwrap();
    let edit = edit.replace(part(":1"), "B").unwrap().replace(part("{"), "C").unwrap();
    assert!(edit.finish().starts_with(b"CAB,"));
}

#[test]
fn members_are_inserted_first() {
    let meta = part("{}}");
    let meta = meta.get(..2).unwrap();
    let edit = Edit::new(RAW).insert(meta, "progressToken", "7").unwrap();
    let edit = edit.insert(RAW, "a\"b", "null").unwrap();
    let edit = edit.replace(part("1"), "2").unwrap();
    assert_eq!(
        edit.finish(),
        r#"{"a\"b":null,"id":2,"params":{"name":"a","_meta":{"progressToken":7}},"x":[ ]}"#
    );
    let raw = "{ \n}";
    assert_eq!(Edit::new(raw).insert(raw, "k", "1").unwrap().finish(), "{\"k\":1 \n}");
    assert_eq!(Edit::new(RAW).insert(part("[ ]"), "k", "1").unwrap_err(), EditError::NotAnObject);
}

#[test]
fn parts_of_something_else_are_refused() {
    let copy = RAW.to_owned();
    let longer = format!("{RAW}{RAW}");
    let (left, right) = longer.split_at(RAW.len());
    for (raw, part) in [
        (RAW, copy.as_str()),
        (RAW, "1"),
        (RAW, ""),
        (left, right),
        (right, left),
        (left, longer.as_str()),
        (left, longer.get(RAW.len() - 1..=RAW.len()).unwrap()),
        (left, right.get(..0).unwrap()),
    ] {
        assert_eq!(Edit::new(raw).replace(part, "x").unwrap_err(), EditError::Outside);
        assert_eq!(Edit::new(raw).insert(part, "k", "1").unwrap_err(), EditError::Outside);
    }
}

#[test]
fn changes_that_meet_are_refused() {
    let params = part(r#"{"name":"a","_meta":{}}"#);
    for (first, second) in [
        (params, params),
        (params, part("\"a\"")),
        (part("\"a\""), params),
        (part(r#""name":"a""#), part(r#""a","_meta""#)),
        (RAW, part("1")),
    ] {
        let edit = Edit::new(RAW).replace(first, "x").unwrap();
        assert_eq!(edit.replace(second, "y").unwrap_err(), EditError::Overlap);
    }
    let edit = Edit::new(RAW).replace(params, "x").unwrap();
    assert_eq!(edit.insert(params, "k", "1").unwrap_err(), EditError::Overlap);
    let edit = Edit::new(RAW).insert(params, "k", "1").unwrap();
    assert_eq!(edit.clone().insert(params, "l", "1").unwrap_err(), EditError::Overlap);
    assert_eq!(edit.replace(params, "x").unwrap_err(), EditError::Overlap);
}
