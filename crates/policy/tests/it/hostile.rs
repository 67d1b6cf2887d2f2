//! Input made to hurt: refused, or read in bounded time and memory. None of these tests looks at a
//! clock; unbounded work would not end.

use jiff::Timestamp;
use toolgate_policy::{
    Call, Class, Effect, Known, Ledger, Loaded, Policy, UNUSED, argument_digest, decide,
    import_intercept,
};

const HEAD: &str = "version: \"1\"\ndefault: allow\n";

fn load(text: &str) -> Loaded {
    Policy::load("p", text, &Known::default())
}

fn codes(loaded: &Loaded) -> Vec<&'static str> {
    let mut codes: Vec<&str> = loaded.problems.iter().map(|p| p.code.as_str()).collect();
    codes.dedup();
    codes
}

fn effect(policy: &Policy, tool: &str, args: &str) -> Effect {
    let now = "2026-01-05T00:00:00Z".parse().unwrap();
    decide(policy, &Call::new("s", tool, Class::Other, args), &UNUSED, now).effect
}

#[test]
fn ten_megabytes_are_refused_unread() {
    let text = format!("{HEAD}description: \"{}\"\n", "x".repeat(10 << 20));
    assert_eq!(codes(&load(&text)), ["TG0002"]);
}

#[test]
fn the_largest_document_is_read() {
    let tools: String =
        (0..60_000).map(|i| format!("  tool_number_{i}: {{ rate_limit: 30/minute }}\n")).collect();
    let text = format!("{HEAD}tools:\n{tools}");
    assert!(text.len() > 2 << 20);
    let policy = load(&text).policy.unwrap();
    assert_eq!(effect(&policy, "tool_number_7", "{}"), Effect::Allow);
}

#[test]
fn problems_are_counted_out() {
    let keys: String = (0..50_000).map(|i| format!("unknown_{i}: 1\n")).collect();
    let loaded = load(&format!("{HEAD}{keys}"));
    assert!(loaded.policy.is_none());
    assert_eq!(loaded.problems.len(), 200);
}

#[test]
fn many_warnings_do_not_hide_an_error() {
    let tools: String = (0..500)
        .map(|i| format!("  t{i}: {{ limits: [{{ counter: c, window: minute, max: 0 }}] }}\n"))
        .collect();
    let text = format!("{HEAD}tools:\n{tools}  last: {{ acton: deny }}\n");
    let loaded = load(&text);
    assert!(loaded.policy.is_none());
    assert_eq!(codes(&loaded), ["TG0109", "TG0005"]);
}

#[test]
fn the_ends_of_time_are_survived() {
    let text = format!(
        "{HEAD}timezone: Pacific/Apia\ntools:\n  x:\n    unless_seen_within: 3650d\n    limits:\n      - {{ counter: s, window: 3650d, max: 1, algorithm: sliding }}\n      - {{ counter: d, window: 7d, max: 1 }}\n      - {{ counter: m, window: minute, max: 1 }}\n"
    );
    let policy = load(&text).policy.unwrap();
    for now in [Timestamp::MIN, Timestamp::MAX, Timestamp::UNIX_EPOCH] {
        let mut ledger = Ledger::default();
        let call = Call::new("s", "x", Class::Other, "{}");
        let verdict = decide(&policy, &call, &ledger, now);
        assert_eq!(verdict.effect, Effect::Allow);
        let receipt = ledger.admit(&verdict.reservations, now).unwrap();
        ledger.settle(receipt);
        ledger.prune(now);
        decide(&policy, &call, &ledger, now);
    }
}

#[test]
fn depth_bombs_are_refused() {
    for (open, close) in [("[", "]"), ("{a: ", "}"), ("- ", "")] {
        let text = format!("{HEAD}hide: {}{}", open.repeat(100_000), close.repeat(100_000));
        let loaded = load(&text);
        assert!(loaded.policy.is_none(), "{open}");
    }
    let mut nested = String::from("{ conditions: [] }");
    for _ in 0..200 {
        nested = format!("{{ not: {nested} }}");
    }
    let loaded = load(&format!("{HEAD}tools: {{ x: {{ deny_if: [{nested}] }} }}"));
    assert!(loaded.policy.is_none());
}

#[test]
fn billion_laughs_are_refused() {
    let mut text = String::from(HEAD);
    text.push_str("a: &a [x, x]\n");
    for (last, next) in ('a'..='y').zip('b'..='z') {
        text.push_str(&format!("{next}: &{next} [*{last}, *{last}, *{last}, *{last}]\n"));
    }
    let loaded = load(&text);
    assert!(loaded.policy.is_none());
    assert!(codes(&loaded).contains(&"TG0003"));
}

#[test]
fn ten_thousand_globs_are_indexed() {
    let tools: String = (0..10_000)
        .map(|i| format!("  \"a{i}_*\": {{ action: deny }}\n  \"*_z{i}\": {{ action: deny }}\n"))
        .collect();
    let policy = load(&format!("{HEAD}tools:\n{tools}")).policy.unwrap();
    assert_eq!(effect(&policy, "a9999_x", "{}"), Effect::Deny);
    assert_eq!(effect(&policy, "x_z9999", "{}"), Effect::Deny);
    assert_eq!(effect(&policy, "x", "{}"), Effect::Allow);
}

#[test]
fn ten_thousand_globs_without_a_literal_end_are_tried() {
    let tools: String =
        (0..10_000).map(|i| format!("  \"*{i}q*\": {{ action: deny }}\n")).collect();
    let policy = load(&format!("{HEAD}tools:\n{tools}")).policy.unwrap();
    assert_eq!(effect(&policy, "x_1234q_x", "{}"), Effect::Deny);
    assert_eq!(effect(&policy, &"q".repeat(256), "{}"), Effect::Allow);
}

#[test]
fn globs_of_many_stars_do_not_explode() {
    let glob = "*a".repeat(60);
    let policy = load(&format!("{HEAD}tools:\n  \"{glob}\": {{ action: deny }}\n")).policy.unwrap();
    assert_eq!(effect(&policy, &"a".repeat(59), "{}"), Effect::Allow);
    assert_eq!(effect(&policy, &"a".repeat(60), "{}"), Effect::Deny);
}

fn with_pattern(pattern: &str) -> Loaded {
    load(&format!(
        "{HEAD}tools: {{ x: {{ deny_if: [{{ conditions: [{{ path: args.a, op: regex, value: '{pattern}' }}] }}] }} }}"
    ))
}

#[test]
fn regex_bombs_are_refused_or_linear() {
    for bomb in ["(a{1000}){1000}", r"\w{5000}", "((((((((((x{50}){50}){50}){50}){50}))))))"] {
        assert!(with_pattern(bomb).policy.is_none(), "{bomb}");
    }
    assert!(with_pattern(&"(".repeat(3_000)).policy.is_none());
    let policy = with_pattern("^(a+)+$").policy.unwrap();
    let args = format!("{{\"a\":\"{}b\"}}", "a".repeat(1 << 20));
    assert_eq!(effect(&policy, "x", &args), Effect::Allow);
}

#[test]
fn hostile_arguments_are_survived() {
    let policy = load(&format!(
        "{HEAD}tools: {{ x: {{ deny_if: [{{ conditions: [{{ path: 'args.a[any][any].b', op: in, value: [1, x] }}] }}] }} }}"
    ))
    .policy
    .unwrap();
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    assert_eq!(effect(&policy, "x", &deep), Effect::Allow);
    let wide = format!("{{\"a\":[[{}{{\"b\":1}}]]}}", "{\"b\":\"y\"},".repeat(100_000));
    assert_eq!(effect(&policy, "x", &wide), Effect::Deny);
    let members: String = (0..50_000).map(|i| format!("\"k{i}\":0,")).collect();
    assert_eq!(effect(&policy, "x", &format!("{{{members}\"a\":[]}}")), Effect::Allow);
    for broken in
        ["", "{", "{\"a\":", "\u{feff}{}", "{\"a\":[[{\"b\":1]}]]}", "nul", "{\"a\":\"\\u\"}"]
    {
        assert_ne!(effect(&policy, "x", broken), Effect::Hide, "{broken}");
    }
    assert!(argument_digest(&deep).is_err());
}

#[test]
fn long_names_and_paths_are_bounded() {
    let path = format!("args{}", ".a".repeat(200_000));
    let loaded = load(&format!(
        "{HEAD}tools: {{ x: {{ deny_if: [{{ conditions: [{{ path: {path}, op: eq, value: 1 }}] }}] }} }}"
    ));
    assert_eq!(codes(&loaded), ["TG0020"]);
    let policy = load(HEAD).policy.unwrap();
    assert_eq!(effect(&policy, &"x".repeat(1 << 20), "{}"), Effect::Allow);
}

#[test]
fn hostile_imports_are_refused() {
    assert!(import_intercept(&"[".repeat(100_000)).is_err());
    assert!(import_intercept("").is_err());
    assert!(import_intercept("a: &a [*a]").is_err());
}
