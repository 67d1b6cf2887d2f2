//! The store in memory passes the suite.

use std::sync::{Arc, Mutex};

use crate::{
    Engine, Memory, Settings, Store, conformance,
    suite::{Place, signer},
};
use jiff::Timestamp;

#[derive(Debug, Default)]
struct InMemory {
    memory: Mutex<Option<Memory>>,
    on_the_spot: bool,
}

impl Place for InMemory {
    fn open(&self, now: Timestamp) -> Arc<dyn Store> {
        let memory = Memory::default();
        *self.memory.lock().unwrap() = Some(memory.clone());
        let settings = Settings { signer: Some(signer()), ..Settings::default() };
        let start = if self.on_the_spot { Engine::on_the_spot } else { Engine::start };
        Arc::new(start(memory, settings, now).unwrap())
    }

    fn set_broken(&self, broken: bool) {
        self.memory.lock().unwrap().as_ref().unwrap().set_broken(broken);
    }

    fn is_durable(&self) -> bool {
        false
    }
}

mod with_threads {
    use super::*;
    conformance!(InMemory::default());
}

mod on_the_spot {
    use super::*;
    conformance!(InMemory { on_the_spot: true, ..InMemory::default() });
}
