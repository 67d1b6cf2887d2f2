//! Reloads: unchanged servers continue, changed ones are opened again on use.

use std::time::Duration;

use toolgate_gateway::{Instances, NotOpened, ServerSettings};
use toolgate_json::peek;

use crate::harness::{Harness, INITIALIZE, settings, shared};
use crate::script::{Kind, Peer, WELCOME, settle};

const ASK: &str = r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#;
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":1}"#;

#[tokio::test(start_paused = true)]
async fn an_unchanged_server_keeps_its_links() {
    for settings in [settings("files"), shared("files")] {
        let (harness, mut peer) = Harness::of(settings, Peer::new(Kind::Child));
        let (agent, mut line) = harness.agent_on(&mut peer).await;
        let other = Peer::new(Kind::Child);
        let unchanged = harness.gateway.server("files").unwrap();
        harness.apply([harness.server(crate::harness::settings("other"), &other), unchanged]);
        let reply = agent.ask(ASK);
        line.next().await.answer("1");
        assert_eq!(reply.answer().await, ANSWER);
        assert_eq!((peer.tried(), other.tried()), (1, 0));
        assert!(harness.open("other", INITIALIZE).await.is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn a_changed_server_is_opened_while_a_call_ends_on_the_old_one() {
    for settings in [settings("files"), shared("files")] {
        for kind in [Kind::Child, Kind::Http] {
            let (harness, mut old) = Harness::of(settings.clone(), Peer::new(kind));
            let (agent, mut old_line) = harness.agent_on(&mut old).await;
            let running = agent.ask(ASK);
            let sent = old_line.next().await;
            let mut new = Peer::new(kind);
            harness.apply([harness.server(settings.clone(), &new)]);
            settle().await;
            assert_eq!(new.tried(), 0, "nobody needs it yet");

            let reply = agent.ask(ASK);
            let mut new_line = new.line().await;
            let log = new_line.log();
            let opening = peek(log.first().unwrap(), &["params"]).unwrap();
            if settings.instances == Instances::PerAgent {
                assert_eq!(opening, peek(INITIALIZE, &["params"]).unwrap());
            }
            new_line.next().await.answer("1");
            assert_eq!(reply.answer().await, ANSWER);
            let log = new_line.log();
            assert!(log.get(1).unwrap().contains("notifications/initialized"), "{log:?}");

            assert!(!old_line.closed(), "a call still runs on it");
            sent.answer("1");
            assert_eq!(running.answer().await, ANSWER);
            old_line.until_closed().await;
            assert!(old_line.rest().await.is_empty() && !new_line.closed());
            assert_eq!(old.tried(), 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_runs_on_the_old_one_can_be_cancelled_and_asked() {
    let (harness, mut old) = Harness::one(Kind::Http);
    let (agent, mut old_line) = harness.agent_on(&mut old).await;
    let mut running = agent.ask(ASK);
    let sent = old_line.next().await;
    let mut new = Peer::new(Kind::Http);
    harness.apply([harness.server(settings("files"), &new)]);
    let reply = agent.ask(r#"{"jsonrpc":"2.0","id":2,"method":"m"}"#);
    let mut new_line = new.line().await;
    let on_new = new_line.next().await;

    sent.say(r#"{"jsonrpc":"2.0","id":"q","method":"roots/list"}"#);
    running.message().await;
    agent.tell(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).await;
    assert_eq!(old_line.next().await.body, r#"{"jsonrpc":"2.0","id":"q","result":{}}"#);

    let cancel = |id: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
        )
    };
    agent.tell(&cancel("1")).await;
    assert_eq!(old_line.rest().await, [cancel(sent.id())]);
    assert!(new_line.rest().await.is_empty());
    on_new.answer("1");
    reply.answer().await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_leaves_takes_the_old_one_along_too() {
    for stops in [false, true] {
        let (harness, mut old) = Harness::one(Kind::Child);
        let (agent, mut line) = harness.agent_on(&mut old).await;
        let running = agent.ask(ASK);
        let _sent = line.next().await;
        let new = Peer::new(Kind::Child);
        harness.apply([harness.server(settings("files"), &new)]);
        if stops {
            harness.gateway.drain(Duration::from_secs(1)).await;
        } else {
            harness.gateway.end(&agent.session);
            settle().await;
        }
        assert!(line.closed(), "stops: {stops}");
        assert!(running.answer().await.contains("the agent session has ended"));
        assert_eq!(new.tried(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_listens_listens_to_the_new_one() {
    let (harness, mut old) = Harness::one(Kind::Http);
    let (agent, old_line) = harness.agent_on(&mut old).await;
    let mut general = agent.listen();
    settle().await;
    assert_eq!(old_line.listens(), 1);
    let mut new = Peer::new(Kind::Http);
    harness.apply([harness.server(settings("files"), &new)]);
    let reply = agent.ask(ASK);
    let mut line = new.line().await;
    line.next().await.answer("1");
    reply.answer().await;
    assert_eq!(line.listens(), 1);
    let note = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    line.say(note);
    assert_eq!(general.message().await, note);
}

#[tokio::test(start_paused = true)]
async fn a_removed_server_ends_its_sessions() {
    for settings in [settings("files"), shared("files")] {
        let (harness, mut peer) = Harness::of(settings, Peer::new(Kind::Child));
        let (agent, mut line) = harness.agent_on(&mut peer).await;
        let (running, general) = (agent.ask(ASK), agent.listen());
        let sent = line.next().await;
        harness.apply([]);
        assert_eq!(general.all().await, []);
        assert!(harness.session("files", agent.session.id()).is_none());
        let refusal = agent.try_call(ASK).err().expect("a refusal");
        assert!(refusal.message.contains("has ended"), "{}", refusal.message);
        assert_eq!(refusal.id.as_deref(), Some("1"));
        assert!(matches!(harness.open("files", INITIALIZE).await, Err(NotOpened::UnknownServer)));
        sent.answer("1");
        assert_eq!(running.answer().await, ANSWER);
        line.until_closed().await;
        assert_eq!(harness.count("agent_sessions"), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_no_longer_shared_is_opened_by_each_agent() {
    let (harness, mut old) = Harness::of(shared("files"), Peer::new(Kind::Child));
    let (agent, _old_line) = harness.agent_on(&mut old).await;
    let mut new = Peer::new(Kind::Child);
    harness.apply([harness.server(settings("files"), &new)]);
    let reply = agent.ask(ASK);
    let mut line = new.line().await;
    line.next().await.answer("1");
    reply.answer().await;
    let log = line.log();
    let opening = peek(log.first().unwrap(), &["params"]).unwrap();
    assert_eq!(opening, peek(INITIALIZE, &["params"]).unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_being_opened_gets_the_new_server() {
    for settings in [settings("files"), shared("files")] {
        let (harness, mut old) = Harness::of(settings.clone(), Peer::silent(Kind::Child));
        let opening = harness.opening("files");
        let mut old_line = old.line().await;
        let sent = old_line.hello().await;
        let mut new = Peer::new(Kind::Child);
        let changed = ServerSettings { backs_off: true, ..settings };
        harness.apply([harness.server(changed, &new)]);
        sent.answer(WELCOME);
        let agent = opening.await.unwrap().unwrap();
        old_line.until_closed().await;
        let reply = agent.ask(ASK);
        new.line().await.next().await.answer("1");
        assert_eq!(reply.answer().await, ANSWER);
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_being_opened_is_not_if_its_server_goes() {
    for settings in [settings("files"), shared("files")] {
        let (harness, mut old) = Harness::of(settings, Peer::silent(Kind::Child));
        let opening = harness.opening("files");
        let mut line = old.line().await;
        let sent = line.hello().await;
        harness.apply([]);
        sent.answer(WELCOME);
        assert!(matches!(opening.await.unwrap(), Err(NotOpened::UnknownServer)));
        line.until_closed().await;
        assert_eq!(harness.count("agent_sessions"), 0);
    }
}
