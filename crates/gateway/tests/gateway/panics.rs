//! A panic inside a call ends that call: the agent gets an answer, the audit an outcome, and
//! everything else continues.

use std::sync::Arc;

use toolgate_audit::{Row, RowKind};
use toolgate_gateway::Endpoint;
use toolgate_json::peek;
use toolgate_session::SessionSettings;

use crate::auto_server::AutoServer;
use crate::client::{Client, ask_as};
use crate::dial_in_program::DialInBed;
use crate::faulty::{Fault, FaultyStore, Plan};
use crate::harness::{Agent, Counted, Harness, limits, settings};
use crate::reply::{Reply, Seen};
use crate::script::{Kind, Peer, settle};
use crate::test_admission::TestAdmission;

/// A tool of a session, and a built-in.
const TOOLS: [&str; 2] = ["find", "my_permissions"];

/// What of a message is not about its protocol.
fn params(tool: &str) -> String {
    format!(r#""name":"{tool}","arguments":{{}}"#)
}

fn call(id: u32, tool: &str) -> String {
    let params = params(tool);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{{params}}}}}"#)
}

/// The id and the error code of an answer.
fn told(answer: &str) -> (String, String) {
    let part = |path: &[&str]| peek(answer, path).unwrap().unwrap_or("-").to_owned();
    (part(&["id"]), part(&["error", "code"]))
}

fn is_internal_error(answer: &str, id: &str) {
    assert_eq!(told(answer), (id.to_owned(), "-32603".to_owned()), "{answer}");
    let effect = peek(answer, &["error", "data", "effect"]).unwrap();
    assert_eq!(effect, Some(r#""unknown""#), "{answer}");
}

/// The rows of calls of `tool`, in short.
fn rows_of(rows: &[Row], tool: &str) -> Vec<String> {
    let rows = rows.iter().map(|row| &row.draft).filter(|row| row.tool.as_deref() == Some(tool));
    let said = rows.map(|row| match (row.kind, row.outcome, row.effect) {
        (RowKind::Outcome, Some(outcome), Some(effect)) => format!("{outcome} {effect}"),
        (kind, ..) => kind.to_string(),
    });
    said.collect()
}

async fn is_recorded(test_admission: &TestAdmission, tool: &str) {
    let rows = test_admission.rows_by(2).await;
    assert_eq!(rows_of(&rows, tool), ["intent", "unknown unknown"]);
}

/// A gateway where a program with the tool `find` has dialled in. Its driver is about to panic, and
/// so is the store when a built-in looks at what was used.
async fn panicking() -> (Harness, Agent) {
    let (harness, plan) = with_faulty_store();
    let random = {
        let plan = plan.clone();
        move || {
            assert!(!plan.is(Fault::CalleePanics), "on purpose");
            Some(1)
        }
    };
    let dial_in = DialInBed::of(harness, SessionSettings::default(), random);
    let _program = dial_in.register("u", "find").await;
    let agent = dial_in.agent().await;
    plan.set(Some(Fault::CalleePanics));
    (dial_in.harness, agent)
}

fn with_faulty_store() -> (Harness, Plan) {
    let (ids, plan) = (Arc::new(Counted::new()), Plan::default());
    let test_admission = TestAdmission::through(ids.clone(), |store| {
        Arc::new(FaultyStore(store, plan.clone())) as _
    });
    (Harness::with(ids, test_admission, limits()), plan)
}

fn events(all: Vec<Seen>) -> Vec<String> {
    let body = |seen| match seen {
        Seen::Event(body) => body,
        other => panic!("no event but {other:?}"),
    };
    all.into_iter().map(body).collect()
}

#[tokio::test(start_paused = true)]
async fn a_call_alone_that_panics_is_answered_and_recorded() {
    for tool in TOOLS {
        let (harness, agent) = panicking().await;
        is_internal_error(&agent.ask(&call(7, tool)).answer().await, "7");
        is_recorded(&harness.test_admission, tool).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_in_a_batch_that_panics_is_answered_and_recorded() {
    for tool in TOOLS {
        let (harness, agent) = panicking().await;
        let ping = r#"{"jsonrpc":"2.0","id":8,"method":"ping"}"#;
        let batch = format!("[{},{ping}]", call(7, tool));
        let mut answers = events(agent.batch(&batch).await.unwrap().all().await);
        answers.sort_by_key(|answer| told(answer).0);
        let [first, second] = answers.as_slice() else { panic!("{answers:?}") };
        is_internal_error(first, "7");
        assert_eq!(second, r#"{"jsonrpc":"2.0","id":8,"result":{}}"#);
        is_recorded(&harness.test_admission, tool).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_detached_call_that_panics_is_answered_on_its_stream_and_recorded() {
    for tool in TOOLS {
        let (harness, agent) = panicking().await;
        let detached = agent.call(&call(7, tool));
        let mut attached = agent.session.stream(&detached);
        drop(detached);
        let reading = Reply::reading(|events| async move {
            while let toolgate_gateway::event_buffer::Next::Event(_, body) = attached.next().await {
                drop(events.send(Seen::Event(crate::reply::string(&body))));
            }
        });
        is_internal_error(&reading.answer().await, "7");
        is_recorded(&harness.test_admission, tool).await;
        assert!(harness.gateway.tasks().is_empty(), "a stop would wait for it");
    }
}

#[tokio::test(start_paused = true)]
async fn a_sessionless_call_that_panics_is_answered_and_recorded() {
    for tool in TOOLS {
        let (harness, _) = panicking().await;
        let client = Client::of(&harness, Endpoint::All);
        let reply = client.ask(&ask_as("\"a\"", "tools/call", &params(tool)));
        let all = reply.all().await;
        let [Seen::Body(answer, _) | Seen::Event(answer)] = all.as_slice() else {
            panic!("not one answer but {all:?}")
        };
        is_internal_error(answer, "\"a\"");
        is_recorded(&harness.test_admission, tool).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_waits_for_its_row_is_not_lost_to_a_panic() {
    let auto_server = AutoServer::with_tools(&["open"]);
    let harness = Harness::new();
    harness.test_admission.enforce(
        "version: \"1\"\ndefault: allow\ntools: { open: { yields: { job: result.id } } }\n",
    );
    harness.apply([harness.played(settings("files"), &auto_server)]);
    let agent = harness.agent().await;
    for is_batch in [false, true] {
        let reply = if is_batch {
            agent.batch(&format!("[{}]", call(7, "open"))).await.unwrap()
        } else {
            agent.ask(&call(7, "open"))
        };
        let sent = auto_server.waiting("tools/call").await;
        harness.test_admission.clock.set_broken(true);
        sent.answer(r#"{"content":[],"structuredContent":{"id":"7"}}"#);
        is_internal_error(&reply.answer().await, "7");
        harness.test_admission.clock.set_broken(false);
    }
    settle().await;
    let rows = harness.test_admission.rows_by(4).await;
    let rows = rows_of(&rows, "open");
    assert_eq!(rows.iter().filter(|row| *row == "unknown unknown").count(), 2, "{rows:?}");
}

#[tokio::test(start_paused = true)]
async fn a_parked_call_that_panics_is_answered_with_the_next_request() {
    let (harness, plan) = with_faulty_store();
    let mut peer = Peer::new(Kind::Child);
    harness.apply([harness.server(settings("files"), &peer)]);
    let client = Client { capabilities: r#"{"elicitation":{}}"#, ..Client::of_files(&harness) };
    let mut reply = client.ask(&ask_as("1", "tools/call", &params("bad")));
    let mut line = peer.line().await;
    line.next().await.say(
        r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"m"}}"#,
    );
    let asked = reply.message().await;
    let state = peek(&asked, &["result", "requestState"]).unwrap().unwrap();
    plan.set(Some(Fault::StorePanics));
    let answer = r#""inputResponses":{"q1":{"action":"accept"}}"#;
    let retry = format!(r#"{},{answer},"requestState":{state}"#, params("bad"));
    let answer = client.ask(&ask_as("2", "tools/call", &retry)).answer().await;
    let part = |path: &[&str]| peek(&answer, path).unwrap().unwrap_or("-");
    let told = (part(&["id"]), part(&["result", "_meta", "error_code"]));
    assert_eq!(told, ("2", r#""outcome_unknown""#), "{answer}");
    assert!(line.rest().await.iter().all(|body| !body.contains("accept")), "nothing continues");
    let rows = harness.test_admission.rows_by(2).await;
    assert_eq!(rows_of(&rows, "bad"), ["intent", "input_required unknown"]);
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_end_panics_gives_its_place_back_and_is_recorded() {
    let auto_server = AutoServer::with_tools(&["t"]);
    auto_server.set("tools/call", r#"{"task":{"taskId":"t1","status":"working"}}"#);
    let harness = Harness::new();
    harness
        .test_admission
        .enforce("version: \"1\"\ndefault: allow\ntools:\n  t: { concurrency: { max: 1 } }\n");
    harness.apply([harness.played(settings("files"), &auto_server)]);
    let agent = harness.agent().await;
    let create =
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","task":{}}}"#;
    for _ in 0..2 {
        let created = agent.ask(create).answer().await;
        assert!(peek(&created, &["result", "task"]).unwrap().is_some(), "{created}");
        harness.test_admission.clock.set_broken(true);
        auto_server.say(r#"{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t1","status":"failed"}}"#);
        settle().await;
        harness.test_admission.clock.set_broken(false);
    }
    let rows = harness.test_admission.rows_by(4).await;
    assert_eq!(rows_of(&rows, "t"), ["intent", "unknown unknown", "intent", "unknown unknown"]);
}
