//! The backend in memory passes the suite.

use std::sync::{Arc, Mutex};

use crate::{
    Engine, EngineSettings, MemoryBackend, Store, conformance,
    suite::{StoreFixture, signer},
};
use jiff::Timestamp;

#[derive(Debug, Default)]
struct InMemory {
    memory: Mutex<Option<MemoryBackend>>,
    inline: bool,
}

impl StoreFixture for InMemory {
    fn open(&self, now: Timestamp) -> Arc<dyn Store> {
        let memory = MemoryBackend::default();
        *self.memory.lock().unwrap() = Some(memory.clone());
        let settings = EngineSettings { signer: Some(signer()), ..EngineSettings::default() };
        let start = if self.inline { Engine::inline } else { Engine::start };
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

mod inline {
    use super::*;
    conformance!(InMemory { inline: true, ..InMemory::default() });
}
