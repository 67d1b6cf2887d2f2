//! kill -9 under load, again and again, at random moments and at named points; then the clients'
//! and the server's record are compared with the audit and the counters.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use tokio::task::JoinSet;
use toolgate_dice::Dice;

use crate::agent::{Agent, Said};
use crate::audited::{Audited, stored_counts};
use crate::gate::{Gate, Home, LISTEN};
use crate::phases::{End, Phases, Seen};
use crate::upstream::Upstream;
use crate::{dice, number};

const KILLS: u64 = 200;
pub(crate) const POINTS: bool = cfg!(debug_assertions);
const CLIENTS: usize = 6;
/// Without a limit that is ever reached, and with one that soon is.
const TOOLS: [&str; 2] = ["many", "few"];
/// Of the tool `few`, for each kill.
const FEW: u64 = 2;

/// How a round ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kill {
    /// After so many microseconds.
    Whenever(u64),
    /// At a point inside, the n-th time.
    At(&'static str, usize),
    /// When the server has carried out so many.
    Executed(i64),
    /// When the clients have had so many answers.
    Answered(i64),
}

/// What kills from outside, once armed.
#[derive(Default)]
struct Killer {
    victim: AtomicI32,
    executions: AtomicI64,
    answers: AtomicI64,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_done_twice_by_kills() {
    let kills = number("TOOLGATE_KILLS").unwrap_or(KILLS);
    let mut dice = dice("kills");
    let folder = tempfile::tempdir().unwrap();
    let killer = Arc::new(Killer::default());
    let watching = Arc::clone(&killer);
    let hook = move |_: &str| watching.count_down(&watching.executions);
    let upstream = Upstream::start(folder.path(), Box::new(hook)).await;
    let few = FEW * kills;
    std::fs::write(folder.path().join("policy.yaml"), policy(few)).unwrap();

    let (mut rounds, mut starts) = (Vec::new(), Vec::new());
    for round in 0..kills {
        let kill = Kill::choose(round, &mut dice);
        let start = Instant::now();
        let Ok(mut gate) = start_gate(&folder, &upstream.url, Some(kill)) else {
            // It was killed while it put the calls of the round before in order.
            rounds.push(Vec::new());
            continue;
        };
        starts.push(start.elapsed());
        rounds.push(run_until_killed(&gate, &killer, round, kill).await);
        let (code, _) = gate.wait();
        assert_eq!(code, None, "it was killed, not stopped: {kill:?}\n{}", gate.log.text());
        if round % 50 == 49 {
            verify(folder.path());
        }
    }
    // The last one ends what the last kill left open, and stops as it should.
    let mut gate = start_gate(&folder, &upstream.url, None).unwrap();
    assert_eq!(gate.stop().0, Some(0));
    verify(folder.path());
    compare(&rounds, &upstream, &folder.path().join("data"), few, &mut starts);
}

/// The three records agree.
fn compare(
    rounds: &[Vec<Seen>],
    upstream: &Upstream,
    data: &Path,
    few: u64,
    starts: &mut [Duration],
) {
    let audited = Audited::read(data);
    let executed = upstream.executed();
    let mut times: HashMap<&str, u32> = HashMap::new();
    for (tool, mark) in &executed {
        *times.entry(mark).or_default() += 1;
        let call = audited.calls.get(mark);
        let call = call.unwrap_or_else(|| panic!("{mark} was carried out without an intent row"));
        assert_eq!(&call.tool, tool, "{mark}");
    }
    assert!(times.values().all(|times| *times == 1), "carried out twice: {times:?}");
    for (mark, call) in &audited.calls {
        let ran = times.contains_key(mark.as_str());
        match call.outcomes.as_slice() {
            [outcome] if outcome == "unknown" || (outcome == "ok" && ran) => {}
            other => panic!("{mark} ended {other:?} and {ran} that it ran"),
        }
    }
    for Seen { mark, tool, end } in rounds.iter().flatten() {
        let (written, ran) = (audited.calls.contains_key(mark), times.contains_key(mark.as_str()));
        match end {
            End::Answered => assert!(written && ran, "{mark}: written {written}, ran {ran}"),
            End::Refused(code) => {
                assert_eq!((code.as_str(), *tool), ("rate_limited", "few"), "{mark}");
                assert!(!written && !ran, "{mark}: written {written}, ran {ran}");
            }
            End::Lost => {}
        }
    }
    let admitted = TOOLS.map(|tool| audited.admitted(tool));
    let wanted = rounds.iter().flatten().filter(|seen| seen.tool == "few").count() as u64;
    assert_eq!(admitted[1], few.min(wanted), "a limit of {few}, asked for {wanted} times");
    let mut stored = stored_counts(data);
    stored.sort_unstable();
    let mut expected = admitted.to_vec();
    expected.sort_unstable();
    assert_eq!(stored, expected, "what is stored is what was admitted");

    let ran: HashSet<String> = times.keys().map(|mark| (*mark).to_owned()).collect();
    let mut phases = Phases::default();
    for round in rounds {
        phases.add(round, &ran, &audited);
    }
    starts.sort_unstable();
    println!("{} kills: {phases}", rounds.len());
    println!(
        "{} calls seen by clients, {} admitted, {} carried out, {} rows; start to ready p50 {:?}, \
         longest {:?}",
        rounds.iter().map(Vec::len).sum::<usize>(),
        audited.calls.len(),
        executed.len(),
        audited.rows,
        starts[starts.len() / 2],
        starts[starts.len() - 1],
    );
    assert!(
        !POINTS || phases.least() >= rounds.len() as u64 / 10,
        "a phase is hardly tried: {phases}"
    );
}

impl Kill {
    fn choose(round: u64, dice: &mut Dice) -> Self {
        // A release build has no points to be killed at.
        let kinds = if POINTS { 7 } else { 3 };
        match (round % kinds + 7 - kinds) % 7 {
            0 => Self::At("before-commit", 1 + dice.below(40)),
            1 => Self::At("before-send", 1 + dice.below(40)),
            2 => Self::At("after-answer", 1 + dice.below(40)),
            3 => Self::At("after-commit", 1 + dice.below(40)),
            4 => Self::Executed(1 + dice.below(40)),
            5 => Self::Answered(1 + dice.below(40)),
            _ => Self::Whenever(dice.below(60_000)),
        }
    }
}

impl Killer {
    fn arm(&self, gate: &Gate, kill: Kill) {
        let count = |armed: Option<i64>| armed.unwrap_or(i64::MAX);
        let (executions, answers) = match kill {
            Kill::Executed(count) => (Some(count), None),
            Kill::Answered(count) => (None, Some(count)),
            Kill::Whenever(_) | Kill::At(..) => (None, None),
        };
        self.executions.store(count(executions), Ordering::SeqCst);
        self.answers.store(count(answers), Ordering::SeqCst);
        self.victim.store(i32::try_from(gate.pid()).unwrap(), Ordering::SeqCst);
    }

    fn count_down(&self, left: &AtomicI64) {
        if left.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.kill();
        }
    }

    /// The victim is our child and not waited for yet, so the number is still its own.
    fn kill(&self) {
        let victim = Pid::from_raw(self.victim.load(Ordering::SeqCst)).unwrap();
        kill_process(victim, Signal::KILL).unwrap();
    }
}

/// Clients call until the gateway is gone; what they saw.
async fn run_until_killed(gate: &Gate, killer: &Arc<Killer>, round: u64, kill: Kill) -> Vec<Seen> {
    killer.arm(gate, kill);
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let (address, killer) = (gate.mcp(), Arc::clone(killer));
        clients.spawn(async move { call_until_killed(&address, round, client, &killer).await });
    }
    if let Kill::Whenever(micros) = kill {
        // Chance, not synchronisation: whatever runs then is killed.
        tokio::time::sleep(Duration::from_micros(micros)).await;
        killer.kill();
    }
    clients.join_all().await.into_iter().flatten().collect()
}

async fn call_until_killed(address: &str, round: u64, client: usize, killer: &Killer) -> Vec<Seen> {
    let mut seen = Vec::new();
    let Ok(mut agent) = Agent::open(address, "/mcp/work", None).await else { return seen };
    loop {
        let number = seen.len();
        let tool = TOOLS[usize::from(number % 4 == 3)];
        let mark = format!("{round}/{client}/{number}");
        let end = match agent.call(tool, &mark).await {
            Ok(Said::Done(text)) => {
                assert_eq!(text, mark, "an answer of another call");
                killer.count_down(&killer.answers);
                End::Answered
            }
            Ok(Said::Refused(code, _)) => End::Refused(code),
            Err(_) => End::Lost,
        };
        let lost = end == End::Lost;
        seen.push(Seen { mark, tool, end });
        if lost {
            return seen;
        }
    }
}

pub(crate) fn start_gate(
    folder: &TempDir,
    url: &str,
    kill: Option<Kill>,
) -> Result<Gate, (ExitStatus, String)> {
    let home = Home::new();
    home.configure(&format!(
        "version: 1\n{LISTEN}\naudit: {{ arguments: full }}\nservers:\n  work: {{ url: '{url}' }}\n"
    ));
    let mut command = home.command(&["serve", "--ready-json"]);
    command.arg("--data").arg(folder.path().join("data"));
    command.arg("--policy").arg(folder.path().join("policy.yaml"));
    if let Some(Kill::At(point, count)) = kill {
        command.env("TOOLGATE_FAILPOINT", format!("{point}:{count}"));
    }
    Gate::run(home, command)
}

fn policy(few: u64) -> String {
    let entry = |tool: &str, max: u64| {
        format!("  {tool}: {{ limits: [{{ counter: {tool}, window: 3650d, max: {max} }}] }}\n")
    };
    let [many, other] = TOOLS;
    format!("version: '1'\ndefault: deny\ntools:\n{}{}", entry(many, 1 << 40), entry(other, few))
}

/// `audit verify` reports an intact chain.
pub(crate) fn verify(folder: &Path) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolgate"));
    command.args(["audit", "verify", "-o", "json", "--data"]).arg(folder.join("data"));
    let output = command.output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(output.status.success() && report["ok"] == true, "{report}");
}
