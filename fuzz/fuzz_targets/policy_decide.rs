//! Any arguments against a document with every operator: no panic, the same verdict twice, and what
//! is not clean JSON is never allowed past a rule that reads it.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use toolgate_policy::{
    Call, Class, Effect, Known, Policy, UNUSED, argument_digest, decide,
};

static POLICY: LazyLock<Policy> = LazyLock::new(|| {
    let source = r#"
version: "1"
default: allow
loop: { max: 5, window: minute }
tools:
  x:
    require:
      - conditions: [{ path: args.a, op: exists, value: true }]
      - any:
          - conditions: [{ path: 'args.l[any].k', op: in, value: [1, x, null] }]
          - not: { conditions: [{ path: 'args.l[all]', op: eq, value: 1 }] }
    deny_if:
      - conditions: [{ path: args.a, op: gt, value: 10 }]
      - conditions: [{ path: args.s, op: regex, value: 'a+b' }, { path: args.s, op: contains, value: z }]
      - conditions: [{ path: args.u, op: host_in, value: [evil.com] }]
      - conditions: [{ path: 'args."a.b"', op: starts_with, value: x }]
      - conditions: [{ path: 'args.o.k[2]', op: ends_with, value: x }]
      - conditions: [{ path: args.s, op: matches, value: '[a-z]{3}' }]
    approve_if:
      - conditions: [{ path: args.id, op: owned, value: job }]
    limits: [{ counter: c, window: day, max: 100, increment_from: args.n }]
    unless_seen_within: 5m
    rules:
      - { name: r, conditions: [{ path: args.a.b, op: neq, value: 1 }], on_deny: no }
"#;
    let loaded = Policy::load("p", source, &Known::default());
    loaded.policy.unwrap_or_else(|| panic!("{:#?}", loaded.problems))
});

fuzz_target!(|arguments: &str| {
    let now = jiff::Timestamp::UNIX_EPOCH;
    let call = Call::new("s", "x", Class::Other, arguments);
    let verdict = decide(&POLICY, &call, &UNUSED, now);
    assert_eq!(verdict, decide(&POLICY, &call, &UNUSED, now));
    if argument_digest(arguments).is_err() {
        assert_ne!(verdict.effect, Effect::Allow, "ambiguous arguments pass");
    }
    if let Ok(canonical) = toolgate_json::canonical(arguments) {
        assert_eq!(toolgate_json::canonical(&canonical).as_deref(), Ok(canonical.as_str()));
        assert_eq!(argument_digest(arguments), argument_digest(&canonical));
        if serde_json::from_str::<serde_json::Value>(arguments).is_ok() {
            let same = Call { arguments: Some(&canonical), ..call };
            assert_eq!(verdict.effect, decide(&POLICY, &same, &UNUSED, now).effect);
        }
    }
});
