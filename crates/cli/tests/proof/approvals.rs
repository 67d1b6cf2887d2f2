//! An approval admits one call: however many ask for it at once, and wherever kill -9 meets it. The
//! server's record decides.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;
use tokio::task::JoinSet;
use toolgate_dice::Dice;
use toolgate_testkit::client::Connection;

use crate::agent::{Agent, Said};
use crate::audited::Audited;
use crate::gate::Gate;
use crate::kill::{Kill, POINTS, start_gate, verify};
use crate::upstream::Upstream;
use crate::{dice, number};

const KILLS: u64 = 40;
const TRIALS: u64 = 100;
const REDEEMERS: usize = 64;
const POLICY: &str = "version: '1'\ndefault: deny\ntools:\n  \
    held: { approve: { wait: 0s }, limits: [{ counter: held, window: 3650d, max: 1099511627776 }] }\n";

/// Many agents that ask for one approved call: one of them gets it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_is_redeemed_once() {
    let trials = number("TOOLGATE_REDEMPTIONS").unwrap_or(TRIALS);
    let (folder, upstream) = scene().await;
    let mut gate = start_gate(&folder, &upstream.url, None).unwrap();
    let mut agents = Vec::new();
    for _ in 0..REDEEMERS {
        agents.push(Agent::open(&gate.mcp(), "/mcp/work", None).await.unwrap());
    }
    for trial in 0..trials {
        let mark = trial.to_string();
        let id = held(agents[0].call("held", &mark).await.unwrap());
        approve(&gate, &folder, &id).await.unwrap();
        let mut asking = JoinSet::new();
        for mut agent in agents.drain(..) {
            let mark = mark.clone();
            asking.spawn(async move {
                let said = agent.call("held", &mark).await.unwrap();
                (agent, said)
            });
        }
        let mut sent = 0;
        for (agent, said) in asking.join_all().await {
            agents.push(agent);
            match said {
                Said::Done(text) => {
                    assert_eq!(text, mark);
                    sent += 1;
                }
                refused @ Said::Refused(..) => assert_ne!(held(refused), id, "held anew"),
            }
        }
        assert_eq!(sent, 1, "of {REDEEMERS}");
    }
    assert_eq!(gate.stop().0, Some(0));
    let executed = upstream.executed();
    let mut times: HashMap<&str, u64> = HashMap::new();
    for (_, mark) in &executed {
        *times.entry(mark).or_default() += 1;
    }
    assert_eq!(times.len() as u64, trials);
    assert!(times.values().all(|times| *times == 1), "{times:?}");
    println!("{trials} trials of {REDEEMERS} redeemers: {} executions", executed.len());
}

/// A crash at any step between the hold and the answer: 0 or 1 executions, and the state is true.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approved_call_survives_kills_and_is_sent_once() {
    let kills = number("TOOLGATE_APPROVAL_KILLS").unwrap_or(KILLS);
    let mut dice = dice("an_approved_call_survives");
    let (folder, upstream) = scene().await;
    let mut found = HashMap::<String, u64>::new();
    for round in 0..kills {
        let (mark, kill) = (format!("kill-{round}"), choose(round, &mut dice));
        let mut id = None;
        // It may be killed while it starts.
        if let Ok(mut gate) = start_gate(&folder, &upstream.url, Some(kill)) {
            let end = attempt(&gate, &folder, &mark, &mut id);
            match kill {
                // Chance, not synchronisation: whatever runs then is killed.
                Kill::Whenever(micros) => {
                    let chance = tokio::time::sleep(std::time::Duration::from_micros(micros));
                    tokio::select! { _ = end => {}, () = chance => {} }
                }
                _ => drop(end.await),
            }
            gate.signal(Signal::KILL);
            gate.wait();
        }
        let mut gate = start_gate(&folder, &upstream.url, None).unwrap();
        let state = check(&gate, &folder, &upstream, &mark, id.as_deref()).await;
        *found.entry(state).or_default() += 1;
        assert_eq!(gate.stop().0, Some(0));
    }
    verify(folder.path());
    println!("{kills} kills; the approvals that they left: {found:?}");
}

async fn scene() -> (TempDir, Upstream) {
    let folder = tempfile::tempdir().unwrap();
    let upstream = Upstream::start(folder.path(), Box::new(|_: &str| {})).await;
    std::fs::write(folder.path().join("policy.yaml"), POLICY).unwrap();
    (folder, upstream)
}

fn choose(round: u64, dice: &mut Dice) -> Kill {
    let points = ["before-commit", "after-commit", "before-send", "after-answer"];
    // A release build has no points to be killed at.
    match usize::try_from(round).unwrap() % 5 {
        at @ 0..4 if POINTS => Kill::At(points[at], 1 + dice.below(if at < 2 { 8 } else { 1 })),
        _ => Kill::Whenever(dice.below(40_000)),
    }
}

/// Hold, approve, send: up to the kill.
async fn attempt(
    gate: &Gate,
    folder: &TempDir,
    mark: &str,
    id: &mut Option<String>,
) -> io::Result<Said> {
    let mut agent = Agent::open(&gate.mcp(), "/mcp/work", None).await?;
    let asked = held(agent.call("held", mark).await?);
    *id = Some(asked.clone());
    approve(gate, folder, &asked).await?;
    agent.call("held", mark).await
}

/// Compares what the kill left with what was executed, and finishes the call; the state that was
/// left.
async fn check(
    gate: &Gate,
    folder: &TempDir,
    upstream: &Upstream,
    mark: &str,
    id: Option<&str>,
) -> String {
    let times = || upstream.executed().iter().filter(|(_, one)| one == mark).count();
    let audited = Audited::read(&folder.path().join("data"));
    let (before, call) = (times(), audited.calls.get(mark));
    let state = match id {
        Some(id) => {
            let approval = ask(gate, folder, "GET", &format!("approvals/{id}")).await.unwrap();
            approval["state"].as_str().unwrap().to_owned()
        }
        None => "unknown to the agent".to_owned(),
    };
    assert_eq!(state == "consumed", call.is_some(), "{mark}: {state}, {call:?}");
    match call {
        Some(call) => {
            assert!(before <= 1, "{mark} ran {before} times");
            let ends = ["ok", "unknown"];
            let [end] = call.outcomes.as_slice() else { panic!("{mark}: {call:?}") };
            assert!(ends.contains(&end.as_str()) && (end != "ok" || before == 1), "{mark}: {end}");
        }
        None => assert_eq!(before, 0, "{mark} ran without an intent"),
    }
    let mut agent = Agent::open(&gate.mcp(), "/mcp/work", None).await.unwrap();
    let mut said = agent.call("held", mark).await.unwrap();
    if call.is_some() {
        // The approval is used up, whether or not the call was executed.
        assert_ne!(Some(held(said).as_str()), id, "{mark}");
        assert_eq!(times(), before, "{mark}");
        return state;
    }
    if let Said::Refused(..) = said {
        assert_ne!(state, "approved", "{mark}");
        let again = held(said);
        assert!(id.is_none_or(|id| id == again), "{mark}: it is still pending");
        approve(gate, folder, &again).await.unwrap();
        said = agent.call("held", mark).await.unwrap();
    }
    assert_eq!((said, times()), (Said::Done(mark.to_owned()), 1));
    state
}

/// The id of the approval that a call waits for.
fn held(said: Said) -> String {
    match said {
        Said::Refused(code, result) if code == "approval_required" => {
            result["_meta"]["approval_id"].as_str().unwrap().to_owned()
        }
        other => panic!("not held: {other:?}"),
    }
}

async fn approve(gate: &Gate, folder: &TempDir, id: &str) -> io::Result<Value> {
    let approved = ask(gate, folder, "POST", &format!("approvals/{id}/approve")).await?;
    assert_eq!(approved["state"], "approved");
    Ok(approved)
}

/// A request to the admin API, which may break.
async fn ask(gate: &Gate, folder: &TempDir, method: &str, path: &str) -> io::Result<Value> {
    let token = std::fs::read_to_string(Path::new(folder.path()).join("data/admin.token"))?;
    let (address, token) = (gate.admin(), token.trim());
    let mut connection = Connection::open(&address).await?;
    let request = format!(
        "{method} /api/v1/{path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: 0\r\n\r\n"
    );
    connection.send(&request).await?;
    let answer = connection.receive().await?;
    assert_eq!(answer.status, 200, "{method} {path}: {answer:?}");
    Ok(serde_json::from_str(&answer.messages[0])?)
}
