use proptest::prelude::*;

use super::super::members::Members;
use super::skim;

/// Any JSON value, with layout and escapes as they come.
fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        r"-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,4})?([eE][+-]?[0-9]{1,3})?",
        r#""([a-zа-я {}\[\],:]|\\["\\/bfnrt]|\\u[0-9a-f]{4}){0,12}""#,
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        let space = "[ \t\r\n]{0,2}";
        prop_oneof![
            (space, proptest::collection::vec(inner.clone(), 0..4)).prop_map(
                |(space, items)| format!("[{space}{}]", items.join(&format!(",{space}")))
            ),
            (space, proptest::collection::vec(("\"[a-z]{0,3}\"", inner), 0..4)).prop_map(
                |(space, members)| {
                    let members =
                        members.iter().map(|(key, value)| format!("{key}:{space}{value}"));
                    format!("{{{}{space}}}", members.collect::<Vec<_>>().join(","))
                }
            ),
        ]
    })
}

fn message() -> impl Strategy<Value = String> {
    let key = prop_oneof![
        Just(r#""jsonrpc""#.to_owned()),
        Just(r#""id""#.to_owned()),
        Just(r#""i\u0064""#.to_owned()),
        Just(r#""method""#.to_owned()),
        Just(r#""params""#.to_owned()),
        Just(r#""result""#.to_owned()),
        Just(r#""error""#.to_owned()),
        Just(r#""Result""#.to_owned()),
        r#""[a-z]{0,4}""#,
    ];
    let members = proptest::collection::vec((key, "[ \n]{0,2}", value()), 1..7);
    members.prop_map(|members| {
        let members = members.iter().map(|(key, space, value)| format!("{space}{key}:{value}"));
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    })
}

fn shown(members: &Members<'_>) -> String {
    let Members { jsonrpc, id, method, params, result, error, .. } = members;
    let fault = members.fault().map(|fault| (fault.at, fault.what.clone()));
    let mut others: Vec<&str> = members.others().collect();
    others.sort_unstable();
    format!("{jsonrpc:?} {id:?} {method:?} {params:?} {result:?} {error:?} {others:?} {fault:?}")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    #[test]
    fn skimming_finds_what_reading_finds(json in message()) {
        let read = Members::read(&json).unwrap();
        let skimmed = skim(&json).expect("valid JSON comes out even");
        prop_assert_eq!(shown(&skimmed), shown(&read), "{}", json);
    }

    #[test]
    fn what_is_damaged_outside_the_payload_is_left_to_the_reader(
        json in message(), cut in any::<prop::sample::Index>()
    ) {
        // A message cut off anywhere never comes out even.
        let cut = cut.index(json.len() - 1) + 1;
        if let Some(head) = json.get(..cut) {
            prop_assert!(skim(head).is_none(), "{}", head);
        }
    }
}
