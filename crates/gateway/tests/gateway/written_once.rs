//! A request is written once, and only while it is allowed.
//!
//! The lines of the scripted servers hold everything that was ever written to them; a limit of one
//! call says whether it stayed counted.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;
use toolgate_audit::{Effect, Outcome};
use toolgate_gateway::channel::SendError;
use toolgate_gateway::{Access, Frozen, Grant, NotOpened};

use crate::client::{Client, ask};
use crate::harness::{Harness, settings, shared};
use crate::reply::{Reply, string};
use crate::script::{Connect, Kind, Line, Peer, refusal, settle};
use crate::sessionless_servers::DISCOVERED;
use crate::test_admission::{TestAdmission, policy};

const OPENING: &str = r#"{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"a","version":"0"}}}"#;
const CALL: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"n":1}}}"#;
const MEMBERS: &str = r#""name":"t","arguments":{"n":1}"#;
const ONE: &str = "version: \"1\"\ndefault: deny\ntools:\n  t: { action: allow, limits: [{ counter: c, max: 1, window: hour, scope: grant }] }\n";
const DENY: &str = "version: \"1\"\ndefault: deny\n";

/// What is in force: a policy, a freeze of everything, and which servers may be reached.
fn enforce(test_admission: &TestAdmission, document: &str, frozen: bool, servers: Option<&[&str]>) {
    let servers = servers.map(|all| all.iter().map(|name| (*name).to_owned()).collect());
    let grant = Grant {
        label: "local".into(),
        policy: Some(policy(document)),
        servers,
        ..Grant::default()
    };
    let mut access = Access::new(Some(Arc::new(grant)), []);
    access.frozen = Frozen { all: frozen, ..Frozen::default() };
    access.generation = Some(test_admission.store.generation());
    test_admission.admission.set_access(access);
}

/// How often a call was written to any of these lines.
fn written(lines: &[Line]) -> usize {
    let log = lines.iter().flat_map(Line::log);
    log.filter(|body| body.contains(r#""method":"tools/call""#)).count()
}

/// Takes in the lines that have been made meanwhile.
async fn lines(peer: &mut Peer, all: &mut Vec<Line>) {
    settle().await;
    while let Some(line) = peer.try_line() {
        all.push(line);
    }
}

/// Everything with which a server can answer a call that it has executed.
fn refusals() -> Vec<SendError> {
    let error = |code: i32, message: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":null,"error":{{"code":{code},"message":"{message}"}}}}"#)
    };
    let mut all = vec![SendError::SessionLost, SendError::Lost("it hung up".to_owned())];
    for status in [301, 307, 308, 400, 401, 403, 404, 405, 409, 421, 429, 500, 502, 503] {
        all.push(refusal(status, ""));
    }
    for code in [-32000, -32001, -32019, -32020, -32021, -32022, -32600, -32601, -32602] {
        for status in [400, 404] {
            all.push(refusal(status, error(code, "no such session")));
        }
    }
    all
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Pair {
    Older,
    OlderBeforeNewer,
    Newer,
    NewerBeforeOlder,
}

#[tokio::test(start_paused = true)]
async fn no_answer_makes_a_call_be_written_again_or_uncounted() {
    let pairs = [Pair::Older, Pair::OlderBeforeNewer, Pair::Newer, Pair::NewerBeforeOlder];
    for pair in pairs {
        for refusal in refusals() {
            written_once(pair, refusal).await;
        }
    }
}

async fn written_once(pair: Pair, refusal: SendError) {
    let peer = match pair {
        Pair::Older | Pair::NewerBeforeOlder => Peer::new(Kind::Http),
        Pair::OlderBeforeNewer | Pair::Newer => Peer::modern(Kind::Http, DISCOVERED),
    };
    let (harness, mut peer) = Harness::of(settings("files"), peer);
    enforce(&harness.test_admission, ONE, false, None);
    let client = Client::of_files(&harness);
    let agent = match pair {
        Pair::Older | Pair::OlderBeforeNewer => Some(harness.open("files", OPENING).await.unwrap()),
        Pair::Newer | Pair::NewerBeforeOlder => None,
    };
    let call = || -> Reply {
        match &agent {
            Some(agent) => agent.ask(CALL),
            None => client.ask(&ask("tools/call", MEMBERS)),
        }
    };
    let reply = call();
    let mut line = peer.line().await;
    let sent = loop {
        let sent = line.next().await;
        match sent.method().as_str() {
            "tools/call" => break sent,
            "tools/list" => sent.answer(r#"{"tools":[]}"#),
            _ => {}
        }
    };
    sent.refuse(refusal.clone());
    let answer = reply.all().await;
    let answer = format!("{answer:?}");
    assert!(!answer.contains("Nothing was sent"), "{pair:?} {refusal:?} {answer}");
    assert!(!answer.contains("not_started"), "{pair:?} {refusal:?} {answer}");
    let again = format!("{:?}", call().all().await);
    assert!(again.contains("rate_limited"), "{pair:?} {refusal:?} {again}");
    let mut all = vec![line];
    lines(&mut peer, &mut all).await;
    assert_eq!(written(&all), 1, "{pair:?} {refusal:?}");
}

/// What may change while a call waits, and the code that the agent is given then.
#[derive(Debug, Clone, Copy)]
enum Change {
    Frozen,
    Denied,
    OutOfReach,
    Removed,
}

const CHANGES: [(Change, &str); 4] = [
    (Change::Frozen, "frozen"),
    (Change::Denied, "policy_denied"),
    (Change::OutOfReach, "unknown_tool"),
    (Change::Removed, "upstream_unavailable"),
];

fn make(harness: &Harness, change: Change) {
    match change {
        Change::Frozen => enforce(&harness.test_admission, ONE, true, None),
        Change::Denied => enforce(&harness.test_admission, DENY, false, None),
        Change::OutOfReach => enforce(&harness.test_admission, ONE, false, Some(&["other"])),
        Change::Removed => harness.apply([]),
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_its_server_is_judged_again_before_it_is_written() {
    for (change, code) in CHANGES {
        let (harness, mut peer) = Harness::of(settings("files"), Peer::new(Kind::Child));
        enforce(&harness.test_admission, ONE, false, None);
        let (agent, line) = harness.agent_on(&mut peer).await;
        line.break_off("it crashed");
        let (go, held) = oneshot::channel();
        peer.next_connect(Connect::Held(held));
        let reply = agent.ask(CALL);
        settle().await;
        make(&harness, change);
        go.send(()).unwrap();
        let answer = reply.answer().await;
        assert!(answer.contains(&format!(r#""error_code":"{code}""#)), "{change:?} {answer}");
        assert!(answer.contains(r#""effect":"not_started""#), "{change:?} {answer}");
        let mut all = vec![line];
        lines(&mut peer, &mut all).await;
        assert_eq!(written(&all), 0, "{change:?}");
        let rows = harness.test_admission.rows_by(2).await;
        let last = &rows.last().unwrap().draft;
        assert_eq!(last.outcome, Some(Outcome::Unavailable), "{change:?}");
        assert_eq!(last.effect, Some(Effect::NotStarted), "{change:?}");
        assert_eq!(last.error_code.as_deref(), Some(code));
        // What was never written is not counted.
        if !matches!(change, Change::Removed) {
            enforce(&harness.test_admission, ONE, false, None);
            let reply = agent.ask(CALL);
            all.last_mut().unwrap().next().await.answer("1");
            assert!(reply.answer().await.contains(r#""result":1"#), "{change:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_round_after_the_first_is_judged_again_and_the_first_stays_counted() {
    for (change, code) in CHANGES {
        let (harness, mut peer) =
            Harness::of(settings("files"), Peer::modern(Kind::Http, DISCOVERED));
        enforce(&harness.test_admission, ONE, false, None);
        let agent = harness.open("files", OPENING).await.unwrap();
        let mut reply = agent.ask(CALL);
        let mut line = peer.line().await;
        line.next().await.answer(r#"{"tools":[]}"#);
        line.next().await.answer(
            r#"{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{}}},"requestState":"s"}"#,
        );
        let question = reply.message().await;
        let id = toolgate_json::peek(&question, &["id"]).unwrap().unwrap();
        make(&harness, change);
        agent
            .tell(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"action":"accept"}}}}"#))
            .await;
        let answer = reply.message().await;
        assert!(answer.contains(&format!(r#""error_code":"{code}""#)), "{change:?} {answer}");
        assert!(answer.contains("first part of this call was sent"), "{change:?} {answer}");
        let mut all = vec![line];
        lines(&mut peer, &mut all).await;
        assert_eq!(written(&all), 1, "{change:?}");
        let rows = harness.test_admission.rows_by(2).await;
        assert_eq!(rows.last().unwrap().draft.error_code.as_deref(), Some(code));
        if !matches!(change, Change::Removed) {
            enforce(&harness.test_admission, ONE, false, None);
            let again = agent.ask(CALL).answer().await;
            assert!(again.contains("rate_limited"), "{change:?} {again}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_is_waited_for_five_seconds_from_the_call_on() {
    let (harness, peer) = Harness::of(settings("files"), Peer::silent(Kind::Http));
    for _ in 0..4 {
        peer.next_connect(Connect::Hang);
    }
    // The survey of an agent that has just come is under way when the calls arrive.
    let agent = harness.open_all(OPENING).await;
    let call = CALL.replace("\"t\"", "\"files__t\"");
    for pause in [0, 1_000, 2_500, 4_900] {
        tokio::time::sleep(Duration::from_millis(pause)).await;
        let began = Instant::now();
        let answer = agent.ask(&call).answer().await;
        assert!(answer.contains(r#""error_code":"upstream_unavailable""#), "{answer}");
        assert!(began.elapsed() <= Duration::from_secs(5), "{:?}", began.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn opening_with_a_server_that_hangs_ends_five_seconds_after_the_request() {
    for settings in [settings("files"), shared("files")] {
        let (harness, peer) = Harness::of(settings, Peer::silent(Kind::Http));
        for _ in 0..16 {
            peer.next_connect(Connect::Hang);
        }
        let opening = async |pause: u64| {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            let began = Instant::now();
            let refused = harness.open("files", OPENING).await;
            let Err(NotOpened::Answer(answer)) = refused else { panic!("it was opened") };
            assert!(string(&answer).contains("upstream_unavailable"), "{answer:?}");
            assert!(began.elapsed() <= Duration::from_secs(5), "{:?}", began.elapsed());
        };
        tokio::join!(opening(0), opening(2_500), opening(4_900));
        for members in ["", r#""notifications":{"toolsListChanged":true}"#] {
            let method =
                if members.is_empty() { "server/discover" } else { "subscriptions/listen" };
            let began = Instant::now();
            let answer = Client::of_files(&harness).ask(&ask(method, members)).message().await;
            assert!(answer.contains("upstream_unavailable"), "{answer}");
            assert!(began.elapsed() <= Duration::from_secs(5), "{method} {:?}", began.elapsed());
        }
    }
}
