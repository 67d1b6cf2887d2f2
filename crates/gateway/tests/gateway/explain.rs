//! An explanation agrees with what the gateway does, for random policies and names on both
//! endpoints.

use std::sync::Arc;

use toolgate_dice::Dice;
use toolgate_gateway::{Access, ActivePolicy, Grant};
use toolgate_json::peek;
use toolgate_policy::{Call, Effect, Known, Policy, UNUSED, explain};

use crate::auto_server::AutoServer;
use crate::harness::{Agent, Harness, INITIALIZE, settings};

const ARGUMENTS: &str = r#"{"id":"a-7"}"#;
const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;

const KEYS: [&str; 16] = [
    "read_a",
    "delete_a",
    "close",
    "files/read_a",
    "files__read_a",
    "files__close",
    "notes/close",
    "notes__close",
    "\"read_*\"",
    "\"*_a\"",
    "\"*\"",
    "\"files/*\"",
    "remote/close",
    "remote__close",
    "toolgate/my_permissions",
    "no_such",
];

const ENTRIES: [&str; 8] = [
    "{}",
    "{ action: allow }",
    "{ action: deny }",
    "{ action: hide }",
    "{ approve: {} }",
    "{ rate_limit: 1000/minute }",
    "{ deny_if: [{ conditions: [{ path: args.id, op: starts_with, value: a }] }] }",
    "{ require: [{ conditions: [{ path: server, op: eq, value: files }] }] }",
];

/// Names on `/mcp`: prefixed, bare, of a server out of reach, own names, and unknown ones.
const SHOWN: [&str; 14] = [
    "files__read_a",
    "files__delete_a",
    "files__close",
    "files__no_such",
    "notes__close",
    "close",
    "read_b",
    "read_a",
    "remote__close",
    "my_permissions",
    "no_such",
    "delete_everything",
    "files/read_a2",
    "__",
];

/// Names on `/mcp/files`.
const OWN: [&str; 5] = ["read_a", "delete_a", "close", "no_such", "files__close"];

fn document(dice: &mut Dice) -> String {
    let mut text = format!("version: \"1\"\ndefault: {}\n", dice.pick(&["allow", "deny"]));
    if dice.one_in(3) {
        text.push_str("list: all\n");
    }
    if dice.one_in(3) {
        text.push_str("hide: [delete_a, \"no_*\"]\n");
    }
    if dice.one_in(3) {
        text.push_str("classes: { destructive: { approve: {} }, read: { action: allow } }\n");
    }
    let mut keys = KEYS;
    dice.shuffle(&mut keys);
    text.push_str("tools:\n  unrelated: {}\n");
    for key in keys.iter().take(1 + dice.below(6usize)) {
        let entry = dice.pick(&ENTRIES);
        // Limits on a hidden tool are an error of the document.
        if entry.contains("rate_limit") && text.contains("hide:") {
            continue;
        }
        for part in ["  ", key, ": ", entry, "\n"] {
            text.push_str(part);
        }
    }
    text
}

/// `error_code` and rule of a refusal, or `sent`.
async fn outcome(agent: &Agent, name: &str) -> String {
    let request = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{name}","arguments":{ARGUMENTS}}}}}"#
    );
    let answer = agent.ask(&request).answer().await;
    let meta = |key| peek(&answer, &["result", "_meta", key]).unwrap().unwrap_or("-").to_owned();
    match meta("error_code").as_str() {
        "-" | "\"invalid_arguments\"" => "sent".to_owned(),
        "\"approval_required\"" => "held".to_owned(),
        "\"unknown_tool\"" => "unknown".to_owned(),
        code => format!("{code} {}", meta("rule")).replace('"', ""),
    }
}

fn explained(harness: &Harness, policy: &Policy, server: Option<&str>, name: &str) -> String {
    let resolved = harness.gateway.resolve_tool(server, name, Some("local"));
    let call = Call {
        grant: "local",
        aliases: &resolved.aliases,
        ..Call::new(&resolved.server, &resolved.tool, resolved.class, ARGUMENTS)
    };
    let now = harness.test_admission.admission.now();
    let explanation = explain(policy, &call, &UNUSED, now);
    match explanation.effect {
        // An unknown name is decided by the name alone.
        Effect::Deny
            if server.is_none()
                && resolved.unknown.is_some()
                && explanation.rule.contains("_if/") =>
        {
            "unknown".to_owned()
        }
        Effect::Deny | Effect::Hide => format!("policy_denied {}", explanation.rule),
        // On its own endpoint, the server itself answers.
        _ if resolved.unknown.is_some() && server.is_none() => "unknown".to_owned(),
        Effect::Hold => "held".to_owned(),
        Effect::Allow => "sent".to_owned(),
    }
}

#[tokio::test(start_paused = true)]
async fn explanations_agree_with_calls() {
    let files = AutoServer::with_tools(&["read_a", "delete_a", "close"]);
    let notes = AutoServer::with_tools(&["read_b", "close"]);
    let remote = AutoServer::with_tools(&["close"]);
    for server in [&files, &notes, &remote] {
        server.set("tools/call", r#"{"content":[]}"#);
    }
    let harness = Harness::new();
    let bare = toolgate_gateway::ServerSettings { bare_names: true, ..settings("notes") };
    harness.apply([
        harness.played(settings("files"), &files),
        harness.played(bare, &notes),
        harness.played(settings("remote"), &remote),
    ]);
    let known = Known {
        servers: ["files", "notes", "remote"].map(str::to_owned).to_vec(),
        ..Known::default()
    };
    let trial = harness.open_all(INITIALIZE).await;
    trial.ask(LIST).answer().await;
    for seed in 0..150 {
        let document = document(&mut Dice::new(seed));
        let load = || Policy::load("test", &document, &known);
        let policy = load().policy.unwrap_or_else(|| panic!("{document}: {:?}", load().problems));
        let grant = Grant {
            label: "local".into(),
            policy: Some(Arc::new(ActivePolicy::new(load().policy.unwrap()))),
            servers: Some(["files", "notes"].into_iter().map(Into::into).collect()),
            ..Grant::default()
        };
        harness.test_admission.admission.set_access(Access::new(Some(Arc::new(grant)), []));
        let all = harness.open_all(INITIALIZE).await;
        for name in SHOWN {
            let done = outcome(&all, name).await;
            assert_eq!(explained(&harness, &policy, None, name), done, "/mcp {name}\n{document}");
        }
        let own = harness.open("files", INITIALIZE).await.unwrap();
        for name in OWN {
            let done = outcome(&own, name).await;
            let told = explained(&harness, &policy, Some("files"), name);
            assert_eq!(told, done, "/mcp/files {name}\n{document}");
        }
    }
}
