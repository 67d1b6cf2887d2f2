//! No secret shows: not in debug output of a good configuration, not in the problems of a bad one.

use std::fs;

use proptest::prelude::*;
use toolgate_config::render;

use crate::support::{cases, config, none, parse};

#[test]
fn resolved_values_do_not_show_in_debug_output() {
    let mut failures = Vec::new();
    for file in cases("valid") {
        let text = fs::read_to_string(&file).unwrap();
        let shown = format!("{0:?} {0:#?}", config(&text));
        for secret in ["secret-of-", "secret-in-", "written-here"] {
            if shown.contains(secret) {
                failures.push(format!("{}: {secret} in {shown}", file.display()));
            }
        }
    }
    none(&failures);
}

#[test]
fn literal_secrets_do_not_show_in_problems() {
    let mut failures = Vec::new();
    for file in cases("invalid").into_iter().chain(cases("valid")) {
        let shown = fs::read_to_string(file.with_extension("stderr")).unwrap_or_default();
        if ["topsecret", "written-here", "secret-of", "user:password"]
            .iter()
            .any(|s| shown.contains(s))
        {
            failures.push(format!("{}:\n{shown}", file.display()));
        }
    }
    none(&failures);
}

/// Where a secret may stand, and what may be wrong around it.
const PLACES: &[&str] = &[
    "servers: { a: { url: 'http://h/', headers: { Authorization: 'SECRET' } } }",
    "servers: { a: { url: 'http://h/', headers: { X-Other: 'SECRET' }, tiemout: 1 } }",
    "servers: { a: { url: 'http://h/?q=SECRET', tiemout: 1 } }",
    "servers: { a: { url: 'http://u:SECRET@h/' } }",
    "servers: { a: { url: 'SECRET://h/?' } }",
    "servers: { a: { command: x, args: ['SECRET'], tiemout: 1 } }",
    "servers: { a: { command: x, args: ['--key=SECRET'], tiemout: 1 } }",
    "servers: { a: { command: x, args: ['${MISSING:-SECRET'], tiemout: 1 } }",
    "servers: { a: { command: x, env: { A: 'SECRET' }, tiemout: 1 } }",
    "servers: { a: { command: x, env: { A: '${a b:-SECRET}' } } }",
    "servers: { a: { command: x, env: 'SECRET' } }",
    "servers: { a: { command: x, env: { A: ['SECRET'] } } }",
    "servers: { a: { command: x, env: { 'API_KEY=SECRET': } } }",
    "servers: { a: { command: x, env: { 'API_KEY=SECRET': 1 } } }",
    "servers: { a: { url: 'http://h/', headers: { 'Authorization: Bearer SECRET': 1 } } }",
    "grants: [{ label: a, token: 'SECRET' }]",
    "grants: [{ label: a, token: { b: 'SECRET' } }]",
    "grants: [{ label: a, token_sha256: 'SECRET' }]",
    "people: [{ name: a, token: 'SECRET', rolls: [] }]",
    "sessions: { tokens: ['SECRET'] }",
    "sessions: { tokens: 'SECRET' }",
    "servers:\n  a:\n    command: x\n    env:\n      A: |\n        SECRET\n    tiemout: 1",
    "servers: { a: { url: 'http://h/', headers: { Authorization: 'Bearer SECRET",
    "servers: { a: { command: x, env: { API_KEY: SECRET: } }",
    "api_token: SECRET\n  x: y: z",
    "servers: { a: { url: 'http://h/', headers: { X-A: 1, X-A: 'SECRET' } } }",
    "servers: { a: { command: x, env: { A: 1, <<: { A: 'SECRET' } } } }",
    "servers: { a: { command: x, env: { [b]: 'SECRET' } } }",
    "servers:\n  a:\n    env:\n      FOO: SECRET: x",
    "servers:\n  a:\n    args:\n      - SECRET: x: y",
    "---\nservers: { a: { command: x, env: { A: 'SECRET' } } }",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_secret_shows_nowhere(secret in "[a-z]{8}[A-Za-z0-9]{1,16}", place in 0..PLACES.len()) {
        let text = format!("version: 1\n{}\n", PLACES[place].replace("SECRET", &secret));
        let problems = parse(&text).expect_err(&text);
        let shown = format!("{} {problems:?} {}", render(&problems), serde_json::to_string(&problems).unwrap());
        prop_assert!(!shown.contains(&secret), "{}\n{}", text, shown);
    }
}
