//! The published schema and the reader agree about what may stand in the file.

use std::fs;
use std::path::Path;

use jsonschema::Validator;
use serde_json::Value;

use crate::support::{cases, examples, none};

fn validator() -> Validator {
    let schema = toolgate_config::schema();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    jsonschema::options().build(&schema).unwrap()
}

/// The document as another YAML reader sees it.
fn document(file: &Path) -> Option<Value> {
    read(&String::from_utf8(fs::read(file).ok()?).ok()?)
}

/// YAML 1.2, in which `off` is a word.
fn read(text: &str) -> Option<Value> {
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options(text, options).ok()
}

#[test]
fn what_the_reader_accepts_the_schema_accepts() {
    let validator = validator();
    let mut failures = Vec::new();
    for file in cases("valid").into_iter().chain(examples()) {
        let document = document(&file).unwrap();
        for error in validator.iter_errors(&document) {
            failures.push(format!("{}: {error} at {}", file.display(), error.instance_path()));
        }
    }
    none(&failures);
}

/// Files whose mistakes lie in the form. The others are wrong only in what they refer to.
#[test]
fn what_is_wrong_in_form_the_schema_refuses() {
    let validator = validator();
    let refused = [
        "bad-values",
        "empty",
        "missing",
        "names",
        "no-mapping",
        "secrets",
        "servers",
        "unknown-keys",
        "wrong-types",
    ];
    for name in refused {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/invalid/{name}.yaml"));
        let document = document(&file).unwrap_or_else(|| panic!("{name} is not YAML"));
        assert!(!validator.is_valid(&document), "{name}");
    }
}

/// One mistake at a time, so that no other mistake does the refusing.
#[test]
fn single_mistakes_are_refused_by_schema_and_reader_alike() {
    let validator = validator();
    let mistakes = [
        "unknown: 1",
        "listen: { mcp: 4001 }",
        "listen: { mcp: 'gate:4001' }",
        "hosts: gate",
        "hosts: ['http://gate']",
        "behind_proxy: [proxy]",
        "tls: { cert: a.pem }",
        "local: maybe",
        "shutdown_grace: 30",
        "shutdown_grace: 30m1h",
        "limits: { body: 4MB }",
        "limits: { depth: -1 }",
        "servers: { A: { command: x } }",
        "servers: { session: { command: x } }",
        "servers: { a: { command: x, url: 'http://h/' } }",
        "servers: { a: {} }",
        "servers: { a: { command: x, type: ws } }",
        "servers: { a: { command: x, instances: many } }",
        "servers: { a: { command: x, tools: { t: { class: mild } } } }",
        "servers: { a: { command: x, env: { A: [1] } } }",
        "policies: { p: text }",
        "policies: { p: { file: a, default: deny } }",
        "grants: [{ label: a }]",
        "grants: [{ token: 'env:A' }]",
        "grants: [{ label: a, token: literal-token-of-some-length }]",
        "grants: [{ label: a, token: 'env:A', token_sha256: '00' }]",
        "grants: [{ label: a, token: 'env:A', expires: soon }]",
        "people: [{ name: a, token: 'env:A' }]",
        "people: [{ name: a, token: 'env:A', roles: [] }]",
        "people: [{ name: a, token: 'env:A', roles: [boss] }]",
        "sessions: { tokens: [literal-token-of-some-length] }",
        "sessions: { tokens: [{ kinds: [a] }] }",
        "sessions: { kinds: { a: { path: /x } } }",
        "audit: { durability: maybe }",
        "audit: { checkpoints: 5 }",
        "approvals: { four_eyes: maybe }",
        "approvals: []",
        "servers: { a: { command: x, pin: on } }",
        "servers: { a: { url: 'http://h/', results: hide } }",
        "sessions: { pin: second }",
    ];
    let mut failures = Vec::new();
    for mistake in mistakes {
        let text = format!("version: 1\n{mistake}\n");
        let document = read(&text).unwrap();
        let (schema, reader) =
            (validator.is_valid(&document), crate::support::parse(&text).is_ok());
        if schema || reader {
            failures.push(format!("{mistake}: schema accepts: {schema}, reader accepts: {reader}"));
        }
    }
    none(&failures);
}
