//! Something goes wrong at every step of a call: with an error, with a panic, by hanging.
//!
//! Whatever it is: nothing is sent without a written intent, every intent has its outcome, the
//! agent hears of it, and a neighbour whose call runs meanwhile notices nothing.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use toolgate_audit::RowKind;
use toolgate_gateway::{Server, ServerMetrics, ServerSettings};
use toolgate_json::peek;
use toolgate_store::{Engine, EngineSettings, Store};

use crate::auto_server::AutoServer;
use crate::faulty::{Fault, FaultyBackend, FaultyConnector, FaultyIds, FaultyStore, Plan};
use crate::harness::{Counted, Harness, INITIALIZE, limits, settings};
use crate::script::settle;
use crate::test_admission::TestAdmission;

/// What must come of a fault: what the agent hears, whether the server received of the call, and the
/// rows of it.
struct Case {
    fault: Fault,
    told: &'static str,
    sent: bool,
    rows: &'static str,
}

const CASES: [Case; 18] = [
    Case { fault: Fault::NoId, told: "-32603", sent: false, rows: "" },
    // The edge contains it (`agents::contained`).
    Case { fault: Fault::IdPanics, told: "panicked", sent: false, rows: "" },
    Case { fault: Fault::DecisionPanics, told: "not_audited", sent: false, rows: "" },
    Case { fault: Fault::NotWritten, told: "not_audited", sent: false, rows: "" },
    Case { fault: Fault::StorePanics, told: "upstream_unavailable", sent: false, rows: "" },
    Case { fault: Fault::StorePanicsLater, told: "upstream_unavailable", sent: false, rows: "" },
    Case {
        fault: Fault::StoreHangs,
        told: "not_audited",
        sent: false,
        rows: "intent, outcome unavailable not_started",
    },
    Case {
        fault: Fault::AnswerLost,
        told: "not_audited",
        sent: false,
        rows: "intent, outcome unknown unknown",
    },
    Case {
        fault: Fault::NoConnection,
        told: "upstream_unavailable",
        sent: false,
        rows: "intent, outcome unavailable not_started",
    },
    Case {
        fault: Fault::ConnectPanics,
        told: "upstream_unavailable",
        sent: false,
        rows: "intent, outcome unknown unknown",
    },
    Case {
        fault: Fault::ConnectHangs,
        told: "upstream_unavailable",
        sent: false,
        rows: "intent, outcome unavailable not_started",
    },
    Case {
        fault: Fault::NotSent,
        told: "upstream_unavailable",
        sent: false,
        rows: "intent, outcome unavailable not_started",
    },
    Case {
        fault: Fault::Lost,
        told: "outcome_unknown",
        sent: true,
        rows: "intent, outcome unknown unknown",
    },
    Case {
        fault: Fault::SendPanics,
        told: "outcome_unknown",
        sent: false,
        rows: "intent, outcome unknown unknown",
    },
    Case {
        fault: Fault::SendHangs,
        told: "upstream_timeout",
        sent: false,
        rows: "intent, outcome timeout unknown",
    },
    Case {
        fault: Fault::NotRecorded,
        told: "answered",
        sent: true,
        rows: "intent, outcome ok done",
    },
    Case {
        fault: Fault::RecordPanics,
        told: "answered",
        sent: true,
        rows: "intent, outcome ok done",
    },
    Case {
        fault: Fault::RecordHangs,
        told: "answered",
        sent: true,
        rows: "intent, outcome ok done",
    },
];

/// The agent may have the answer before its outcome is written, or only then: so it is where the
/// result gives the agent something to own.
const POLICIES: [&str; 2] = [
    "version: \"1\"\ndefault: allow\n",
    "version: \"1\"\ndefault: allow\ntools: { bad: { yields: { job: result.id } } }\n",
];

/// What the tool answers.
const RESULT: &str = r#"{"content":[],"structuredContent":{"id":"7"}}"#;

fn call(name: &str, arguments: &str) -> String {
    let params = format!(r#"{{"name":"{name}","arguments":{arguments}}}"#);
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#)
}

/// The code that an answer carries.
fn told(answer: &str) -> String {
    let part = |path: &[&str]| peek(answer, path).unwrap().map(|text| text.replace('"', ""));
    let of_result = part(&["result", "_meta", "error_code"]);
    of_result.or_else(|| part(&["error", "code"])).unwrap_or_else(|| "answered".to_owned())
}

#[tokio::test(start_paused = true)]
async fn whatever_goes_wrong_nothing_is_sent_unwritten_and_neighbours_notice_nothing() {
    let mut complaints = Vec::new();
    for case in CASES {
        for policy in POLICIES {
            complaints.extend(check(&case, policy).await);
        }
    }
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

/// Everything that is not as it must be.
async fn check(case: &Case, policy: &str) -> Vec<String> {
    let fault = case.fault;
    let mut complaints = Vec::new();
    let mut expect = |what: &str, found: &str, expected: &str| {
        if found != expected {
            complaints
                .push(format!("{fault:?}: {what}: `{found}` instead of `{expected}`, {policy}"));
        }
    };
    let plan = Plan::default();
    let ids = Arc::new(FaultyIds(Arc::new(Counted::new()), plan.clone()));
    let between =
        |store: Arc<dyn Store>| -> Arc<dyn Store> { Arc::new(FaultyStore(store, plan.clone())) };
    let start = |memory, now| {
        let backend = FaultyBackend(memory, plan.clone());
        // Who hangs must not hang here.
        let start = if fault == Fault::RecordHangs { Engine::start } else { Engine::inline };
        start(backend, EngineSettings::default(), now).unwrap()
    };
    let test_admission = TestAdmission::over(ids.clone(), start, between);
    test_admission.enforce(policy);
    let harness = Harness::with(ids, test_admission, limits());
    let (files, other) = (AutoServer::with_tools(&["bad"]), AutoServer::with_tools(&["good"]));
    if fault != Fault::Lost {
        files.set("tools/call", RESULT);
    }
    let connector = Arc::new(FaultyConnector {
        inner: files.connector(),
        plan: plan.clone(),
        memory: harness.test_admission.memory.clone(),
    });
    let metrics: ServerMetrics = harness.metrics().of_server("files");
    let faulty = Arc::new(Server::new(settings("files"), connector, metrics));
    // The neighbour's call waits for as long as the fault lasts.
    let patient = ServerSettings { timeout: Duration::from_hours(1), ..settings("other") };
    harness.apply([faulty, harness.played(patient, &other)]);

    let agent = harness.open("files", INITIALIZE).await.unwrap();
    let neighbour = harness.open("other", INITIALIZE).await.unwrap();
    let beside = neighbour.ask(&call("good", "{}"));
    let waiting = other.waiting("tools/call").await;
    if matches!(fault, Fault::NoConnection | Fault::ConnectPanics | Fault::ConnectHangs) {
        files.break_off();
        settle().await;
    }
    files.received();
    plan.set(Some(fault));
    let answer = match catch_unwind(AssertUnwindSafe(|| agent.try_call(&call("bad", "{}")))) {
        Ok(Ok(call)) => crate::reply::Reply::of(&agent.session, call).answer().await,
        Ok(Err(refusal)) => format!(r#"{{"error":{{"code":{}}}}}"#, refusal.code),
        Err(_) => r#"{"error":{"code":"panicked"}}"#.to_owned(),
    };
    expect("the agent received", &told(&answer), case.told);
    plan.set(None);
    harness.test_admission.memory.set_broken(false);

    waiting.answer(r#"{"content":[]}"#);
    expect("the neighbour received", &told(&beside.answer().await), "answered");
    // What was broken works again for the next call.
    files.set("tools/call", RESULT);
    let again = agent.ask(&call("bad", r#"{"again":1}"#)).answer().await;
    expect("the next call was", &told(&again), "answered");

    let received = files.received();
    let sent = received.iter().filter(|body| body.contains("tools/call")).count();
    expect("sent", &sent.to_string(), &(usize::from(case.sent) + 1).to_string());
    let of_bad = if case.rows.is_empty() { 0 } else { 2 };
    let rows = harness.test_admission.rows_by(of_bad + 4).await;
    expect("rows", &rows.len().to_string(), &(of_bad + 4).to_string());
    let again = rows.iter().find(|row| row.draft.argument_keys.as_deref() == Some(r#"["again"]"#));
    let again = again.and_then(|row| row.draft.call_id);
    let of_fault = rows
        .iter()
        .filter(|row| row.draft.tool.as_deref() == Some("bad") && row.draft.call_id != again);
    let said: Vec<String> = of_fault
        .map(|row| {
            let draft = &row.draft;
            match (draft.kind, draft.outcome, draft.effect) {
                (RowKind::Outcome, Some(outcome), Some(effect)) => {
                    format!("outcome {outcome} {effect}")
                }
                (kind, ..) => kind.to_string(),
            }
        })
        .collect();
    expect("rows", &said.join(", "), case.rows);
    complaints
}
