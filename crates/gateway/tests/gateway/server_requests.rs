//! Requests of servers: the right agent receives them under the gateway's id, and its response has the
//! server's id.

use std::time::Duration;

use tokio::time::Instant;
use toolgate_gateway::channel::SendError;
use toolgate_json::peek;

use crate::harness::{Agent, Harness};
use crate::reply::{Reply, Seen};
use crate::script::{Kind, Line, settle};

const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#;
const ASKS: &str = r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}}"#;

fn id_of(raw: &str) -> &str {
    peek(raw, &["id"]).unwrap().expect("a request")
}

fn result(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"n":1.0}} }}"#)
}

#[tokio::test(start_paused = true)]
async fn every_question_reaches_the_agent_and_its_answer_the_server() {
    let methods =
        ["sampling/createMessage", "elicitation/create", "roots/list", "ping", "x/unknown"];
    for kind in [Kind::Child, Kind::Http] {
        let (harness, mut peer) = Harness::one(kind);
        let (agent, mut line) = harness.agent_on(&mut peer).await;
        let mut reply = agent.ask(CALL);
        let sent = line.next().await;
        for method in methods {
            // The server may number as it likes, even as we do.
            for id in [sent.id(), "0", "\"q\"", "1.0", r#""\u0061""#] {
                let asked = |id: &str| {
                    format!(r#"{{"method":"{method}","id": {id},"x":[1e1],"jsonrpc":"2.0"}}"#)
                };
                sent.say(&asked(id));
                let question = reply.message().await;
                let ours = id_of(&question);
                assert!(ours.parse::<u64>().is_ok());
                assert_eq!(question, asked(ours));
                agent.tell(&result(ours)).await;
                assert_eq!(line.next().await.body, result(id), "{kind:?}");
                agent.tell(&result(ours)).await;
                assert!(line.rest().await.is_empty(), "answered twice, passed on once");
            }
        }
        sent.answer("1");
        let answer = r#"{"jsonrpc":"2.0","id":1,"result":1}"#;
        assert_eq!(reply.all().await, [Seen::Event(answer.to_owned())]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_agents_refusal_passes_too() {
    let (harness, mut peer) = Harness::one(Kind::Child);
    let (agent, mut line) = harness.agent_on(&mut peer).await;
    let mut general = agent.listen();
    line.say(ASKS);
    let question = general.message().await;
    let error = r#""error":{"code":-1,"message":"user rejected","data":1.50}}"#;
    agent.tell(&format!(r#"{{"jsonrpc":"2.0","id":{},{error}"#, id_of(&question))).await;
    assert_eq!(line.next().await.body, format!(r#"{{"jsonrpc":"2.0","id":"q",{error}"#));
}

#[tokio::test(start_paused = true)]
async fn a_question_outside_of_any_request_comes_on_the_general_stream() {
    let (harness, mut peer) = Harness::one(Kind::Http);
    let (agent, mut line) = harness.agent_on(&mut peer).await;
    let mut general = agent.listen();
    line.say(ASKS);
    let question = general.message().await;
    agent.tell(&result(id_of(&question))).await;
    assert_eq!(line.next().await.body, result("\"q\""));
}

#[tokio::test(start_paused = true)]
async fn a_question_comes_with_the_request_that_it_belongs_to() {
    let (harness, mut peer) = Harness::one(Kind::Http);
    let (agent, mut line) = harness.agent_on(&mut peer).await;
    let mut first = agent.ask(CALL);
    let of_first = line.next().await;
    let mut second = agent.ask(CALL);
    let of_second = line.next().await;
    of_first.say(ASKS);
    assert!(first.message().await.contains("elicitation/create"));
    assert!(second.so_far().await.is_empty());
    // On the server's own stream, what it belongs to is anybody's guess: the newest.
    line.say(ASKS);
    assert!(second.message().await.contains("elicitation/create"));
    assert!(first.so_far().await.is_empty());
    drop((of_first, of_second));
}

#[tokio::test(start_paused = true)]
async fn agents_that_are_asked_under_equal_ids_never_answer_for_each_other() {
    for kind in [Kind::Child, Kind::Http] {
        let (harness, mut peer) = Harness::one(kind);
        let (one, mut line_one) = harness.agent_on(&mut peer).await;
        let (two, mut line_two) = harness.agent_on(&mut peer).await;
        let (mut general_one, mut general_two) = (one.listen(), two.listen());
        for line in [&line_one, &line_two] {
            line.say(r#"{"jsonrpc":"2.0","id":5,"method":"roots/list"}"#);
        }
        let ours_one = general_one.message().await;
        let ours_two = general_two.message().await;
        assert_eq!(id_of(&ours_one), id_of(&ours_two), "equal, so that a mix-up would show");
        two.tell(r#"{"jsonrpc":"2.0","id":1,"result":"two"}"#).await;
        assert_eq!(line_two.next().await.body, r#"{"jsonrpc":"2.0","id":5,"result":"two"}"#);
        assert!(line_one.rest().await.is_empty());
        one.tell(r#"{"jsonrpc":"2.0","id":1,"result":"one"}"#).await;
        assert_eq!(line_one.next().await.body, r#"{"jsonrpc":"2.0","id":5,"result":"one"}"#);
        assert!(line_two.rest().await.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_to_nothing_is_swallowed() {
    let (harness, mut peer) = Harness::one(Kind::Child);
    let (agent, mut line) = harness.agent_on(&mut peer).await;
    for id in ["1", "0", "\"q\"", "1.0", "99999999999999999999999"] {
        agent.tell(&result(id)).await;
    }
    assert!(line.rest().await.is_empty());
}

/// An agent with one call running, which the server has asked something.
async fn asked(
    kind: Kind,
    question: &str,
) -> (Harness, Agent, Line, crate::script::Sent, Reply, String) {
    let (harness, mut peer) = Harness::one(kind);
    let (agent, mut line) = harness.agent_on(&mut peer).await;
    let mut reply = agent.ask(CALL);
    let sent = line.next().await;
    sent.say(question);
    let question = reply.message().await;
    (harness, agent, line, sent, reply, question)
}

#[tokio::test(start_paused = true)]
async fn the_agents_progress_reaches_the_server_under_its_own_token() {
    for token in ["\"t\"", "3", "3.0"] {
        let question = format!(
            r#"{{"jsonrpc":"2.0","id":9,"method":"sampling/createMessage","params":{{"_meta":{{"progressToken":{token}}}}}}}"#
        );
        let (_bed, agent, mut line, _sent, _reply, question) = asked(Kind::Child, &question).await;
        let ours = peek(&question, &["params", "_meta", "progressToken"]).unwrap().unwrap();
        let progress = |token: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":1.0}}}}"#
            )
        };
        agent.tell(&progress(ours)).await;
        assert_eq!(line.next().await.body, progress(token));
        agent.tell(&progress("77")).await;
        agent.tell(&progress(&format!("\"{ours}\""))).await;
        agent.tell(&result(id_of(&question))).await;
        agent.tell(&progress(ours)).await;
        assert_eq!(line.rest().await, [result("9")], "no progress of what is not asked");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_can_withdraw_its_question() {
    for kind in [Kind::Child, Kind::Http] {
        let (_bed, agent, mut line, sent, mut reply, question) = asked(kind, ASKS).await;
        let ours = id_of(&question);
        let cancel = |id: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"reason":"\u0061","requestId":{id}}}}}"#
            )
        };
        sent.say(&cancel("\"other\""));
        sent.say(&cancel("\"q\""));
        assert_eq!(reply.message().await, cancel(ours));
        agent.tell(&result(ours)).await;
        assert!(line.rest().await.is_empty(), "an answer to what was withdrawn goes nowhere");
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_loss_late_answers_are_swallowed() {
    for kind in [Kind::Child, Kind::Http] {
        let (harness, mut peer) = Harness::one(kind);
        let (agent, line) = harness.agent_on(&mut peer).await;
        let mut general = agent.listen();
        line.say(ASKS);
        let question = general.message().await;
        line.break_off("it crashed");
        let reply = agent.ask(CALL);
        let mut again = peer.line().await;
        let sent = again.next().await;
        agent.tell(&result(id_of(&question))).await;
        assert!(again.rest().await.is_empty(), "the new channel never asked");
        sent.answer("1");
        reply.answer().await;
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_forgotten_session_late_answers_are_swallowed() {
    let (harness, mut peer) = Harness::one(Kind::Http);
    let (agent, mut line) = harness.agent_on(&mut peer).await;
    let mut general = agent.listen();
    line.say(ASKS);
    let question = general.message().await;
    let forgotten = agent.ask(CALL);
    line.next().await.refuse(SendError::SessionLost);
    forgotten.answer().await;
    let mut again = peer.line().await;
    let reply = agent.ask(CALL);
    let sent = again.next().await;
    agent.tell(&result(id_of(&question))).await;
    assert!(again.rest().await.is_empty(), "the new session never asked");
    // What nobody can answer any more does not stop the clock either.
    let before = Instant::now();
    assert!(reply.answer().await.contains("upstream_timeout"));
    assert!(before.elapsed() <= Duration::from_mins(1));
    drop(sent);
}

#[tokio::test(start_paused = true)]
async fn an_answer_never_reaches_a_session_that_did_not_ask() {
    let (harness, mut peer) = Harness::one(Kind::Http);
    let (agent, mut line) = harness.agent_on(&mut peer).await;
    let mut old = agent.ask(CALL);
    let of_old = line.next().await;
    let forgotten = agent.ask(CALL);
    line.next().await.refuse(SendError::SessionLost);
    forgotten.answer().await;
    let mut again = peer.line().await;
    let new = agent.ask(CALL);
    let of_new = again.next().await;
    // The exchange of the old session still runs, and asks.
    of_old.say(ASKS);
    let question = old.message().await;
    agent.tell(&result(id_of(&question))).await;
    assert!(again.rest().await.is_empty());
    of_new.answer("1");
    new.answer().await;
}

#[tokio::test(start_paused = true)]
async fn the_clock_waits_while_the_agent_is_asked() {
    let (_bed, agent, mut line, sent, mut reply, question) = asked(Kind::Child, ASKS).await;
    tokio::time::advance(Duration::from_mins(10)).await;
    settle().await;
    assert!(reply.so_far().await.is_empty(), "a person may be typing");
    agent.tell(&result(id_of(&question))).await;
    assert_eq!(line.next().await.body, result("\"q\""));
    assert!(reply.message().await.contains("upstream_timeout"), "nobody is asked any more");
    let cancel = line.next().await;
    assert_eq!(cancel.method(), "notifications/cancelled");
    assert_eq!(cancel.part(&["params", "requestId"]), Some(sent.id()));
}

#[tokio::test(start_paused = true)]
async fn the_clock_does_not_wait_for_a_question_that_was_withdrawn() {
    let (_bed, _agent, _line, sent, mut reply, _) = asked(Kind::Child, ASKS).await;
    sent.say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q"}}"#);
    assert!(reply.message().await.contains("cancelled"));
    let before = Instant::now();
    assert!(reply.message().await.contains("upstream_timeout"));
    assert!(before.elapsed() <= Duration::from_mins(1));
}

#[tokio::test(start_paused = true)]
async fn unanswered_questions_are_bounded() {
    let (harness, mut peer) = Harness::one(Kind::Child);
    let (_agent, mut line) = harness.agent_on(&mut peer).await;
    for number in 0..5_000 {
        line.say(&format!(r#"{{"jsonrpc":"2.0","id":{number},"method":"ping"}}"#));
    }
    let refused = line.rest().await;
    assert_eq!(refused.len(), 4_000, "all but the first thousand");
    let first = refused.first().unwrap();
    assert!(first.starts_with(r#"{"jsonrpc":"2.0","id":1000,"error":"#), "{first}");
}
