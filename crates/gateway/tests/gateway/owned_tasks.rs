//! Tasks belong to the grant whose call created them, on every endpoint, and their calls stay in
//! flight until they end.

use std::sync::Arc;
use std::time::Duration;

use toolgate_audit::{Outcome, Row, RowKind};
use toolgate_gateway::{Endpoint, Grant};
use toolgate_json::{peek, text};

use crate::auto_server::AutoServer;
use crate::client::{Client, ask as ask_newer};
use crate::harness::{Agent, Harness, INITIALIZE, request, settings, shared};
use crate::script::settle;
use crate::sessionless_servers::DISCOVERED;
use crate::test_admission::policy;

const KEEPS: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"list":{}}},"serverInfo":{"name":"s","version":"1"}}"#;
const OPEN: &str = "version: \"1\"\ndefault: allow\n";
const CALL: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","task":{}}}"#;

fn part(answer: &str, path: &[&str]) -> String {
    let raw = peek(answer, path).unwrap().unwrap_or_else(|| panic!("{path:?} in {answer}"));
    text(raw).unwrap().into_owned()
}

fn grant(label: &str, document: &str) -> Arc<Grant> {
    let policy = Some(policy(document));
    Arc::new(Grant { label: label.into(), policy, ..Grant::default() })
}

async fn open(harness: &Harness, endpoint: &Endpoint, grant: &Arc<Grant>) -> Agent {
    let (session, welcome) =
        harness.gateway.open(endpoint, &request(INITIALIZE), grant).await.unwrap();
    Agent { session, welcome: String::from_utf8(welcome.to_vec()).unwrap() }
}

fn files() -> Endpoint {
    Endpoint::Server("files".to_owned())
}

fn about(method: &str, id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":2,"method":"{method}","params":{{"taskId":"{id}"}}}}"#)
}

const LIST: &str = r#"{"jsonrpc":"2.0","id":3,"method":"tasks/list"}"#;

/// The answer, or why the request was not even started.
async fn answer(agent: &Agent, raw: &str) -> String {
    match agent.try_call(raw) {
        Ok(call) => crate::reply::Reply::of(&agent.session, call).answer().await,
        Err(refusal) => format!("{} {}", refusal.code, refusal.message),
    }
}

fn keeper() -> AutoServer {
    let auto_server = AutoServer::welcoming(KEEPS, &["t"]);
    auto_server.set("tools/call", r#"{"task":{"taskId":"t1","status":"working"}}"#);
    auto_server.set("tasks/list", r#"{"tasks":[{"taskId":"t1","status":"working"},{"taskId":"t2","status":"working"}],"x":1.0}"#);
    auto_server.set("tasks/get", r#"{"taskId":"t1","status":"working"}"#);
    auto_server.set("tasks/cancel", r#"{"taskId":"t1","status":"cancelled"}"#);
    auto_server.set(
        "tasks/result",
        r#"{"content":[],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t1"}}}"#,
    );
    auto_server
}

#[tokio::test(start_paused = true)]
async fn no_grant_sees_a_task_of_another() {
    for settings in [shared("files"), settings("files")] {
        let (harness, auto_server) = (Harness::new(), keeper());
        harness.apply([harness.played(settings, &auto_server)]);
        let (mine, other) = (grant("mine", OPEN), grant("other", OPEN));
        let thief = open(&harness, &files(), &other).await;
        let owner = open(&harness, &files(), &mine).await;
        let (mut received, mut overheard) = (owner.listen(), thief.listen());
        let made = answer(&owner, CALL).await;
        let shown = part(&made, &["result", "task", "taskId"]);
        assert_ne!(shown, "t1");
        auto_server.received();
        for method in ["tasks/get", "tasks/result", "tasks/cancel", "tasks/update"] {
            for id in [shown.as_str(), "t1", ""] {
                let refused = answer(&thief, &about(method, id)).await;
                assert!(
                    refused.contains("-32602") && refused.contains("no such task"),
                    "{refused}"
                );
            }
        }
        // Nor is it touched as something that a call belongs to.
        for id in [shown.as_str(), "t1"] {
            let call = format!(
                r#"{{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{{"name":"t","_meta":{{"io.modelcontextprotocol\/related-task":{{"taskId":"{id}"}}}}}}}}"#
            );
            let refused = answer(&thief, &call).await;
            assert!(refused.contains("-32602"), "{refused}");
        }
        assert!(auto_server.received().is_empty(), "nothing of it reaches the server");
        let list = answer(&thief, LIST).await;
        assert!(list.ends_with(r#""result":{"tasks":[],"x":1.0}}"#), "{list}");
        let list = answer(&owner, LIST).await;
        let own = format!(
            r#""result":{{"tasks":[{{"taskId":"{shown}","status":"working"}}],"x":1.0}}}}"#
        );
        assert!(list.ends_with(&own), "{list}");
        // Another agent session of the same grant has it as well.
        let again = open(&harness, &files(), &mine).await;
        assert_eq!(
            part(&answer(&again, &about("tasks/get", &shown)).await, &["result", "taskId"]),
            shown
        );
        let result = answer(&owner, &about("tasks/result", &shown)).await;
        assert!(result.contains(&format!(r#"related-task":{{"taskId":"{shown}"}}"#)), "{result}");
        assert!(received.so_far().await.is_empty() && overheard.so_far().await.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn task_notifications_of_a_shared_server_reach_only_their_creator() {
    let (harness, auto_server) = (Harness::new(), keeper());
    harness.apply([harness.played(shared("files"), &auto_server)]);
    let owner = open(&harness, &files(), &grant("mine", OPEN)).await;
    let thief = open(&harness, &files(), &grant("other", OPEN)).await;
    let (mut received, mut overheard) = (owner.listen(), thief.listen());
    let shown = part(&answer(&owner, CALL).await, &["result", "task", "taskId"]);
    // The server gives the same id to the other while the task runs: it stays the first one's.
    let taken = answer(&thief, CALL).await;
    assert!(taken.contains("another task") && !taken.contains(&shown), "{taken}");
    for (method, params) in [
        ("tasks/status", r#"{"taskId":"t1","status":"working"}"#),
        ("tasks", r#"{"taskId":"t1","status":"working"}"#),
        (
            "message",
            r#"{"level":"info","data":"x","_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t1"}}}"#,
        ),
    ] {
        auto_server.say(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/{method}","params":{params}}}"#
        ));
        let told = received.so_far().await;
        assert!(
            told.len() == 1 && told[0].contains(&shown) && !told[0].contains("\"t1\""),
            "{told:?}"
        );
        auto_server.say(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/{method}","params":{}}}"#,
            params.replace("t1", "t9")
        ));
        assert!(received.so_far().await.is_empty() && overheard.so_far().await.is_empty());
    }
}

/// A policy that lets one call of `t` run at a time.
const ONE: &str = "version: \"1\"\ndefault: allow\ntools:\n  t: { concurrency: { max: 1 } }\n";

#[tokio::test(start_paused = true)]
async fn a_call_is_in_flight_until_its_task_ends() {
    let (harness, auto_server) = (Harness::new(), keeper());
    harness.apply([harness.played(settings("files"), &auto_server)]);
    let agent = open(&harness, &files(), &grant("mine", ONE)).await;
    let created = |answer: &str| peek(answer, &["result", "task"]).unwrap().is_some();
    let made = answer(&agent, CALL).await;
    let shown = part(&made, &["result", "task", "taskId"]);
    let refused = answer(&agent, CALL).await;
    assert!(!created(&refused) && refused.contains("isError"), "{refused}");
    // It still runs, and errors of other requests do not end it.
    answer(&agent, &about("tasks/get", &shown)).await;
    assert!(!created(&answer(&agent, CALL).await));
    // It ends by what is received of it, in each of these ways.
    auto_server.set("tasks/get", r#"{"taskId":"t1","status":"completed"}"#);
    answer(&agent, &about("tasks/get", &shown)).await;
    settle().await;
    assert!(created(&answer(&agent, CALL).await), "tasks/get");
    auto_server.say(r#"{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t1","status":"failed"}}"#);
    settle().await;
    assert!(created(&answer(&agent, CALL).await), "a notification");
    answer(&agent, &about("tasks/cancel", &shown)).await;
    settle().await;
    assert!(created(&answer(&agent, CALL).await), "tasks/cancel");
    answer(&agent, &about("tasks/result", &shown)).await;
    settle().await;
    assert!(created(&answer(&agent, CALL).await), "tasks/result");
    // Or because nothing is received of it any more.
    tokio::time::sleep(Duration::from_mins(61)).await;
    auto_server.set("tools/call", r#"{"task":{"taskId":"t1","status":"working","ttl":1}}"#);
    assert!(created(&answer(&agent, CALL).await), "no time was given");
    settle().await;
    assert!(!created(&answer(&agent, CALL).await), "a short time is no way around it");
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert!(created(&answer(&agent, CALL).await), "its time is up");
    auto_server.break_off();
    settle().await;
    assert!(created(&answer(&agent, CALL).await), "the process is gone");
    harness.gateway.drain(Duration::from_secs(1)).await;
    // Every call has its two rows; none is left open.
    let rows = harness.test_admission.rows_by(19).await;
    let calls = rows.iter().filter(|row| row.draft.kind == RowKind::Intent);
    let calls = calls.filter(|row| row.draft.method.as_deref() == Some("tools/call"));
    let outcome_of = |call: &Row| {
        let is_its = |row: &&Row| {
            row.draft.kind == RowKind::Outcome && row.draft.call_id == call.draft.call_id
        };
        let all: Vec<_> = rows.iter().filter(is_its).collect();
        assert_eq!(all.len(), 1, "two rows a call");
        all[0].draft.outcome.unwrap()
    };
    let outcomes: Vec<_> = calls.map(outcome_of).collect();
    assert_eq!(
        outcomes,
        [
            Outcome::Ok,
            Outcome::ToolError,
            Outcome::Cancelled,
            Outcome::Ok,
            Outcome::Unknown,
            Outcome::Unknown,
            Outcome::Unknown,
            Outcome::Unknown
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_task_yields_belongs_to_the_grant_before_it_sees_the_result() {
    const JOBS: &str = "version: \"1\"\ndefault: allow\ntools:\n  t: { yields: { job: result.session_id } }\n  close:\n    require: [{ conditions: [{ path: args.session_id, op: owned, value: job }] }]\n";
    let (harness, auto_server) = (Harness::new(), keeper());
    harness.apply([harness.played(shared("files"), &auto_server)]);
    let mine = open(&harness, &files(), &grant("mine", JOBS)).await;
    let other = open(&harness, &files(), &grant("other", JOBS)).await;
    let shown = part(&answer(&mine, CALL).await, &["result", "task", "taskId"]);
    auto_server.set("tasks/result", r#"{"content":[],"structuredContent":{"session_id":"s1"}}"#);
    let result = answer(&mine, &about("tasks/result", &shown)).await;
    assert!(result.contains("s1"), "{result}");
    auto_server.set("tools/call", r#"{"content":[]}"#);
    let close = r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"close","arguments":{"session_id":"s1"}}}"#;
    assert!(answer(&other, close).await.contains("POLICY DENIED"));
    assert!(!answer(&mine, close).await.contains("POLICY DENIED"));
}

#[tokio::test(start_paused = true)]
async fn tasks_of_the_extension_are_followed_by_their_own_grant_alone() {
    let auto_server = AutoServer::modern(DISCOVERED, &["t"]);
    auto_server.set("tools/call", r#"{"resultType":"task","taskId":"t1","status":"working"}"#);
    let harness = Harness::new();
    harness.apply([harness.played(settings("files"), &auto_server)]);
    let client = Client { grant: grant("mine", OPEN), ..Client::of_files(&harness) };
    let thief = Client { grant: grant("other", OPEN), ..client.clone() };
    let made = client.ask(&ask_newer("tools/call", r#""name":"t""#)).answer().await;
    let shown = part(&made, &["result", "taskId"]);
    assert_ne!(shown, "t1");
    let listen = |ids: &str| {
        ask_newer("subscriptions/listen", &format!(r#""notifications":{{"taskIds":[{ids}]}}"#))
    };
    for id in ["\"t1\"".to_owned(), format!("\"{shown}\",\"t1\"")] {
        assert!(client.refusal(&listen(&id)).await.contains("no such task"));
    }
    let own = format!("\"{shown}\"");
    assert!(thief.refusal(&listen(&own)).await.contains("no such task"));
    let mut reply = client.ask(&listen(&own));
    let received = loop {
        let sent = auto_server.waiting("subscriptions/listen").await;
        if sent.body.contains("taskIds") {
            break sent;
        }
        let agreed = r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{}}}"#;
        sent.say(agreed);
    };
    assert_eq!(received.part(&["params", "notifications", "taskIds"]), Some(r#"["t1"]"#));
    received.say(r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"taskIds":["t1"],"x":1}}}"#);
    let agreed = reply.message().await;
    assert!(
        agreed.contains(&format!(r#""taskIds":["{shown}"]"#)) && !agreed.contains("\"x\""),
        "{agreed}"
    );
    for id in ["t1", "t2"] {
        received.say(&format!(r#"{{"jsonrpc":"2.0","method":"notifications/tasks","params":{{"taskId":"{id}","status":"working"}}}}"#));
    }
    let told = reply.so_far().await;
    assert!(told.len() == 1 && told[0].contains(&shown), "{told:?}");
}
