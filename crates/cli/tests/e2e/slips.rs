//! Slips of the hand at the command line: each message names what is wrong and what to do.

use std::fmt::Write as _;
use std::fs;

use crate::gate::{Gate, Home};
use crate::golden;
use crate::peer::Peer;

const TOKEN: &str = "a-token-of-the-laptop-0123456789";

/// While no gateway runs.
const ALONE: &[&[&str]] = &[
    &["status"],
    &["grant", "list"],
    &["tool", "list"],
    &["audit", "list"],
    &["audit", "verify"],
    &["audit", "list", "--since", "yesterday"],
    &["config", "check"],
    &["config", "check", "missing.yaml"],
    &["policy", "check", "missing.yaml"],
    &["policy", "explain", "--tool", "x", "--args", "[1]"],
    &["policy", "explain", "--grant", "laptop", "--tool", "x"],
    &["explain", "rate_limitd"],
    &["explain", "nonsense"],
    &["import", "missing"],
    &["serve", "--config", "missing.yaml"],
    &["server", "add", "x"],
    &["freeze"],
    &["status", "--admin", "http://127.0.0.1:1"],
    &["grant", "lits"],
    &["grant", "list", "--datta", "x"],
    &["help", "nosuch"],
];

/// While one runs with the server `peer`, the policy `two` and the grant `laptop` of the file, and
/// the grant `desk` of the store.
const BESIDE: &[&[&str]] = &[
    &["tool", "list"],
    &["tool", "list", "--as", "laptpo"],
    &["tool", "call", "--as", "laptop", "peer__echo", "[1]"],
    &["grant", "create", "laptop"],
    &["grant", "create", "local"],
    &["grant", "create", "x", "--expires", "tomorrow"],
    &["grant", "create", "x", "--expires", "2020-01-01"],
    &["grant", "create", "x", "--policy", "tow"],
    &["grant", "create", "x", "--server", "pear"],
    &["grant", "create", "x", "--session", "base=trade"],
    &["grant", "update", "laptop", "--no-policy"],
    &["grant", "update", "dsek", "--no-policy"],
    &["grant", "update", "desk"],
    &["grant", "rotate", "laptop"],
    &["grant", "restore", "desk"],
    &["person", "rotate", "admin"],
    &["freeze", "--grant", "laptpo"],
    &["freeze", "--server", "pear"],
    &["freeze", "--session", "s-1"],
    &["unfreeze", "f-1"],
    &["unfreeze", "--grant", "laptop"],
    &["unfreeze", "--server", "peer"],
    &["unfreeze", "--all"],
    &["server", "add", "Peer", "--url", "http://127.0.0.1:1/"],
    &["server", "add", "x", "--url", "ftp://127.0.0.1/"],
    &["server", "add", "x", "--env", "API_KEY=abcdefghijklmnopqrstuvwx", "--", "sh"],
    &["server", "add", "peer", "--", "sh"],
    &["server", "remove", "peer"],
    &["server", "remove", "pear"],
    &["server", "test", "pear"],
    &["policy", "apply", "bad.yaml"],
    &["policy", "apply", "failing.yaml"],
    &["policy", "show", "tow"],
    &["policy", "remove", "two"],
    &["policy", "rollback", "nothing"],
    &["policy", "explain", "--grant", "laptpo", "--tool", "x"],
    &["audit", "show", "4711"],
    &["audit", "show", "the-call"],
    &["audit", "list", "--kind", "refusal"],
];

/// What each prints on stderr, and how it ends. Nothing is a result.
fn told(home: &Home, slips: &[&[&str]]) -> String {
    let mut text = String::new();
    for words in slips {
        let output = home.command(words).env("COLUMNS", "100").output().unwrap();
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "", "{words:?}");
        let code = output.status.code().unwrap();
        writeln!(text, "$ toolgate {}\n{printed}-- exit {code}\n", words.join(" ")).unwrap();
    }
    text.replace(home.path("").to_str().unwrap(), "HOME/")
}

fn with_documents() -> Home {
    let home = Home::new();
    let documents = [
        ("bad.yaml", "version: '1'\ndefault: dney\n"),
        (
            "failing.yaml",
            "version: '1'\ndefault: deny\ntests:\n  - { call: { tool: x }, expect: [{ allow: 1 }] }\n",
        ),
    ];
    for (name, text) in documents {
        fs::write(home.path(name), text).unwrap();
    }
    home
}

#[test]
fn without_a_gateway() {
    let home = with_documents();
    golden::check("slips/alone.txt", &told(&home, ALONE));
}

#[test]
fn beside_a_gateway() {
    let home = with_documents();
    let peer = Peer::new(&home, "peer");
    let config = format!(
        "servers:\n{}policies:\n  two: {{ version: '1', default: deny, tools: {{ echo: {{}} }} }}\n\
         grants:\n  - {{ label: laptop, token: 'env:LAPTOP_TOKEN', policy: two }}\n",
        peer.entry("listing", "")
    );
    let gate = Gate::start_as(home, &config, |command| {
        command.env("LAPTOP_TOKEN", TOKEN);
    });
    let made = gate.home.run(&["grant", "create", "desk"]);
    assert_eq!(made.status.code(), Some(0), "{made:?}");
    golden::check("slips/beside.txt", &told(&gate.home, BESIDE));
}
