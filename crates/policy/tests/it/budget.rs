//! What a decision may cost: arguments of megabytes are decided or refused, and soon.

use std::fmt::Write as _;

use jiff::Timestamp;
use toolgate_policy::{
    Call, Class, Effect, Known, Ledger, Policy, UNUSED, Verdict, Window, Yielded, conclude, decide,
    examine,
};

fn policy(entry: &str) -> Policy {
    let text = format!("{{\"version\":\"1\",\"default\":\"deny\",\"tools\":{{\"t\":{entry}}}}}");
    let loaded = Policy::load("p", &text, &Known::default());
    loaded.policy.unwrap_or_else(|| panic!("{:#?}", loaded.problems))
}

fn now() -> Timestamp {
    Timestamp::from_second(1_767_571_200).unwrap()
}

fn ask(policy: &Policy, arguments: &str) -> Verdict {
    decide(policy, &Call::new("s", "t", Class::Other, arguments), &UNUSED, now())
}

fn numbers(count: usize, from: usize) -> String {
    let mut list = String::from("[");
    for n in from..from + count {
        let comma = if n == from { "" } else { "," };
        write!(list, "{comma}{n}").unwrap();
    }
    list + "]"
}

fn condition(path: &str, op: &str, value: &str) -> String {
    format!("{{\"conditions\":[{{\"path\":\"{path}\",\"op\":\"{op}\",\"value\":{value}}}]}}")
}

/// A list of thousands is looked up, not walked over, and each element is one comparison.
#[test]
fn long_lists_are_looked_up() {
    let wanted = numbers(1_500, 1_000_000);
    let policy =
        policy(&format!("{{\"deny_if\":[{}]}}", condition("args.ids[any]", "in", &wanted)));
    let fits = format!("{{\"ids\":{}}}", numbers(90_000, 0));
    assert_eq!(ask(&policy, &fits).effect, Effect::Allow);
    let found = r#"{"ids":[0,1,1000900.0,2]}"#;
    assert_eq!(ask(&policy, found).effect, Effect::Deny);
    let many = format!("{{\"ids\":{}}}", numbers(100_001, 0));
    let verdict = ask(&policy, &many);
    assert_eq!(verdict.effect, Effect::Deny);
    assert_eq!(verdict.rule.as_deref(), Some("/tools/t/deny_if/0"));
    assert!(verdict.message.contains("more than 100,000 comparisons"), "{}", verdict.message);
}

/// Nothing that looks at arguments is free: all of these end, and deny.
#[test]
fn whatever_is_too_much_is_denied() {
    let text = "x".repeat(3_700_000);
    let string = format!("{{\"a\":\"{text}\"}}");
    let empties = format!("{{\"a\":[{}[]]}}", "[],".repeat(1_200_000));
    let members = {
        let mut object = String::from("{\"a\":{");
        for n in 0..300_000 {
            write!(object, "\"k{n}\":1,").unwrap();
        }
        object + "\"z\":1}}"
    };
    let many = |path: &str, op: &str, value: &str| vec![condition(path, op, value); 400].join(",");
    for (what, entry, arguments) in [
        ("regex", format!("{{\"deny_if\":[{}]}}", many("args.a", "regex", "\"y+z\"")), &string),
        ("contains", format!("{{\"deny_if\":[{}]}}", many("args.a", "contains", "\"y\"")), &string),
        ("equal", format!("{{\"require\":[{}]}}", many("args.a", "neq", "\"y\"")), &string),
        ("absent", format!("{{\"deny_if\":[{}]}}", many("args.b", "eq", "1")), &string),
        ("empties", format!("{{\"deny_if\":[{}]}}", many("args.a[any][any]", "eq", "1")), &empties),
        ("elements", format!("{{\"deny_if\":[{}]}}", many("args.a", "contains", "1")), &empties),
        ("members", format!("{{\"deny_if\":[{}]}}", many("args.a.y", "eq", "1")), &members),
        (
            "rules",
            format!(
                "{{\"rules\":[{}]}}",
                (0..400)
                    .map(|n| format!(
                        "{{\"name\":\"r{n}\",\"action\":\"require_approval\",\"conditions\":[\
                         {{\"path\":\"args.a\",\"op\":\"contains\",\"value\":\"y\"}}]}}"
                    ))
                    .collect::<Vec<_>>()
                    .join(",")
            ),
            &string,
        ),
        ("held", format!("{{\"approve_if\":[{}]}}", many("args.a", "contains", "\"y\"")), &string),
    ] {
        let verdict = ask(&policy(&entry), arguments);
        assert_eq!(verdict.effect, Effect::Deny, "{what}: {verdict:?}");
        assert!(verdict.message.contains("100,000"), "{what}: {}", verdict.message);
    }
}

/// Amounts have the same budget, and a refusal by name looks at nothing.
#[test]
fn names_are_decided_without_looking_at_arguments() {
    let text = "{\"version\":\"1\",\"default\":\"deny\",\"hide\":[\"h*\"]}";
    let policy = Policy::load("p", text, &Known::default()).policy.unwrap();
    for tool in ["hidden", "other"] {
        // Not even JSON.
        let call = Call::new("s", tool, Class::Other, "{\"a\":");
        assert!(decide(&policy, &call, &UNUSED, now()).effect >= Effect::Deny);
    }
}

/// What is examined once is concluded at any time, and ownership asked then.
#[test]
fn time_and_ownership_are_asked_in_the_end() {
    let text = r#"{"version":"1","default":"deny","tools":{"t":{
        "require":[{"conditions":[{"path":"args.ids[all]","op":"owned","value":"job"}]}],
        "deny_if":[{"any":[{"conditions":[{"path":"time.hour","op":"lt","value":6}]},
                           {"not":{"conditions":[{"path":"time.weekday","op":"in","value":["mon"]}]}}]}]}}}"#;
    let policy = Policy::load("p", text, &Known::default()).policy.unwrap();
    let call = Call { grant: "g", ..Call::new("s", "t", Class::Other, r#"{"ids":["a",1]}"#) };
    let examined = examine(&policy, &call);
    let mut ledger = Ledger::default();
    let monday = |hour: i64| Timestamp::from_second(1_767_571_200 + hour * 3_600).unwrap();
    let rule = |ledger: &Ledger, at| {
        conclude(&policy, &call, &examined, ledger, at).rule.map(|rule| rule.to_string())
    };
    assert_eq!(rule(&ledger, monday(12)).as_deref(), Some("/tools/t/require/0"));
    for value in ["\"a\"", "1"] {
        let yielded = Yielded {
            server: "s".into(),
            kind: "job".into(),
            value: value.into(),
            keep: Window::seconds(7 * 86_400).unwrap(),
            shared: false,
            by_identity: false,
        };
        let _recorded = ledger.own(&yielded, "g", None, monday(0));
    }
    assert_eq!(rule(&ledger, monday(12)), None);
    assert_eq!(rule(&ledger, monday(5)).as_deref(), Some("/tools/t/deny_if/0"));
    assert_eq!(rule(&ledger, monday(36)).as_deref(), Some("/tools/t/deny_if/0"));
    // Thousands of owners are not asked for.
    let ids = format!("{{\"ids\":{}}}", numbers(300, 0));
    let verdict = decide(&policy, &Call::new("s", "t", Class::Other, &ids), &ledger, monday(12));
    assert!(verdict.message.contains("more than 256 values"), "{}", verdict.message);
}

/// A call that was examined under another document is examined again.
#[test]
fn another_policy_is_not_concluded_by_what_was_examined() {
    let (open, strict) = (policy("{}"), policy("{\"action\":\"deny\"}"));
    let call = Call::new("s", "t", Class::Other, "{}");
    let examined = examine(&open, &call);
    assert_eq!(conclude(&open, &call, &examined, &UNUSED, now()).effect, Effect::Allow);
    assert_eq!(conclude(&strict, &call, &examined, &UNUSED, now()).effect, Effect::Deny);
}

/// A document's own tests end, and a document whose tests are too much has failed them.
#[test]
fn tests_of_a_document_have_a_budget() {
    let many = "  - { call: { tool: a, times: 100000 }, expect: allow }\n".repeat(12);
    let text = format!("version: '1'\ndefault: allow\ntests:\n{many}");
    let loaded = Policy::load("p", &text, &Known::default());
    let policy = loaded.policy.unwrap_or_else(|| panic!("{:#?}", loaded.problems));
    let report = policy.run_tests();
    let failures: Vec<_> = report.results.iter().filter_map(|it| it.failure.as_deref()).collect();
    assert_eq!(failures.len(), 2, "{failures:?}");
    assert!(failures.iter().all(|it| it.contains("more than 1,000,000 calls")), "{failures:?}");
    let left = std::cell::Cell::new(10);
    let report = policy.run_tests_while(&|| left.replace(left.get() - 1) > 0);
    assert!(!report.passed());
    assert!(report.results[0].failure.as_deref().unwrap().contains("take too long"));
}
