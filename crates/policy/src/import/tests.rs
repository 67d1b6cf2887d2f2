use super::{Imported, import_intercept};
use crate::{Call, Class, Effect, Known, Ledger, Policy, Refusal, decide};

const STRIPE: &str = r#"
version: "1"
description: Stripe limits
hide: [delete_customer]
tools:
  create_charge:
    rules:
      - name: max single charge
        conditions:
          - { path: args.amount, op: lte, value: 500 }
        on_deny: "Single charge cannot exceed 500"
      - name: daily spend
        conditions: [{ path: state.create_charge.spend, op: lte, value: 1000 }]
        state: { counter: spend, window: day, increment_from: args.amount }
      - { name: big, action: require_approval, conditions: [{ path: args.amount, op: gt, value: 400 }], approval_timeout: 30m }
  send:
    rules:
      - idempotency_window: 5m
        name: once
  "*":
    rules: [{ name: overall, rate_limit: 60/minute }]
"#;

fn imported(source: &str) -> Imported {
    import_intercept(source).unwrap_or_else(|problems| panic!("{problems:#?}"))
}

fn changed(source: &str, fragment: &str) -> bool {
    imported(source).changes.iter().any(|change| change.contains(fragment))
}

#[test]
fn an_intercept_file_becomes_a_document_with_the_same_meaning() {
    let document = imported(STRIPE).document;
    let policy = Policy::load("p", &document, &Known::default()).policy.unwrap();
    let mut ledger = Ledger::default();
    let now = "2026-01-05T00:00:00Z".parse().unwrap();
    for (tool, args, effect, rule) in [
        (
            "create_charge",
            r#"{"amount":501}"#,
            Effect::Deny,
            "/tools/create_charge/rules/max single charge",
        ),
        ("create_charge", r#"{"amount":450}"#, Effect::Hold, "/tools/create_charge/rules/big"),
        ("create_charge", r#"{"amount":400}"#, Effect::Allow, ""),
        ("create_charge", r#"{"amount":399}"#, Effect::Allow, ""),
        (
            "create_charge",
            r#"{"amount":399}"#,
            Effect::Deny,
            "/tools/create_charge/rules/daily spend",
        ),
        ("create_charge", "{}", Effect::Deny, "/tools/create_charge/rules/max single charge"),
        ("delete_customer", "{}", Effect::Hide, "(hidden)"),
        ("send", r#"{"to":"a"}"#, Effect::Allow, ""),
        ("send", r#"{"to":"a"}"#, Effect::Deny, "/tools/send/unless_seen_within"),
        ("anything", "{}", Effect::Allow, ""),
    ] {
        let call = Call::new("stripe", tool, Class::Other, args);
        let verdict = decide(&policy, &call, &ledger, now);
        assert_eq!(verdict.effect, effect, "{tool} {args}: {verdict:?}");
        assert_eq!(verdict.rule.as_deref().unwrap_or_default(), rule);
        if effect == Effect::Allow {
            let receipt = ledger.admit(&verdict.reservations, now).unwrap();
            ledger.settle(receipt);
        }
    }
    let spent = decide(
        &policy,
        &Call::new("s", "create_charge", Class::Other, r#"{"amount":399}"#),
        &ledger,
        now,
    );
    assert_eq!(spent.refusal, Some(Refusal::RateLimited));
}

#[test]
fn every_intended_difference_is_listed() {
    for fragment in [
        "`default: allow` is written out",
        "belong to their tool and count the calls of all grants",
        "counters of `\"*\"` count the calls of all tools",
        "counters are returned only if a call was never sent",
        "[POLICY DENIED]",
        "`require_approval` rule holds",
        "`approval_timeout`",
        "`idempotency_window` becomes `unless_seen_within`",
    ] {
        assert!(changed(STRIPE, fragment), "{fragment}");
    }
    assert!(!changed("version: \"1\"\ndefault: deny\n", "written out"));
    assert!(changed(
        "version: \"1\"\napprovals: { dedupe_window: 5m }\n",
        "`approvals` is dropped"
    ));
}

#[test]
fn what_cannot_be_imported_is_refused_with_its_place() {
    for (source, code, line) in [
        ("version: \"1\"\ntools:\n  x: { spend: { daily: 50 } }\n", "TG0042", 3),
        ("version: \"1\"\ntools:\n  x: { rulez: [] }\n", "TG0005", 3),
        ("version: \"2\"\n", "TG0009", 1),
        ("version: \"1\"\ndefault: perhaps\n", "TG0008", 2),
        (
            "version: \"1\"\ntools:\n  x:\n    rules: [{ name: r, conditions: [{ path: args.a, op: eqq, value: 1 }] }]\n",
            "TG0021",
            4,
        ),
        (
            "version: \"1\"\ntools:\n  x:\n    rules: [{ name: r, conditions: [{ path: state.x.c, op: gte, value: 1 }], state: { counter: c, window: day } }]\n",
            "TG0037",
            4,
        ),
        ("version: [\n", "TG0001", 1),
    ] {
        let problems = import_intercept(source).unwrap_err();
        let problem = &problems[0];
        assert_eq!((problem.code.as_str(), problem.line), (code, line), "{source}: {problems:?}");
    }
}
