//! What a policy asks of the calls of a tool beside their effect and limits, as text: conditions,
//! approvers, concurrency, ownership, shadow mode. Two policies are compared by it.
//!
//! Invariant: terms that differ in meaning differ in text.

use jiff::Timestamp;

use crate::model::{
    Approve, Condition, Entry, Increment, Operand, Predicate, Rule, RuleCondition, RuleKind,
    RulePath, Test,
};
use crate::scalar::Scalar;
use crate::{Call, Digest, Policy};

/// Most characters of one term; the rest is represented by its digest.
const LONGEST: usize = 240;

/// The terms of a call, in the order of the entries that apply: `deny_if args.amount gt 10000`.
pub fn terms(policy: &Policy, call: &Call<'_>, now: Timestamp) -> Vec<String> {
    let mut all = Vec::new();
    if policy.is_shadow(now) {
        all.push("shadow".to_owned());
    }
    for entry in policy.entries(call) {
        let own = of_entry(entry, &policy.implicit.approve);
        if entry.shadow.holds_at(now) {
            all.push(format!("shadow {}", entry.pointer));
        }
        all.extend(own);
    }
    if let Some(repeat) = policy.document.repeat {
        all.push(format!("loop {}/{}", repeat.max, repeat.window));
    }
    all.into_iter().map(cut).collect()
}

fn of_entry(entry: &Entry, plain: &Approve) -> Vec<String> {
    let mut all = Vec::new();
    for (word, list) in [
        ("require", &entry.require),
        ("deny_if", &entry.deny_if),
        ("approve_if", &entry.approve_if),
    ] {
        all.extend(list.iter().map(|predicate| of_predicate(word, predicate, plain)));
    }
    all.extend(entry.approve.as_ref().and_then(|approve| of_approve(approve, plain)));
    for limit in &entry.limits {
        let sum = match &limit.increment {
            Increment::Fixed(amount) if amount.to_string() == "1" => None,
            Increment::Fixed(amount) => Some(amount.to_string()),
            Increment::From(path) => Some(path.text.clone()),
        };
        all.extend(sum.map(|by| format!("{} counts {by}", limit.counter)));
        let sliding = limit.sliding.then(|| format!("{} slides", limit.counter));
        all.extend(sliding);
    }
    all.extend(entry.concurrency.as_ref().map(|it| format!("concurrency {}", it.max)));
    all.extend(entry.repeats.as_ref().map(|it| format!("unless_seen_within {}", it.window)));
    all.extend(entry.yields.iter().map(|it| format!("yields {} {}", it.kind, it.path.text)));
    all.extend(entry.ends.iter().map(|it| format!("ends {} {}", it.kind, it.path.text)));
    all.extend(entry.rules.iter().map(of_rule));
    all
}

fn of_predicate(word: &str, predicate: &Predicate, plain: &Approve) -> String {
    let text = of_test(&predicate.test);
    let approve = predicate.approve.as_deref().and_then(|approve| of_approve(approve, plain));
    let approve = approve.map(|approve| format!(", {approve}")).unwrap_or_default();
    format!("{word} {text}{approve}")
}

fn of_test(test: &Test) -> String {
    let joined = |tests: &[Test], word: &str| match tests {
        [one] => of_test(one),
        tests => format!("({})", tests.iter().map(of_test).collect::<Vec<_>>().join(word)),
    };
    match test {
        Test::All(tests) => joined(tests, " and "),
        Test::Any(tests) => joined(tests, " or "),
        Test::Not(test) => format!("not {}", of_test(test)),
        Test::Condition(condition) => of_condition(condition),
    }
}

fn of_condition(condition: &Condition) -> String {
    let Condition { path, op, operand, .. } = condition;
    format!("{} {} {}", path.text, op.as_str(), of_operand(operand))
}

fn of_operand(operand: &Operand) -> String {
    let list = |items: Vec<String>| format!("[{}]", items.join(", "));
    match operand {
        Operand::Scalar(scalar) => of_scalar(scalar),
        Operand::List(choices) => list(choices.iter().map(of_scalar).collect()),
        Operand::Pattern(_, text) | Operand::Text(text) => toolgate_json::quote(text),
        Operand::Flag(flag) => flag.to_string(),
        Operand::Hosts(hosts) => list(hosts.iter().cloned().collect()),
    }
}

fn of_scalar(scalar: &Scalar) -> String {
    match scalar {
        Scalar::Null => "null".to_owned(),
        Scalar::Bool(flag) => flag.to_string(),
        Scalar::Number(text) => text.clone(),
        Scalar::String(text) => toolgate_json::quote(text),
    }
}

/// How a person is asked, if it is not as `approve: {}` asks.
fn of_approve(approve: &Approve, plain: &Approve) -> Option<String> {
    let mut parts = Vec::new();
    if approve.people != plain.people {
        parts.push(format!("people {}", approve.people));
    }
    if approve.approvers != plain.approvers {
        parts.push(format!("approvers [{}]", approve.approvers.join(", ")));
    }
    if approve.wait != plain.wait {
        parts.push(approve.wait.map_or("wait 0s".to_owned(), |wait| format!("wait {wait}")));
    }
    if approve.expires != plain.expires {
        parts.push(format!("expires {}", approve.expires));
    }
    (!parts.is_empty()).then(|| format!("approve {}", parts.join(", ")))
}

fn of_rule(rule: &Rule) -> String {
    let kind = match rule.kind {
        RuleKind::Evaluate => "requires",
        RuleKind::Deny => "denies",
        RuleKind::RequireApproval => "asks",
    };
    let conditions: Vec<String> = rule.conditions.iter().map(of_rule_condition).collect();
    let conditions = conditions.join(" and ");
    format!("rule {} {kind} {conditions}", toolgate_json::quote(&rule.name)).trim_end().to_owned()
}

fn of_rule_condition(condition: &RuleCondition) -> String {
    let path = match &condition.path {
        RulePath::Args(names) => format!("args.{}", names.join(".")),
        RulePath::State { entry, counter, window } => format!("state.{entry}.{counter}/{window}"),
    };
    format!("{path} {} {}", condition.op.as_str(), of_operand(&condition.operand))
}

/// A long term ends with the digest of the whole.
fn cut(term: String) -> String {
    if term.chars().count() <= LONGEST {
        return term;
    }
    let start: String = term.chars().take(LONGEST).collect();
    let digest: String = Digest::of(term.as_bytes()).to_string().chars().take(12).collect();
    format!("{start}… #{digest}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Known;

    fn of(tool: &str) -> Vec<String> {
        let text = format!("version: \"1\"\ndefault: allow\ntools:\n  pay: {tool}\n");
        let loaded = Policy::load("p", &text, &Known::default());
        let policy = loaded.policy.unwrap_or_else(|| panic!("{:?}", loaded.problems));
        let call = Call { tool: "pay", ..Call::default() };
        terms(&policy, &call, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn what_an_entry_asks_is_named() {
        let cases = [
            ("{}", None),
            ("{ approve: {} }", None),
            ("{ rate_limit: 3/minute }", None),
            (
                "{ deny_if: [{ conditions: [{ path: args.a, op: gt, value: 10 }, { path: args.b, op: eq, value: x }] }] }",
                Some("deny_if (args.a gt 10 and args.b eq \"x\")"),
            ),
            (
                "{ require: [{ any: [{ conditions: [{ path: args.a, op: in, value: [1, b] }] }, { not: { conditions: [{ path: args.c, op: exists, value: true }] } }] }] }",
                Some("require (args.a in [1, \"b\"] or not args.c exists true)"),
            ),
            (
                "{ approve: { people: 2, approvers: [ops] } }",
                Some("approve people 2, approvers [ops]"),
            ),
            ("{ concurrency: { max: 2 } }", Some("concurrency 2")),
            ("{ mode: shadow, action: deny }", Some("shadow /tools/pay")),
            (
                "{ limits: [{ counter: s, window: day, max: 9, increment_from: args.sum }] }",
                Some("s counts args.sum"),
            ),
        ];
        for (entry, expected) in cases {
            let expected: Vec<String> = expected.into_iter().map(str::to_owned).collect();
            assert_eq!(of(entry), expected, "{entry}");
        }
    }

    #[test]
    fn long_lists_that_differ_at_the_end_differ() {
        let list = |last: &str| {
            let values: Vec<String> = (0..200).map(|n| format!("host-{n}")).collect();
            let values = format!("[{}, {last}]", values.join(", "));
            of(&format!(
                "{{ deny_if: [{{ conditions: [{{ path: args.a, op: in, value: {values} }}] }}] }}"
            ))
        };
        assert_ne!(list("a"), list("b"));
        assert!(list("a")[0].chars().count() < LONGEST + 20);
    }
}
