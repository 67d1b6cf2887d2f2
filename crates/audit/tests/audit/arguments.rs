//! What is recorded of arguments in each mode.

use toolgate_audit::{
    ArgumentHashKey, ArgumentMode, ChainHead, Draft, FactPath, Hash, RecordedArguments, RowKind,
    record_arguments,
};
use toolgate_dice::Dice;

const SECRET: ArgumentHashKey = ArgumentHashKey([9; 32]);

fn record(mode: ArgumentMode, arguments: &str, paths: &[&str]) -> RecordedArguments {
    let paths: Vec<FactPath> = paths.iter().map(|path| FactPath::parse(path).unwrap()).collect();
    record_arguments(mode, arguments, &paths, &SECRET)
}

#[test]
fn each_mode_records_what_it_promises() {
    let arguments = r#"{ "b": {"x": 1.0}, "a": [ {"n":"m"}, {"n":2} ], "c.d": "v" }"#;
    for (mode, paths, expected) in [
        (ArgumentMode::Keys, vec!["args.b"], None),
        (ArgumentMode::Facts, vec![], None),
        (ArgumentMode::Facts, vec!["args.b.y", "args.a.n"], None),
        (
            ArgumentMode::Facts,
            vec!["args.b.x", "args.a[1].n", "args.\"c.d\"", "args.b.x"],
            Some(r#"{"args.\"c.d\"":"v","args.a[1].n":2,"args.b.x":1.0}"#),
        ),
        (ArgumentMode::Facts, vec!["args.a[any].n"], Some(r#"{"args.a[any].n":["m",2]}"#)),
        (ArgumentMode::Full, vec![], Some(r#"{"a":[{"n":"m"},{"n":2}],"b":{"x":1.0},"c.d":"v"}"#)),
    ] {
        let written = record(mode, arguments, &paths);
        assert_eq!(written.keys.as_deref(), Some(r#"["a","b","c.d"]"#));
        assert_eq!(written.values.as_deref(), expected, "{mode:?} {paths:?}");
    }
    for bad in ["", "[1]", "null", "{"] {
        assert_eq!(record(ArgumentMode::Full, bad, &[]), RecordedArguments::default(), "{bad}");
    }
    for bad in ["args", "arg.x", "args..x", "args[x]", "args.x[", "tool", "argsx"] {
        assert_eq!(FactPath::parse(bad), None, "{bad}");
    }
}

#[test]
fn a_hashed_value_can_be_searched_but_not_read() {
    let written = record(ArgumentMode::Hashed, r#"{"inn":{"b":"7707","a":1}}"#, &[]);
    let again = record(ArgumentMode::Hashed, r#"{"inn": {"a":1, "b":"7707"} }"#, &[]);
    assert_eq!(written, again);
    let values = written.values.unwrap();
    assert!(!values.contains("7707"));
    let hex = Hash(SECRET.digest("inn", r#"{"a":1,"b":"7707"}"#));
    assert_eq!(&*values, format!(r#"{{"inn":"{hex}"}}"#));
    let other =
        record_arguments(ArgumentMode::Hashed, r#"{"inn":1}"#, &[], &ArgumentHashKey([8; 32]));
    assert_ne!(other.values, record(ArgumentMode::Hashed, r#"{"inn":1}"#, &[]).values);
}

#[test]
fn names_are_bounded() {
    let many: Vec<String> = (0..100).map(|n| format!(r#""k{n:03}":0"#)).collect();
    let written = record(ArgumentMode::Keys, &format!("{{{}}}", many.join(",")), &[]);
    let names: Vec<String> = serde_json::from_str(&written.keys.unwrap()).unwrap();
    assert_eq!((names.len(), names.last().map(String::as_str)), (65, Some("… 36 more")));
    let long = format!(r#"{{"{}":1}}"#, "щ".repeat(10_000));
    assert!(record(ArgumentMode::Keys, &long, &[]).keys.unwrap().len() < 200);
}

/// Every value is a marker; none may be in the row.
#[test]
fn in_keys_mode_no_value_is_in_the_row() {
    let mut dice = Dice::new(41);
    for _ in 0..500 {
        let arguments = format!(r#"{{"k":{},"l":{}}}"#, value(&mut dice, 4), value(&mut dice, 4));
        let written = record(ArgumentMode::Keys, &arguments, &["args.k"]);
        let mut draft = Draft::new(RowKind::Intent, crate::support::time(0));
        (draft.argument_keys, draft.arguments) = (written.keys, written.values);
        let json = ChainHead::default().seal(draft).to_json();
        assert!(!json.contains("MARK") && !json.contains("777"), "{arguments} {json}");
    }
}

fn value(dice: &mut Dice, depth: usize) -> String {
    match (dice.below(5), depth) {
        (0, _) | (_, 0) => "\"MARK\"".to_owned(),
        (1, _) => "777".to_owned(),
        (2, _) => format!("[{}]", value(dice, depth - 1)),
        (_, _) => format!(r#"{{"MARK":{}}}"#, value(dice, depth - 1)),
    }
}
