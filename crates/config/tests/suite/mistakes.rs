//! Mistakes that people make in their first hour, each with what they are told.

use std::fmt::Write as _;
use std::path::Path;

use toolgate_config::render;

use crate::support::{differs, none, parse};

/// Each is one file below `version: 1`; the comment is the mistake.
const MISTAKES: [(&str, &str); 29] = [
    ("a whole command line in `command`", "servers: { s: { command: npx -y some-server } }"),
    ("a program that is not installed", "servers: { s: { command: missing-server, args: [a] } }"),
    ("a grant without a policy", "grants: [{ label: laptop, token: env:T }]"),
    ("a policy file that does not exist", "policies: { p: { file: policies/missing-p.yaml } }"),
    ("the path of a policy alone", "policies: { p: policies/p.yaml }"),
    (
        "a policy that is not defined",
        "grants: [{ label: a, token: env:T, policy: readonyl }]\npolicies: { readonly: { version: '1', default: deny } }",
    ),
    ("a section of MCP clients", "mcpServers: { s: { command: npx } }"),
    ("a misspelt section", "servrs: { s: { command: npx } }"),
    ("a misspelt key", "servers: { s: { comand: npx } }"),
    ("a key of another client", "servers: { s: { command: npx, disabled: true } }"),
    ("neither command nor url", "servers: { s: { args: [a] } }"),
    ("both command and url", "servers: { s: { command: npx, url: 'http://127.0.0.1:1/mcp' } }"),
    ("headers for a child process", "servers: { s: { command: npx, headers: { X-Key: env:K } } }"),
    ("a url without a scheme", "servers: { s: { url: example.com/mcp } }"),
    ("a name with capitals and blanks", "servers: { My Server: { command: npx } }"),
    ("a reserved name", "servers: { sessions: { command: npx } }"),
    (
        "a secret written in a header",
        "servers: { s: { url: 'http://127.0.0.1:1/mcp', headers: { Authorization: Bearer abcdefghijklmnopqrst } } }",
    ),
    (
        "a variable that is not set",
        "grants: [{ label: a, token: env:MISSING_T, policy: recommended }]",
    ),
    ("a token that is too short", "grants: [{ label: a, token: env:SHORT, policy: recommended }]"),
    (
        "a token written in the file",
        "grants: [{ label: a, token: abcdefghijklmnopqrstuvwxyz, policy: recommended }]",
    ),
    (
        "two grants of one label",
        "grants: [{ label: a, token: env:A, policy: recommended }, { label: a, token: env:B, policy: recommended }]",
    ),
    ("a duration without a unit", "servers: { s: { command: npx, timeout: 60 } }"),
    ("a size in the wrong unit", "limits: { body: 4MB }"),
    ("a port alone", "listen: { mcp: 4001 }"),
    ("a host name to listen on", "listen: { mcp: 'example.com:4001' }"),
    (
        "a date that is none",
        "grants: [{ label: a, token: env:T, policy: recommended, expires: tomorrow }]",
    ),
    ("a role that does not exist", "people: [{ name: duty, token: env:T, roles: [root] }]"),
    ("a list instead of a mapping", "servers: [{ command: npx }]"),
    ("a key twice", "local: on\nlocal: off"),
];

#[test]
fn each_mistake_is_named_with_its_place_and_what_to_do() {
    let mut told = String::new();
    for (what, text) in MISTAKES {
        let problems = match parse(&format!("version: 1\n{text}\n")) {
            Ok(loaded) => loaded.warnings,
            Err(problems) => problems,
        };
        assert!(!problems.is_empty(), "{what}: nothing is reported");
        for problem in &problems {
            assert!(problem.line > 0 && problem.column > 0, "{what}: {problem}");
        }
        writeln!(told, "=== {what}\n{}", render(&problems)).unwrap();
    }
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mistakes.stderr");
    none(&differs(&golden, &told).into_iter().collect::<Vec<_>>());
}
