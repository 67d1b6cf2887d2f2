//! Ids and progress tokens: the gateway's own towards the server, the agent's towards the agent.

use std::collections::HashSet;

use crate::harness::{Harness, settings, shared};
use crate::reply::Seen;
use crate::script::{Kind, Peer, Sent};

const SPELLINGS: [&str; 12] = [
    "7",
    "\"7\"",
    "0",
    "-1",
    "1.0",
    "1e0",
    "1E+0",
    "123456789012345678901234567890",
    "0.30000000000000000000001",
    "\"\"",
    "\"ключ \u{1f511}\"",
    r#""\u043a\"\\\/""#,
];

#[tokio::test(start_paused = true)]
async fn every_spelling_of_an_id_comes_back_as_it_was() {
    for kind in [Kind::Child, Kind::Http] {
        let (harness, mut peer) = Harness::one(kind);
        let (agent, mut line) = harness.agent_on(&mut peer).await;
        let mut numbers = HashSet::new();
        for id in SPELLINGS {
            let reply = agent.ask(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#));
            let sent = line.next().await;
            let number: u64 = sent.id().parse().expect("a number of ours");
            assert!(numbers.insert(number), "{number} was given twice");
            sent.answer("{}");
            assert_eq!(
                reply.answer().await,
                format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#),
                "{kind:?}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_id_of_an_initialize_comes_back_as_it_was() {
    for settings in [settings("files"), shared("files")] {
        let (harness, _peer) = Harness::of(settings, Peer::new(Kind::Child));
        for id in SPELLINGS {
            let initialize = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"initialize","params":{{"protocolVersion":"2025-11-25"}}}}"#
            );
            let agent = harness.open("files", &initialize).await.unwrap();
            let begin = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"#);
            assert!(agent.welcome.starts_with(&begin), "{}", agent.welcome);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn equal_ids_of_agents_that_share_a_server_never_meet() {
    let (harness, mut peer) = Harness::of(shared("files"), Peer::new(Kind::Child));
    let agents = [harness.agent().await, harness.agent().await, harness.agent().await];
    let mut line = peer.line().await;
    let mut replies = Vec::new();
    for (index, agent) in agents.iter().enumerate() {
        let who = format!(r#"{{"jsonrpc":"2.0","id":0,"method":"m","params":{{"who":{index}}}}}"#);
        replies.push(agent.ask(&who));
    }
    let sent = [line.next().await, line.next().await, line.next().await];
    let numbers: HashSet<&str> = sent.iter().map(Sent::id).collect();
    assert_eq!(numbers.len(), 3);
    for sent in sent.iter().rev() {
        sent.answer(sent.part(&["params"]).unwrap());
    }
    for (index, reply) in replies.into_iter().enumerate() {
        let expected = format!(r#"{{"jsonrpc":"2.0","id":0,"result":{{"who":{index}}}}}"#);
        assert_eq!(reply.answer().await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn progress_tokens_are_ours_there_and_the_agents_here() {
    for kind in [Kind::Child, Kind::Http] {
        let (harness, mut peer) = Harness::one(kind);
        let (agent, mut line) = harness.agent_on(&mut peer).await;
        for token in SPELLINGS {
            let mut reply = agent.ask(&format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"a":1e3,"_meta":{{"x":2.50,"progressToken":{token} }} }}}}"#
            ));
            let sent = line.next().await;
            let ours = sent.part(&["params", "_meta", "progressToken"]).unwrap();
            assert_eq!(ours, sent.id());
            assert!(sent.body.contains(r#""a":1e3,"_meta":{"x":2.50,"#), "{}", sent.body);
            sent.say(&format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progress":0.10,"progressToken":{ours},"y":[ ]}}}}"#
            ));
            let progress = format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progress":0.10,"progressToken":{token},"y":[ ]}}}}"#
            );
            assert_eq!(reply.next().await, Some(Seen::Event(progress)), "{kind:?}");
            sent.answer("1");
            let answer = r#"{"jsonrpc":"2.0","id":1,"result":1}"#.to_owned();
            assert_eq!(reply.all().await, [Seen::Event(answer)]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn progress_of_nothing_that_runs_is_dropped() {
    let (harness, mut peer) = Harness::one(Kind::Child);
    let (agent, mut line) = harness.agent_on(&mut peer).await;
    let mut general = agent.listen();
    let done = agent
        .ask(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"progressToken":"t"}}}"#);
    let finished = line.next().await;
    finished.answer("1");
    done.answer().await;
    let running = agent.ask(r#"{"jsonrpc":"2.0","id":2,"method":"m"}"#);
    let without_token = line.next().await;
    let dropped = harness.count("dropped_messages_total{server=\"files\"}");

    let tokens = [finished.id(), without_token.id(), "99", "\"t\"", "1.5", "null", "-1"];
    for token in tokens {
        line.say(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token}}}}}"#
        ));
    }
    line.say(r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#);
    without_token.answer("2");
    assert_eq!(running.answer().await, r#"{"jsonrpc":"2.0","id":2,"result":2}"#);
    assert!(general.so_far().await.is_empty());
    let now = harness.count("dropped_messages_total{server=\"files\"}");
    assert_eq!(now - dropped, i64::try_from(tokens.len()).unwrap() + 1);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_cannot_be_forwarded_is_refused_under_its_own_id() {
    let (harness, mut peer) = Harness::one(Kind::Child);
    let (agent, mut line) = harness.agent_on(&mut peer).await;
    let raw = r#"{"jsonrpc":"2.0","id":"x","method":"m","params":{"_meta":{"progressToken":1,"progressToken":2}}}"#;
    let refusal = agent.try_call(raw).err().expect("a refusal");
    assert_eq!(refusal.id.as_deref(), Some("\"x\""));
    assert!(line.rest().await.is_empty());
}
