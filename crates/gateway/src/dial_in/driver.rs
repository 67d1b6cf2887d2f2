//! The driver of the session machine: passes sockets, calls and time to it and performs its outputs.
//!
//! The machine (`toolgate-session`) is behind one lock. Its outputs are performed in order before the
//! lock is released; none of them waits. One task wakes the machine when it is due. A socket is a
//! number and a queue of [`SocketCommand`]s; the edge owns the sockets themselves.
//!
//! Invariant: nothing is awaited, and no other code is called, while the lock is held, except for
//! notes, which are only queued.
//! Invariant: work that grows with the length of a frame or a list is done outside the lock.
//! Invariant: a socket whose queue is full is closed; memory does not grow while a client does not
//! read.
//!
//! Start at [`SessionDriver::drive`]; `driver/queries.rs` serves the gateway, `driver/sockets.rs` the
//! sockets.

mod queries;
mod sockets;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::block_in_place;
use tokio::time::{Instant, sleep_until};
use toolgate_session::{
    CallAnswer, CallNumber, Input, Millis, Output, Outputs, Reach, SessionCounts, SessionMachine,
    SessionSettings, ShowcaseEntry, SocketId, ViewId,
};

use self::queries::KeptLists;
pub use self::sockets::SocketCommand;
use super::{Gate, Note};

/// All sessions, the queues of their sockets, and the calls to them.
pub struct SessionDriver {
    state: Mutex<State>,
    environment: DriverEnvironment,
    /// Wall clock at the start, and the monotonic clock at the same time.
    began: (Millis, Instant),
    /// The time of the next wake-up has changed.
    rescheduled: Notify,
    on_change: OnceLock<OnChange>,
    lists: Mutex<KeptLists>,
    next: AtomicU64,
}

/// Receives the reach whose list has changed.
type OnChange = Box<dyn Fn(&Reach) + Send + Sync>;

/// What the driver needs from outside.
pub struct DriverEnvironment {
    /// Records an event or a change of the showcase; must not wait.
    pub record: Box<dyn Fn(Note) + Send + Sync>,
    /// 128 random bits, if the system has any.
    pub random: Box<dyn Fn() -> Option<u128> + Send + Sync>,
    /// How many sockets may be open without a register. Beyond that the oldest is closed.
    pub max_unregistered: usize,
}

struct State {
    machine: SessionMachine,
    sockets: HashMap<SocketId, mpsc::Sender<SocketCommand>>,
    /// Sockets that may not have registered, the oldest first.
    unregistered: VecDeque<SocketId>,
    calls: HashMap<CallNumber, PendingCall>,
    views: HashMap<Arc<Reach>, ViewId>,
    wake_at: Option<Millis>,
}

/// A call that has not ended.
struct PendingCall {
    answered: oneshot::Sender<CallAnswer>,
    /// Checked before the call is written.
    gate: Arc<Gate>,
}

/// The effects of an input.
#[derive(Default)]
struct Effects {
    /// Whether a call was answered.
    answered: bool,
    /// The reaches whose lists have changed.
    changed: Vec<Arc<Reach>>,
}

impl SessionDriver {
    /// Starts the driver with the showcase of the store; inside a tokio runtime.
    pub fn start(
        settings: SessionSettings,
        showcase: Vec<ShowcaseEntry>,
        wall: Millis,
        environment: DriverEnvironment,
    ) -> Arc<Self> {
        let state = State {
            machine: SessionMachine::new(settings, showcase, wall),
            sockets: HashMap::new(),
            unregistered: VecDeque::new(),
            calls: HashMap::new(),
            views: HashMap::new(),
            wake_at: None,
        };
        let driver = Arc::new(Self {
            state: Mutex::new(state),
            environment,
            began: (wall, Instant::now()),
            rescheduled: Notify::new(),
            on_change: OnceLock::new(),
            lists: Mutex::default(),
            next: AtomicU64::new(1),
        });
        // The machine schedules its first wake-up.
        driver.handle(Input::Wake);
        tokio::spawn(Self::keep_time(Arc::clone(&driver)));
        driver
    }

    /// Replaces the settings.
    pub fn reconfigure(&self, settings: SessionSettings) {
        self.drive(|machine, now| machine.reconfigure(settings, now));
    }

    /// Closes the sockets that came with this token, or without one.
    pub fn revoke(&self, token: Option<u32>) {
        self.handle(Input::Revoke { token });
    }

    /// Closes every socket because the process stops.
    pub fn stop(&self) {
        self.handle(Input::Stop);
    }

    /// The numbers of sessions, sockets and calls.
    pub fn counts(&self) -> SessionCounts {
        self.state.lock().machine.counts()
    }

    /// The showcase in the layout of `tools_cache.json`.
    pub fn export(&self) -> String {
        let entries: Vec<Arc<ShowcaseEntry>> =
            self.state.lock().machine.showcase().cloned().collect();
        toolgate_session::export(entries.iter().map(AsRef::as_ref))
    }

    /// Passes an input to the machine; true if it has answered a call.
    fn handle(&self, input: Input<'_>) -> bool {
        self.drive(|machine, now| machine.handle(input, now))
    }

    /// Runs the machine and performs its outputs; true if it has answered a call.
    fn drive(&self, input: impl FnOnce(&mut SessionMachine, Millis) -> Outputs) -> bool {
        let now = self.now();
        let mut state = self.state.lock();
        let outputs = input(&mut state.machine, now);
        let effects = self.perform(&mut state, outputs);
        drop(state);
        if let Some(on_change) = self.on_change.get() {
            for reach in effects.changed {
                on_change(&reach);
            }
        }
        effects.answered
    }

    fn perform(&self, state: &mut State, outputs: Outputs) -> Effects {
        let mut effects = Effects::default();
        let mut showcase = Vec::new();
        for output in outputs.list {
            match output {
                Output::Send { socket, frame } => {
                    state.command(socket, SocketCommand::Text(frame));
                }
                Output::SendCall { socket, call, frame } => {
                    if let Some(pending) = state.calls.get(&call) {
                        let gate = Arc::clone(&pending.gate);
                        state.command(socket, SocketCommand::Call { call, frame, gate });
                    }
                }
                Output::Ping { socket } => state.command(socket, SocketCommand::Ping),
                Output::Close { socket, code, reason } => {
                    state.command(socket, SocketCommand::Close(code, reason));
                }
                Output::Answer(answer) => {
                    effects.answered = true;
                    if let Some(pending) = state.calls.remove(&answer.call) {
                        // The receiver is gone only if its call has panicked.
                        drop(pending.answered.send(answer));
                    }
                }
                Output::Event(event) => (self.environment.record)(Note::Event(event)),
                Output::Keep(entry) => showcase.push((entry.key.clone(), Some(entry))),
                Output::Forget(key) => showcase.push((key, None)),
                Output::ListChanged { view } => {
                    let changed = state.views.iter().find(|(_, known)| **known == view);
                    effects.changed.extend(changed.map(|(reach, _)| Arc::clone(reach)));
                }
            }
        }
        if !showcase.is_empty() {
            (self.environment.record)(Note::Showcase(showcase));
        }
        if state.wake_at != outputs.wake_at {
            state.wake_at = outputs.wake_at;
            self.rescheduled.notify_one();
        }
        effects
    }

    /// Wakes the machine when it is due.
    async fn keep_time(self: Arc<Self>) {
        loop {
            let wake_at = self.state.lock().wake_at;
            let due = wake_at.map(|at| self.began.1 + at.since(self.began.0));
            tokio::select! {
                () = self.rescheduled.notified() => continue,
                () = at(due) => {}
            }
            self.handle(Input::Wake);
        }
    }

    fn random(&self) -> Option<u128> {
        (self.environment.random)()
    }

    fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    fn now(&self) -> Millis {
        self.began.0.after(self.began.1.elapsed())
    }
}

impl State {
    /// Queues a command. A socket that does not read loses its queue, which closes it.
    fn command(&mut self, socket: SocketId, command: SocketCommand) {
        let Some(commands) = self.sockets.get(&socket) else { return };
        if commands.try_send(command).is_err() {
            self.sockets.remove(&socket);
        }
    }
}

/// Does work; if it is long, other tasks of this worker thread run elsewhere meanwhile.
fn off_worker<T>(is_long: bool, work: impl FnOnce() -> T) -> T {
    let has_other_workers = || {
        let runtime = Handle::try_current();
        runtime.is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
    };
    if is_long && has_other_workers() { block_in_place(work) } else { work() }
}

async fn at(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}
