use crate::{Known, Policy};

fn load(source: &str) -> Policy {
    let loaded = Policy::load("p", source, &Known::default());
    assert!(loaded.policy.is_some(), "{:#?}", loaded.problems);
    loaded.policy.unwrap()
}

const DOCUMENT: &str = r#"
version: "1"
default: deny
hide: [secret]
tools:
  close:
    limits: [{ counter: close_rate, window: minute, max: 30 }]
  pay:
    deny_if: [{ conditions: [{ path: args.amount, op: gt, value: 10 }] }]
    approve: {}
tests:
  - name: thirty a minute
    call: { tool: close, times: 31 }
    expect: [{ allow: 30 }, { deny: rate_limited }]
    then:
      - { after: 1m, call: { tool: close }, expect: allow }
  - call: { tool: pay, args: { amount: 11 } }
    expect: { deny: /tools/pay/deny_if/0 }
  - call: { tool: unknown }
    expect: { deny: (default deny) }
"#;

#[test]
fn tests_run_with_a_virtual_clock_and_tell_what_they_missed() {
    let report = load(DOCUMENT).run_tests();
    assert!(report.passed(), "{report:#?}");
    let names: Vec<&str> = report.results.iter().map(|r| r.name.as_str()).collect();
    assert_eq!(names, ["thirty a minute", "tests/1", "tests/2"]);
    assert_eq!(report.unreached, ["(hidden)", "/tools/pay/approve"]);
    assert_eq!(report.rules, 4);
}

#[test]
fn a_failing_test_names_the_call_and_the_reason() {
    let wrong = DOCUMENT.replace("[{ allow: 30 }, { deny: rate_limited }]", "[{ allow: 31 }]");
    let report = load(&wrong).run_tests();
    assert!(!report.passed());
    let failure = report.results[0].failure.as_deref().unwrap();
    assert_eq!(
        failure,
        "line 12, call 31: expected allow, got deny (rate_limited, /tools/close/limits/close_rate)"
    );
}

#[test]
fn a_document_in_shadow_is_tested_as_if_enforced() {
    let shadow = DOCUMENT.replace("default: deny", "default: deny\nmode: shadow");
    assert!(load(&shadow).run_tests().passed());
}

/// `times` without `args` are so many calls with whatever arguments, so that a limit above the
/// `max` of `loop` can be tried; with `args` they are the same call again.
#[test]
fn calls_without_arguments_are_no_loop() {
    let looped = DOCUMENT.replace("hide:", "loop: { max: 3, window: minute }\nhide:");
    let report = load(&looped).run_tests();
    assert!(report.passed(), "{report:#?}");
    let same = looped.replace(
        "{ tool: unknown }\n    expect: { deny: (default deny) }",
        "{ tool: close, args: { id: 7 }, times: 4 }\n    expect: [{ allow: 3 }, { deny: /loop }]",
    );
    let report = load(&same).run_tests();
    assert!(report.passed(), "{report:#?}");
}
