//! Admission for tests: a store in memory, a test clock, and a policy that the test sets.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use parking_lot::Mutex;
use toolgate_audit::{ArgumentHashKey, ArgumentMode, Row};
use toolgate_gateway::{Access, ActivePolicy, Admission, ArgumentRecording, Clock, Grant, Ids};
use toolgate_policy::{Known, Policy};
use toolgate_store::{Engine, EngineSettings, MemoryBackend, RowQuery, Store};

/// Decides requests.
pub(crate) struct TestAdmission {
    pub(crate) admission: Arc<Admission>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) memory: MemoryBackend,
    pub(crate) clock: Arc<TestClock>,
}

/// A clock that is set, and that panics when it is broken.
#[derive(Debug)]
pub(crate) struct TestClock(Mutex<Timestamp>, AtomicBool);

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        assert!(!self.1.load(Ordering::SeqCst), "on purpose");
        *self.0.lock()
    }
}

impl TestClock {
    pub(crate) fn set(&self, now: Timestamp) {
        *self.0.lock() = now;
    }

    /// Panics whenever it is read, or no longer.
    pub(crate) fn set_broken(&self, broken: bool) {
        self.1.store(broken, Ordering::SeqCst);
    }
}

impl TestAdmission {
    /// Everything is allowed.
    pub(crate) fn new(ids: Arc<dyn Ids>) -> Self {
        Self::through(ids, |store| store)
    }

    /// The same, with something between admission and the store.
    pub(crate) fn through(
        ids: Arc<dyn Ids>,
        between: impl FnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
    ) -> Self {
        let start = |memory, now| Engine::inline(memory, EngineSettings::default(), now).unwrap();
        Self::over(ids, start, between)
    }

    /// The same, with a store that `start` starts.
    pub(crate) fn over(
        ids: Arc<dyn Ids>,
        start: impl FnOnce(MemoryBackend, Timestamp) -> Engine,
        between: impl FnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
    ) -> Self {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        let memory = MemoryBackend::default();
        let store: Arc<dyn Store> = Arc::new(start(memory.clone(), now));
        let clock = Arc::new(TestClock(Mutex::new(now), AtomicBool::new(false)));
        let writing =
            ArgumentRecording { mode: ArgumentMode::Keys, secret: ArgumentHashKey([7; 32]) };
        let ticking: Arc<dyn Clock> = Arc::clone(&clock) as _;
        let admission = Admission::new(between(Arc::clone(&store)), ticking, ids, writing);
        let test_admission = Self { admission: Arc::new(admission), store, memory, clock };
        test_admission.enforce("version: \"1\"\ndefault: allow\n");
        test_admission
    }

    /// Sets the policy of calls without a token.
    pub(crate) fn enforce(&self, document: &str) {
        let policy = policy(document);
        let grant = Grant { label: "local".into(), policy: Some(policy), ..Grant::default() };
        let access = Access::new(Some(Arc::new(grant)), []);
        self.admission.set_access(access);
    }

    /// All rows of the audit, once there are this many: outcomes are written in the background.
    pub(crate) async fn rows_by(&self, count: usize) -> Vec<Row> {
        loop {
            let rows =
                self.store.rows(RowQuery { limit: 1_000, ..RowQuery::default() }).await.unwrap();
            if rows.len() >= count {
                return rows;
            }
            crate::script::settle().await;
        }
    }
}

pub(crate) fn policy(document: &str) -> Arc<ActivePolicy> {
    let loaded = Policy::load("test", document, &Known::default());
    let policy = loaded.policy.unwrap_or_else(|| panic!("{:?}", loaded.problems));
    Arc::new(ActivePolicy::new(policy))
}
