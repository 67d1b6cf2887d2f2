//! Shared servers: one channel, and nothing of one agent reaches another.

use std::time::Duration;

use crate::harness::{Agent, Harness, INITIALIZE, shared};
use crate::script::{Kind, Line, Peer, settle};

const ASK: &str = r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#;

async fn two() -> (Harness, Peer, [Agent; 2], Line) {
    let (harness, mut peer) = Harness::of(shared("files"), Peer::new(Kind::Child));
    let agents = [harness.agent().await, harness.agent().await];
    let line = peer.line().await;
    (harness, peer, agents, line)
}

fn note(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/{method}","params":{params}}}"#)
}

#[tokio::test(start_paused = true)]
async fn all_agents_speak_through_one_channel_that_toolgate_opened() {
    let (harness, mut peer) = Harness::of(shared("files"), Peer::silent(Kind::Child));
    let opening = [harness.opening("files"), harness.opening("files"), harness.opening("files")];
    let mut line = peer.line().await;
    let probe = line.next().await;
    assert_eq!(probe.method(), "server/discover");
    probe.say_error(-32601, "no such method");
    let initialize = line.next().await;
    assert_eq!(initialize.part(&["params", "capabilities"]), Some("{}"));
    assert_eq!(initialize.part(&["params", "clientInfo", "name"]), Some("\"toolgate\""));
    initialize.answer(crate::script::WELCOME);
    let mut welcomes = Vec::new();
    for opening in opening {
        welcomes.push(opening.await.unwrap().unwrap().welcome);
    }
    let expected =
        format!(r#"{{"jsonrpc":"2.0","id":"hello","result":{}}}"#, crate::script::WELCOME);
    assert_eq!(welcomes, [expected.as_str(); 3]);
    let rest = line.rest().await;
    assert_eq!(rest, [r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#]);
    assert_eq!(peer.tried(), 1);
}

#[tokio::test(start_paused = true)]
async fn descriptions_of_one_agent_are_not_forwarded_to_a_shared_server() {
    let (_bed, _peer, [one, _two], mut line) = two().await;
    one.tell(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    one.tell(&note("roots/list_changed", "{}")).await;
    assert!(line.rest().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_agent_is_answered_in_its_own_version_at_most() {
    let table = [
        ("2025-11-25", "2025-03-26", "2025-03-26"),
        ("2025-11-25", "2025-11-25", "2025-11-25"),
        ("2025-03-26", "2025-11-25", "2025-03-26"),
        ("2025-11-25", "2099-01-01", "2025-11-25"),
        ("2030-01-01", "2025-06-18", "2030-01-01"),
    ];
    for (server, asked, expected) in table {
        let welcome = format!(r#"{{"a":1.0,"protocolVersion": "{server}","b":[]}}"#);
        let (harness, _peer) =
            Harness::of(shared("files"), Peer::with_welcome(Kind::Child, Some(&welcome)));
        harness.agent().await;
        let raw = INITIALIZE.replace("2025-11-25", asked);
        let agent = harness.open("files", &raw).await.unwrap();
        let result = format!(r#""result":{{"a":1.0,"protocolVersion": "{expected}","b":[]}}}}"#);
        assert!(agent.welcome.ends_with(&result), "{server} {asked}: {}", agent.welcome);
        let version = agent.session.version().map_or("2030-01-01", |version| version.as_str());
        assert_eq!(version, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn changed_lists_concern_everybody() {
    let (_bed, _peer, [one, two], line) = two().await;
    let (mut first, mut second) = (one.listen(), two.listen());
    for what in ["tools", "prompts", "resources"] {
        line.say(&note(&format!("{what}/list_changed"), r#"{"by":"one of them"}"#));
        let bare = format!(r#"{{"jsonrpc":"2.0","method":"notifications/{what}/list_changed"}}"#);
        assert_eq!(first.message().await, bare);
        assert_eq!(second.message().await, bare);
    }
}

#[tokio::test(start_paused = true)]
async fn an_updated_resource_concerns_its_subscribers() {
    let (_bed, _peer, [one, two], mut line) = two().await;
    let (mut first, mut second) = (one.listen(), two.listen());
    let subscribe = |what: &str, uri: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"resources/{what}","params":{{"uri":"{uri}"}}}}"#
        )
    };
    let updated = note("resources/updated", r#"{"uri":"file:///a"}"#);
    line.say(&updated);
    for (agent, what, uri) in
        [(&one, "subscribe", r"file:///\u0061"), (&two, "subscribe", "file:///b")]
    {
        let reply = agent.ask(&subscribe(what, uri));
        line.next().await.answer("{}");
        reply.answer().await;
    }
    line.say(&updated);
    assert_eq!(first.so_far().await, [updated.as_str()]);
    assert!(second.so_far().await.is_empty());
    let reply = one.ask(&subscribe("unsubscribe", "file:///a"));
    line.next().await.answer("{}");
    reply.answer().await;
    line.say(&updated);
    assert!(first.so_far().await.is_empty() && second.so_far().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn log_messages_reach_no_agent() {
    let (harness, _peer, [one, two], mut line) = two().await;
    let (mut first, mut second) = (one.listen(), two.listen());
    let logged = note("message", r#"{"data":"what two asked for"}"#);
    line.say(&logged);
    // Not even the only one whose request runs: the server may still speak of another's.
    let mut reply = one.ask(ASK);
    let sent = line.next().await;
    line.say(&logged);
    line.say(&note("unknown", "{}"));
    assert!(first.so_far().await.is_empty() && second.so_far().await.is_empty());
    assert!(reply.so_far().await.is_empty());
    sent.answer("1");
    reply.answer().await;

    harness.gateway.end(&two.session);
    settle().await;
    line.say(&logged);
    assert!(first.so_far().await.is_empty(), "it may be about one that has gone");
}

#[tokio::test(start_paused = true)]
async fn questions_of_the_server_are_refused_and_pings_answered() {
    let (_bed, _peer, [one, two], mut line) = two().await;
    let (mut first, mut second) = (one.listen(), two.listen());
    let mut reply = one.ask(ASK);
    let sent = line.next().await;
    for method in ["sampling/createMessage", "elicitation/create", "roots/list", "x/unknown"] {
        line.say(&format!(r#"{{"jsonrpc":"2.0","id":"q\u0061","method":"{method}"}}"#));
        let answer = line.next().await;
        let begin = r#"{"jsonrpc":"2.0","id":"q\u0061","error":{"code":-32601,"#;
        assert!(answer.body.starts_with(begin), "{}", answer.body);
    }
    line.say(r#"{"jsonrpc":"2.0","id":5.0,"method":"ping"}"#);
    assert_eq!(line.next().await.body, r#"{"jsonrpc":"2.0","id":5.0,"result":{}}"#);
    for id in ["1", "5.0"] {
        one.tell(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)).await;
    }
    line.say(&note("cancelled", r#"{"requestId":"qa"}"#));
    assert!(line.rest().await.is_empty());
    assert!(first.so_far().await.is_empty() && second.so_far().await.is_empty());
    assert!(reply.so_far().await.is_empty());
    sent.answer("1");
    reply.answer().await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_channel_fails_all_requests_and_reopens_for_the_next() {
    let (harness, mut peer, [one, two], mut line) = two().await;
    let (first, second) = (one.ask(ASK), two.ask(ASK));
    let _sent = (line.next().await, line.next().await);
    let mut general = one.listen();
    settle().await;
    assert_eq!(line.listens(), 1);
    line.break_off("it crashed");
    for reply in [first, second] {
        assert!(reply.answer().await.contains("outcome_unknown"));
    }
    // This time it is a new agent that brings it up.
    let three = harness.agent().await;
    let mut again = peer.line().await;
    assert!(again.log().iter().any(|body| body.contains("notifications/initialized")));
    settle().await;
    assert_eq!(again.listens(), 1, "an agent still listens");
    again.say(&note("tools/list_changed", "{}"));
    assert!(general.message().await.contains("tools/list_changed"));
    let reply = three.ask(ASK);
    again.next().await.answer("1");
    reply.answer().await;
}

#[tokio::test(start_paused = true)]
async fn a_deserted_server_is_closed() {
    let idle = Duration::from_mins(30);
    let (harness, mut peer, [one, two], mut line) = two().await;
    let (a, b) = (one.listen(), two.listen());
    harness.gateway.end(&one.session);
    settle().await;
    for _ in 0..3 {
        harness.gateway.sweep();
        tokio::time::advance(idle).await;
    }
    settle().await;
    assert!(!line.closed(), "one agent is left");

    // A call of an agent that has gone runs to its end.
    drop(two.call(ASK));
    let sent = line.next().await;
    harness.gateway.end(&two.session);
    settle().await;
    harness.gateway.sweep();
    settle().await;
    assert!(!line.closed(), "only after a while");
    sent.answer("1");
    settle().await;
    tokio::time::advance(idle / 2).await;
    // Somebody who comes and goes begins the wait anew.
    let three = harness.agent().await;
    harness.gateway.end(&three.session);
    settle().await;
    tokio::time::advance(idle / 2).await;
    harness.gateway.sweep();
    settle().await;
    assert!(!line.closed());
    tokio::time::advance(idle).await;
    harness.gateway.sweep();
    line.until_closed().await;
    drop((a, b, one, two, three));

    let four = harness.agent().await;
    let reply = four.ask(ASK);
    peer.line().await.next().await.answer("1");
    reply.answer().await;
    assert_eq!(peer.tried(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_handshake_that_was_broken_off_leaves_nothing_behind() {
    let idle = Duration::from_mins(30);
    let (harness, mut peer) = Harness::of(shared("files"), Peer::silent(Kind::Http));
    let opening = harness.opening("files");
    let mut line = peer.line().await;
    let _probe = line.next().await;
    opening.abort();
    assert!(opening.await.is_err());
    line.until_closed().await;

    peer.set_welcome(Some(crate::script::WELCOME));
    let (agent, line) = harness.agent_on(&mut peer).await;
    harness.gateway.end(&agent.session);
    settle().await;
    for _ in 0..2 {
        harness.gateway.sweep();
        tokio::time::advance(idle).await;
    }
    settle().await;
    harness.gateway.sweep();
    line.until_closed().await;
}

/// What agents follow is asked for again, once for all of them, and of whoever has left nothing.
#[tokio::test(start_paused = true)]
async fn what_agents_follow_is_renewed_after_a_loss() {
    let (harness, mut peer, [one, two], mut line) = two().await;
    let three = harness.agent().await;
    let ask = |what: &str, uri: &str| {
        let params = format!(r#"{{"uri":"file:///{uri}"}}"#);
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"resources/{what}","params":{params}}}"#)
    };
    let follows = [(&one, "a"), (&two, "a"), (&two, "b"), (&one, "c"), (&three, "d")];
    for (agent, uri) in follows {
        let reply = agent.ask(&ask("subscribe", uri));
        line.next().await.answer("{}");
        reply.answer().await;
    }
    let reply = one.ask(&ask("unsubscribe", "c"));
    line.next().await.answer("{}");
    reply.answer().await;
    harness.gateway.end(&three.session);
    settle().await;
    line.break_off("it crashed");
    settle().await;

    let reply = two.ask(ASK);
    let mut again = peer.line().await;
    let mut asked = Vec::new();
    for _ in 0..3 {
        let sent = again.next().await;
        if sent.method() == "resources/subscribe" {
            asked.push(sent.part(&["params", "uri"]).unwrap_or_default().to_owned());
        }
        sent.answer("{}");
    }
    reply.answer().await;
    assert_eq!(asked, [r#""file:///a""#, r#""file:///b""#]);
    assert!(again.rest().await.is_empty());
    let (mut first, mut second) = (one.listen(), two.listen());
    for (uri, received) in [("a", [1, 1]), ("b", [0, 1])] {
        again.say(&note("resources/updated", &format!(r#"{{"uri":"file:///{uri}"}}"#)));
        assert_eq!([first.so_far().await.len(), second.so_far().await.len()], received, "{uri}");
    }
}
