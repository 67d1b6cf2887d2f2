//! Which grant's calls created which tasks, and who waits for a task to end.
//!
//! Invariant: a grant has at most [`MAX_TASKS`] entries; its own oldest one makes room for the next,
//! so that no grant pushes out what another one has.
//! Invariant: an entry that goes away ends the calls that wait for its task.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolgate_json::{members, peek, text};

/// How many tasks of one grant are remembered.
const MAX_TASKS: usize = 10_000;
/// How many open calls may have created a task of the same id.
const MAX_CALLS: usize = 1_000;

/// All tasks that are remembered.
#[derive(Default)]
pub struct Book {
    state: Mutex<State>,
    /// The calls whose tasks have not ended.
    pub(crate) open: TaskTracker,
    pub(crate) stopping: CancellationToken,
}

#[derive(Default)]
struct State {
    next: u64,
    all: HashMap<Task, Vec<Entry>>,
    /// The tasks of each grant, oldest first.
    by_grant: HashMap<Arc<str>, BTreeMap<u64, Task>>,
}

/// A server and its own id of a task.
type Task = (Arc<str>, Arc<str>);

struct Entry {
    grant: Arc<str>,
    /// Its place among the tasks of its grant.
    place: u64,
    /// The agent session that created it, or named it last.
    session: u64,
    /// The calls that created it, while they are open. Where every agent session has a server of
    /// its own, several tasks may have one id.
    calls: Vec<Call>,
}

struct Call {
    /// The agent session that made it.
    session: u64,
    tell: mpsc::UnboundedSender<Heard>,
    /// Whether its result must be recorded before the agent sees it.
    watched: bool,
}

/// What was heard of a task.
#[derive(Debug, Clone, Default)]
pub struct Heard {
    /// Its state.
    pub(crate) status: Option<String>,
    /// The result of its call, raw JSON.
    pub result: Option<String>,
    /// How long it will be kept from now on.
    pub(crate) ttl_ms: Option<u64>,
    /// Dropped once what was heard is recorded.
    pub recorded: Option<mpsc::Sender<()>>,
}

/// Whose a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// The grant has it.
    Mine,
    /// Only other grants have it.
    Another,
    /// No grant is known to have it.
    Unknown,
}

impl Heard {
    /// What an answer about the task `own` tells of its call.
    pub fn of_answer(own: &str, result: &str, wants_result: bool) -> Option<Self> {
        if wants_result {
            return Some(Self { result: Some(result.to_owned()), ..Self::default() });
        }
        let task = peek(result, &["task"]).ok().flatten().unwrap_or(result);
        let named = peek(task, &["taskId"]).ok().flatten().and_then(text);
        named.is_none_or(|named| *named == *own).then(|| Self::of(task))
    }

    /// What is said of a task.
    pub fn of(task: &str) -> Self {
        let [status, old, new, result] =
            members(task, ["status", "ttl", "ttlMs", "result"]).unwrap_or_default();
        Self {
            status: status.and_then(text).map(std::borrow::Cow::into_owned),
            result: result.filter(|raw| raw.starts_with('{')).map(str::to_owned),
            ttl_ms: new.or(old).and_then(|raw| raw.parse().ok()),
            recorded: None,
        }
    }
}

impl Book {
    /// A call of `grant` has created a task. What is heard of it from now on; none if the task
    /// belongs to a call of another grant which is still open. That is asked only where the server
    /// is `shared`: others number the tasks of each agent session anew.
    pub fn create(
        &self,
        grant: &Arc<str>,
        (server, own): (&str, &str),
        session: u64,
        watched: bool,
        shared: bool,
    ) -> Option<mpsc::UnboundedReceiver<Heard>> {
        let task: Task = (server.into(), own.into());
        let mut state = self.state.lock();
        if shared {
            let is_taken = |entry: &Entry| entry.grant != *grant && !entry.calls.is_empty();
            if state.all.get(&task).is_some_and(|all| all.iter().any(is_taken)) {
                return None;
            }
            // The server has used the id again: what it named for others is over.
            state.remove_others(&task, grant);
        }
        let (tell, heard) = mpsc::unbounded_channel();
        state.with_entry(grant, task, session, |entry| {
            if entry.calls.len() >= MAX_CALLS {
                entry.calls.remove(0);
            }
            entry.calls.push(Call { session, tell, watched });
        });
        Some(heard)
    }

    /// A grant has named a task that it was shown before.
    pub fn remember(&self, grant: &Arc<str>, server: &str, own: &str, session: u64) {
        let task: Task = (server.into(), own.into());
        self.state.lock().with_entry(grant, task, session, |_| {});
    }

    /// Whose a task is, as seen by `grant`.
    pub fn whose(&self, grant: &str, server: &str, own: &str) -> Whose {
        let state = self.state.lock();
        let Some(all) = state.all.get(&(server.into(), own.into())) else { return Whose::Unknown };
        if all.iter().any(|entry| *entry.grant == *grant) { Whose::Mine } else { Whose::Another }
    }

    /// The grants that have a task, each with the agent session that created it.
    pub fn holders(&self, server: &str, own: &str) -> Vec<(Arc<str>, u64)> {
        let state = self.state.lock();
        let all = state.all.get(&(server.into(), own.into()));
        let holder = |entry: &Entry| (Arc::clone(&entry.grant), entry.session);
        all.into_iter().flatten().map(holder).collect()
    }

    /// Whether the result of the call that created the task must be recorded before an agent sees
    /// it.
    pub fn is_watched(&self, grant: &str, server: &str, own: &str) -> bool {
        let state = self.state.lock();
        let all = state.all.get(&(server.into(), own.into()));
        let is_watched =
            |entry: &Entry| *entry.grant == *grant && entry.calls.iter().any(|call| call.watched);
        all.is_some_and(|all| all.iter().any(is_watched))
    }

    /// An agent session of `grant` has heard something of a task.
    pub fn hear(&self, (grant, session): (&str, u64), server: &str, own: &str, heard: &Heard) {
        let state = self.state.lock();
        let all = state.all.get(&(server.into(), own.into()));
        let Some(entry) = all.into_iter().flatten().find(|entry| *entry.grant == *grant) else {
            return;
        };
        // A task of another agent session is meant only if this one has none of that id.
        let has_own = entry.calls.iter().any(|call| call.session == session);
        for call in entry.calls.iter().filter(|call| !has_own || call.session == session) {
            // A call that has ended meanwhile wants to hear nothing.
            drop(call.tell.send(heard.clone()));
        }
    }

    /// The calls of `grant` that have ended wait for the task no more.
    pub(crate) fn close(&self, grant: &str, server: &str, own: &str) {
        let mut state = self.state.lock();
        let all = state.all.get_mut(&(server.into(), own.into()));
        for entry in all.into_iter().flatten().filter(|entry| *entry.grant == *grant) {
            entry.calls.retain(|call| !call.tell.is_closed());
        }
    }

    /// Waits for no task any more: the calls that are open end as far as is known of them.
    pub async fn stop(&self) {
        self.stopping.cancel();
        self.open.close();
        self.open.wait().await;
    }
}

// === impl State ===

impl State {
    /// Changes the entry of a grant's task, which is made if it is new.
    fn with_entry(
        &mut self,
        grant: &Arc<str>,
        task: Task,
        session: u64,
        change: impl FnOnce(&mut Entry),
    ) {
        let all = self.all.entry(task.clone()).or_default();
        if let Some(entry) = all.iter_mut().find(|entry| entry.grant == *grant) {
            entry.session = session;
            return change(entry);
        }
        let place = self.next;
        self.next += 1;
        let mut entry = Entry { grant: Arc::clone(grant), place, session, calls: Vec::new() };
        change(&mut entry);
        all.push(entry);
        self.make_room(grant);
        self.by_grant.entry(Arc::clone(grant)).or_default().insert(place, task);
    }

    /// The oldest task that no call waits for makes room, or else the oldest.
    fn make_room(&mut self, grant: &Arc<str>) {
        let Some(tasks) = self.by_grant.get(grant).filter(|tasks| tasks.len() >= MAX_TASKS) else {
            return;
        };
        let is_over = |(place, task): &(&u64, &Task)| {
            let all = self.all.get(*task);
            all.into_iter().flatten().all(|entry| entry.place != **place || entry.calls.is_empty())
        };
        let out = tasks.iter().find(is_over).or_else(|| tasks.iter().next());
        if let Some((place, task)) = out.map(|(place, task)| (*place, task.clone())) {
            self.remove(&task, place);
            if let Some(tasks) = self.by_grant.get_mut(grant) {
                tasks.remove(&place);
            }
        }
    }

    fn remove_others(&mut self, task: &Task, grant: &Arc<str>) {
        let Some(all) = self.all.get_mut(task) else { return };
        for entry in all.extract_if(.., |entry| entry.grant != *grant) {
            if let Some(tasks) = self.by_grant.get_mut(&entry.grant) {
                tasks.remove(&entry.place);
            }
        }
    }

    fn remove(&mut self, task: &Task, place: u64) {
        if let Some(all) = self.all.get_mut(task) {
            all.retain(|entry| entry.place != place);
            if all.is_empty() {
                self.all.remove(task);
            }
        }
    }
}
