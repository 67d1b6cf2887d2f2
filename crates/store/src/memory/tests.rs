//! The store in memory passes the suite.

use std::sync::{Arc, Mutex};

use crate::{
    Engine, Memory, Settings, Store, conformance,
    suite::{Place, signer},
};
use jiff::Timestamp;

#[derive(Debug, Default)]
struct InMemory(Mutex<Option<Memory>>);

impl Place for InMemory {
    fn open(&self, now: Timestamp) -> Arc<dyn Store> {
        let memory = Memory::default();
        *self.0.lock().unwrap() = Some(memory.clone());
        let settings = Settings { signer: Some(signer()), on_checkpoint: None };
        Arc::new(Engine::start(memory, settings, now).unwrap())
    }

    fn set_broken(&self, broken: bool) {
        self.0.lock().unwrap().as_ref().unwrap().set_broken(broken);
    }

    fn is_durable(&self) -> bool {
        false
    }
}

conformance!(InMemory::default());
