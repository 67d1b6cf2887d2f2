//! The engine and its counters under thousands of schedules: calls, outcomes, queries and ticks of
//! several clients and two processes on the same data, in every interleaving that shuttle tries.
//!
//! Run by `cargo xtask test`, or `cargo nextest run -p toolgate-store --features shuttle --test
//! schedules`. A failing schedule is printed, and `shuttle::replay` repeats it.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests may panic, in their helpers too")]

use std::panic::catch_unwind;
use std::sync::Arc;

use jiff::Timestamp;
use shuttle::future::block_on;
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, Runner, thread};
use toolgate_audit::{Effect, Outcome, Row, RowKind, Verifier};
use toolgate_policy::{Approval, Verdict};
use toolgate_store::suite::{POLICY, TestAgent, at, signer};
use toolgate_store::{
    AdmitOutcome, AdmitRequest, Admitted, Completion, Engine, EngineSettings, MemoryBackend,
    NotAudited, RowQuery, Store,
};

/// How many schedules each scheduler tries.
const SCHEDULES: usize = 1_500;
/// The number of preemptions of the second scheduler: most bugs need two or three.
const CHANGES: usize = 3;
/// `both` is admitted five times a minute to one grant.
const MOST: usize = 5;

/// Runs a scenario under both schedulers.
fn explore(scenario: fn()) {
    run(RandomScheduler::new_from_seed(0x5eed, SCHEDULES), scenario);
    run(PctScheduler::new_from_seed(0x5eed, CHANGES, SCHEDULES), scenario);
}

fn run(scheduler: impl Scheduler + 'static, scenario: fn()) {
    let mut config = Config::new();
    // Policies are parsed and decided on the clients' stacks.
    config.stack_size = 1 << 20;
    Runner::new(scheduler, config).run(scenario);
}

/// Two stores on the same data, as in two processes.
fn two_on(memory: &MemoryBackend) -> [Arc<dyn Store>; 2] {
    [(); 2].map(|()| {
        let settings = EngineSettings { signer: Some(signer()), ..EngineSettings::default() };
        let engine = Engine::start(memory.clone(), settings, at(0)).unwrap();
        Arc::new(engine) as Arc<dyn Store>
    })
}

fn admitted(answer: Result<AdmitOutcome, NotAudited>) -> Option<Admitted> {
    match answer {
        Ok(AdmitOutcome::Admitted(admitted)) => Some(admitted),
        Ok(AdmitOutcome::Refused(_)) | Err(_) => None,
        other => panic!("{other:?}"),
    }
}

/// What happened to a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CallFate {
    /// It was sent.
    Out,
    /// It was admitted and never sent.
    Back,
    /// It was refused.
    Nowhere,
}

/// Three calls: one is sent and its outcome awaited, one is never sent, one is sent and its ticket
/// dropped.
fn three_calls(store: &Arc<dyn Store>, agent: &TestAgent) -> Vec<CallFate> {
    let ask = || admitted(block_on(store.admit(agent.request("both", "{}", at(1)))));
    let mut went = Vec::new();
    for (outcome, effect) in
        [(Outcome::Ok, Effect::Done), (Outcome::Unavailable, Effect::NotStarted)]
    {
        went.push(match ask() {
            None => CallFate::Nowhere,
            Some(admitted) => {
                let call = admitted.call_id();
                // A caller that receives an admission finds its intent row.
                let story = block_on(store.call_rows(call)).unwrap();
                assert_eq!(story.first().map(|row| row.draft.kind), Some(RowKind::Intent));
                let (_permit, ticket) = admitted.split();
                block_on(ticket.finish_written(Completion::new(outcome, effect, at(2)))).unwrap();
                if effect == Effect::Done { CallFate::Out } else { CallFate::Back }
            }
        });
    }
    went.push(if ask().is_some() { CallFate::Out } else { CallFate::Nowhere });
    went
}

fn rows(store: &dyn Store) -> Vec<Row> {
    block_on(store.rows(RowQuery { limit: 1_000, ..RowQuery::default() })).unwrap()
}

/// The chain is valid, and every intent has exactly one outcome.
fn assert_whole(store: &dyn Store) {
    let rows = rows(store);
    let checkpoints = block_on(store.checkpoints()).unwrap();
    let mut verifier = Verifier::new(&signer().public_key(), checkpoints);
    for row in &rows {
        let seq = i64::try_from(row.seq).unwrap();
        assert!(verifier.row(seq, &row.hash.0, Ok(&row.draft)).is_ok());
    }
    assert_eq!(verifier.finish().first_bad, None);
    let of = |kind: RowKind| {
        let mut calls: Vec<_> = rows.iter().filter(|row| row.draft.kind == kind).collect();
        calls.sort_by_key(|row| row.draft.call_id.map(|call| call.0));
        calls.into_iter().map(|row| row.draft.call_id).collect::<Vec<_>>()
    };
    assert_eq!(of(RowKind::Intent), of(RowKind::Outcome));
}

/// How many more calls a grant may make.
fn room(store: &Arc<dyn Store>, agent: &TestAgent) -> usize {
    let more = (0..=MOST).filter_map(|_| {
        let request = agent.request("both", "{}", at(3));
        let (_permit, ticket) = admitted(block_on(store.admit(request)))?.split();
        block_on(ticket.finish_written(Completion::new(Outcome::Ok, Effect::Done, at(3)))).ok()
    });
    more.count()
}

fn clients_of_two_processes() {
    let memory = MemoryBackend::default();
    let stores = two_on(&memory);
    let agent = TestAgent::new(&stores[0], "a");
    let clients: Vec<_> = stores
        .iter()
        .cycle()
        .take(3)
        .map(|store| {
            let (store, agent) = (Arc::clone(store), agent.clone());
            thread::spawn(move || three_calls(&store, &agent))
        })
        .collect();
    let ticking = Arc::clone(&stores[1]);
    let clock = thread::spawn(move || {
        ticking.tick(at(1));
        ticking.tick(at(2));
    });
    let went: Vec<CallFate> = clients.into_iter().flat_map(|it| it.join().unwrap()).collect();
    clock.join().unwrap();
    let out = went.iter().filter(|went| **went == CallFate::Out).count();
    assert!(out <= MOST, "{out} of {MOST} were sent");
    // OutcomeSink that no caller awaits are written before the next job of the same store.
    for store in &stores {
        block_on(store.record(toolgate_audit::Draft::new(RowKind::Drift, at(3)))).unwrap();
    }
    assert_eq!(out + room(&stores[0], &agent), MOST, "none lost, none counted twice");
    assert_whole(&*stores[0]);
    for store in stores {
        block_on(store.close(at(4))).unwrap();
    }
}

#[test]
fn a_limit_of_n_admits_n_under_every_schedule() {
    explore(clients_of_two_processes);
}

/// Writing fails for a while: calls are refused then, but no outcome is lost.
fn a_disk_that_fails() {
    let memory = MemoryBackend::default();
    let [store, other] = two_on(&memory);
    let agent = TestAgent::new(&store, "a");
    let breaking = memory.clone();
    let vandal = thread::spawn(move || {
        breaking.set_broken(true);
        thread::yield_now();
        breaking.set_broken(false);
    });
    let client = {
        let (store, agent) = (Arc::clone(&store), agent.clone());
        thread::spawn(move || {
            let request = agent.request("both", "{}", at(1));
            let Some(admitted) = admitted(block_on(store.admit(request))) else { return 0 };
            let (_permit, ticket) = admitted.split();
            block_on(ticket.finish_written(Completion::new(Outcome::Ok, Effect::Done, at(2))))
                .unwrap();
            1
        })
    };
    let out = client.join().unwrap();
    vandal.join().unwrap();
    assert_eq!(out + room(&store, &agent), MOST);
    assert_whole(&*store);
    for store in [store, other] {
        block_on(store.close(at(4))).unwrap();
    }
}

#[test]
fn no_outcome_is_lost_to_a_failing_disk() {
    explore(a_disk_that_fails);
}

/// The store closes during calls: a caller that received an admission finds its intent, and no
/// caller waits for ever.
fn closing_among_calls() {
    let memory = MemoryBackend::default();
    let [store, other] = two_on(&memory);
    let agent = TestAgent::new(&store, "a");
    let clients: Vec<_> = (0..2)
        .map(|_| {
            let (store, agent) = (Arc::clone(&store), agent.clone());
            thread::spawn(move || {
                let request = agent.request("both", "{}", at(1));
                let call = admitted(block_on(store.admit(request)))?.call_id();
                Some(call)
            })
        })
        .collect();
    block_on(store.close(at(2))).unwrap();
    let told: Vec<_> = clients.into_iter().filter_map(|it| it.join().unwrap()).collect();
    for call in told {
        let story = block_on(other.call_rows(call)).unwrap();
        assert_eq!(story.first().map(|row| row.draft.kind), Some(RowKind::Intent));
    }
    block_on(other.close(at(3))).unwrap();
}

#[test]
fn a_store_closes_while_others_call() {
    explore(closing_among_calls);
}

/// The bug that this test must find: deciding on counters that were read before the transaction,
/// not inside it.
fn decided_outside(store: &Arc<dyn Store>, agent: &TestAgent, now: Timestamp) -> AdmitRequest {
    let mut request = agent.request("both", "{}", now);
    let (tell, told) = futures_channel::oneshot::channel();
    let decide = std::mem::replace(&mut request.decide, Box::new(|_, _, _| unreachable!()));
    let look = Box::new(move |usage: &dyn toolgate_policy::Usage, now| {
        drop(tell.send(decide(usage, Approval::None, now)));
    });
    block_on(store.read_usage(now, look)).unwrap();
    let mut verdict: Verdict = block_on(told).unwrap();
    for reservation in &mut verdict.reservations {
        reservation.enforced = false;
    }
    request.decide = Box::new(move |_, _, _| verdict.clone());
    request
}

fn clients_that_decide_outside() {
    let memory = MemoryBackend::default();
    let stores = two_on(&memory);
    let agent = TestAgent::new(&stores[0], "a");
    let clients: Vec<_> = stores
        .iter()
        .map(|store| {
            let (store, agent) = (Arc::clone(store), agent.clone());
            thread::spawn(move || {
                let calls = (0..3).filter(|_| {
                    let request = decided_outside(&store, &agent, at(1));
                    admitted(block_on(store.admit(request))).is_some()
                });
                calls.count()
            })
        })
        .collect();
    let out: usize = clients.into_iter().map(|it| it.join().unwrap()).sum();
    for store in stores {
        block_on(store.close(at(4))).unwrap();
    }
    assert!(out <= MOST, "{out} of {MOST} were sent");
}

#[test]
fn a_planted_bug_is_found() {
    assert!(POLICY.contains("counter: a, window: minute, max: 5"), "the limit of `both`");
    let schedulers: [(&str, fn()); 2] = [
        ("random", || {
            run(RandomScheduler::new_from_seed(1, SCHEDULES), clients_that_decide_outside)
        }),
        ("pct", || {
            run(PctScheduler::new_from_seed(1, CHANGES, SCHEDULES), clients_that_decide_outside)
        }),
    ];
    for (name, explored) in schedulers {
        let found = catch_unwind(explored);
        let said = found.expect_err(&format!("{name} did not find it"));
        let said = said.downcast_ref::<String>().cloned().unwrap_or_default();
        assert!(said.contains("6 of 5 were sent"), "{name}: {said}");
    }
}
