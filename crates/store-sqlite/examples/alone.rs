//! A single caller: admits and ends calls one after the other in its own data folder, to measure
//! the cost of one call without a network.
//!
//! `cargo run --release -p toolgate-store-sqlite --example alone -- 20000 [MICROSECONDS]`: the
//! number of calls, and how long each takes. Use `strace -f -c` to count system calls, or `valgrind
//! --tool=callgrind` to count instructions. The folder is created in `ALONE_IN`, or in the current
//! directory.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measuring program prints what it measured, and stops at the first surprise"
)]

use std::{
    env, fs,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use toolgate_audit::{Effect, Hash, Outcome};
use toolgate_store::{
    AdmitOutcome, Completion, Store,
    suite::{TestAgent, wait},
};
use toolgate_store_sqlite::{Durability, OpenOptions, Randomness, open};

fn main() {
    let calls: usize = env::args().nth(1).map_or(20_000, |calls| calls.parse().unwrap());
    let pause = env::args().nth(2).map_or(0, |pause| pause.parse().unwrap());
    let folder = tempfile::tempdir_in(env::var_os("ALONE_IN").unwrap_or(".".into())).unwrap();
    let randomness = Randomness { owner: 1, signing: [1; 32], hashing: [2; 32] };
    let options = OpenOptions::new(Durability::Process, randomness);
    let opened = open(folder.path(), options, Timestamp::now()).unwrap();
    let store: Arc<dyn Store> = Arc::new(opened.store);
    let agent = TestAgent::new(&store, "load");
    let mut took = Vec::with_capacity(calls);
    let before = processor_time();
    for _ in 0..calls {
        let mut request = agent.request("many", "{\"message\":\"hello\"}", Timestamp::now());
        request.draft.agent_session = Some("0f8fad5b-d9cb-469f-a165-70867728950e".into());
        request.draft.client = Some("load".into());
        request.draft.via = Some("/mcp/echo".into());
        request.draft.risk = Some("other".into());
        request.draft.policy_hash = Some(Hash([7; 32]));
        request.draft.argument_keys = Some("[\"message\"]".into());
        let began = Instant::now();
        let AdmitOutcome::Admitted(admitted) = wait(store.admit(request)).unwrap() else { return };
        took.push(began.elapsed());
        let (_permit, ticket) = admitted.split();
        if pause > 0 {
            thread::sleep(Duration::from_micros(pause));
        }
        let mut ending = Completion::new(Outcome::Ok, Effect::Done, Timestamp::now());
        (ending.upstream_ms, ending.total_ms) = (Some(0), Some(0));
        ticket.finish(ending);
    }
    let used = processor_time() - before;
    took.sort();
    let place = |share: usize| took.get(calls * share / 100).copied().unwrap_or_default();
    println!("admit: p50 {:?}, p90 {:?}, p99 {:?}", place(50), place(90), place(99));
    println!("processor time of all threads, a call: {} µs", used / u64::try_from(calls).unwrap());
    drop(agent);
    wait(store.close(Timestamp::now())).unwrap();
}

/// In microseconds, with a resolution of ten thousand.
fn processor_time() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks = |field: usize| fields.get(field).unwrap().parse::<u64>().unwrap();
    (ticks(11) + ticks(12)) * 10_000
}
