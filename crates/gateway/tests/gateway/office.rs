//! Admission for tests: a store in memory, a clock that stands still, and whatever policy a test
//! puts in force.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use parking_lot::Mutex;
use toolgate_audit::{ArgumentMode, CallId, Checkpoint, Draft, Row, Secret};
use toolgate_gateway::{Access, Admission, Clock, Grant, Ids, InForce, Writing};
use toolgate_policy::{Known, Policy};
use toolgate_store::{
    Answer, Asking, Change, ChangeError, Engine, Kept, Look, Memory, NotAudited, NotReadable, Page,
    Settings, Snapshot, Status, Store,
};

/// Where requests are decided.
pub(crate) struct Office {
    pub(crate) admission: Arc<Admission>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) memory: Memory,
    pub(crate) clock: Arc<Still>,
}

/// A clock that is set.
#[derive(Debug)]
pub(crate) struct Still(Mutex<Timestamp>);

impl Clock for Still {
    fn now(&self) -> Timestamp {
        *self.0.lock()
    }
}

impl Still {
    pub(crate) fn set(&self, now: Timestamp) {
        *self.0.lock() = now;
    }
}

impl Office {
    /// Everything is allowed.
    pub(crate) fn new(ids: Arc<dyn Ids>) -> Self {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        let memory = Memory::default();
        let engine = Engine::start(memory.clone(), Settings::default(), now).unwrap();
        let store: Arc<dyn Store> = Arc::new(Patient(Arc::new(engine)));
        let clock = Arc::new(Still(Mutex::new(now)));
        let writing = Writing { mode: ArgumentMode::Keys, secret: Secret([7; 32]) };
        let ticking: Arc<dyn Clock> = Arc::clone(&clock) as _;
        let admission = Admission::new(Arc::clone(&store), ticking, ids, writing);
        let office = Self { admission: Arc::new(admission), store, memory, clock };
        office.enforce("version: \"1\"\ndefault: allow\n");
        office
    }

    /// Puts a policy in force for whoever comes without a token.
    pub(crate) fn enforce(&self, document: &str) {
        let policy = policy(document);
        let grant = Grant { label: "local".into(), policy: Some(policy), ..Grant::default() };
        let access = Access { local: Some(Arc::new(grant)), ..Access::default() };
        self.admission.set_access(access);
    }

    /// All rows of the audit, once there are so many: outcomes are written behind the scenes.
    pub(crate) async fn rows_by(&self, count: usize) -> Vec<Row> {
        loop {
            let rows = self.store.rows(Page { limit: 1_000, ..Page::default() }).await.unwrap();
            if rows.len() >= count {
                return rows;
            }
            crate::script::settle().await;
        }
    }
}

pub(crate) fn policy(document: &str) -> Arc<InForce> {
    let loaded = Policy::load("test", document, &Known::default());
    let policy = loaded.policy.unwrap_or_else(|| panic!("{:?}", loaded.problems));
    Arc::new(InForce::new(policy))
}

/// A store whose threads the paused clock waits for: time stands still while blocking work runs.
#[derive(Debug)]
struct Patient(Arc<Engine>);

impl Patient {
    fn wait<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&Engine) -> BoxFuture<'static, T>,
    ) -> BoxFuture<'static, T> {
        let answer = ask(&self.0);
        let waiting = tokio::task::spawn_blocking(|| block_on(answer));
        Box::pin(async move { waiting.await.unwrap() })
    }
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

impl Store for Patient {
    fn admit(&self, asking: Asking) -> BoxFuture<'static, Result<Answer, NotAudited>> {
        self.wait(|store| store.admit(asking))
    }
    fn deny(&self, denial: Draft) -> BoxFuture<'static, Result<(), NotAudited>> {
        self.wait(|store| store.deny(denial))
    }
    fn record(&self, row: Draft) -> BoxFuture<'static, Result<u64, NotAudited>> {
        self.wait(|store| store.record(row))
    }
    fn change(&self, change: Change, row: Draft) -> BoxFuture<'static, Result<u64, ChangeError>> {
        self.wait(|store| store.change(change, row))
    }
    fn touch(&self, grant: Arc<str>, now: Timestamp) {
        self.0.touch(grant, now);
    }
    fn generation(&self) -> u64 {
        self.0.generation()
    }
    fn snapshot(&self) -> BoxFuture<'static, Result<Snapshot, NotReadable>> {
        self.wait(Engine::snapshot)
    }
    fn kept(&self, space: &str) -> BoxFuture<'static, Result<Vec<Kept>, NotReadable>> {
        self.wait(|store| store.kept(space))
    }
    fn rows(&self, page: Page) -> BoxFuture<'static, Result<Vec<Row>, NotReadable>> {
        self.wait(|store| store.rows(page))
    }
    fn story(&self, call: CallId) -> BoxFuture<'static, Result<Vec<Row>, NotReadable>> {
        self.wait(|store| store.story(call))
    }
    fn checkpoints(&self) -> BoxFuture<'static, Result<Vec<Checkpoint>, NotReadable>> {
        self.wait(Engine::checkpoints)
    }
    fn status(&self) -> BoxFuture<'static, Result<Status, NotReadable>> {
        self.wait(Engine::status)
    }
    fn look(&self, now: Timestamp, look: Box<Look>) -> BoxFuture<'static, Result<(), NotReadable>> {
        self.wait(|store| store.look(now, look))
    }
    fn tick(&self, now: Timestamp) {
        self.0.tick(now);
    }
    fn close(&self, now: Timestamp) -> BoxFuture<'static, Result<(), NotAudited>> {
        self.wait(|store| store.close(now))
    }
}
