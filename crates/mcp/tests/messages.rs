//! Properties of whole messages: what is let in, and that nothing changes on the way through.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed test helper is a failed test")]

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use toolgate_json::{Edit, peek};
use toolgate_mcp::{Incoming, Limits, Message, Request, parse_agent, parse_server};

#[path = "reference/json.rs"]
#[expect(clippy::indexing_slicing, reason = "reads what is known to be JSON")]
mod reference;

/// Values whose spelling a reader into types would change or refuse.
const LEAVES: [&str; 20] = [
    "1",
    "1.0",
    "1e0",
    "1E+2",
    "-0",
    "1e400",
    "123456789012345678901234567890",
    "0.10000000000000000000000001",
    "null",
    "true",
    "\"\"",
    r#""\u0041\/\"\\""#,
    r#""\ud83d\ude00""#,
    r#""}],{[""#,
    r#""ы\n""#,
    "\"\u{2028}\"",
    r#"{"type":"hologram","data":"AA==","annotations":{"audience":["user"]}}"#,
    r#"{"type":"text","text":"a","_meta":{"x.y/z":1.50}}"#,
    "[ ]",
    "{ }",
];

const SPACES: [&str; 6] = ["", "", "", " ", "\n\t", "\r\n  "];

fn space() -> impl Strategy<Value = &'static str> {
    select(&SPACES[..])
}

/// JSON whose objects have no key twice, with layout.
fn value() -> impl Strategy<Value = String> {
    let leaf = (space(), select(&LEAVES[..])).prop_map(|(space, leaf)| format!("{space}{leaf}"));
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4)
                .prop_map(|items| format!("[{}]", items.join(","))),
            (members(inner), space())
                .prop_map(|(members, space)| format!("{{{}{space}}}", members.join(","))),
        ]
    })
}

/// Members under different keys.
fn members(value: impl Strategy<Value = String>) -> impl Strategy<Value = Vec<String>> {
    let keys = ["a", "Name", "ID", "_meta2", "\\u0062", "ключ", "x y", "", "1", "\\\"", "\\\\"];
    let keys = subsequence(keys.to_vec(), 0..4).prop_shuffle();
    (keys, proptest::collection::vec((value, space()), 4)).prop_map(|(keys, values)| {
        let members = keys.iter().zip(values);
        members.map(|(key, (value, space))| format!("{space}\"{key}\"{space}:{value}")).collect()
    })
}

/// A call with `<ID>`, `<NAME>` and `<TOKEN>` where these belong, and anything beside them.
fn call() -> impl Strategy<Value = String> {
    let extras = || proptest::collection::vec((space(), value(), space()), 3);
    (extras(), extras(), value(), select(&["tools/call", "prompts/get", "x/y"][..]), space())
        .prop_flat_map(|(outer, inner, arguments, method, space)| {
            let named = |name: &str, parts: Vec<(&str, String, &str)>| -> Vec<String> {
                let parts = parts.into_iter().enumerate();
                parts.map(|(i, (a, v, b))| format!("{a}\"{name}{i}\"{b}:{v}{a}")).collect()
            };
            let mut params = named("in", inner);
            params.push(format!("\"n\\u0061me\":{space}<NAME>"));
            params.push(format!("\"arguments\":{arguments}"));
            params.push(format!("\"_meta\":{{\"k\":[1.0],{space}\"progressToken\":<TOKEN>}}"));
            let envelope = named("out", outer);
            (Just(params).prop_shuffle(), Just(envelope), Just(method), space_around())
        })
        .prop_flat_map(|(params, mut envelope, method, (before, after))| {
            envelope.push(format!("\"params\"{before}:{after}{{{}}}", params.join(",")));
            envelope.push(format!("\"id\":{before}<ID>{after}"));
            envelope.push(format!("\"method\":\"{method}\""));
            envelope.push("\"jsonrpc\":\"2.0\"".to_owned());
            (Just(envelope).prop_shuffle(), Just((before, after)))
        })
        .prop_map(|(envelope, (before, after))| {
            format!("{{{before}{}{after}}}", envelope.join(","))
        })
}

fn space_around() -> impl Strategy<Value = (&'static str, &'static str)> {
    (space(), space())
}

fn request(body: &str) -> Request<'_> {
    match parse_agent(body.as_bytes(), &Limits::default()).unwrap() {
        Incoming::One(Message::Request(request)) => request,
        other => panic!("not a request: {other:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn an_edit_changes_only_what_it_names(
        template in call(),
        old in select(&["1", "-0", "1.0", "1e400", "\"\"", r#""\u0041\"""#, "\"ы\""][..]),
        new in select(&["7", "\"gate-8\"", "\"\\n\""][..]),
    ) {
        let fill = |id: &str, name: &str, token: &str| {
            template.replace("<ID>", id).replace("<NAME>", name).replace("<TOKEN>", token)
        };
        let body = fill(old, r#""a\u0062""#, "1e0");
        let Request { raw, id, params, .. } = request(&body);
        let params = params.unwrap();
        prop_assert_eq!((raw, id), (body.as_str(), old));
        let name = peek(params, &["name"]).unwrap().unwrap();
        let token = peek(params, &["_meta", "progressToken"]).unwrap().unwrap();
        let edited = Edit::new(raw)
            .replace(token, "\"t\"").unwrap()
            .replace(id, new).unwrap()
            .replace(name, "\"srv__b\"").unwrap()
            .finish();
        let expected = fill(new, "\"srv__b\"", "\"t\"");
        prop_assert_eq!(std::str::from_utf8(&edited).unwrap(), &expected);
        // And what goes out is again a call that would be let in.
        prop_assert_eq!(request(&expected).id, new);
    }

    #[test]
    fn a_result_passes_whatever_it_holds(result in value(), error: bool, space in space()) {
        let kind = if error { "error" } else { "result" };
        let result = result.trim();
        let body = format!("{{\"jsonrpc\":\"2.0\",\"id\":9,{space}\"{kind}\":{space}{result}{space}}}");
        let Incoming::One(Message::Response(response)) =
            parse_server(body.as_bytes(), &Limits::default()).unwrap()
        else {
            panic!("not a response: {body}")
        };
        let edited = Edit::new(response.raw).replace(response.id.unwrap(), "\"mine\"").unwrap();
        let expected = body.replacen("\"id\":9", "\"id\":\"mine\"", 1);
        let edited = edited.finish();
        prop_assert_eq!(std::str::from_utf8(&edited).unwrap(), expected);
    }
}

/// Pieces of small documents in which much is wrong.
fn wild_key() -> impl Strategy<Value = &'static str> {
    select(
        &[
            "jsonrpc",
            "id",
            "method",
            "params",
            "result",
            "error",
            "name",
            "arguments",
            "uri",
            "_meta",
            "task",
            "x",
            "Name",
            "ID",
            "paramſ",
            "ｎame",
            "n\\u0061me",
            "\\ud800",
            "\\ud83d\\ude00",
            "requeststate",
            "tasK",
            "",
        ][..],
    )
}

fn wild_value() -> impl Strategy<Value = String> {
    let leaf = select(
        &[
            "1",
            "1e400",
            "-1.5",
            "null",
            "true",
            "\"2.0\"",
            "\"a\"",
            "\"\\udc00\"",
            "\"x\\ud800y\"",
            "\"\\ud83d\\ude00\"",
            "\"\\\\ud800\"",
            "\"tools/call\"",
            "\"Tools/Call\"",
            "\"ping\"",
            "{}",
            "[]",
        ][..],
    );
    leaf.prop_map(str::to_owned).prop_recursive(4, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3)
                .prop_map(|items| format!("[{}]", items.join(" , "))),
            wild_object(inner),
        ]
    })
}

fn wild_object(value: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    proptest::collection::vec((wild_key(), value), 0..4).prop_map(|members| {
        let members = members.iter().map(|(key, value)| format!("\"{key}\":{value}"));
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    })
}

/// Mostly a message, with every part sometimes left out, doubled or replaced.
fn wild_message() -> impl Strategy<Value = String> {
    let member = |name: &'static str, good: &'static [&'static str]| {
        let value = prop_oneof![
            12 => select(good).prop_map(str::to_owned),
            1 => wild_value(),
        ];
        let member = value.prop_map(move |value| format!("\"{name}\":{value}"));
        prop_oneof![
            16 => proptest::collection::vec(member.clone(), 1),
            1 => proptest::collection::vec(member, 0..3),
        ]
    };
    let methods =
        &["\"tools/call\"", "\"tools\\/call\"", "\"resources/read\"", "\"ping\"", "\"x\""][..];
    let params = wild_object(wild_value()).prop_map(|params| vec![format!("\"params\":{params}")]);
    let answer = prop_oneof![Just("result"), Just("error")];
    let answer =
        (answer, wild_value()).prop_map(|(name, value)| vec![format!("\"{name}\":{value}")]);
    let other = (wild_key(), wild_value()).prop_map(|(key, value)| format!("\"{key}\":{value}"));
    let body = prop_oneof![
        6 => (member("method", methods), params).prop_map(|(method, params)| [method, params].concat()),
        1 => answer,
    ];
    let other = prop_oneof![
        2 => Just(vec![]),
        1 => proptest::collection::vec(other, 1),
    ];
    (
        member("jsonrpc", &["\"2.0\"", "\"2.\\u0030\""]),
        member("id", &["1", "\"a\"", "1e0"]),
        body,
        other,
    )
        .prop_map(|(version, id, body, other)| [version, id, body, other].concat())
        .prop_shuffle()
        .prop_map(|members| format!("{{{}}}", members.join(",")))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8192))]

    #[test]
    fn the_gate_agrees_with_a_simple_one(body in wild_message(), depth in 2_usize..8) {
        let limits = Limits { depth, ..Limits::default() };
        let judged = parse_agent(body.as_bytes(), &limits);
        let tree = reference::parse(&body).unwrap();
        prop_assert_eq!(judged.is_ok(), reference::accepts(&tree, depth), "{:?}", judged);
    }
}

/// The property above is worth something only if both outcomes are common.
#[test]
fn both_outcomes_are_common() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let strategy = wild_message();
    let accepted = (0..1000).filter(|_| {
        let body = strategy.new_tree(&mut runner).unwrap().current();
        parse_agent(body.as_bytes(), &Limits::default()).is_ok()
    });
    let accepted = accepted.count();
    assert!((250..750).contains(&accepted), "{accepted} of 1000");
}
