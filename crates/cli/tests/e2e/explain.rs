//! `policy explain --grant`: the policy and the counters of a grant, of a running gateway and of a
//! data folder alone.

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::api::Api;
use crate::gate::{Gate, Home};
use crate::peer::Peer;

const TOKENS: [(&str, &str); 2] = [
    ("TEAM", "token-of-the-grant-team-0123456789"),
    ("NONE", "token-of-the-grant-none-0123456789"),
];

const CONFIG: &str = "policies:
  team:
    version: '1'
    default: deny
    tools:
      echo: { limits: [{ counter: echo_rate, window: 30d, max: 2, scope: grant }] }
      pay: { deny_if: [{ conditions: [{ path: args.amount, op: gt, value: 0.1000000000000000001 }] }] }
      mine: { require: [{ conditions: [{ path: identity.groups, op: contains, value: ops }] }] }
      dial: { require: [{ conditions: [{ path: session.kind, op: eq, value: robot }] }] }
    classes:
      destructive: { approve: {} }
grants:
  - { label: team, token: env:TEAM, identity: sales, groups: [ops], policy: team }
  - { label: none, token: env:NONE }
servers:
";

fn explain(home: &Home, grant: &str, words: &[&str]) -> (Option<i32>, String, String) {
    let base = ["policy", "explain", "--grant", grant, "--tool"];
    let output = home.run(&[&base[..], words].concat());
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Effect, rule and class.
fn explained(home: &Home, grant: &str, words: &[&str]) -> String {
    let (code, printed, error) = explain(home, grant, &[words, &["-o", "json"]].concat());
    assert_eq!(code, Some(0), "{error}");
    let printed: Value = serde_json::from_str(&printed).unwrap();
    let keys: Vec<_> = printed.as_object().unwrap().keys().collect();
    let contract = ["class", "effect", "message", "rule", "rules"];
    let unknown = ["class", "effect", "message", "rule", "rules", "suggestions", "unknown"];
    let expected: &[&str] = if printed["unknown"] == true { &unknown } else { &contract };
    assert_eq!(keys, expected, "the object of the contract");
    let word = |key: &str| printed[key].as_str().unwrap().to_owned();
    [word("effect"), word("rule"), word("class")].join(" ").replace("  ", " ")
}

/// Everything but counters, which is the same whether a gateway runs or not.
fn check(home: &Home, echo: &str) {
    let cases: &[(&str, &[&str], &str)] = &[
        ("team", &["echo"], echo),
        ("team", &["files/echo"], echo),
        ("team", &["files__echo"], echo),
        ("team", &["files__purge_all"], "deny (default deny) destructive"),
        ("team", &["purge_all"], "deny (default deny) destructive"),
        ("team", &["mine"], "allow other"),
        ("team", &["dial"], "deny /tools/dial/require/0 write"),
        ("team", &["dial", "--session-kind", "robot"], "allow write"),
        (
            "team",
            &["pay", "--class", "destructive"],
            "hold /classes/destructive/approve destructive",
        ),
        ("team", &["pay", "--server", "files"], "hold /classes/destructive/approve destructive"),
        // Numbers are compared as they were typed.
        (
            "team",
            &["pay", "--args", r#"{"amount":0.1000000000000000002}"#],
            "deny /tools/pay/deny_if/0 financial",
        ),
        ("team", &["pay", "--args", r#"{"amount":0.1000000000000000001}"#], "allow financial"),
        ("none", &["echo"], "deny (no policy) other"),
    ];
    for (grant, words, expected) in cases {
        assert_eq!(explained(home, grant, words), *expected, "{grant} {words:?}");
    }
    let (code, printed, error) = explain(home, "nobody", &["echo"]);
    assert_eq!((code, printed.as_str()), (Some(2), ""));
    assert!(error.contains("there is no grant `nobody`"), "{error}");
}

#[test]
fn a_grant_is_explained_with_what_it_has_used() {
    let home = Home::new();
    let peer = Peer::new(&home, "files");
    let config =
        format!("{CONFIG}{}", peer.entry("listing", "tools: { pay: { class: destructive } }"));
    let mut gate = Gate::start_as(home, &config, |command| {
        command.envs(TOKENS);
    });
    let spent = "deny /tools/echo/limits/echo_rate other";
    check(&gate.home, "allow other");
    let agent = Agent::open_with(&gate, "files", TOKENS[0].1);
    agent.call("echo", &json!({}));
    let (_, text, _) = explain(&gate.home, "team", &["files__echo"]);
    assert!(text.contains("echo_rate: 1 of 2 per 30d used, resets at "), "{text}");
    assert!(text.contains("`echo` on `files` (class other) is allowed"), "{text}");
    agent.call("echo", &json!({}));
    check(&gate.home, spent);

    // One that was made at run time, under a policy that was.
    let api = Api::admin(&gate);
    api.expect(200, "PUT", "policies/late", r#"{"version":"1","default":"allow","hide":["x"]}"#);
    let made = api.expect(201, "POST", "grants", r#"{"label":"late","policy":"late"}"#);
    let id = made["id"].as_str().unwrap().to_owned();
    for named in ["late", &id] {
        assert_eq!(explained(&gate.home, named, &["x"]), "hide (hidden) other");
    }
    api.expect(204, "DELETE", "grants/none", "");
    let revoked = |home: &Home| explain(home, "none", &["echo"]).2;
    assert!(revoked(&gate.home).contains("the grant `none` is revoked"));

    // The folder alone gives the same answer, and is not changed.
    assert_eq!(gate.stop().0, Some(0));
    let home = gate.into_home();
    let rows = |home: &Home| home.run(&["audit", "list", "--after", "0", "-o", "jsonl"]).stdout;
    let before = rows(&home);
    assert_eq!(explained(&home, "team", &["echo"]), spent);
    assert_eq!(
        explained(&home, "team", &["pay", "--server", "files"]),
        "hold /classes/destructive/approve destructive"
    );
    assert_eq!(
        explained(&home, "team", &["pay", "--args", r#"{"amount":0.1000000000000000001}"#]),
        "allow financial"
    );
    for named in ["late", &id] {
        assert_eq!(explained(&home, named, &["x"]), "hide (hidden) other");
    }
    assert!(revoked(&home).contains("the grant `none` is revoked"));
    let (_, text, _) = explain(&home, "team", &["echo"]);
    assert!(text.contains("echo_rate: 2 of 2 per 30d used"), "{text}");
    assert_eq!(rows(&home), before);
}

#[test]
fn a_folder_in_which_nothing_ever_was_has_the_grants_of_the_file() {
    let home = Home::new();
    let peer = Peer::new(&home, "files");
    let entry = peer.entry("", "tools: { pay: { class: destructive } }");
    home.configure(&format!("version: 1\n{CONFIG}{entry}"));
    check(&home, "allow other");
}

/// What a document on disk decides about a name that agents see; the words follow the verb.
fn of_document(home: &Home, words: &[&str]) -> Value {
    let base = ["policy", "explain", "-o", "json", "--policy", "draft.yaml"];
    let output = home.run(&[&base[..], words].concat());
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{words:?}: {error}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// With a data folder, a draft is explained with the names on `/mcp`, whether or not a gateway runs
/// on it; alone, with the tool's own.
#[test]
fn a_draft_is_explained_with_the_names_that_agents_see() {
    let home = Home::new();
    let peer = Peer::new(&home, "files");
    let mut gate = Gate::start_in(home, &format!("servers:\n{}", peer.entry("listing", "")));
    let draft = "version: '1'\ndefault: deny\nlist: all\n\
                 tools:\n  echo: { action: deny }\n  files__pid: {}\n";
    std::fs::write(gate.home.path("draft.yaml"), draft).unwrap();
    // Waits for the server's first list.
    gate.home.run(&["tool", "list"]);
    let folder = gate.home.path(".local/share/toolgate").display().to_string();
    let known = |home: &Home| {
        let data = ["--data", &folder, "--tool"];
        let ask = |name: &str| of_document(home, &[&data[..], &[name]].concat());
        let rule = |name: &str| {
            let told = ask(name);
            assert_eq!(told["unknown"], Value::Null, "{told}");
            [&told["effect"], &told["rule"]].map(|it| it.as_str().unwrap().to_owned()).join(" ")
        };
        assert_eq!(rule("files__echo"), "deny /tools/echo/action");
        assert_eq!(rule("files__pid"), "allow ");
        assert_eq!(rule("my_permissions"), "allow ");
        let told = ask("files__ech");
        assert_eq!(told["unknown"], true, "{told}");
        assert_eq!(told["suggestions"][0], "files__echo", "{told}");
    };
    known(&gate.home);
    let alone = of_document(&gate.home, &["--tool", "files__echo"]);
    assert_eq!((&alone["rule"], &alone["unknown"]), (&json!("(default deny)"), &Value::Null));
    assert_eq!(of_document(&gate.home, &["--tool", "echo"])["rule"], "/tools/echo/action");
    assert_eq!(gate.stop().0, Some(0));
    known(&gate.into_home());
}
