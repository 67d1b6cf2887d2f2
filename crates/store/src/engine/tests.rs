//! A backend that panics harms the jobs of that group and nobody later.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use toolgate_audit::{Effect, Outcome};

use crate::{
    Answer, Backend, Ending, Engine, Fault, FaultKind, Memory, Settings, Store,
    backend::{Reader, Work},
    suite::{Agent, assert_whole, at, wait},
};

#[derive(Debug)]
struct Panicky {
    memory: Memory,
    armed: Arc<AtomicBool>,
}

impl Backend for Panicky {
    fn transact(&mut self, work: &mut Work<'_>) -> Result<(), Fault> {
        assert!(!self.armed.swap(false, Ordering::SeqCst), "on purpose");
        self.memory.transact(work)
    }

    fn reader(&self) -> Result<Box<dyn Reader>, Fault> {
        self.memory.reader()
    }
}

#[test]
fn a_backend_that_panics_is_survived() {
    for start in [Engine::start, Engine::on_the_spot] {
        let armed = Arc::new(AtomicBool::new(false));
        let backend = Panicky { memory: Memory::default(), armed: Arc::clone(&armed) };
        let store: Arc<dyn Store> = Arc::new(start(backend, Settings::default(), at(0)).unwrap());
        let agent = Agent::new(&store, "a");
        armed.store(true, Ordering::SeqCst);
        let refused = agent.ask("run", "{}", at(1)).unwrap_err();
        assert_eq!(refused.0.kind, FaultKind::Internal);
        let Ok(Answer::Admitted(admitted)) = agent.ask("run", "{}", at(1)) else {
            panic!("the next call is admitted")
        };
        armed.store(true, Ordering::SeqCst);
        let (_permit, ticket) = admitted.split();
        let settled = ticket.finish_written(Ending::new(Outcome::Ok, Effect::Done, at(2)));
        // A store without threads tries again when it is told the time.
        store.tick(at(2));
        wait(settled).unwrap();
        assert_whole(&*store);
    }
}
