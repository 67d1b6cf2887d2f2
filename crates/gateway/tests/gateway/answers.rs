//! Each answer reaches the request that waits for it, once.

use toolgate_gateway::channel::{Progress, SendError};

use crate::harness::{Harness, shared};
use crate::reply::Seen;
use crate::script::{Kind, Peer, refusal};

const ASK: &str = r#"{"jsonrpc":"2.0","id":7,"method":"m"}"#;
const CALL: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t"}}"#;

#[tokio::test(start_paused = true)]
async fn an_answer_without_a_pending_request_is_dropped() {
    let (harness, mut peer) = Harness::one(Kind::Child);
    let (agent, mut line) = harness.agent_on(&mut peer).await;
    let mut general = agent.listen();
    let reply = agent.ask(ASK);
    let sent = line.next().await;
    let number = sent.id();
    let strays = ["999", "\"1\"", "-1", "1.0", "0", "18446744073709551616"];
    for id in strays.into_iter().chain([format!("\"{number}\"").as_str(), &format!("{number}.0")]) {
        line.say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"stray"}}"#));
        line.say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":1,"message":"s"}}}}"#));
    }
    line.say(r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"whose?"}}"#);
    line.say(r#"{"jsonrpc":"2.0","error":{"code":1,"message":"whose?"}}"#);
    line.say("no JSON at all");
    line.say(r#"{"jsonrpc":"1.0"}"#);
    sent.answer("\"right\"");
    sent.answer("\"again\"");
    assert_eq!(reply.answer().await, r#"{"jsonrpc":"2.0","id":7,"result":"right"}"#);
    assert!(general.so_far().await.is_empty());
    assert_eq!(harness.count("dropped_messages_total{server=\"files\"}"), 16 + 4 + 1);
    assert_eq!(harness.count("upstream_requests_total{server=\"files\",result=\"answered\"}"), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_inside_the_wrong_exchange_reaches_the_right_agent() {
    let (harness, mut peer) = Harness::of(shared("files"), Peer::new(Kind::Http));
    let (one, two) = (harness.agent().await, harness.agent().await);
    let mut line = peer.line().await;
    let first = one.ask(ASK);
    let of_one = line.next().await;
    let second = two.ask(ASK);
    let of_two = line.next().await;

    let wrong = format!(r#"{{"jsonrpc":"2.0","id":{},"result":"two"}}"#, of_two.id());
    assert_eq!(of_one.say(&wrong), Progress::Expecting, "the exchange has not had its own");
    assert_eq!(second.answer().await, r#"{"jsonrpc":"2.0","id":7,"result":"two"}"#);
    of_one.answer("\"one\"");
    assert_eq!(first.answer().await, r#"{"jsonrpc":"2.0","id":7,"result":"one"}"#);
}

#[tokio::test(start_paused = true)]
async fn an_error_that_names_no_request_answers_its_exchange() {
    for id in ["", r#""id":null,"#, r#""id":"server-error","#] {
        let (harness, mut peer) = Harness::one(Kind::Http);
        let (agent, mut line) = harness.agent_on(&mut peer).await;
        let other = agent.ask(r#"{"jsonrpc":"2.0","id":8,"method":"m"}"#);
        let of_other = line.next().await;
        let reply = agent.ask(ASK);
        let sent = line.next().await;
        let progress =
            sent.say(&format!(r#"{{"jsonrpc":"2.0",{id}"error":{{"code":-32600,"x":1.0}}}}"#));
        assert_eq!(progress, Progress::Answered);
        let expected = r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"x":1.0}}"#;
        assert_eq!(reply.answer().await, expected);
        of_other.answer("1");
        assert_eq!(other.answer().await, r#"{"jsonrpc":"2.0","id":8,"result":1}"#);
    }
}

#[tokio::test(start_paused = true)]
async fn every_answer_of_a_batch_reaches_its_request() {
    let (harness, mut peer) = Harness::one(Kind::Child);
    let (agent, mut line) = harness.agent_on(&mut peer).await;
    let (first, second) = (agent.ask(ASK), agent.ask(r#"{"jsonrpc":"2.0","id":8,"method":"m"}"#));
    let (a, b) = (line.next().await, line.next().await);
    line.say(&format!(
        r#" [ {{"jsonrpc":"2.0","id":{},"result": 8.0}} , 5, {{"jsonrpc":"2.0","result":7,"id":{}}} ] "#,
        b.id(),
        a.id()
    ));
    assert_eq!(first.answer().await, r#"{"jsonrpc":"2.0","result":7,"id":7}"#);
    assert_eq!(second.answer().await, r#"{"jsonrpc":"2.0","id":8,"result": 8.0}"#);
}

/// What a request and a tool call come to when the server refuses with this status and body.
async fn refused(status: u16, body: &'static str) -> (Vec<Seen>, String) {
    let (harness, mut peer) = Harness::one(Kind::Http);
    let (agent, mut line) = harness.agent_on(&mut peer).await;
    let mut seen = Vec::new();
    for raw in [ASK, CALL] {
        let reply = agent.ask(raw);
        let error = refusal(status, body);
        line.next().await.refuse(error);
        seen.push(reply.all().await);
    }
    let call = match seen.pop().unwrap().as_slice() {
        [Seen::Body(body, _)] => body.clone(),
        other => panic!("{other:?}"),
    };
    (seen.pop().unwrap(), call)
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_is_an_error_is_the_answer() {
    let body = r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32602,"message":"no"}}"#;
    let expected = r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"no"}}"#;
    let (request, call) = refused(400, body).await;
    assert_eq!(request, [Seen::Body(expected.to_owned(), 400)]);
    assert_eq!(call, expected);
    let (request, _) = refused(422, body).await;
    assert_eq!(request, [Seen::Body(expected.to_owned(), 200)]);
}

#[tokio::test(start_paused = true)]
async fn any_other_refusal_states_what_happened_and_whether_it_ran() {
    let table = [
        (401, "", "does not accept our credentials", "unknown", "outcome_unknown"),
        (403, "{}", "does not accept our credentials", "unknown", "outcome_unknown"),
        (405, "", "no MCP endpoint", "unknown", "outcome_unknown"),
        (302, "", "redirect", "unknown", "outcome_unknown"),
        (400, "<html>", "HTTP 400", "unknown", "outcome_unknown"),
        (500, "oops", "HTTP 500", "unknown", "outcome_unknown"),
        (503, "", "HTTP 503", "unknown", "outcome_unknown"),
    ];
    for (status, body, what, effect, code) in table {
        let (request, call) = refused(status, body).await;
        let [Seen::Body(request, 200)] = request.as_slice() else { panic!("{request:?}") };
        for answer in [request, &call] {
            assert!(answer.contains(what), "{status}: {answer}");
            assert!(answer.contains(&format!(r#""effect":"{effect}""#)), "{status}: {answer}");
            assert!(answer.contains(&format!(r#""error_code":"{code}""#)), "{status}: {answer}");
            assert!(answer.contains(r#""id":7"#), "{status}: {answer}");
        }
        assert!(request.contains(r#""error":{"code":-32603"#), "{request}");
        assert!(call.contains(r#""isError":true"#), "{call}");
    }
}

#[tokio::test(start_paused = true)]
async fn unsent_and_lost_requests_are_distinguished() {
    let table = [
        (SendError::NotSent("a full queue".to_owned()), "a full queue", "not_started"),
        (SendError::Lost("it broke".to_owned()), "it broke", "unknown"),
    ];
    for kind in [Kind::Child, Kind::Http] {
        for (error, what, effect) in table.clone() {
            let (harness, mut peer) = Harness::one(kind);
            let (agent, mut line) = harness.agent_on(&mut peer).await;
            line.refuse_next(error);
            let answer = agent.ask(CALL).answer().await;
            assert!(answer.contains(what) && answer.contains(effect), "{answer}");
            let next = agent.ask(ASK);
            line.next().await.answer("1");
            assert_eq!(next.answer().await, r#"{"jsonrpc":"2.0","id":7,"result":1}"#);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_pause_of_the_server_ends_the_agents_connection_not_the_call() {
    let (harness, mut peer) = Harness::one(Kind::Http);
    let (agent, mut line) = harness.agent_on(&mut peer).await;
    let mut reply = agent.ask(ASK);
    let sent = line.next().await;
    let retry = Some(std::time::Duration::from_secs(3));
    sent.pause(retry);
    assert_eq!(reply.next().await, Some(Seen::Pause(retry)));
    sent.answer("1");
    let answer = r#"{"jsonrpc":"2.0","id":7,"result":1}"#.to_owned();
    assert_eq!(reply.all().await, [Seen::Event(answer)]);
}
