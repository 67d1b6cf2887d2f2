//! A limit of N admits N: 256 tasks in four processes hammer one gateway, which is stopped or
//! killed and started again inside the window.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::agent::{Agent, Said};
use crate::audited::Audited;
use crate::gate::{Gate, Home, LISTEN};
use crate::upstream::Upstream;
use crate::{dice, number};

const TRIALS: u64 = 100;
const PROCESSES: usize = 4;
const TASKS: usize = 64;
/// One in so many trials has a restart in its middle.
const RESTARTS: u64 = 5;
/// Tools `t1`, `t2` … are limited to so many calls.
const LIMITS: [usize; 5] = [1, 7, 64, 150, 400];
const TOKEN: &str = "the-token-of-the-hammering-agents";
const ADDRESS: &str = "TOOLGATE_TEST_ADDRESS";

/// A process of clients.
struct Clients {
    child: Child,
    output: BufReader<ChildStdout>,
}

/// The answers that the tasks of a process got in one trial.
#[derive(Debug, Default, Clone, Copy)]
struct Reported {
    done: u64,
    refused: u64,
    lost: u64,
}

/// Not a test by itself: one of the processes. Each line names a tool, which every task calls until
/// it is refused.
#[test]
fn one_of_the_processes() {
    let Some(address) = std::env::var_os(ADDRESS) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut tasks: Vec<Option<Agent>> = (0..TASKS).map(|_| None).collect();
        for line in std::io::stdin().lines() {
            let tool = line.unwrap();
            let mut running = JoinSet::new();
            for (number, agent) in tasks.drain(..).enumerate() {
                let (tool, address) = (tool.clone(), address.clone());
                running
                    .spawn(async move { hammer(agent, Path::new(&address), &tool, number).await });
            }
            let mut all = Reported::default();
            for (agent, reported) in running.join_all().await {
                tasks.push(agent);
                all.done += reported.done;
                all.refused += reported.refused;
                all.lost += reported.lost;
            }
            println!("\ntold {} {} {}", all.done, all.refused, all.lost);
        }
    });
}

/// Calls until refused, over as many gateways as it takes.
async fn hammer(
    mut agent: Option<Agent>,
    address: &Path,
    tool: &str,
    task: usize,
) -> (Option<Agent>, Reported) {
    let mut reported = Reported::default();
    loop {
        let mut open = match agent.take() {
            Some(agent) => agent,
            None => open(address).await,
        };
        let mark =
            format!("{tool}/{}/{task}/{}", std::process::id(), reported.done + reported.lost);
        match open.call(tool, &mark).await {
            Ok(Said::Done(text)) => {
                assert_eq!(text, mark, "an answer of another call");
                reported.done += 1;
            }
            Ok(Said::Refused(code, result)) if code == "rate_limited" => {
                let rule = result["_meta"]["rule"].as_str().unwrap();
                assert!(rule.starts_with("/tools/t") && rule.contains("/limits/"), "{result}");
                reported.refused += 1;
                return (Some(open), reported);
            }
            // A gateway that stops, or is gone.
            Ok(Said::Refused(..)) | Err(_) => {
                reported.lost += 1;
                continue;
            }
        }
        agent = Some(open);
    }
}

/// The gateway of now; its address is in a file.
async fn open(address: &Path) -> Agent {
    loop {
        let now = std::fs::read_to_string(address).unwrap();
        if let Ok(agent) = Agent::open(&now, "/mcp/work", Some(TOKEN)).await {
            return agent;
        }
        // Until the next one listens.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_of_n_admits_n_to_four_processes_and_over_restarts() {
    let trials = number("TOOLGATE_TRIALS").unwrap_or(TRIALS);
    let mut dice = dice("restarts");
    let folder = tempfile::tempdir().unwrap();
    let mut upstream = Upstream::start(folder.path(), Box::new(|_| {})).await;
    let address = folder.path().join("address");
    let mut gate = start(&folder, &upstream.url, &address);
    let mut clients: Vec<_> = (0..PROCESSES).map(|_| Clients::start(&address)).collect();
    let (mut stops, mut kills, mut admitted, mut calls) = (0, 0, 0, 0);
    for trial in 0..trials {
        let limit = LIMITS[dice.below(LIMITS.len())];
        let tool = format!("t{limit}x{trial}");
        let before = upstream.count();
        for clients in &mut clients {
            clients.go(&tool);
        }
        let restart = trial % RESTARTS == RESTARTS - 1;
        let killed = restart && dice.one_in(2);
        if restart {
            upstream.executed_at_least(before + limit as u64 / 2).await;
            if killed {
                kills += 1;
                gate.signal(Signal::KILL);
            } else {
                stops += 1;
                gate.signal(Signal::TERM);
            }
            gate.wait();
            gate = start(&folder, &upstream.url, &address);
        }
        let mut reported = Reported::default();
        for clients in &mut clients {
            let one = tokio::task::block_in_place(|| clients.reported());
            reported.done += one.done;
            reported.refused += one.refused;
            reported.lost += one.lost;
        }
        let limit = limit as u64;
        let executed = upstream.count() - before;
        println!("{tool}: {reported:?}, carried out {executed}, killed {killed}");
        assert_eq!(reported.refused, (PROCESSES * TASKS) as u64, "each was refused in the end");
        if killed {
            // What was admitted and never sent, or never answered, stays taken.
            assert!(reported.done <= executed && executed <= limit, "{executed} of {limit}");
        } else {
            assert_eq!((executed, reported.done + reported.lost >= limit), (limit, true));
        }
        (admitted, calls) =
            (admitted + limit, calls + reported.done + reported.refused + reported.lost);
    }
    assert_eq!(gate.stop().0, Some(0));
    let audited = Audited::read(&folder.path().join("data"));
    let calls_kept = audited.calls.values().filter(|call| {
        assert_eq!(call.outcomes.len(), 1, "{call:?}");
        // What never left a gateway that stopped was given back, and taken by another.
        call.outcomes[0] != "unavailable"
    });
    assert_eq!(calls_kept.count() as u64, admitted, "exactly the limits, over all restarts");
    println!("{trials} trials, {stops} stops, {kills} kills, {calls} calls, {admitted} admitted");
}

impl Clients {
    fn start(address: &Path) -> Self {
        let test = "exact::one_of_the_processes";
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([test, "--exact", "--nocapture", "--test-threads=1"])
            .env(ADDRESS, address)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output }
    }

    fn go(&mut self, tool: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{tool}").unwrap();
    }

    fn reported(&mut self) -> Reported {
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "a process has ended");
            let Some(counts) = line.trim().strip_prefix("told ") else { continue };
            let counts: Vec<u64> = counts.split(' ').map(|count| count.parse().unwrap()).collect();
            return Reported { done: counts[0], refused: counts[1], lost: counts[2] };
        }
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        // Without input it ends by itself, unless the test has failed in the middle.
        drop(self.child.stdin.take());
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn start(folder: &TempDir, url: &str, address: &Path) -> Gate {
    let home = Home::new();
    let limits: Vec<String> = LIMITS
        .iter()
        .map(|limit| {
            format!(
                "      't{limit}x*': {{ limits: [{{ counter: '{{tool}}', window: 3650d, max: {limit} }}] }}\n"
            )
        })
        .collect();
    home.configure(&format!(
        "version: 1\n{LISTEN}\naudit: {{ arguments: full }}\nservers:\n  work: {{ url: '{url}' }}\n\
         policies:\n  exact:\n    version: '1'\n    default: deny\n    tools:\n{}\
         grants: [{{ label: hammer, token: 'env:TOKEN', policy: exact }}]\n",
        limits.concat()
    ));
    let mut command = home.command(&["serve", "--ready-json"]);
    command.arg("--data").arg(folder.path().join("data")).env("TOKEN", TOKEN);
    let gate = Gate::run(home, command).unwrap_or_else(|(status, log)| panic!("{status}: {log}"));
    std::fs::write(address, gate.mcp()).unwrap();
    gate
}
