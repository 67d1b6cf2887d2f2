//! Which grant's calls created which tasks, and which calls are open until their task ends.
//!
//! Invariant: a grant has at most [`MAX_TASKS`] entries of its own. Its oldest entry without an open
//! call makes room for the next one; an entry with an open call is never evicted.
//! Invariant: a grant with [`MAX_OPEN`] open tasks starts no further call that could create one.
//!
//! Start at [`TaskBook::create`] and [`TaskBook::is_full`].

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

mod update;

pub use update::TaskUpdate;

/// How many tasks of one grant are remembered.
const MAX_TASKS: usize = 10_000;
/// How many tasks of one grant may be open.
pub const MAX_OPEN: usize = 1_000;

/// A task that a call has created.
#[derive(Debug)]
pub struct CreatedTask {
    /// The server's own id and the later updates; `None` if the task has no usable id, so that only
    /// its time ends it.
    pub tracked: Option<(String, mpsc::UnboundedReceiver<TaskUpdate>)>,
    /// The update that created it.
    pub first: TaskUpdate,
    /// Cancelled when the process that runs it is gone; `None` if it may outlive the connection.
    pub gone: Option<CancellationToken>,
    /// The timeout of a call that creates no task.
    pub shortest: Duration,
}

/// All tasks that are remembered.
#[derive(Default)]
pub struct TaskBook {
    state: Mutex<State>,
    /// How many tasks of each grant are open.
    open_of: Arc<Mutex<HashMap<Arc<str>, usize>>>,
    /// The calls whose tasks have not ended.
    pub(crate) open: TaskTracker,
    pub(crate) stopping: CancellationToken,
}

/// One open task of a grant; dropped when the task ends.
pub(crate) struct OpenTask {
    open_of: Arc<Mutex<HashMap<Arc<str>, usize>>>,
    grant: Arc<str>,
}

/// Why a task is not tracked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotFollowed {
    /// An open call of another grant has created a task of this id.
    Taken,
    /// Every remembered task of the grant is open.
    Full,
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
    /// Its position among the tasks of its grant.
    place: u64,
    /// The agent session that created it or used it last.
    session: u64,
    /// The open calls that created it. If every agent session has its own server process, several
    /// tasks may have the same id.
    calls: Vec<Call>,
}

struct Call {
    /// The agent session that made it.
    session: u64,
    /// Closed when the call has ended.
    updates: mpsc::UnboundedSender<TaskUpdate>,
    /// Whether its result must be recorded before the agent sees it.
    watched: bool,
}

/// The owner of a task, as seen by one grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskOwner {
    /// The grant owns it.
    Own,
    /// Only other grants own it.
    Other,
    /// No grant is known to own it.
    Unknown,
}

impl TaskBook {
    /// A call of `grant` has created a task; returns its later updates. A task of another grant's
    /// open call is refused only if all agents share the server's task ids (`shared`): other servers
    /// number the tasks of each agent session separately.
    pub fn create(
        &self,
        grant: &Arc<str>,
        (server, own): (&str, &str),
        session: u64,
        watched: bool,
        shared: bool,
    ) -> Result<mpsc::UnboundedReceiver<TaskUpdate>, NotFollowed> {
        let task: Task = (server.into(), own.into());
        let mut state = self.state.lock();
        if shared {
            let is_taken = |entry: &Entry| entry.grant != *grant && entry.is_open();
            if state.all.get(&task).is_some_and(|all| all.iter().any(is_taken)) {
                return Err(NotFollowed::Taken);
            }
            // The server has reused the id: the earlier tasks have ended.
            state.remove_others(&task, grant);
        }
        let (updates, receiver) = mpsc::unbounded_channel();
        let entry = state.entry(grant, &task, session).ok_or(NotFollowed::Full)?;
        entry.calls.retain(|call| !call.updates.is_closed());
        entry.calls.push(Call { session, updates, watched });
        Ok(receiver)
    }

    /// Whether a grant has as many open tasks as it may have.
    pub fn is_full(&self, grant: &str) -> bool {
        self.open_of.lock().get(grant).is_some_and(|open| *open >= MAX_OPEN)
    }

    /// A task of `grant` is open until the value is dropped.
    pub(crate) fn open_task(&self, grant: &Arc<str>) -> OpenTask {
        *self.open_of.lock().entry(Arc::clone(grant)).or_default() += 1;
        OpenTask { open_of: Arc::clone(&self.open_of), grant: Arc::clone(grant) }
    }

    /// A grant has used the id of a task. False if only other grants own a task with that id now,
    /// because the server has reused the id.
    pub fn remember(&self, grant: &Arc<str>, server: &str, own: &str, session: u64) -> bool {
        let task: Task = (server.into(), own.into());
        let mut state = self.state.lock();
        let holders = state.all.get(&task).filter(|all| !all.is_empty());
        if holders.is_some_and(|all| all.iter().all(|entry| entry.grant != *grant)) {
            return false;
        }
        // Without room the task can still be used by its id, but is not listed.
        state.entry(grant, &task, session);
        true
    }

    /// The owner of a task, as seen by `grant`.
    pub fn owner(&self, grant: &str, server: &str, own: &str) -> TaskOwner {
        let state = self.state.lock();
        let Some(all) = state.all.get(&(server.into(), own.into())) else {
            return TaskOwner::Unknown;
        };
        if all.iter().any(|entry| *entry.grant == *grant) {
            TaskOwner::Own
        } else {
            TaskOwner::Other
        }
    }

    /// The grants that own a task, each with the agent session that created it.
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

    /// Passes an update to the open calls of `grant`; false if none of them is open here.
    pub(crate) fn update(
        &self,
        (grant, session): (&str, u64),
        server: &str,
        own: &str,
        update: &TaskUpdate,
    ) -> bool {
        let state = self.state.lock();
        let all = state.all.get(&(server.into(), own.into()));
        let Some(entry) = all.into_iter().flatten().find(|entry| *entry.grant == *grant) else {
            return false;
        };
        // Calls of another agent session receive it only if this one has no such task.
        let has_own = entry.calls.iter().any(|call| call.session == session);
        let concerned = entry.calls.iter().filter(|call| !has_own || call.session == session);
        // `count` sends to all of them; `any` would stop at the first.
        concerned.filter(|call| call.updates.send(update.clone()).is_ok()).count() > 0
    }

    /// Forgets calls of `grant` that have ended.
    pub(crate) fn close(&self, grant: &str, server: &str, own: &str) {
        let mut state = self.state.lock();
        let all = state.all.get_mut(&(server.into(), own.into()));
        for entry in all.into_iter().flatten().filter(|entry| *entry.grant == *grant) {
            entry.calls.retain(|call| !call.updates.is_closed());
        }
    }

    /// Stops waiting for tasks: open calls end with what is known of them.
    pub async fn stop(&self) {
        self.stopping.cancel();
        self.open.close();
        self.open.wait().await;
    }
}

impl Drop for OpenTask {
    fn drop(&mut self) {
        let mut open_of = self.open_of.lock();
        if let Some(open) = open_of.get_mut(&self.grant) {
            *open -= 1;
            if *open == 0 {
                open_of.remove(&self.grant);
            }
        }
    }
}

impl Entry {
    /// Whether a call that created the task has not ended.
    fn is_open(&self) -> bool {
        self.calls.iter().any(|call| !call.updates.is_closed())
    }
}

// === impl State ===

impl State {
    /// The entry of a grant's task, created if it is new; `None` if there is no room for it.
    fn entry(&mut self, grant: &Arc<str>, task: &Task, session: u64) -> Option<&mut Entry> {
        let is_own = |entry: &Entry| entry.grant == *grant;
        if !self.all.get(task).is_some_and(|all| all.iter().any(is_own)) {
            self.make_room(grant)?;
            let place = self.next;
            self.next += 1;
            let entry = Entry { grant: Arc::clone(grant), place, session, calls: Vec::new() };
            self.all.entry(task.clone()).or_default().push(entry);
            self.by_grant.entry(Arc::clone(grant)).or_default().insert(place, task.clone());
        }
        let entry = self.all.get_mut(task)?.iter_mut().find(|entry| entry.grant == *grant)?;
        entry.session = session;
        Some(entry)
    }

    /// Evicts the oldest task of a grant that has no open call, if the grant has too many; `None` if
    /// all of them are open.
    fn make_room(&mut self, grant: &Arc<str>) -> Option<()> {
        let Some(tasks) = self.by_grant.get(grant).filter(|tasks| tasks.len() >= MAX_TASKS) else {
            return Some(());
        };
        let is_over = |(place, task): &(&u64, &Task)| {
            let all = self.all.get(*task);
            all.into_iter().flatten().all(|entry| entry.place != **place || !entry.is_open())
        };
        let (place, task) = tasks.iter().find(is_over).map(|(at, task)| (*at, task.clone()))?;
        self.remove(&task, place);
        self.by_grant.get_mut(grant)?.remove(&place);
        Some(())
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

#[cfg(test)]
mod tests;
