//! A panicking backend fails the jobs of its group and no later ones; a hanging one blocks one
//! caller.

use std::{
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use futures_util::FutureExt as _;
use parking_lot::Mutex;
use toolgate_audit::{Draft, Effect, Outcome, RowKind};

use crate::{
    AdmitOutcome, Backend, Completion, Engine, EngineSettings, MemoryBackend, Store, StoreError,
    StoreErrorKind,
    backend::{BackendReader, TransactionBody},
    suite::{TestAgent, assert_whole, at, wait},
};

#[derive(Debug)]
struct Panicky {
    memory: MemoryBackend,
    armed: Arc<AtomicBool>,
}

impl Backend for Panicky {
    fn transact(&mut self, work: &mut TransactionBody<'_>) -> Result<(), StoreError> {
        assert!(!self.armed.swap(false, Ordering::SeqCst), "on purpose");
        self.memory.transact(work)
    }

    fn reader(&self) -> Result<Box<dyn BackendReader>, StoreError> {
        self.memory.reader()
    }
}

#[test]
fn a_panicking_backend_is_survived() {
    for start in [Engine::start, Engine::inline] {
        let armed = Arc::new(AtomicBool::new(false));
        let backend = Panicky { memory: MemoryBackend::default(), armed: Arc::clone(&armed) };
        let store: Arc<dyn Store> =
            Arc::new(start(backend, EngineSettings::default(), at(0)).unwrap());
        let agent = TestAgent::new(&store, "a");
        armed.store(true, Ordering::SeqCst);
        let refused = agent.ask("run", "{}", at(1)).unwrap_err();
        assert_eq!(refused.0.kind, StoreErrorKind::Internal);
        let Ok(AdmitOutcome::Admitted(admitted)) = agent.ask("run", "{}", at(1)) else {
            panic!("the next call is admitted")
        };
        armed.store(true, Ordering::SeqCst);
        let (_permit, ticket) = admitted.split();
        let settled = ticket.finish_written(Completion::new(Outcome::Ok, Effect::Done, at(2)));
        // A store without threads retries on the next tick.
        store.tick(at(2));
        wait(settled).unwrap();
        assert_whole(&*store);
    }
}

/// Blocks every transaction while `gate` is locked; `reached` reports that one has started.
#[derive(Debug)]
struct Hanging {
    memory: MemoryBackend,
    armed: Arc<AtomicBool>,
    reached: Arc<Barrier>,
    gate: Arc<Mutex<()>>,
}

impl Backend for Hanging {
    fn transact(&mut self, work: &mut TransactionBody<'_>) -> Result<(), StoreError> {
        if self.armed.swap(false, Ordering::SeqCst) {
            self.reached.wait();
            drop(self.gate.lock());
        }
        self.memory.transact(work)
    }

    fn reader(&self) -> Result<Box<dyn BackendReader>, StoreError> {
        self.memory.reader()
    }
}

#[test]
fn a_hanging_backend_delays_one_caller() {
    let (armed, reached) = (Arc::new(AtomicBool::new(false)), Arc::new(Barrier::new(2)));
    let gate = Arc::new(Mutex::new(()));
    let backend = Hanging {
        memory: MemoryBackend::default(),
        armed: Arc::clone(&armed),
        reached: Arc::clone(&reached),
        gate: Arc::clone(&gate),
    };
    let engine = Engine::start(backend, EngineSettings::default(), at(0)).unwrap();
    let store: Arc<dyn Store> = Arc::new(engine);
    let agent = TestAgent::new(&store, "a");
    thread::scope(|scope| {
        let closed = gate.lock();
        armed.store(true, Ordering::SeqCst);
        let first = scope.spawn(|| agent.ask("many", "{}", at(1)));
        reached.wait();
        // The writer is taken; neither this caller nor later ones are blocked.
        let mut others: Vec<_> =
            (0..3).map(|_| store.admit(agent.request("many", "{}", at(1)))).collect();
        assert!(others.iter_mut().all(|other| other.now_or_never().is_none()));
        drop(closed);
        assert!(matches!(first.join().unwrap(), Ok(AdmitOutcome::Admitted(_))));
        for other in others {
            assert!(matches!(wait(other), Ok(AdmitOutcome::Admitted(_))));
        }
    });
    flush(&*store);
    assert_whole(&*store);
}

/// Three calls may run at once and two do: a caller that ends the third can start it again at once,
/// even while others use the writer.
#[test]
fn earlier_outcomes_are_written_first() {
    let engine = Engine::start(MemoryBackend::default(), EngineSettings::default(), at(0)).unwrap();
    let store: Arc<dyn Store> = Arc::new(engine);
    let over = AtomicBool::new(false);
    let call = |agent: &TestAgent, tool: &str| match agent.ask(tool, "{}", at(1)) {
        Ok(AdmitOutcome::Admitted(admitted)) => admitted.split().1,
        other => panic!("{tool}: {other:?}"),
    };
    let done = || Completion::new(Outcome::Ok, Effect::Done, at(1));
    thread::scope(|scope| {
        for name in ["b", "c"] {
            let (agent, over) = (TestAgent::new(&store, name), &over);
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    call(&agent, "many").finish(done());
                }
            });
        }
        let agent = TestAgent::new(&store, "a");
        let runs = [call(&agent, "run"), call(&agent, "run")];
        for _ in 0..2_000 {
            call(&agent, "run").finish(done());
        }
        over.store(true, Ordering::Relaxed);
        drop(runs);
    });
    flush(&*store);
    assert_whole(&*store);
}

/// All earlier jobs are written when this returns.
fn flush(store: &dyn Store) {
    wait(store.record(Draft::new(RowKind::Drift, at(1)))).unwrap();
}
