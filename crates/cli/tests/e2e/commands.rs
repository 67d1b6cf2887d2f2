//! What can be typed besides `serve`, and what is answered to slips of the hand.

use serde_json::Value;

use crate::gate::Home;
use crate::golden;

/// Exit code, stdout and stderr.
fn run(home: &Home, words: &[&str]) -> (Option<i32>, String, String) {
    let output = home.run(words);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn wrong_usage_is_64() {
    let home = Home::new();
    let cases: &[(&[&str], &str)] = &[
        (&[], "Usage: toolgate"),
        (&["frobnicate"], "frobnicate"),
        (&["--frobnicate"], "--frobnicate"),
        (&["serve", "--frobnicate"], "--frobnicate"),
        (&["serve", "stray"], "stray"),
        (&["serve", "--config"], "--config"),
        (&["serve", "--log", "xml"], "xml"),
        (&["run"], "--url"),
        (&["run", "--url", "u", "--", "c"], "--url"),
        (&["run", "--gateway", "u", "--policy", "p"], "--policy"),
        (&["config"], "Usage: toolgate config"),
        (&["config", "check", "a", "b"], "'b'"),
        (&["config", "check", "-o", "xml"], "xml"),
        (&["audit"], "Usage: toolgate audit"),
        (&["audit", "list", "--decision", "maybe"], "maybe"),
        (&["audit", "list", "--limit", "0"], "--limit"),
        (&["grant"], "Usage: toolgate grant"),
        (&["grant", "create"], "<LABEL>"),
        (&["grant", "create", "x", "--group", "g"], "--identity"),
        (&["person", "create", "x"], "--role"),
        (&["person", "create", "x", "--role", "boss"], "policy_manager"),
        (&["server", "add", "x"], "--url"),
        (&["server", "add", "x", "--url", "u", "--", "c"], "--url"),
        (&["freeze"], "--grant"),
        (&["freeze", "--all", "--server", "x"], "--all"),
        (&["unfreeze"], "--grant"),
        (&["policy"], "Usage: toolgate policy"),
        (&["policy", "check"], "<FILE>"),
        (&["policy", "check", "-o", "xml", "a"], "xml"),
        (&["policy", "explain"], "--tool"),
        (&["policy", "explain", "--tool", "x", "--policy", "a", "--grant", "g"], "--grant"),
        (&["policy", "explain", "--tool", "x", "--group", "g"], "--identity"),
        (&["policy", "explain", "--tool", "x", "--class", "nice"], "nice"),
        (&["policy", "explain", "--tool", "x", "--at", "noon"], "2026-01-05T12:00:00Z"),
        (&["policy", "explain", "--tool", "x", "--args", "{"], "not JSON"),
        (&["policy", "explain", "--tool", "x", "--args", "[]"], "a JSON object"),
        (&["policy", "explain", "--tool", "x", "--args", r#"{"a":1,"a":2}"#], "occurs twice"),
        (&["policy", "explain", "--tool", "x", "--args", r#"{"a":"\ud800"}"#], "--args"),
        (&["policy", "fmt"], "<FILE>"),
        (&["policy", "fmt", "--check", "--write", "a"], "--write"),
        (&["policy", "import"], "<FILE>"),
        (&["policy", "schema", "stray"], "stray"),
        (&["tool"], "Usage: toolgate tool"),
        (&["tool", "show"], "<TOOL>"),
        (&["tool", "list", "-o", "xml"], "xml"),
        (&["version", "stray"], "stray"),
        (&["audit", "list", "--since", "yesterday"], "30m, 2h, 7d"),
        (&["audit", "list", "--kind", "call"], "intent"),
        (&["tool", "list", "--as", "a", "--token-file", "b"], "--token-file"),
        (&["help", "frobnicate"], "frobnicate"),
    ];
    for (words, expected) in cases {
        let (code, stdout, stderr) = run(&home, words);
        assert_eq!((code, stdout.as_str()), (Some(64), ""), "{words:?}: {stderr}");
        assert!(stderr.contains(expected), "{words:?}: {stderr}");
    }
}

#[test]
fn help_texts() {
    let home = Home::new();
    for (name, words) in [
        ("toolgate", &["--help"][..]),
        ("serve", &["serve", "--help"]),
        ("run", &["run", "--help"]),
        ("client", &["client", "--help"]),
        ("client-connect", &["client", "connect", "--help"]),
        ("client-disconnect", &["client", "disconnect", "--help"]),
        ("client-list", &["client", "list", "--help"]),
        ("backup", &["backup", "--help"]),
        ("preflight", &["preflight", "--help"]),
        ("config", &["config", "--help"]),
        ("config-check", &["config", "check", "--help"]),
        ("audit", &["audit", "--help"]),
        ("audit-verify", &["audit", "verify", "--help"]),
        ("audit-list", &["audit", "list", "--help"]),
        ("audit-show", &["audit", "show", "--help"]),
        ("audit-tail", &["audit", "tail", "--help"]),
        ("audit-export", &["audit", "export", "--help"]),
        ("status", &["status", "--help"]),
        ("console", &["console", "--help"]),
        ("explain", &["explain", "--help"]),
        ("grant-update", &["grant", "update", "--help"]),
        ("grant-restore", &["grant", "restore", "--help"]),
        ("session-list", &["session", "list", "--help"]),
        ("session-token", &["session", "token", "--help"]),
        ("doctor", &["doctor", "--help"]),
        ("approval", &["approval", "--help"]),
        ("approval-list", &["approval", "list", "--help"]),
        ("approval-show", &["approval", "show", "--help"]),
        ("approval-approve", &["approval", "approve", "--help"]),
        ("approval-deny", &["approval", "deny", "--help"]),
        ("approval-watch", &["approval", "watch", "--help"]),
        ("approval-revoke", &["approval", "revoke", "--help"]),
        ("freeze-list", &["freeze", "list", "--help"]),
        ("demo", &["demo", "--help"]),
        ("demo-onec", &["demo", "onec", "--help"]),
        ("grant", &["grant", "--help"]),
        ("grant-create", &["grant", "create", "--help"]),
        ("grant-list", &["grant", "list", "--help"]),
        ("grant-rotate", &["grant", "rotate", "--help"]),
        ("grant-revoke", &["grant", "revoke", "--help"]),
        ("person", &["person", "--help"]),
        ("person-create", &["person", "create", "--help"]),
        ("server", &["server", "--help"]),
        ("server-add", &["server", "add", "--help"]),
        ("server-test", &["server", "test", "--help"]),
        ("freeze", &["freeze", "--help"]),
        ("unfreeze", &["unfreeze", "--help"]),
        ("import", &["import", "--help"]),
        ("local", &["local", "--help"]),
        ("local-enable", &["local", "enable", "--help"]),
        ("policy", &["policy", "--help"]),
        ("policy-list", &["policy", "list", "--help"]),
        ("policy-show", &["policy", "show", "--help"]),
        ("policy-apply", &["policy", "apply", "--help"]),
        ("policy-remove", &["policy", "remove", "--help"]),
        ("policy-rollback", &["policy", "rollback", "--help"]),
        ("policy-plan", &["policy", "plan", "--help"]),
        ("policy-check", &["policy", "check", "--help"]),
        ("policy-test", &["policy", "test", "--help"]),
        ("policy-explain", &["policy", "explain", "--help"]),
        ("policy-fmt", &["policy", "fmt", "--help"]),
        ("policy-import", &["policy", "import", "--help"]),
        ("policy-schema", &["policy", "schema", "--help"]),
        ("scan", &["scan", "--help"]),
        ("catalog", &["catalog", "--help"]),
        ("catalog-search", &["catalog", "search", "--help"]),
        ("catalog-show", &["catalog", "show", "--help"]),
        ("catalog-import", &["catalog", "import", "--help"]),
        ("tool", &["tool", "--help"]),
        ("tool-list", &["tool", "list", "--help"]),
        ("tool-show", &["tool", "show", "--help"]),
        ("tool-call", &["tool", "call", "--help"]),
        ("tool-approve", &["tool", "approve", "--help"]),
    ] {
        let (code, stdout, stderr) = run(&home, words);
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{words:?}");
        golden::check(&format!("help/{name}.txt"), &stdout);
    }
}

#[test]
fn help_is_a_verb_too() {
    let home = Home::new();
    for (words, flag) in
        [(&["help"][..], &["--help"][..]), (&["help", "tool", "call"], &["tool", "call", "--help"])]
    {
        assert_eq!(run(&home, words), run(&home, flag));
    }
}

#[test]
fn codes_are_explained() {
    let home = Home::new();
    let (code, out, _) = run(&home, &["explain", "rate_limited"]);
    assert_eq!(code, Some(0));
    assert!(out.contains("retry_after_s") && out.contains("Operators: "), "{out}");
    let (code, _, err) = run(&home, &["explain", "rate_limit"]);
    assert!(code == Some(2) && err.contains("did you mean `rate_limited`?"), "{err}");
}

#[test]
fn versions() {
    let home = Home::new();
    // A release build names its commit and date instead.
    let expected = concat!("toolgate ", env!("CARGO_PKG_VERSION"), " (development build)\n");
    for words in [["version"], ["--version"]] {
        assert_eq!(run(&home, &words), (Some(0), expected.to_owned(), String::new()));
    }
}

#[test]
fn a_log_filter_that_is_invalid() {
    let home = Home::new();
    let output = home.command(&["serve"]).env("TOOLGATE_LOG", "=[=").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(printed.contains("TOOLGATE_LOG") && printed.contains("=[="), "{printed}");
}

#[test]
fn config_check_as_text() {
    let home = Home::new();
    let cases = [
        ("version: 1\n", Some(0), "is valid\n"),
        (
            "version: 1\nservers: { a: { url: 'http://127.0.0.1:1/', headers: { X-Api-Key: plain } } }\n",
            Some(1),
            "TG1016",
        ),
        (
            "version: 1\nservers: { a: { command: cat, env: { API_KEY: plain } } }\n",
            Some(0),
            "is valid, with 1 warning",
        ),
        ("version: 2\nfoo: 1\n", Some(1), "is not valid: 2 problems"),
        ("{", Some(1), "is not valid"),
    ];
    for (text, expected, words) in cases {
        home.configure(text);
        for command in [&["config", "check"][..], &["config", "check", "toolgate.yaml"]] {
            let (code, stdout, stderr) = run(&home, command);
            assert_eq!((code, stdout.as_str()), (expected, ""), "{text}: {stderr}");
            assert!(stderr.contains(words), "{text}: {stderr}");
            assert!(!stderr.contains("plain"), "a secret is shown: {stderr}");
        }
    }
    let (code, _, stderr) = run(&home, &["config", "check", "missing.yaml"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("missing.yaml: error[TG1001]: no such file"), "{stderr}");
}

/// A file is as good as the policies in it: `serve` would not use it either.
#[test]
fn config_check_looks_into_policies() {
    let home = Home::new();
    let cases = [
        ("{ a: { version: '1', default: deny } }", "", 0, vec![]),
        (
            "{ a: { version: '1', defalt: deny } }",
            "",
            1,
            vec![("TG0010", "toolgate.yaml", 2), ("TG0005", "toolgate.yaml", 2)],
        ),
        ("{ a: { file: none.yaml } }", "", 1, vec![("TG1015", "toolgate.yaml", 2)]),
        ("{ a: { file: p.yaml } }", "version: '1'\ndefault: deny\n", 0, vec![]),
        (
            "{ a: { file: p.yaml } }",
            "version: '1'\n\ndefault: dny\n",
            1,
            vec![("TG0008", "p.yaml", 3)],
        ),
        (
            "{ a: { file: p.yaml } }",
            "version: '1'\ndefault: deny\ntools: { x: { limits: [{ counter: c, window: minute, max: 1, scope: session }] } }\n",
            0,
            vec![("TG0107", "p.yaml", 3)],
        ),
        (
            "{ a: { file: p.yaml } }",
            "version: '1'\ndefault: deny\ntests:\n  - { call: { tool: x }, expect: allow }\n",
            1,
            vec![("test_failed", "p.yaml", 4)],
        ),
    ];
    for (policies, file, expected, found) in cases {
        home.configure(&format!("version: 1\npolicies: {policies}\n"));
        std::fs::write(home.path("p.yaml"), file).unwrap();
        let (code, stdout, _) = run(&home, &["config", "check", "-o", "json"]);
        let judged: Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!((code, &judged["valid"]), (Some(expected), &(expected == 0).into()), "{judged}");
        let reported: Vec<_> = judged["problems"]
            .as_array()
            .unwrap()
            .iter()
            .map(|problem| {
                let file = problem["file"].as_str().unwrap().rsplit('/').next().unwrap();
                (problem["code"].as_str().unwrap(), file, problem["line"].as_u64().unwrap())
            })
            .collect();
        assert_eq!(reported, found, "{policies} {file}");
        let (code, _, stderr) = run(&home, &["config", "check"]);
        assert_eq!(code, Some(expected));
        for (code, file, _) in found {
            let says = stderr.contains(file);
            assert!(says && (stderr.contains(code) || !code.starts_with("TG00")), "{stderr}");
        }
    }
}

#[test]
fn config_check_for_programs() {
    let home = Home::new();
    let check = || {
        let (code, stdout, stderr) = run(&home, &["config", "check", "-o", "json"]);
        assert_eq!((stdout.lines().count(), stderr.as_str()), (1, ""));
        (code, serde_json::from_str::<Value>(&stdout).unwrap())
    };
    home.configure("version: 1\n");
    let expected = serde_json::json!({"file": "toolgate.yaml", "valid": true, "problems": []});
    assert_eq!(check(), (Some(0), expected));

    home.configure("version: 1\nlissten: {}\nbogus: 1\n");
    let (code, found) = check();
    assert_eq!((code, &found["valid"]), (Some(1), &false.into()));
    let problems = found["problems"].as_array().unwrap();
    assert_eq!(problems.len(), 2, "{found}");
    for (problem, (line, hint)) in problems.iter().zip([(2, "listen"), (3, "")]) {
        let keys: Vec<_> = problem.as_object().unwrap().keys().collect();
        let expected = ["code", "column", "file", "hint", "line", "message", "severity"];
        assert_eq!(keys, expected);
        assert_eq!((&problem["line"], &problem["column"]), (&line.into(), &1.into()));
        assert_eq!((&problem["severity"], &problem["code"]), (&"error".into(), &"TG1007".into()));
        assert!(problem["hint"].to_string().contains(hint), "{problem}");
    }
}

#[test]
fn the_schema_is_json() {
    let (code, stdout, stderr) = run(&Home::new(), &["config", "schema"]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let schema: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    for key in ["version", "listen", "servers", "limits"] {
        assert!(schema["properties"][key].is_object(), "{key}");
    }
}

#[test]
fn completions_and_manual_pages() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let (code, script, _) = run(&home, &["completions", shell]);
        assert_eq!(code, Some(0), "{shell}");
        for word in ["preflight", "disconnect", "dry-run"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    let (code, _, stderr) = run(&home, &["man", "--write", "man"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(home.path("man/toolgate.1").exists());
    for page in ["toolgate-run.1", "toolgate-client-connect.1"] {
        let text = std::fs::read_to_string(home.path("man").join(page)).unwrap();
        assert!(text.contains(".SH SYNOPSIS") && text.contains("Examples"), "{page}: {text}");
    }
}
