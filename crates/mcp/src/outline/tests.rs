use proptest::prelude::*;

use super::*;
use crate::{Incoming, Limits, Message, Payload, parse_server};

fn outline(pieces: &[&[u8]]) -> Option<String> {
    let (first, rest) = pieces.split_first().unwrap();
    let mut outline = Outline::begin(first)?;
    for piece in rest {
        outline.push(piece);
    }
    outline.finish().map(|outline| String::from_utf8(outline).unwrap())
}

#[test]
fn an_outline_is_begun_only_where_the_answer_is_plain() {
    let long = format!(r#"{{"jsonrpc":"2.0","id":17,"result":{{"tools":["{}"#, "x".repeat(900));
    let cases: &[(&[u8], Option<&str>)] = &[
        (br#"{"jsonrpc":"2.0","id":17,"result":{"#, Some("17")),
        (b" {\n\"id\" : \"a\" , \"jsonrpc\":\"2.0\",\"result\" : {", Some("\"a\"")),
        (long.as_bytes(), Some("17")),
        (b"{\"jsonrpc\":\"2.0\",\"id\":17,\"result\":{\"a\":\"\xc3", Some("17")),
        (br#"{"jsonrpc":"2.0","id":17,"result":["#, None),
        (br#"{"jsonrpc":"2.0","id":17,"result":"#, None),
        (br#"{"jsonrpc":"2.0","id":17,"result"#, None),
        (br#"{"jsonrpc":"2.0","id":17"#, None),
        (br#"{"jsonrpc":"2.0","id":17,"id":18,"result":{"#, None),
        (br#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":17,"result":{"#, None),
        (br#"{"jsonrpc":"1.0","id":17,"result":{"#, None),
        (br#"{"jsonrpc":"2.0","id":null,"result":{"#, None),
        (br#"{"jsonrpc":"2.0","id":{},"result":{"#, None),
        (br#"{"jsonrpc":"2.0","result":{},"id":17}"#, None),
        (br#"{"id":17,"result":{},"jsonrpc":"2.0"}"#, None),
        (br#"{"jsonrpc":"2.0","x":1,"id":17,"result":{"#, None),
        (br#"{"jsonrpc":"2.0","id":17,"error":{}}"#, None),
        (br#"{"jsonrpc":"2.0","id":17,"method":"m"}"#, None),
        (br#"[{"jsonrpc":"2.0","id":17,"result":{"#, None),
        (b"", None),
        (b"\xff", None),
    ];
    for (beginning, expected) in cases {
        let found = Outline::begin(beginning).map(|outline| &beginning[outline.id()]);
        let shown = String::from_utf8_lossy(beginning);
        assert_eq!(found, expected.map(str::as_bytes), "{shown}");
    }
}

#[test]
fn members_around_the_result_are_kept() {
    let head = br#"{"jsonrpc":"2.0","id":17,"result":{"a":"#.as_slice();
    let long = vec![b'y'; TAIL];
    let cases: &[(&[&[u8]], Option<&str>)] = &[
        (&[b"1}}"], Some("}")),
        (&[b"1}", b"}\n"], Some("}\n")),
        (&[b"\"}", b"}\"} , \"id\":", b"18}"], Some(r#" , "id":18}"#)),
        (&[b"\"\\", b"\"}\"}", b"}"], Some("}")),
        (&["\"é".as_bytes().split_at(2).0, "\"é".as_bytes().split_at(2).1, b"\"}}"], Some("}")),
        (&[b"1}} and more"], Some("} and more")),
        (&[b"1"], None),
        (&[b"\"1}}"], None),
        (&[b"\"\xc3", b"\"}}"], None),
        (&[b"\"\xff\"}}"], None),
        (&[b"1}}", b"\xc3"], None),
        (&[b"1},\"x\":\"", &long, b"\"}"], None),
        (&[b"1},\"x\":\"", &long[7..], b"\"", b"}"], None),
    ];
    for (rest, expected) in cases {
        let all = [&[head], *rest].concat();
        let expected =
            expected.map(|tail| format!(r#"{{"jsonrpc":"2.0","id":17,"result":{{}}{tail}"#));
        let shown = String::from_utf8_lossy(rest.first().unwrap());
        assert!(outline(&all) == expected, "{shown}");
    }
}

fn cut<'a>(text: &'a [u8], places: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let start = br#"{"jsonrpc":"2.0","id":17,"result":{"#.len();
    let mut places: Vec<_> =
        places.iter().map(|place| start + place.index(text.len() - start + 1)).collect();
    places.sort_unstable();
    places.push(text.len());
    let mut from = 0;
    places.into_iter().map(|to| &text[std::mem::replace(&mut from, to)..to]).collect()
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![r#"[a-z"\\é{}\[\]𝄞 ]{0,90}"#, "[x]{0,300}"]
}

proptest! {
    #[test]
    fn any_answer_has_the_outline_of_its_envelope(
        texts in prop::collection::vec(text(), 0..6),
        behind in prop::option::of(text()),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..9),
    ) {
        let result = serde_json::json!({ "tools": texts, "x": { "y": [texts] } });
        let behind = behind.map_or(String::new(), |text| format!(r#","more":{}"#, serde_json::json!(text)));
        let answer = format!(r#"{{"jsonrpc":"2.0","id":17,"result":{result}{behind}}}"#);
        let expected = answer.replacen(&result.to_string(), "{}", 1);
        let found = outline(&cut(answer.as_bytes(), &places));
        prop_assert_eq!(found.as_deref(), Some(expected.as_str()));
        let parsed = parse_server(expected.as_bytes(), &Limits::default());
        let is_answer = matches!(parsed, Ok(Incoming::One(Message::Response(response)))
            if response.payload == Payload::Result("{}") && response.id == Some("17"));
        prop_assert!(is_answer);
    }

    #[test]
    fn what_is_cut_off_has_none(
        texts in prop::collection::vec(text(), 1..6),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..9),
        end in any::<prop::sample::Index>(),
    ) {
        let result = serde_json::json!({ "tools": texts }).to_string();
        let head = r#"{"jsonrpc":"2.0","id":17,"result":"#;
        let kept = head.len() + 1 + end.index(result.len() - 1);
        let answer = format!("{head}{result}");
        prop_assert_eq!(outline(&cut(&answer.as_bytes()[..kept], &places)), None);
    }
}
