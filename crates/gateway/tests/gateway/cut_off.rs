//! Open streams and pending requests of servers after access has changed.

use std::sync::Arc;

use jiff::ToSpan;
use toolgate_audit::Hash;
use toolgate_gateway::{Access, Endpoint, Frozen, Grant};
use toolgate_json::peek;

use crate::auto_server::AutoServer;
use crate::client::{Client, ask};
use crate::harness::{Agent, Harness, INITIALIZE, request, settings, shared};
use crate::script::{Kind, settle};
use crate::sessionless_servers::DISCOVERED;
use crate::test_admission::policy;

const ALLOW: &str = "version: \"1\"\ndefault: allow\n";
const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","_meta":{"progressToken":"p"}}}"#;
const CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;

fn grant(token: &str) -> Grant {
    let token = Some(Hash::of(token.as_bytes()));
    Grant { label: "g".into(), policy: Some(policy(ALLOW)), token, ..Grant::default() }
}

/// Puts this grant in force, or none.
fn enforce(harness: &Harness, grant: Option<Grant>) -> Option<Arc<Grant>> {
    let grant = grant.map(Arc::new);
    let with_token = |grant: &Arc<Grant>| Some((grant.token?, Arc::clone(grant)));
    let mut access = Access::new(None, grant.iter().filter_map(with_token));
    access.generation = Some(harness.test_admission.store.generation());
    harness.test_admission.admission.set_access(access);
    harness.gateway.access_changed();
    grant
}

/// An agent of the server `files`.
async fn open(harness: &Harness, caller: &Arc<Grant>) -> Agent {
    let endpoint = Endpoint::Server("files".to_owned());
    let opened = harness.gateway.open(&endpoint, &request(INITIALIZE), caller).await;
    let (session, welcome) = opened.unwrap();
    Agent { session, welcome: String::from_utf8(welcome.to_vec()).unwrap() }
}

/// What ends the right of a token to read.
#[derive(Debug, Clone, Copy)]
enum End {
    Revoked,
    Rotated,
    OutOfReach,
    Expired,
}

const ENDS: [End; 4] = [End::Revoked, End::Rotated, End::OutOfReach, End::Expired];

fn end(harness: &Harness, how: End) {
    match how {
        End::Revoked => drop(enforce(harness, None)),
        End::Rotated => drop(enforce(harness, Some(grant("second")))),
        End::OutOfReach => {
            let servers = Some(std::iter::once("other".to_owned()).collect());
            drop(enforce(harness, Some(Grant { servers, ..grant("first") })));
        }
        End::Expired => {
            let now = harness.test_admission.admission.now();
            harness.test_admission.clock.set(now + 2.hours());
            harness.gateway.sweep();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn no_stream_delivers_to_a_token_that_is_no_longer_valid() {
    for (how, settings) in
        ENDS.into_iter().flat_map(|how| [(how, settings("files")), (how, shared("files"))])
    {
        let (harness, auto_server) = (Harness::new(), AutoServer::with_tools(&["slow"]));
        harness.apply([harness.played(settings, &auto_server)]);
        let expires = Some(harness.test_admission.admission.now() + 1.hour());
        let caller = enforce(&harness, Some(Grant { expires, ..grant("first") })).unwrap();
        let agent = open(&harness, &caller).await;
        let (mut general, mut call) = (agent.listen(), agent.ask(CALL));
        let sent = auto_server.waiting("tools/call").await;
        let number = sent.id().to_owned();
        let progress = |n: u32| {
            format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{number},"progress":{n}}}}}"#
            )
        };
        sent.say(&progress(1));
        assert!(call.message().await.contains(r#""progress":1"#), "{how:?}");
        end(&harness, how);
        sent.say(&progress(2));
        sent.answer(r#"{"content":[{"type":"text","text":"secret"}]}"#);
        auto_server.say(CHANGED);
        settle().await;
        assert_eq!(general.next().await, None, "{how:?}");
        let seen = call.so_far().await;
        let told = |body: &String| body.contains("secret") || body.contains(r#""progress":2"#);
        assert!(!seen.iter().any(told), "{how:?} {seen:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_session_ends_with_the_token_that_opened_it() {
    let (harness, auto_server) = (Harness::new(), AutoServer::with_tools(&["slow"]));
    harness.apply([harness.played(settings("files"), &auto_server)]);
    let first = enforce(&harness, Some(grant("first"))).unwrap();
    let agent = harness.open_as(&first).await;
    let (endpoint, id) = (agent.session.endpoint().clone(), agent.session.id().to_owned());
    let second = Arc::new(grant("second"));
    // A request with the new token that comes before the change is in force everywhere.
    assert!(harness.gateway.session(&endpoint, &id, &second).is_none());
    assert!(harness.gateway.session(&endpoint, &id, &first).is_some());
    end(&harness, End::Rotated);
    assert!(harness.gateway.session(&endpoint, &id, &first).is_none());
}

const ASKS: &str = r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}}"#;
const CALL_ALL: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files__slow"}}"#;
const OPENING: &str = r#"{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"a","version":"0"}}}"#;

#[tokio::test(start_paused = true)]
async fn an_answer_reaches_no_server_that_is_frozen_or_out_of_reach() {
    for (frozen, out_of_reach) in [(false, false), (true, false), (false, true)] {
        let (harness, auto_server) = (Harness::new(), AutoServer::over(Kind::Http, &["slow"]));
        harness.apply([harness.played(settings("files"), &auto_server)]);
        let agent: Agent = harness.open_all(OPENING).await;
        let mut call = agent.ask(CALL_ALL);
        let sent = auto_server.waiting("tools/call").await;
        sent.say(ASKS);
        let question = call.message().await;
        let id = peek(&question, &["id"]).unwrap().unwrap();
        auto_server.received();
        let servers = out_of_reach.then(|| std::iter::once("other".to_owned()).collect());
        let policy = Some(policy(ALLOW));
        let local = Grant { label: "local".into(), policy, servers, ..Grant::default() };
        let mut access = Access::new(Some(Arc::new(local)), []);
        access.frozen = Frozen { all: frozen, ..Frozen::default() };
        harness.test_admission.admission.set_access(access);
        harness.gateway.access_changed();
        agent
            .tell(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"action":"accept"}}}}"#))
            .await;
        settle().await;
        let received = auto_server.received().join("\n");
        let is_free = !frozen && !out_of_reach;
        assert_eq!(received.contains("accept"), is_free, "{received}");
        assert!(received.contains(r#""id":"q""#), "the server is not left waiting: {received}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_agent_is_notified_of_a_resource_that_its_policy_hides() {
    const UPDATED: &str = r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"demo://a"}}"#;
    for settings in [settings("files"), shared("files")] {
        let (harness, auto_server) = (Harness::new(), AutoServer::with_tools(&["t"]));
        auto_server.set("resources/subscribe", "{}");
        harness.apply([harness.played(settings, &auto_server)]);
        let agent = harness.agent().await;
        let mut general = agent.listen();
        let follow = r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"demo://a"}}"#;
        agent.ask(follow).answer().await;
        for (rule, is_told) in
            [("allow: []", true), ("hide: ['demo://*']", false), ("deny: ['demo://a']", false)]
        {
            harness
                .test_admission
                .enforce(&format!("{ALLOW}resources: {{ default: allow, {rule} }}\n"));
            harness.gateway.access_changed();
            auto_server.say(UPDATED);
            let seen = general.so_far().await;
            assert_eq!(
                seen.iter().any(|body| body.contains("demo://a")),
                is_told,
                "{rule} {seen:?}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_id_of_a_task_that_the_server_has_used_again_opens_nothing() {
    let servers = [
        AutoServer::modern_over(Kind::Http, DISCOVERED, &["t"]),
        AutoServer::modern_over(Kind::Child, DISCOVERED, &["t"]),
    ];
    for (auto_server, settings) in servers.into_iter().zip([settings("files"), shared("files")]) {
        let harness = Harness::new();
        auto_server.set("tools/call", r#"{"resultType":"task","taskId":"1","status":"working"}"#);
        auto_server
            .set("tasks/get", r#"{"taskId":"1","status":"completed","result":{"content":[]}}"#);
        harness.apply([harness.played(settings, &auto_server)]);
        let of = |label: &str| {
            let policy = Some(policy(ALLOW));
            let grant = Arc::new(Grant { label: label.into(), policy, ..Grant::default() });
            let capabilities = r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
            Client { grant, capabilities, ..Client::of_files(&harness) }
        };
        let (before, after) = (of("before"), of("after"));
        let call = ask("tools/call", r#""name":"t""#);
        let about = |answer: &str, method: &str| {
            let shown = peek(answer, &["result", "taskId"]).unwrap().unwrap();
            ask(method, &format!(r#""taskId":{shown}"#))
        };
        let old = before.ask(&call).answer().await;
        before.ask(&about(&old, "tasks/get")).answer().await;
        settle().await;
        // The server has been restarted and numbers its tasks anew.
        let new = after.ask(&call).answer().await;
        auto_server.received();
        for method in ["tasks/get", "tasks/cancel"] {
            let refused = before.ask(&about(&old, method)).answer().await;
            assert!(refused.contains("no such task"), "{refused}");
        }
        assert!(auto_server.received().is_empty(), "nothing reaches the server");
        let own = after.ask(&about(&new, "tasks/get")).answer().await;
        assert!(own.contains("completed"), "{own}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_method_on_tasks_that_the_protocol_does_not_define_reaches_own_tasks_alone() {
    let (harness, auto_server) = (Harness::new(), AutoServer::with_tools(&["t"]));
    auto_server.set("tools/call", r#"{"task":{"taskId":"1","status":"working"}}"#);
    auto_server.set("tasks/delete", "{}");
    harness.apply([harness.played(settings("files"), &auto_server)]);
    let agent = harness.agent().await;
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","task":{}}}"#;
    let made = agent.ask(call).answer().await;
    let shown = peek(&made, &["result", "task", "taskId"]).unwrap().unwrap();
    let delete = |id: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":2,"method":"tasks/delete","params":{{"taskId":{id}}}}}"#)
    };
    auto_server.received();
    for id in ["\"1\"", "\"2\""] {
        let refused = agent.ask(&delete(id)).answer().await;
        assert!(refused.contains("no such task"), "{refused}");
    }
    assert!(auto_server.received().is_empty());
    agent.ask(&delete(shown)).answer().await;
    assert!(auto_server.received().join("\n").contains(r#""taskId":"1""#));
}
