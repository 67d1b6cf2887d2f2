//! One trial: faulty servers beside a healthy one, agents that use all of them, and the checks afterwards.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use serde_json::{Value, json};
use toolgate_testkit::faulty::endless::EndlessServer;
use toolgate_testkit::faulty::{CHILD_ARGUMENT, FALSE_ANSWER, FaultyServer};

use crate::endpoint::{Endpoint, Visitor};
use crate::gate::{Gate, eventually};
use crate::process::{children, files, marked, peak_memory};

/// Whether agents have children of their own.
pub(crate) const INSTANCES: [&str; 2] = ["per-agent", "shared"];

/// How much memory the gateway may need at most, in MiB. A list of 100,000 tools is a line of
/// 15 MiB, of which there are a few copies for each of the agents that read it.
const MEMORY: u64 = 512;
/// How much a server alone writes to stderr.
const FLOOD: u64 = 1024 * 1024 * 1024;
/// The number of agents of the healthy server, and of each faulty one.
const HEALTHY_AGENTS: usize = 4;
const FAULTY_AGENTS: usize = 2;
/// The minimum number of calls of a healthy tool, and the maximum while faulty servers are in use.
const CALLS: (usize, usize) = (25, 400);

/// Uses these faulty servers and the healthy one at once.
pub(crate) fn run_scenario(endpoint: &Endpoint, servers: &[FaultyServer], instances: &str) {
    let mark = mark();
    let endless = EndlessServer::start(Duration::from_millis(1)).unwrap();
    let mut gate = Gate::start(&config(servers, instances, &mark, &endless));
    let files_before = files(gate.pid());

    let (over, open) = (&AtomicBool::new(false), &gate);
    thread::scope(|scope| {
        let healthy: Vec<_> = (0..HEALTHY_AGENTS)
            .map(|number| scope.spawn(move || use_healthy(endpoint, open, number, over)))
            .collect();
        let visitors = servers.iter().flat_map(|server| [server; FAULTY_AGENTS]);
        let visits: Vec<_> = visitors
            .map(|server| scope.spawn(move || use_faulty(endpoint, open, *server)))
            .collect();
        let mut ended: Vec<_> = visits.into_iter().map(ScopedJoinHandle::join).collect();
        over.store(true, Ordering::Relaxed);
        ended.extend(healthy.into_iter().map(ScopedJoinHandle::join));
        for joined in ended {
            joined.unwrap();
        }
    });

    if instances == "shared" {
        // Shared children do not end with an agent session.
        gate.configure("audit: { durability: off }");
    }
    eventually("all children are gone, and reaped", || {
        children(gate.pid()).is_empty().then_some(())
    });
    eventually("no more files are open than before the agents came", || {
        (files(gate.pid()) <= files_before).then_some(())
    });
    let memory = peak_memory(gate.pid());
    assert!(memory <= MEMORY, "the gateway needed {memory} MiB");
    assert_eq!(gate.stop(), (Some(0), String::new()));
    eventually("no process is left", || marked(&mark).is_empty().then_some(()));
    report(servers, instances, memory);
}

/// Calls the healthy server until the faulty ones are finished; every answer must be correct.
fn use_healthy(endpoint: &Endpoint, gate: &Gate, number: usize, over: &AtomicBool) {
    let visitor = endpoint.enter(gate, "healthy").unwrap_or_else(|reply| panic!("{reply:?}"));
    let (least, most) = CALLS;
    for call in 0..most {
        if call >= least && over.load(Ordering::Relaxed) {
            break;
        }
        let text = format!("agent {number} call {call}");
        let result = visitor.agent.call(&visitor.tool("echo"), &json!({"text": text}));
        assert_eq!(result, json!({"content": [{"type": "text", "text": text}]}));
    }
    assert_eq!(visitor.agent.delete().status, 200);
}

/// Uses a faulty server. It may fail with an error code, and some may send false answers. Its
/// notifications are requested and never read.
fn use_faulty(endpoint: &Endpoint, gate: &Gate, server: FaultyServer) {
    let name = server.name();
    let Ok(visitor) = endpoint.enter(gate, &name) else { return };
    let _unread = visitor.agent.get("Accept: text/event-stream\r\n");
    let list = {
        let _turn = turn_to_list(server);
        visitor.agent.request("tools/list", &json!({}))
    };
    let lied = lies(server) && list["result"]["content"][0]["text"] == FALSE_ANSWER;
    let listed = list["result"]["tools"].is_array();
    assert!(listed || lied || is_failure(&list["error"]["data"]), "{server:?} lists {list}");
    for call in 0..3 {
        call_faulty(&visitor, server, call);
    }
    assert_eq!(visitor.agent.delete().status, 200);
}

/// At most this many agents read a list at a time. On `/mcp` a list has the 100,000 tools of one server
/// as soon as that has listed them. If all agents read it at once, they leave more unread than one
/// grant may.
const LISTING: usize = 4;

fn turn_to_list(server: FaultyServer) -> MutexGuard<'static, ()> {
    static TURNS: [Mutex<()>; LISTING] = [const { Mutex::new(()) }; LISTING];
    let place = server.name().bytes().map(usize::from).sum::<usize>() % LISTING;
    TURNS.get(place).unwrap().lock().unwrap_or_else(PoisonError::into_inner)
}

fn call_faulty(visitor: &Visitor, server: FaultyServer, call: usize) {
    let text = format!("call {call}");
    let result = visitor.agent.call(&visitor.tool("echo"), &json!({"text": text}));
    let printed = &result["content"][0]["text"];
    assert!(
        printed == &text
            || (lies(server) && printed == FALSE_ANSWER)
            || is_failure(&result["_meta"]),
        "{server:?} printed {result}"
    );
}

/// Whether it sends unsolicited answers; agents that share it may receive them.
fn lies(server: FaultyServer) -> bool {
    matches!(server, FaultyServer::OtherIds | FaultyServer::Twice | FaultyServer::WrongIds)
}

fn is_failure(meta: &Value) -> bool {
    let codes = ["upstream_unavailable", "upstream_timeout", "outcome_unknown"];
    codes.iter().any(|code| meta["error_code"] == *code)
}

fn config(
    servers: &[FaultyServer],
    instances: &str,
    mark: &str,
    endless: &EndlessServer,
) -> String {
    let program = std::env::current_exe().unwrap();
    // A slow disk would refuse calls, which another test covers.
    let mut config = "audit: { durability: off }\nservers:\n".to_owned();
    for server in servers.iter().chain([&FaultyServer::Healthy]) {
        let name = server.name();
        let limits = match server {
            FaultyServer::Healthy => "",
            // Its first answer comes after the last byte of the flood, and not before.
            FaultyServer::StderrFlood => ", timeout: 2m",
            _ => ", timeout: 2s, start_timeout: 2s",
        };
        let amount = match server {
            FaultyServer::StderrFlood if servers.len() == 1 => FLOOD,
            _ => server.usual_amount(),
        };
        if server.listens() {
            writeln!(config, "  {name}: {{ url: '{}'{limits} }}", endless.url()).unwrap();
            continue;
        }
        writeln!(
            config,
            "  {name}: {{ command: '{}', args: [{CHILD_ARGUMENT}, {name}, --amount, '{amount}'], instances: {instances}, \
             env: {{ TOOLGATE_TEST_MARK: {mark} }}{limits} }}",
            program.display()
        )
        .unwrap();
    }
    config
}

/// A text that no other process has in its environment.
fn mark() -> String {
    static TRIALS: AtomicU32 = AtomicU32::new(0);
    let trial = TRIALS.fetch_add(1, Ordering::Relaxed);
    format!("faulty-mark-{}-{trial}-end", std::process::id())
}

#[expect(clippy::print_stdout, reason = "a figure that people want to see")]
fn report(servers: &[FaultyServer], instances: &str, memory: u64) {
    println!("{} servers, {instances}: at most {memory} MiB", servers.len());
}
