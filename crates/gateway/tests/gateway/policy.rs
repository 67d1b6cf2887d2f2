//! Policies: refused requests are not sent, hidden entries are not listed, and the audit has a row for
//! each.

use std::sync::Arc;

use toolgate_gateway::{Access, Grant, refused};
use toolgate_json::peek;

use crate::auto_server::AutoServer;
use crate::harness::{Agent, Harness, INITIALIZE, settings};
use crate::reply::Reply;
use crate::script::settle;
use crate::test_admission::policy;

pub(crate) fn call(name: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{name}","arguments":{{"id":"secret-7"}}}}}}"#
    )
}

pub(crate) fn ask(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#)
}

/// A gateway with one server that answers every call.
pub(crate) fn harness(document: &str) -> (Harness, AutoServer) {
    let auto_server = AutoServer::with_tools(&["read_a", "delete_a", "close"]);
    auto_server.set("tools/call", r#"{"content":[]}"#);
    let harness = Harness::new();
    harness.test_admission.enforce(document);
    harness.apply([harness.played(settings("files"), &auto_server)]);
    (harness, auto_server)
}

pub(crate) async fn answer(agent: &Agent, request: &str) -> String {
    agent.ask(request).answer().await
}

/// `error_code` and `rule` of a refusal, or `sent`.
pub(crate) async fn verdict(agent: &Agent, name: &str) -> String {
    let answer = answer(agent, &call(name)).await;
    let meta = |key| peek(&answer, &["result", "_meta", key]).unwrap().unwrap_or("-").to_owned();
    match meta("error_code").as_str() {
        "-" => "sent".to_owned(),
        code => format!("{code} {}", meta("rule")).replace('"', ""),
    }
}

pub(crate) async fn both(harness: &Harness) -> [(Agent, &'static str); 2] {
    let one = harness.open("files", INITIALIZE).await.unwrap();
    let all = harness.open_all(INITIALIZE).await;
    [(one, ""), (all, "files__")]
}

pub(crate) const DENY: &str = "version: \"1\"\ndefault: deny\ntools:\n  read_a: { action: allow }\n  delete_a: { action: deny }\n";

#[tokio::test(start_paused = true)]
async fn what_a_policy_refuses_is_not_sent() {
    let (harness, auto_server) = harness(DENY);
    for (agent, prefix) in both(&harness).await {
        auto_server.received();
        let cases = [
            ("read_a", "sent"),
            ("delete_a", "policy_denied /tools/delete_a/action"),
            ("close", "policy_denied (default deny)"),
            ("no_such", "policy_denied (default deny)"),
        ];
        for (name, expected) in cases {
            assert_eq!(
                verdict(&agent, &format!("{prefix}{name}")).await,
                expected,
                "{prefix}{name}"
            );
        }
        let received: Vec<_> =
            auto_server.received().into_iter().filter(|body| body.contains("tools/call")).collect();
        assert_eq!(received.len(), 1, "{received:?}");
        let refused = answer(&agent, &call(&format!("{prefix}delete_a"))).await;
        assert!(refused.contains(r#""text":"[POLICY DENIED] "#), "{refused}");
        assert!(refused.contains(r#""isError":true"#) && refused.contains(r#""call_id":""#));
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_policy_every_call_is_denied() {
    let (harness, auto_server) = harness(DENY);
    let grant = Grant { label: "local".into(), ..Grant::default() };
    let access = Access::new(Some(Arc::new(grant)), []);
    harness.test_admission.admission.set_access(access);
    let agent = harness.open("files", INITIALIZE).await.unwrap();
    assert_eq!(verdict(&agent, "read_a").await, "policy_denied (no policy)");
    assert_eq!(auto_server.received(), [] as [&str; 0]);
}

#[tokio::test(start_paused = true)]
async fn what_is_hidden_is_in_no_list_and_looks_like_what_is_not_there() {
    let (harness, auto_server) = harness(
        "version: \"1\"\ndefault: allow\nhide: [delete_*]\nresources: { hide: [\"demo://secret*\"] }\nprompts: { hide: [inner] }\n",
    );
    auto_server.set(
        "resources/list",
        r#"{"resources":[{"uri":"demo://secret"},{"uri":"demo://open"}],"x":1.0}"#,
    );
    auto_server.set("prompts/list", r#"{"prompts":[{"name":"inner"},{"name":"outer"}]}"#);
    auto_server.set("resources/read", r#"{"contents":[]}"#);
    for (agent, prefix) in both(&harness).await {
        let tools = answer(&agent, &ask("tools/list", "{}")).await;
        assert!(tools.contains("read_a") && !tools.contains("delete_a"), "{tools}");
        let resources = answer(&agent, &ask("resources/list", "{}")).await;
        assert!(resources.contains("open") && !resources.contains("secret"), "{resources}");
        let prompts = answer(&agent, &ask("prompts/list", "{}")).await;
        assert!(prompts.contains("outer") && !prompts.contains("inner"), "{prompts}");
        for name in ["delete_a", "delete_nothing"] {
            let verdict = verdict(&agent, &format!("{prefix}{name}")).await;
            assert_eq!(verdict, "policy_denied (hidden)");
        }
        let scheme = prefix.replace("__", "+");
        let read = |uri: &str| ask("resources/read", &format!(r#"{{"uri":"{scheme}{uri}"}}"#));
        let hidden = answer(&agent, &read("demo://secret")).await;
        assert!(hidden.contains(r#""code":-32002"#) && !hidden.contains("POLICY"), "{hidden}");
        assert!(answer(&agent, &read("demo://open")).await.contains("contents"));
    }
    assert!(!auto_server.received().iter().any(|body| body.contains("secret\"")));
}

/// What a policy goes by must be a word, or a server might read one where the policy saw none.
#[tokio::test(start_paused = true)]
async fn what_a_policy_cannot_read_goes_no_further() {
    let (harness, auto_server) = harness(
        "version: \"1\"\ndefault: allow\nhide: [delete_*]\nresources: { hide: [\"demo://secret*\"] }\nprompts: { hide: [inner] }\n",
    );
    for method in ["resources/read", "resources/subscribe", "prompts/get", "completion/complete"] {
        auto_server.set(method, "{}");
    }
    let cases = [
        ("tools/call", r#"{"name":["delete_a"]}"#, "`params.name` must be a string"),
        ("tools/call", r#"{"name":{"toString":"delete_a"}}"#, "`params.name` must be a string"),
        ("tools/call", r#"{"name":7}"#, "`params.name` must be a string"),
        ("tools/call", r#"{"name":null}"#, "`params.name` must be a string"),
        ("tools/call", r#"["delete_a",{}]"#, "`params` must be an object"),
        ("tools/call", r#"{"name":"N","arguments":"{}"}"#, "`params.arguments` must be an object"),
        ("tools/call", r#"{"name":"N","arguments":[1]}"#, "`params.arguments` must be an object"),
        ("prompts/get", r#"{"name":["inner"]}"#, "`params.name` must be a string"),
        ("resources/read", r#"{"uri":["demo://secret"]}"#, "uri` must be a string"),
        ("resources/subscribe", r#"{"uri":7}"#, "uri` must be a string"),
        (
            "completion/complete",
            r#"{"ref":{"type":"ref/prompt","name":"inner","uri":"demo://open"}}"#,
            "`params.ref` has both `name` and `uri`",
        ),
        (
            "completion/complete",
            r#"{"ref":{"type":"ref/prompt","name":["inner"]}}"#,
            "name` must be a string",
        ),
    ];
    for (agent, prefix) in both(&harness).await {
        auto_server.received();
        for (method, params, why) in cases {
            let params = params.replace("\"N\"", &format!("\"{prefix}read_a\""));
            let answered = match agent.try_call(&ask(method, &params)) {
                Ok(call) => Reply::of(&agent.session, call).answer().await,
                Err(refusal) => String::from_utf8(refused(&refusal).to_vec()).unwrap(),
            };
            assert!(answered.contains(r#""id":1"#), "{prefix} {params}: {answered}");
            assert!(answered.contains(r#""code":-32602"#), "{prefix} {params}: {answered}");
            let message = peek(&answered, &["error", "message"]).unwrap().unwrap_or_default();
            // On `/mcp` the way is found first, and that has words of its own.
            assert!(message.contains(why) || !prefix.is_empty(), "{prefix} {params}: {answered}");
            assert_eq!(auto_server.received(), [] as [&str; 0], "{prefix} {method} {params}");
        }
        // Null stands for no arguments, and bytes pass as they came.
        let null = format!(r#"{{"name":"{prefix}read_a","arguments":null}}"#);
        assert!(answer(&agent, &ask("tools/call", &null)).await.contains("result"));
        assert_eq!(auto_server.received().len(), 1);
    }
}

/// A name that the policy refuses is written down alike whether there is such a tool or not.
#[tokio::test(start_paused = true)]
async fn rows_of_refused_names_say_what_was_decided() {
    let (harness, _player) = harness(
        "version: \"1\"\ndefault: deny\nhide: [\"delete_*\"]\ntools: { read_a: { approve: {} } }\n",
    );
    let agent = harness.open_all(INITIALIZE).await;
    for name in ["files__close", "none", "files__delete_a", "delete_none", "files__read_a"] {
        verdict(&agent, name).await;
    }
    let rows = harness.test_admission.rows_by(6).await;
    let told: Vec<_> = rows
        .iter()
        .map(|row| {
            let draft = &row.draft;
            let decision = draft.decision.map_or("-", |decision| decision.as_str());
            let method = draft.method.as_deref().unwrap_or("-");
            let message = draft.message.as_deref().unwrap_or_default();
            assert!(!message.starts_with('['), "{message}");
            format!("{} {method} {} {decision}", draft.kind, draft.tool.as_deref().unwrap_or("-"))
        })
        .collect();
    let expected = [
        "denied tools/call close deny",
        "denied tools/call none deny",
        "denied tools/call delete_a hide",
        "denied tools/call delete_none hide",
        "held tools/call read_a hold",
        "denied tools/call read_a hold",
    ];
    assert_eq!(told, expected);
}

#[tokio::test(start_paused = true)]
async fn every_call_is_recorded_with_its_outcome_and_without_its_values() {
    let (harness, auto_server) = harness(DENY);
    let agent = harness.open("files", INITIALIZE).await.unwrap();
    verdict(&agent, "read_a").await;
    verdict(&agent, "delete_a").await;
    auto_server.set("tools/call", r#"{"isError":true,"content":[]}"#);
    verdict(&agent, "read_a").await;
    let rows = harness.test_admission.rows_by(5).await;
    let told: Vec<_> = rows
        .iter()
        .map(|row| {
            let draft = &row.draft;
            let outcome = draft.outcome.map_or("-", |outcome| outcome.as_str());
            let effect = draft.effect.map_or("-", |effect| effect.as_str());
            format!("{} {} {outcome} {effect}", draft.kind, draft.tool.as_deref().unwrap_or("-"))
        })
        .collect();
    let expected = [
        "intent read_a - -",
        "outcome read_a ok done",
        "denied delete_a - -",
        "intent read_a - -",
        "outcome read_a tool_error done",
    ];
    assert_eq!(told, expected);
    let text: String = rows.iter().map(toolgate_audit::Row::to_json).collect();
    assert!(text.contains(r#""argument_keys":["id"]"#) && !text.contains("secret-7"), "{text}");
    assert!(text.contains(r#""via":"/mcp/files""#) && text.contains(r#""client":"a""#), "{text}");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_written_down_is_not_sent() {
    let (harness, auto_server) = harness(DENY);
    let agent = harness.open("files", INITIALIZE).await.unwrap();
    harness.test_admission.memory.set_broken(true);
    let refused = answer(&agent, &call("read_a")).await;
    assert!(refused.contains(r#""error_code":"not_audited""#), "{refused}");
    assert!(refused.contains("[NOT SENT]"));
    assert_eq!(auto_server.received(), [] as [&str; 0]);
    harness.test_admission.memory.set_broken(false);
    assert_eq!(verdict(&agent, "read_a").await, "sent");
}

#[tokio::test(start_paused = true)]
async fn another_policy_changes_what_connected_agents_may_and_see() {
    let (harness, _player) = harness("version: \"1\"\ndefault: allow\n");
    let agent = harness.open_all(INITIALIZE).await;
    let mut general = agent.listen();
    let tools = answer(&agent, &ask("tools/list", "{}")).await;
    assert!(tools.contains("files__delete_a"));
    harness.test_admission.enforce("version: \"1\"\ndefault: allow\nhide: [delete_a]\n");
    harness.gateway.access_changed();
    let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    assert_eq!(general.message().await, changed);
    let tools = answer(&agent, &ask("tools/list", "{}")).await;
    assert!(tools.contains("files__read_a") && !tools.contains("delete_a"));
    assert_eq!(verdict(&agent, "files__delete_a").await, "policy_denied (hidden)");
}

/// A server that was lost is asked again for what its agents follow: for nothing that was refused,
/// and for nothing that would be refused by now.
#[tokio::test(start_paused = true)]
async fn what_is_refused_is_not_followed_after_a_loss_either() {
    let document = |deny: &str| {
        format!("version: \"1\"\ndefault: allow\nresources: {{ default: allow, deny: [{deny}] }}\n")
    };
    for at_all in [false, true] {
        let (harness, auto_server) = harness(&document("\"demo://b\""));
        auto_server.set("resources/subscribe", "{}");
        let (agent, uri, tool) = if at_all {
            (harness.open_all(INITIALIZE).await, "files+demo", "files__close")
        } else {
            (harness.open("files", INITIALIZE).await.unwrap(), "demo", "close")
        };
        for (name, sent) in [("a", true), ("b", false), ("c", true)] {
            let subscribe = ask("resources/subscribe", &format!(r#"{{"uri":"{uri}://{name}"}}"#));
            let answered = answer(&agent, &subscribe).await;
            assert_eq!(answered.contains(r#""result""#), sent, "{answered}");
        }
        let followed_after_a_loss = async || {
            settle().await;
            auto_server.received();
            auto_server.break_off();
            settle().await;
            assert_eq!(verdict(&agent, tool).await, "sent");
            settle().await;
            let received = auto_server.received();
            let asked = received.iter().filter(|body| body.contains("resources/subscribe"));
            asked
                .filter_map(|body| peek(body, &["params", "uri"]).unwrap().map(str::to_owned))
                .collect::<Vec<_>>()
        };
        assert_eq!(followed_after_a_loss().await, [r#""demo://a""#, r#""demo://c""#], "{at_all}");
        harness.test_admission.enforce(&document("\"demo://b\", \"demo://c\""));
        assert_eq!(followed_after_a_loss().await, [r#""demo://a""#], "{at_all}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_grant_sees_its_servers_and_its_sessions_alone() {
    let (harness, auto_server) = harness("version: \"1\"\ndefault: allow\n");
    let other = AutoServer::with_tools(&["b"]);
    harness.apply([
        harness.played(settings("files"), &auto_server),
        harness.played(settings("other"), &other),
    ]);
    let allow = policy("version: \"1\"\ndefault: allow\n");
    let grant = |label: &str, servers: &[&str]| {
        let servers = Some(servers.iter().map(|name| (*name).to_owned()).collect());
        Arc::new(Grant {
            label: label.into(),
            servers,
            policy: Some(Arc::clone(&allow)),
            ..Grant::default()
        })
    };
    let (one, two) = (grant("one", &["files"]), grant("two", &["other"]));
    let hash = |token: &str| toolgate_audit::Hash::of(token.as_bytes());
    let by_token = [(hash("t1"), one), (hash("t2"), two)];
    harness.test_admission.admission.set_access(Access::new(None, by_token));
    assert!(harness.test_admission.admission.caller(None).is_none());
    assert!(harness.test_admission.admission.caller(Some("t3")).is_none());
    let caller = |token| harness.test_admission.admission.caller(Some(token)).unwrap();
    let agent = harness.open_as(&caller("t1")).await;
    let tools = answer(&agent, &ask("tools/list", "{}")).await;
    assert!(tools.contains("files__close") && !tools.contains("other__b"), "{tools}");
    assert_eq!(verdict(&agent, "other__b").await, "unknown_tool -");
    let id = agent.session.id();
    let endpoint = toolgate_gateway::Endpoint::All;
    assert!(harness.gateway.session(&endpoint, id, &caller("t1")).is_some());
    assert!(harness.gateway.session(&endpoint, id, &caller("t2")).is_none());
    // Without its grant a session ends.
    harness.test_admission.admission.set_access(Access::default());
    harness.gateway.access_changed();
    assert!(harness.gateway.session(&endpoint, id, &caller_of("one")).is_none());
}

fn caller_of(label: &str) -> Arc<Grant> {
    Arc::new(Grant { label: label.into(), ..Grant::default() })
}

#[tokio::test(start_paused = true)]
async fn under_default_deny_only_named_tools_and_my_permissions_are_listed() {
    const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    for (more, others) in [("", false), ("list: all\n", true), ("mode: shadow\n", true)] {
        let (harness, _auto_server) = harness(&format!("{DENY}{more}"));
        for (agent, prefix) in both(&harness).await {
            let listed = answer(&agent, LIST).await;
            let has = |tool: &str| listed.contains(&format!(r#""name":"{prefix}{tool}""#));
            assert!(has("read_a") && has("delete_a"), "{more}: {listed}");
            assert_eq!(has("close"), others, "{more}: {listed}");
            if !prefix.is_empty() {
                assert!(listed.contains("my_permissions"), "{listed}");
                assert_eq!(verdict(&agent, "my_permissions").await, "invalid_arguments -");
            }
        }
    }
    for hidden in ["hide: [my_permissions]\n", "  my_permissions: { action: deny }\n"] {
        let (harness, _auto_server) = harness(&format!("{DENY}{hidden}"));
        let agent = harness.open_all(INITIALIZE).await;
        assert!(verdict(&agent, "my_permissions").await.starts_with("policy_denied"), "{hidden}");
    }
}

/// A hidden prompt that exists is answered and recorded like one that does not.
#[tokio::test(start_paused = true)]
async fn a_hidden_prompt_looks_like_one_that_does_not_exist() {
    let auto_server = AutoServer::with_tools(&["a"]);
    auto_server.set("prompts/list", r#"{"prompts":[{"name":"there"},{"name":"open"}]}"#);
    let harness = Harness::new();
    harness.test_admission.enforce(
        "version: \"1\"\ndefault: allow\nprompts: { default: allow, hide: [there, \"not_*\"] }\n",
    );
    harness.apply([harness.played(settings("files"), &auto_server)]);
    let agent = harness.open_all(INITIALIZE).await;
    answer(&agent, &ask("prompts/list", "{}")).await;
    let mut answers = Vec::new();
    for name in ["files__there", "files__not_there"] {
        answers.push(answer(&agent, &ask("prompts/get", &format!(r#"{{"name":"{name}"}}"#))).await);
    }
    assert_eq!(answers[0], answers[1]);
    let rows = harness.test_admission.rows_by(2).await;
    let shown = |at: usize| {
        let draft = &rows[at].draft;
        (draft.kind, draft.rule.clone(), draft.decision, draft.error_code.clone())
    };
    assert_eq!(shown(0), shown(1));
    // Neither name is hidden: the answer is the same, and so is the kind of row.
    let unknown = answer(&agent, &ask("prompts/get", r#"{"name":"files__nowhere"}"#)).await;
    assert_eq!(unknown, answers[0]);
}
