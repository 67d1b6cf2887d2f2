//! Policies in force: what is refused is not sent, what is hidden is not seen, and all of it stands
//! in the audit.

use std::sync::Arc;

use toolgate_gateway::{Access, Grant, refused};
use toolgate_json::peek;

use crate::bed::{Agent, Bed, INITIALIZE, Reply, settings};
use crate::office::policy;
use crate::player::Player;
use crate::script::settle;

fn call(name: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{name}","arguments":{{"id":"secret-7"}}}}}}"#
    )
}

fn ask(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#)
}

/// A gateway with one server that answers every call.
fn bed(document: &str) -> (Bed, Player) {
    let player = Player::with_tools(&["read_a", "delete_a", "close"]);
    player.set("tools/call", r#"{"content":[]}"#);
    let bed = Bed::new();
    bed.office.enforce(document);
    bed.apply([bed.played(settings("files"), &player)]);
    (bed, player)
}

async fn answer(agent: &Agent, request: &str) -> String {
    agent.ask(request).answer().await
}

/// `error_code` and `rule` of a refusal, or `sent`.
async fn verdict(agent: &Agent, name: &str) -> String {
    let answer = answer(agent, &call(name)).await;
    let meta = |key| peek(&answer, &["result", "_meta", key]).unwrap().unwrap_or("-").to_owned();
    match meta("error_code").as_str() {
        "-" => "sent".to_owned(),
        code => format!("{code} {}", meta("rule")).replace('"', ""),
    }
}

async fn both(bed: &Bed) -> [(Agent, &'static str); 2] {
    let one = bed.open("files", INITIALIZE).await.unwrap();
    let all = bed.open_all(INITIALIZE).await;
    [(one, ""), (all, "files__")]
}

const DENY: &str = "version: \"1\"\ndefault: deny\ntools:\n  read_a: { action: allow }\n  delete_a: { action: deny }\n";

#[tokio::test(start_paused = true)]
async fn what_a_policy_refuses_is_not_sent() {
    let (bed, player) = bed(DENY);
    for (agent, prefix) in both(&bed).await {
        player.heard();
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
        let heard: Vec<_> =
            player.heard().into_iter().filter(|body| body.contains("tools/call")).collect();
        assert_eq!(heard.len(), 1, "{heard:?}");
        let refused = answer(&agent, &call(&format!("{prefix}delete_a"))).await;
        assert!(refused.contains(r#""text":"[POLICY DENIED] "#), "{refused}");
        assert!(refused.contains(r#""isError":true"#) && refused.contains(r#""call_id":""#));
    }
}

#[tokio::test(start_paused = true)]
async fn who_has_no_policy_may_nothing() {
    let (bed, player) = bed(DENY);
    let grant = Grant { label: "local".into(), ..Grant::default() };
    let access = Access::new(Some(Arc::new(grant)), []);
    bed.office.admission.set_access(access);
    let agent = bed.open("files", INITIALIZE).await.unwrap();
    assert_eq!(verdict(&agent, "read_a").await, "policy_denied (no policy)");
    assert_eq!(player.heard(), [] as [&str; 0]);
}

#[tokio::test(start_paused = true)]
async fn what_is_hidden_is_in_no_list_and_looks_like_what_is_not_there() {
    let (bed, player) = bed(
        "version: \"1\"\ndefault: allow\nhide: [delete_*]\nresources: { hide: [\"demo://secret*\"] }\nprompts: { hide: [inner] }\n",
    );
    player.set(
        "resources/list",
        r#"{"resources":[{"uri":"demo://secret"},{"uri":"demo://open"}],"x":1.0}"#,
    );
    player.set("prompts/list", r#"{"prompts":[{"name":"inner"},{"name":"outer"}]}"#);
    player.set("resources/read", r#"{"contents":[]}"#);
    for (agent, prefix) in both(&bed).await {
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
    assert!(!player.heard().iter().any(|body| body.contains("secret\"")));
}

/// What a policy goes by must be a word, or a server might read one where the policy saw none.
#[tokio::test(start_paused = true)]
async fn what_a_policy_cannot_read_goes_no_further() {
    let (bed, player) = bed(
        "version: \"1\"\ndefault: allow\nhide: [delete_*]\nresources: { hide: [\"demo://secret*\"] }\nprompts: { hide: [inner] }\n",
    );
    for method in ["resources/read", "resources/subscribe", "prompts/get", "completion/complete"] {
        player.set(method, "{}");
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
    for (agent, prefix) in both(&bed).await {
        player.heard();
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
            assert_eq!(player.heard(), [] as [&str; 0], "{prefix} {method} {params}");
        }
        // Null stands for no arguments, and bytes pass as they came.
        let null = format!(r#"{{"name":"{prefix}read_a","arguments":null}}"#);
        assert!(answer(&agent, &ask("tools/call", &null)).await.contains("result"));
        assert_eq!(player.heard().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_n_admits_n_and_the_next_window_opens() {
    let (bed, player) = bed(
        "version: \"1\"\ndefault: deny\ntools:\n  close: { action: allow, limits: [{ counter: close_rate, max: 3, window: minute, scope: grant }] }\n",
    );
    let agents = both(&bed).await;
    player.heard();
    let mut verdicts = Vec::new();
    for n in 0..5 {
        let (agent, prefix) = &agents[n % 2];
        verdicts.push(verdict(agent, &format!("{prefix}close")).await);
    }
    let spent = "rate_limited /tools/close/limits/close_rate";
    assert_eq!(verdicts, ["sent", "sent", "sent", spent, spent]);
    let refused = answer(&agents[0].0, &call("close")).await;
    assert!(refused.contains(r#""retry_after_s":60"#), "{refused}");
    bed.office.clock.set("2026-11-15T12:01:00Z".parse().unwrap());
    assert_eq!(verdict(&agents[0].0, "close").await, "sent");
}

#[tokio::test(start_paused = true)]
async fn edits_keep_what_was_counted_and_new_names_begin_anew() {
    let document = |counter: &str, max: u8, more: &str| {
        format!(
            "version: \"1\"\ndefault: deny\n{more}tools:\n  close: {{ action: allow, limits: \
             [{{ counter: {counter}, max: {max}, window: hour, scope: grant }}] }}\n"
        )
    };
    let (bed, _player) = bed(&document("c", 3, ""));
    let agent = bed.open("files", INITIALIZE).await.unwrap();
    let calls = async |count: usize| {
        let mut sent = 0;
        for _ in 0..count {
            sent += usize::from(verdict(&agent, "close").await == "sent");
        }
        sent
    };
    assert_eq!(calls(2).await, 2);
    // Each edit, and how many of nine calls pass after it.
    let edits = [
        (document("c", 3, "description: other words\n"), 1),
        (document("c", 5, "hide: [x]\n"), 2),
        (document("c", 2, ""), 0),
        (document("d", 2, ""), 2),
        (document("c", 6, ""), 1),
    ];
    for (edit, expected) in edits {
        bed.office.enforce(&edit);
        bed.gateway.access_changed();
        assert_eq!(calls(9).await, expected, "{edit}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_never_left_is_given_back() {
    let (bed, player) = bed(
        "version: \"1\"\ndefault: deny\ntools:\n  close: { action: allow, limits: [{ counter: c, max: 1, window: hour, scope: grant }] }\n",
    );
    let agent = bed.open_all(INITIALIZE).await;
    answer(&agent, &ask("tools/list", "{}")).await;
    player.die(1);
    settle().await;
    let failed = answer(&agent, &call("files__close")).await;
    assert!(failed.contains(r#""error_code":"upstream_unavailable""#), "{failed}");
    assert_eq!(verdict(&agent, "files__close").await, "sent");
    assert!(verdict(&agent, "files__close").await.starts_with("rate_limited"));
    // A failure names the rows that tell of it, as a refusal does.
    let rows = bed.office.rows_by(1).await;
    let call_id = rows[0].draft.call_id.unwrap().to_string();
    assert!(failed.contains(&format!(r#""call_id":"{call_id}""#)), "{failed}");
}

/// A name that the policy refuses is written down alike whether there is such a tool or not.
#[tokio::test(start_paused = true)]
async fn rows_of_refused_names_say_what_was_decided() {
    let (bed, _player) = bed(
        "version: \"1\"\ndefault: deny\nhide: [\"delete_*\"]\ntools: { read_a: { approve: {} } }\n",
    );
    let agent = bed.open_all(INITIALIZE).await;
    for name in ["files__close", "none", "files__delete_a", "delete_none", "files__read_a"] {
        verdict(&agent, name).await;
    }
    let rows = bed.office.rows_by(5).await;
    let told: Vec<_> = rows
        .iter()
        .map(|row| {
            let draft = &row.draft;
            let decision = draft.decision.map_or("-", |decision| decision.as_str());
            let method = draft.method.as_deref().unwrap_or("-");
            assert!(!draft.message.as_deref().unwrap().starts_with('['), "{:?}", draft.message);
            format!("{} {method} {} {decision}", draft.kind, draft.tool.as_deref().unwrap_or("-"))
        })
        .collect();
    let expected = [
        "denied tools/call close deny",
        "denied tools/call none deny",
        "denied tools/call delete_a hide",
        "denied tools/call delete_none hide",
        "denied tools/call read_a hold",
    ];
    assert_eq!(told, expected);
}

#[tokio::test(start_paused = true)]
async fn every_call_stands_in_the_audit_with_its_end_and_without_its_values() {
    let (bed, player) = bed(DENY);
    let agent = bed.open("files", INITIALIZE).await.unwrap();
    verdict(&agent, "read_a").await;
    verdict(&agent, "delete_a").await;
    player.set("tools/call", r#"{"isError":true,"content":[]}"#);
    verdict(&agent, "read_a").await;
    let rows = bed.office.rows_by(5).await;
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
    let (bed, player) = bed(DENY);
    let agent = bed.open("files", INITIALIZE).await.unwrap();
    bed.office.memory.set_broken(true);
    let refused = answer(&agent, &call("read_a")).await;
    assert!(refused.contains(r#""error_code":"not_audited""#), "{refused}");
    assert!(refused.contains("[NOT SENT]"));
    assert_eq!(player.heard(), [] as [&str; 0]);
    bed.office.memory.set_broken(false);
    assert_eq!(verdict(&agent, "read_a").await, "sent");
}

#[tokio::test(start_paused = true)]
async fn another_policy_changes_what_connected_agents_may_and_see() {
    let (bed, _player) = bed("version: \"1\"\ndefault: allow\n");
    let agent = bed.open_all(INITIALIZE).await;
    let mut general = agent.listen();
    let tools = answer(&agent, &ask("tools/list", "{}")).await;
    assert!(tools.contains("files__delete_a"));
    bed.office.enforce("version: \"1\"\ndefault: allow\nhide: [delete_a]\n");
    bed.gateway.access_changed();
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
        let (bed, player) = bed(&document("\"demo://b\""));
        player.set("resources/subscribe", "{}");
        let (agent, uri, tool) = if at_all {
            (bed.open_all(INITIALIZE).await, "files+demo", "files__close")
        } else {
            (bed.open("files", INITIALIZE).await.unwrap(), "demo", "close")
        };
        for (name, sent) in [("a", true), ("b", false), ("c", true)] {
            let subscribe = ask("resources/subscribe", &format!(r#"{{"uri":"{uri}://{name}"}}"#));
            let answered = answer(&agent, &subscribe).await;
            assert_eq!(answered.contains(r#""result""#), sent, "{answered}");
        }
        let followed_after_a_loss = async || {
            settle().await;
            player.heard();
            player.break_off();
            settle().await;
            assert_eq!(verdict(&agent, tool).await, "sent");
            settle().await;
            let heard = player.heard();
            let asked = heard.iter().filter(|body| body.contains("resources/subscribe"));
            asked
                .filter_map(|body| peek(body, &["params", "uri"]).unwrap().map(str::to_owned))
                .collect::<Vec<_>>()
        };
        assert_eq!(followed_after_a_loss().await, [r#""demo://a""#, r#""demo://c""#], "{at_all}");
        bed.office.enforce(&document("\"demo://b\", \"demo://c\""));
        assert_eq!(followed_after_a_loss().await, [r#""demo://a""#], "{at_all}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_grant_sees_its_servers_and_its_sessions_alone() {
    let (bed, player) = bed("version: \"1\"\ndefault: allow\n");
    let other = Player::with_tools(&["b"]);
    bed.apply([bed.played(settings("files"), &player), bed.played(settings("other"), &other)]);
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
    bed.office.admission.set_access(Access::new(None, by_token));
    assert!(bed.office.admission.caller(None).is_none());
    assert!(bed.office.admission.caller(Some("t3")).is_none());
    let caller = |token| bed.office.admission.caller(Some(token)).unwrap();
    let agent = bed.open_as(&caller("t1")).await;
    let tools = answer(&agent, &ask("tools/list", "{}")).await;
    assert!(tools.contains("files__close") && !tools.contains("other__b"), "{tools}");
    assert_eq!(verdict(&agent, "other__b").await, "unknown_tool -");
    let id = agent.session.id();
    let endpoint = toolgate_gateway::Endpoint::All;
    assert!(bed.gateway.session(&endpoint, id, &caller("t1")).is_some());
    assert!(bed.gateway.session(&endpoint, id, &caller("t2")).is_none());
    // Without its grant a session ends.
    bed.office.admission.set_access(Access::default());
    bed.gateway.access_changed();
    assert!(bed.gateway.session(&endpoint, id, &caller_of("one")).is_none());
}

fn caller_of(label: &str) -> Arc<Grant> {
    Arc::new(Grant { label: label.into(), ..Grant::default() })
}

/// A large result is read off the runtime's threads, and still before the agent sees it.
#[tokio::test(start_paused = true)]
async fn what_a_large_result_yields_belongs_to_the_grant() {
    let (bed, player) = bed(
        "version: \"1\"\ndefault: allow\ntools:\n  read_a: { yields: { job: result.id } }\n  close:\n    require: [{ conditions: [{ path: args.id, op: owned, value: job }] }]\n",
    );
    for (agent, prefix) in both(&bed).await {
        let close = call(&format!("{prefix}close"));
        for (id, filler) in [("small", 10), ("large", 1024 * 1024)] {
            let filler = "x".repeat(filler);
            player.set(
                "tools/call",
                &format!(
                    r#"{{"content":[{{"type":"text","text":"{filler}"}}],"structuredContent":{{"id":"{prefix}{id}"}}}}"#
                ),
            );
            let close = close.replace("secret-7", &format!("{prefix}{id}"));
            let before = answer(&agent, &close).await;
            assert!(before.contains("policy_denied"), "{prefix}{id}");
            answer(&agent, &call(&format!("{prefix}read_a"))).await;
            let after = answer(&agent, &close).await;
            assert!(!after.contains("policy_denied"), "{prefix}{id}");
        }
    }
}

/// A call without arguments is one call, however that is spelled.
#[tokio::test(start_paused = true)]
async fn a_call_without_arguments_is_one_call_in_every_spelling() {
    let (bed, player) =
        bed("version: \"1\"\ndefault: allow\ntools:\n  close: { unless_seen_within: 5m }\n");
    let agent = bed.open("files", INITIALIZE).await.unwrap();
    for (params, is_sent) in [
        (r#"{"name":"close","arguments":{}}"#, true),
        (r#"{"name":"close","arguments":null}"#, false),
        (r#"{"name":"close"}"#, false),
        (r#"{"name":"close","arguments":{"a":null}}"#, true),
    ] {
        let answer = answer(&agent, &ask("tools/call", params)).await;
        assert_eq!(!answer.contains("policy_denied"), is_sent, "{params}: {answer}");
    }
    let heard = player.heard();
    let calls = heard.iter().filter(|body| body.contains("tools/call")).count();
    assert_eq!(calls, 2, "{heard:?}");
}
