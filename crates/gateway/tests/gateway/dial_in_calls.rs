//! Calls to sessions through the gateway: listed, decided, sent, answered, failed, recorded.

#![expect(clippy::indexing_slicing, reason = "reads JSON values that the test knows")]

use serde_json::{Value, json};
use toolgate_audit::{Effect, Outcome, Row, RowKind};

use crate::dial_in_program::{DialInBed, Received, call, result};
use crate::harness::Agent;
use crate::script::settle;

async fn listed(agent: &Agent) -> Vec<Value> {
    let request = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let answer: Value = serde_json::from_str(&agent.ask(request).answer().await).unwrap();
    answer["result"]["tools"].as_array().unwrap().clone()
}

fn code(result: &Value) -> &str {
    assert_eq!(result["isError"], true, "{result}");
    result["_meta"]["error_code"].as_str().unwrap()
}

/// The outcome row of the only call.
async fn outcome(harness: &DialInBed) -> Row {
    let rows = harness.harness.test_admission.rows_by(2).await;
    assert_eq!(rows.iter().filter(|row| row.draft.kind == RowKind::Intent).count(), 1, "{rows:?}");
    rows.into_iter().find(|row| row.draft.kind == RowKind::Outcome).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_registered_tool_is_listed_with_its_selector() {
    let harness = DialInBed::new();
    let agent = harness.agent().await;
    let before = listed(&agent).await;
    assert!(!before.iter().any(|tool| tool["name"] == "find"), "{before:?}");
    let _program = harness.register("u1", "find").await;
    let tools = listed(&agent).await;
    let tool = tools.iter().find(|tool| tool["name"] == "find").unwrap();
    let selector = &tool["inputSchema"]["properties"]["session_id"];
    assert_eq!(selector["enum"], json!(["u1"]), "{tool}");
    assert_eq!(harness.events(), ["registered"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_is_answered_and_recorded() {
    let harness = DialInBed::new();
    let mut program = harness.register("u1", "find").await;
    let agent = harness.agent().await;
    let reply = call(&agent, "find", &json!({"session_id": "u1", "q": 1}));
    let (id, arguments) = program.called().await;
    assert_eq!(arguments, json!({"q": 1}), "the selector is removed");
    program.answer(&id, "found");
    let result = result(reply).await;
    assert_eq!(result["content"][0]["text"], "found", "{result}");
    let row = outcome(&harness).await.draft;
    assert_eq!((row.outcome, row.effect), (Some(Outcome::Ok), Some(Effect::Done)));
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_program_is_a_tool_error() {
    let harness = DialInBed::new();
    let mut program = harness.register("u1", "find").await;
    let agent = harness.agent().await;
    let reply = call(&agent, "find", &json!({}));
    let (id, _) = program.called().await;
    let error = json!({"code": -7, "message": "no such document"});
    program.send(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
    let result = result(reply).await;
    assert_eq!(result["isError"], true, "{result}");
    assert!(result.to_string().contains("no such document"), "{result}");
    assert_eq!(outcome(&harness).await.draft.outcome, Some(Outcome::ToolError));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_denied_is_not_sent() {
    let harness = DialInBed::new();
    harness
        .harness
        .test_admission
        .enforce("version: \"1\"\ndefault: allow\ntools:\n  find: { action: deny }\n");
    let mut program = harness.register("u1", "find").await;
    let agent = harness.agent().await;
    assert_eq!(code(&result(call(&agent, "find", &json!({}))).await), "policy_denied");
    assert!(program.has_nothing());
}

#[tokio::test(start_paused = true)]
async fn a_call_without_an_answer_times_out_and_is_cancelled() {
    let harness = DialInBed::new();
    let mut program = harness.register("u1", "find").await;
    let agent = harness.agent().await;
    let reply = call(&agent, "find", &json!({}));
    let (id, _) = program.called().await;
    // The program answers pings, and nothing else.
    let cancelled = loop {
        match program.receive().await {
            Received::Frame(frame) if frame["method"] == "tool.cancel" => break frame,
            Received::Frame(_) => {}
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(cancelled["params"]["id"], id.as_str(), "{cancelled}");
    let result = result(reply).await;
    assert_eq!(code(&result), "upstream_timeout");
    assert_eq!(result["_meta"]["effect"], "unknown", "{result}");
    let row = outcome(&harness).await.draft;
    assert_eq!((row.outcome, row.effect), (Some(Outcome::Timeout), Some(Effect::Unknown)));
}

#[tokio::test(start_paused = true)]
async fn calls_of_one_session_wait_for_their_turn() {
    let harness = DialInBed::new();
    let mut program = harness.register("u1", "find").await;
    let (first, second) = (harness.agent().await, harness.agent().await);
    let one = call(&first, "find", &json!({"n": 1}));
    let (one_id, _) = program.called().await;
    let two = call(&second, "find", &json!({"n": 2}));
    settle().await;
    assert!(program.has_nothing(), "the second waits");
    program.answer(&one_id, "one");
    let (two_id, arguments) = program.called().await;
    assert_eq!(arguments, json!({"n": 2}));
    program.answer(&two_id, "two");
    assert_eq!(result(one).await["content"][0]["text"], "one");
    assert_eq!(result(two).await["content"][0]["text"], "two");
}
