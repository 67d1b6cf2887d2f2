//! The switchboard: the machine of `toolgate-session`, driven by sockets, calls and time.
//!
//! The machine stands behind one lock. Whoever has something to tell it tells it there, and what
//! is to be done is done before the lock is let go, in its order: nothing of it waits. One task
//! comes back when the machine wants to be woken.
//!
//! Invariant: nothing is awaited and nobody outside is called while the lock is held, but for notes,
//! which are only put down.
//! Invariant: a socket whose queue is full is closed; memory does not grow with a client's silence.
//!
//! Start at [`Switchboard::hear`]; what the gateway asks is in `board.rs`.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::block_in_place;
use tokio::time::{Instant, sleep_until};
use toolgate_gateway::{Gate, Note, Showing};
use toolgate_session::{
    CallAnswer, CallNumber, Input, Millis, Output, Outputs, Reach, SessionCounts, SessionEvent,
    SessionEventKind, SessionMachine, SessionSettings, ShowcaseEntry, SocketId, SocketToken,
    ViewId,
};

use super::intake::Intake;
use super::socket::Order;

/// All sessions, their sockets and the calls to them.
pub struct Switchboard {
    pub(super) state: Mutex<State>,
    outside: Outside,
    intake: Arc<Intake>,
    /// Wall clock at the start, and what has passed since by a clock that nobody sets.
    began: (Millis, Instant),
    /// The machine wants to be woken at another time.
    rewound: Notify,
    pub(super) changed: OnceLock<Changed>,
    next: AtomicU64,
}

/// Told whose list has changed.
pub(super) type Changed = Box<dyn Fn(&Reach) + Send + Sync>;

/// What the switchboard needs from outside.
pub struct Outside {
    /// Has something written down; must not wait.
    pub note: Box<dyn Fn(Note) + Send + Sync>,
    /// 128 random bits, if there are any to be had.
    pub random: Box<dyn Fn() -> Option<u128> + Send + Sync>,
    /// How many sockets may be open on which nobody has registered: of more, the oldest go.
    pub unregistered: usize,
    /// How many bytes all sockets together may hold of frames that are not finished.
    pub unfinished: usize,
}

pub(super) struct State {
    pub(super) machine: SessionMachine,
    lines: HashMap<SocketId, mpsc::Sender<Order>>,
    /// Sockets in the order in which they were opened, as far as they may be without register.
    fresh: VecDeque<SocketId>,
    pub(super) waiting: HashMap<CallNumber, Waiting>,
    pub(super) views: HashMap<Arc<Reach>, ViewId>,
    /// Lists that were made, and at which revision.
    pub(super) shelf: HashMap<Arc<Reach>, (u64, Arc<Showing>)>,
    wake_at: Option<Millis>,
}

/// A call that has not ended.
pub(super) struct Waiting {
    pub(super) answered: oneshot::Sender<CallAnswer>,
    /// To be asked before it is written.
    pub(super) gate: Arc<Gate>,
}

/// What came of telling the machine something.
#[derive(Default)]
struct Done {
    /// Whether a call was answered.
    answered: bool,
    /// Whose lists have changed.
    changed: Vec<Arc<Reach>>,
}

impl Switchboard {
    /// A switchboard with the showcase as it was kept. To be made inside a tokio runtime.
    pub fn start(
        settings: SessionSettings,
        showcase: Vec<ShowcaseEntry>,
        wall: Millis,
        outside: Outside,
    ) -> Arc<Self> {
        let state = State {
            machine: SessionMachine::new(settings, showcase, wall),
            lines: HashMap::new(),
            fresh: VecDeque::new(),
            waiting: HashMap::new(),
            views: HashMap::new(),
            shelf: HashMap::new(),
            wake_at: None,
        };
        let board = Arc::new(Self {
            state: Mutex::new(state),
            intake: Intake::new(outside.unfinished),
            outside,
            began: (wall, Instant::now()),
            rewound: Notify::new(),
            changed: OnceLock::new(),
            next: AtomicU64::new(1),
        });
        // What the machine wants first, it says now.
        board.hear(Input::Wake);
        tokio::spawn(Self::keep_time(Arc::clone(&board)));
        board
    }

    /// Something has happened; true if it has answered a call.
    pub(super) fn hear(&self, input: Input<'_>) -> bool {
        self.tell_machine(|machine, now| machine.handle(input, now))
    }

    /// A socket has sent a text; true if it has answered a call. The text is read before the lock is
    /// taken, and a long one while other work of this thread goes on elsewhere.
    pub(super) fn hear_text(&self, socket: SocketId, text: &str) -> bool {
        let reader = self.state.lock().machine.reader();
        let spoken = aside(text.len(), || reader.read(text));
        self.hear(Input::Spoken { socket, spoken })
    }

    /// Other settings from now on.
    pub fn reconfigure(&self, settings: SessionSettings) {
        self.tell_machine(|machine, now| machine.reconfigure(settings, now));
    }

    /// Sockets that came with this token, or without one, are closed.
    pub(super) fn revoke(&self, token: Option<u32>) {
        self.hear(Input::Revoke { token });
    }

    /// Every socket is closed because the process stops.
    pub fn stop(&self) {
        self.hear(Input::Stop);
    }

    /// How many there are of everything.
    pub fn counts(&self) -> SessionCounts {
        self.state.lock().machine.counts()
    }

    /// The showcase in the layout of `tools_cache.json`.
    pub fn export(&self) -> String {
        let entries: Vec<Arc<ShowcaseEntry>> =
            self.state.lock().machine.showcase().cloned().collect();
        toolgate_session::export(entries.iter().map(AsRef::as_ref))
    }

    /// A socket was opened; its orders go to `line`.
    pub(super) fn open(&self, line: mpsc::Sender<Order>, token: Arc<SocketToken>) -> SocketId {
        let socket = SocketId(self.number());
        let mut too_old = None;
        {
            let mut state = self.state.lock();
            state.lines.insert(socket, line);
            state.fresh.push_back(socket);
            if state.fresh.len() > self.outside.unregistered
                && let Some(oldest) = state.fresh.pop_front()
                && state.machine.is_anonymous(oldest)
            {
                state.order(oldest, Order::Drop(4002, "too many sockets without register"));
                too_old = Some(oldest);
            }
        }
        if too_old.is_some() {
            self.tell(
                SessionEventKind::TooMany,
                too_old,
                "closed: too many have not registered".to_owned(),
            );
        }
        self.hear(Input::Opened { socket, token });
        socket
    }

    /// A socket is closed.
    pub(super) fn close(&self, socket: SocketId) {
        self.state.lock().lines.remove(&socket);
        self.hear(Input::Closed { socket });
    }

    /// Has something done on a socket.
    pub(super) fn order(&self, socket: SocketId, order: Order) {
        self.state.lock().order(socket, order);
    }

    /// Something that the machine does not see is written down.
    pub(super) fn tell(&self, what: SessionEventKind, socket: Option<SocketId>, text: String) {
        (self.outside.note)(Note::Event(SessionEvent { what, session_id: None, socket, text }));
    }

    /// What sockets hold of frames that are not finished.
    pub(super) fn intake(&self) -> &Arc<Intake> {
        &self.intake
    }

    pub(super) fn random(&self) -> Option<u128> {
        (self.outside.random)()
    }

    pub(super) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn now(&self) -> Millis {
        self.began.0.after(self.began.1.elapsed())
    }

    /// Tells the machine something and does what comes of it.
    pub(super) fn tell_machine(
        &self,
        tell: impl FnOnce(&mut SessionMachine, Millis) -> Outputs,
    ) -> bool {
        let now = self.now();
        let mut state = self.state.lock();
        let outputs = tell(&mut state.machine, now);
        let done = self.perform(&mut state, outputs);
        drop(state);
        if let Some(changed) = self.changed.get() {
            for reach in done.changed {
                changed(&reach);
            }
        }
        done.answered
    }

    fn perform(&self, state: &mut State, outputs: Outputs) -> Done {
        let mut done = Done::default();
        let mut showcase = Vec::new();
        for output in outputs.list {
            match output {
                Output::Send { socket, frame } => state.order(socket, Order::Text(frame)),
                Output::SendCall { socket, call, frame } => {
                    if let Some(waiting) = state.waiting.get(&call) {
                        let gate = Arc::clone(&waiting.gate);
                        state.order(socket, Order::Call { call, frame, gate });
                    }
                }
                Output::Ping { socket } => state.order(socket, Order::Ping),
                Output::Close { socket, code, reason } => {
                    state.order(socket, Order::Close(code, reason));
                }
                Output::Answer(answer) => {
                    done.answered = true;
                    if let Some(waiting) = state.waiting.remove(&answer.call) {
                        // Whoever waits takes part until the end; if not, nobody wants it.
                        drop(waiting.answered.send(answer));
                    }
                }
                Output::Event(event) => (self.outside.note)(Note::Event(event)),
                Output::Keep(entry) => showcase.push((entry.key.clone(), Some(entry))),
                Output::Forget(key) => showcase.push((key, None)),
                Output::ListChanged { view } => {
                    let whose = state.views.iter().find(|(_, known)| **known == view);
                    done.changed.extend(whose.map(|(reach, _)| Arc::clone(reach)));
                }
            }
        }
        if !showcase.is_empty() {
            (self.outside.note)(Note::Showcase(showcase));
        }
        if state.wake_at != outputs.wake_at {
            state.wake_at = outputs.wake_at;
            self.rewound.notify_one();
        }
        done
    }

    /// Comes back whenever the machine wants it.
    async fn keep_time(self: Arc<Self>) {
        loop {
            let wake_at = self.state.lock().wake_at;
            let due = wake_at.map(|at| self.began.1 + at.since(self.began.0));
            tokio::select! {
                () = self.rewound.notified() => continue,
                () = at(due) => {}
            }
            self.hear(Input::Wake);
        }
    }
}

impl State {
    /// Puts an order on a socket's line. One that does not read is cut off.
    fn order(&mut self, socket: SocketId, order: Order) {
        let Some(line) = self.lines.get(&socket) else { return };
        if line.try_send(order).is_err() {
            // Without its line the socket ends, and that is told.
            self.lines.remove(&socket);
        }
    }
}

/// Does work that grows with so many bytes; if it may take long, what else waits for this thread of
/// the runtime is done by others meanwhile.
fn aside<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    let has_others = || {
        let runtime = Handle::try_current();
        runtime.is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
    };
    if bytes > LONG && has_others() { block_in_place(work) } else { work() }
}

/// A text of more bytes than this takes long to be read.
const LONG: usize = 256 * 1024;

async fn at(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}
