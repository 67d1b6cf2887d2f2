//! Calls to sessions while something changes: takeover, lost sockets, freeze.

use std::sync::Arc;

use serde_json::json;
use toolgate_gateway::{Access, Frozen, Grant};

use crate::dial_in_program::{DialInBed, Received, call, card, result};
use crate::script::settle;
use crate::test_admission::policy;

fn freeze_all(harness: &DialInBed) {
    let policy = policy("version: \"1\"\ndefault: allow\n");
    let grant = Grant { label: "local".into(), policy: Some(policy), ..Grant::default() };
    let mut access = Access::new(Some(Arc::new(grant)), []);
    access.frozen = Frozen { all: true, ..Frozen::default() };
    harness.harness.test_admission.admission.set_access(access);
}

#[tokio::test(start_paused = true)]
async fn a_takeover_keeps_the_running_call() {
    let harness = DialInBed::new();
    let mut old = harness.register("u1", "find").await;
    let agent = harness.agent().await;
    let reply = call(&agent, "find", &json!({}));
    let (id, _) = old.called().await;
    let mut new = harness.dial();
    let answer = new.ask("session.register", &card("u1", "find")).await;
    assert_eq!(answer["result"]["reconnected"], true, "{answer}");
    assert_eq!(old.receive().await, Received::Closed(4001));
    assert_eq!(harness.events(), ["registered", "taken_over", "reconnected"]);
    settle().await;
    assert!(new.has_nothing(), "a call is never sent twice");
    new.answer(&id, "late");
    assert_eq!(result(reply).await["content"][0]["text"], "late");
}

#[tokio::test(start_paused = true)]
async fn a_session_that_does_not_return_ends_its_calls() {
    let harness = DialInBed::new();
    let mut program = harness.register("u1", "find").await;
    let (running, queued) = (harness.agent().await, harness.agent().await);
    let one = call(&running, "find", &json!({}));
    program.called().await;
    let two = call(&queued, "find", &json!({}));
    settle().await;
    program.lose();
    let (one, two) = (result(one).await, result(two).await);
    for (result, effect) in [(one, "unknown"), (two, "not_started")] {
        assert_eq!(result["_meta"]["error_code"], "session_gone", "{result}");
        assert_eq!(result["_meta"]["effect"], effect, "{result}");
    }
    assert_eq!(harness.events(), ["registered", "lost", "expired"]);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_returns_answers_its_call() {
    let harness = DialInBed::new();
    let mut program = harness.register("u1", "find").await;
    let agent = harness.agent().await;
    let reply = call(&agent, "find", &json!({}));
    let (id, _) = program.called().await;
    program.lose();
    settle().await;
    let back = harness.register("u1", "find").await;
    back.answer(&id, "back");
    assert_eq!(result(reply).await["content"][0]["text"], "back");
}

#[tokio::test(start_paused = true)]
async fn a_freeze_stops_calls_that_wait_for_their_turn() {
    let harness = DialInBed::new();
    let mut program = harness.register("u1", "find").await;
    let (first, second) = (harness.agent().await, harness.agent().await);
    let one = call(&first, "find", &json!({"n": 1}));
    let (id, _) = program.called().await;
    let two = call(&second, "find", &json!({"n": 2}));
    settle().await;
    freeze_all(&harness);
    program.answer(&id, "one");
    assert_eq!(program.receive().await, Received::NotWritten);
    assert_eq!(result(one).await["content"][0]["text"], "one", "it ran before the freeze");
    let refused = result(two).await;
    assert_eq!(refused["_meta"]["error_code"], "frozen", "{refused}");
    assert!(program.has_nothing());
}

#[tokio::test(start_paused = true)]
async fn an_answer_from_another_session_is_dropped() {
    let harness = DialInBed::new();
    let mut program = harness.register("u1", "find").await;
    let stranger = harness.register("u2", "other").await;
    let agent = harness.agent().await;
    let reply = call(&agent, "find", &json!({}));
    let (id, _) = program.called().await;
    stranger.answer(&id, "forged");
    program.answer(&id, "true");
    assert_eq!(result(reply).await["content"][0]["text"], "true");
    assert!(harness.events().contains(&"answer_dropped".to_owned()));
}
