//! One trial: animals beside a healthy server, agents at all of them, and what must hold after.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use serde_json::{Value, json};
use toolgate_testkit::zoo::endless::Endless;
use toolgate_testkit::zoo::{ASKED, Animal, LIE};

use crate::door::{Door, Visitor};
use crate::gate::{Gate, eventually};
use crate::process::{children, files, marked, peak_memory};

/// Whether agents have children of their own.
pub(crate) const INSTANCES: [&str; 2] = ["per-agent", "shared"];

/// How much memory the gateway may need at most, in MiB. A list of 100,000 tools is a line of
/// 15 MiB, of which there are a few copies for each of the agents that read it.
const MEMORY: u64 = 512;
/// How much an animal alone says on stderr.
const FLOOD: u64 = 1024 * 1024 * 1024;
/// How many agents use the healthy server, and how many each animal.
const HEALTHY_AGENTS: usize = 4;
const ANIMAL_AGENTS: usize = 2;
/// How often a healthy tool is called at least, and at most while animals are still at it.
const CALLS: (usize, usize) = (25, 400);

/// Visits these animals and the healthy server at once.
pub(crate) fn visit(door: &Door, animals: &[Animal], instances: &str) {
    let mark = mark();
    let endless = Endless::start(Duration::from_millis(1)).unwrap();
    let mut gate = Gate::start(&config(animals, instances, &mark, &endless));
    let files_before = files(gate.pid());

    let (over, open) = (&AtomicBool::new(false), &gate);
    thread::scope(|scope| {
        let healthy: Vec<_> = (0..HEALTHY_AGENTS)
            .map(|number| scope.spawn(move || use_healthy(door, open, number, over)))
            .collect();
        let visitors = animals.iter().flat_map(|animal| [animal; ANIMAL_AGENTS]);
        let visits: Vec<_> =
            visitors.map(|animal| scope.spawn(move || torment(door, open, *animal))).collect();
        let mut ended: Vec<_> = visits.into_iter().map(ScopedJoinHandle::join).collect();
        over.store(true, Ordering::Relaxed);
        ended.extend(healthy.into_iter().map(ScopedJoinHandle::join));
        for visit in ended {
            visit.unwrap();
        }
    });

    if instances == "shared" {
        // Nobody's own, so nobody's end is theirs.
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
    report(animals, instances, memory);
}

/// Calls the healthy server until the animals are done with; every answer is right.
fn use_healthy(door: &Door, gate: &Gate, number: usize, over: &AtomicBool) {
    let visitor = door.enter(gate, "healthy").unwrap_or_else(|reply| panic!("{reply:?}"));
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

/// Uses an animal. It may fail in any way that says so, and a liar may lie. What it says of its
/// own accord is asked for and never read.
fn torment(door: &Door, gate: &Gate, animal: Animal) {
    let name = animal.name();
    let Ok(visitor) = door.enter(gate, &name) else { return };
    let _unread = visitor.agent.get("Accept: text/event-stream\r\n");
    let list = visitor.agent.request("tools/list", &json!({}));
    let lied = lies(animal) && list["result"]["content"][0]["text"] == LIE;
    let listed = list["result"]["tools"].is_array();
    assert!(listed || lied || is_failure(&list["error"]["data"]), "{animal:?} lists {list}");
    for call in 0..3 {
        call_animal(&visitor, animal, call);
    }
    assert_eq!(visitor.agent.delete().status, 200);
}

fn call_animal(visitor: &Visitor, animal: Animal, call: usize) {
    let text = format!("call {call}");
    let result = visitor.agent.call(&visitor.tool("echo"), &json!({"text": text}));
    let said = &result["content"][0]["text"];
    assert!(
        said == &text || (lies(animal) && said == LIE) || is_failure(&result["_meta"]),
        "{animal:?} said {result}"
    );
}

/// Whether it answers what nobody asked it; agents that share it may hear that.
fn lies(animal: Animal) -> bool {
    matches!(animal, Animal::OtherIds | Animal::Twice | Animal::WrongIds)
}

fn is_failure(meta: &Value) -> bool {
    let codes = ["upstream_unavailable", "upstream_timeout", "outcome_unknown"];
    codes.iter().any(|code| meta["error_code"] == *code)
}

fn config(animals: &[Animal], instances: &str, mark: &str, endless: &Endless) -> String {
    let program = std::env::current_exe().unwrap();
    // A disk that cannot follow refuses calls, and that is another test's business.
    let mut config = "audit: { durability: off }\nservers:\n".to_owned();
    for animal in animals.iter().chain([&Animal::Healthy]) {
        let name = animal.name();
        let limits = match animal {
            Animal::Healthy => "",
            // Its first answer comes after the last byte of the flood, and not before.
            Animal::StderrFlood => ", timeout: 2m",
            _ => ", timeout: 2s, start_timeout: 2s",
        };
        let amount = match animal {
            Animal::StderrFlood if animals.len() == 1 => FLOOD,
            _ => animal.usual_amount(),
        };
        if animal.listens() {
            writeln!(config, "  {name}: {{ url: '{}'{limits} }}", endless.url()).unwrap();
            continue;
        }
        writeln!(
            config,
            "  {name}: {{ command: '{}', args: [{ASKED}, {name}, --amount, '{amount}'], instances: {instances}, \
             env: {{ TOOLGATE_ZOO_MARK: {mark} }}{limits} }}",
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
    format!("zoo-mark-{}-{trial}-end", std::process::id())
}

#[expect(clippy::print_stdout, reason = "a figure that people want to see")]
fn report(animals: &[Animal], instances: &str, memory: u64) {
    println!("{} animals, {instances}: at most {memory} MiB", animals.len());
}
