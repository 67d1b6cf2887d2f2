//! Which grant's calls created which tasks, and which calls are open until their task ends.
//!
//! Invariant: a grant has at most [`MAX_TASKS`] entries of its own. Its oldest entry without an open
//! call makes room for the next one; an entry with an open call is never evicted.
//! Invariant: a grant with [`MAX_OPEN`] open tasks starts no further call that could create one.
//!
//! Start at [`Book::create`] and [`Book::is_full`].

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

mod heard;

pub use heard::Heard;

/// How many tasks of one grant are remembered.
const MAX_TASKS: usize = 10_000;
/// How many tasks of one grant may be open.
pub const MAX_OPEN: usize = 1_000;

/// All tasks that are remembered.
#[derive(Default)]
pub struct Book {
    state: Mutex<State>,
    /// How many tasks of each grant are open.
    open_of: Arc<Mutex<HashMap<Arc<str>, usize>>>,
    /// The calls whose tasks have not ended.
    pub(crate) open: TaskTracker,
    pub(crate) stopping: CancellationToken,
}

/// One open task of a grant; dropped when the task ends.
pub(crate) struct Place {
    open_of: Arc<Mutex<HashMap<Arc<str>, usize>>>,
    grant: Arc<str>,
}

/// Why the book does not follow a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotFollowed {
    /// An open call of another grant has created a task of this id.
    Taken,
    /// Every task that the book remembers for the grant is open.
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
    /// Closed when the call has ended.
    tell: mpsc::UnboundedSender<Heard>,
    /// Whether its result must be recorded before the agent sees it.
    watched: bool,
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

impl Book {
    /// A call of `grant` has created a task; receives what is told about it from now on. A task of
    /// another grant's open call is refused only where one number space is `shared` by all: other
    /// servers number the tasks of each agent session anew.
    pub fn create(
        &self,
        grant: &Arc<str>,
        (server, own): (&str, &str),
        session: u64,
        watched: bool,
        shared: bool,
    ) -> Result<mpsc::UnboundedReceiver<Heard>, NotFollowed> {
        let task: Task = (server.into(), own.into());
        let mut state = self.state.lock();
        if shared {
            let is_taken = |entry: &Entry| entry.grant != *grant && entry.is_open();
            if state.all.get(&task).is_some_and(|all| all.iter().any(is_taken)) {
                return Err(NotFollowed::Taken);
            }
            // The server has used the id again: what it named for others is over.
            state.remove_others(&task, grant);
        }
        let (tell, heard) = mpsc::unbounded_channel();
        let entry = state.entry(grant, task, session).ok_or(NotFollowed::Full)?;
        entry.calls.retain(|call| !call.tell.is_closed());
        entry.calls.push(Call { session, tell, watched });
        Ok(heard)
    }

    /// Whether a grant has as many open tasks as it may have.
    pub fn is_full(&self, grant: &str) -> bool {
        self.open_of.lock().get(grant).is_some_and(|open| *open >= MAX_OPEN)
    }

    /// A task of `grant` is open until the place is dropped.
    pub(crate) fn place(&self, grant: &Arc<str>) -> Place {
        *self.open_of.lock().entry(Arc::clone(grant)).or_default() += 1;
        Place { open_of: Arc::clone(&self.open_of), grant: Arc::clone(grant) }
    }

    /// A grant has named a task that it was shown before. False if only other grants have a task of
    /// that id now: the server has used the id again since.
    pub fn remember(&self, grant: &Arc<str>, server: &str, own: &str, session: u64) -> bool {
        let task: Task = (server.into(), own.into());
        let mut state = self.state.lock();
        let holders = state.all.get(&task).filter(|all| !all.is_empty());
        if holders.is_some_and(|all| all.iter().all(|entry| entry.grant != *grant)) {
            return false;
        }
        // Without room the task still answers to its id; lists leave it out.
        state.entry(grant, task, session);
        true
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

    /// Tells the open calls of `grant` about their task; false if none of them is open here.
    pub(crate) fn hear(
        &self,
        (grant, session): (&str, u64),
        server: &str,
        own: &str,
        heard: &Heard,
    ) -> bool {
        let state = self.state.lock();
        let all = state.all.get(&(server.into(), own.into()));
        let Some(entry) = all.into_iter().flatten().find(|entry| *entry.grant == *grant) else {
            return false;
        };
        // A task of another agent session is meant only if this one has none of that id.
        let has_own = entry.calls.iter().any(|call| call.session == session);
        let meant = entry.calls.iter().filter(|call| !has_own || call.session == session);
        meant.fold(false, |told, call| call.tell.send(heard.clone()).is_ok() || told)
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

impl Drop for Place {
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
        self.calls.iter().any(|call| !call.tell.is_closed())
    }
}

// === impl State ===

impl State {
    /// The entry of a grant's task, which is made if it is new; `None` if there is no room for it.
    fn entry(&mut self, grant: &Arc<str>, task: Task, session: u64) -> Option<&mut Entry> {
        let is_own = |entry: &Entry| entry.grant == *grant;
        if !self.all.get(&task).is_some_and(|all| all.iter().any(is_own)) {
            self.make_room(grant)?;
            let place = self.next;
            self.next += 1;
            let entry = Entry { grant: Arc::clone(grant), place, session, calls: Vec::new() };
            self.all.entry(task.clone()).or_default().push(entry);
            self.by_grant.entry(Arc::clone(grant)).or_default().insert(place, task.clone());
        }
        let entry = self.all.get_mut(&task)?.iter_mut().find(|entry| entry.grant == *grant)?;
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
