//! Outlets: what waits to be read by one agent on one stream.
//!
//! An outlet is a bounded, numbered ring of messages. Writers push and never wait; one reader pulls
//! at its own pace and may come back after a broken connection with the number of the last message
//! it saw. The ring is the only buffer between a server and an agent.
//!
//! Invariant: an outlet holds at most [`MAX_EVENTS`] messages and [`MAX_BYTES`] bytes, or one
//! message if that alone is larger. What falls out unread is lost, and the reader is told
//! ([`Next::Gap`]), so that an agent that does not read holds no memory.
//! Invariant: one reader at a time; the newest wins, the one before is told to go ([`Next::End`]).
//!
//! Start at [`Outlet::push`] and [`Reader::next`]. Tested by `outlet/tests.rs`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;
use toolgate_mcp::Pieces;

use crate::relay::Passage;

#[cfg(test)]
mod tests;

/// How many messages an outlet keeps for its reader.
pub const MAX_EVENTS: usize = 1_000;
/// How many bytes of messages an outlet keeps for its reader.
pub const MAX_BYTES: usize = 4 * 1024 * 1024;

/// A bounded stream of messages to one agent.
#[derive(Debug)]
pub struct Outlet {
    number: u64,
    state: Mutex<State>,
    wake: Notify,
}

#[derive(Debug, Default)]
struct State {
    events: VecDeque<Pieces>,
    /// Number of the message at the front of `events`; the first message ever is 1.
    front: u64,
    bytes: usize,
    /// Everything up to here was handed to a reader.
    delivered: u64,
    /// HTTP status of an answer that is to be shown with it (an upstream's 400).
    status: Option<u16>,
    /// Whether the answer came from a server of protocol 2026-07-28 and is in its shape.
    newer: bool,
    /// What the server asked for that its client did not declare: capabilities, raw JSON.
    lacks: Option<&'static str>,
    /// Whether its only answer may be passed on while it comes.
    passing: Passing,
    /// How many answers are still to come; an outlet with none due is open until it is ended.
    due: Option<usize>,
    ended: bool,
    /// A pause that no reader has been told of yet.
    pause: Option<Pause>,
    /// Which reader is the current one.
    reader: u64,
}

/// What may become of an answer that comes piece by piece.
#[derive(Debug, Default)]
enum Passing {
    /// It is awaited whole.
    #[default]
    No,
    /// Whoever waits can do with a beginning.
    Welcome,
    /// It has begun, and nobody has seen it yet.
    Begun(Passage),
    /// Its reader has it.
    Taken,
}

#[derive(Debug, Clone, Copy)]
struct Pause {
    retry: Option<Duration>,
}

/// What a reader gets next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// A message and its number.
    Event(u64, Bytes),
    /// The server paused: end this connection, the agent comes back after that long.
    Pause(Option<Duration>),
    /// Messages were lost because the reader was too slow.
    Gap,
    /// No more will come, or a newer reader has taken over.
    End,
}

/// What the first look at the outlet of a request shows.
#[derive(Debug)]
pub enum First {
    /// The answer came before anything else: it can be sent as it is, with this HTTP status.
    Answer(Pieces, u16),
    /// There is more than one message, or it takes longer.
    Stream,
}

/// The same for whoever can do with the beginning of an answer.
#[derive(Debug)]
pub enum Begun {
    /// As it will be.
    All(First),
    /// The answer has begun, and its rest follows.
    Passing(Passage),
}

/// Reads one outlet.
#[derive(Debug)]
pub struct Reader {
    outlet: Arc<Outlet>,
    turn: u64,
    /// Number of the last message read.
    cursor: u64,
}

// === impl Outlet ===

impl Outlet {
    /// An outlet that stays open until it is ended; `number` tells the streams of one agent
    /// session apart.
    pub fn new(number: u64) -> Self {
        let state = State { front: 1, ..State::default() };
        Self { number, state: Mutex::new(state), wake: Notify::new() }
    }

    /// An outlet that ends with the last of that many answers.
    pub fn expecting(number: u64, answers: usize) -> Self {
        let outlet = Self::new(number);
        outlet.state.lock().due = Some(answers);
        outlet
    }

    /// Which stream of its agent session this is.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Adds a message. Does nothing once the outlet has ended.
    pub fn push(&self, body: Bytes) {
        self.add(body.into(), None, false);
    }

    /// Adds an answer, and ends the outlet if no more are due.
    pub fn answer(&self, body: impl Into<Pieces>, status: Option<u16>) {
        self.add(body.into(), status, true);
    }

    /// One of the answers will never come; ends the outlet if no more are due.
    pub fn forgo(&self) {
        self.state.lock().one_less_due();
        self.wake.notify_waiters();
    }

    /// Ends the outlet without a further message.
    pub fn end(&self) {
        self.state.lock().ended = true;
        self.wake.notify_waiters();
    }

    /// Asks the reader to break off and come back after `retry`.
    pub fn pause(&self, retry: Option<Duration>) {
        self.state.lock().pause = Some(Pause { retry });
        self.wake.notify_waiters();
    }

    /// What is answered from now on is in the shape of protocol 2026-07-28.
    pub(crate) fn mark_newer(&self) {
        self.state.lock().newer = true;
    }

    /// Whether what was answered is in the shape of protocol 2026-07-28.
    pub fn is_newer(&self) -> bool {
        self.state.lock().newer
    }

    /// The server has asked for something that takes these capabilities (raw JSON), which its
    /// client did not declare. The first such thing is remembered.
    pub(crate) fn mark_lacking(&self, capabilities: &'static str) {
        self.state.lock().lacks.get_or_insert(capabilities);
    }

    /// Which capabilities the server missed, raw JSON.
    pub(crate) fn lacks(&self) -> Option<&'static str> {
        self.state.lock().lacks
    }

    /// Whether the last message has been added.
    pub fn ended(&self) -> bool {
        self.state.lock().ended
    }

    /// How many bytes it holds.
    pub fn bytes(&self) -> usize {
        self.state.lock().bytes
    }

    /// The number of the last message added; 0 if there was none.
    pub fn last(&self) -> u64 {
        let state = self.state.lock();
        state.front + state.events.len() as u64 - 1
    }

    /// Waits until the outlet shows whether one answer is all there will be.
    pub async fn first(&self) -> First {
        loop {
            let woken = self.wake.notified();
            tokio::pin!(woken);
            woken.as_mut().enable();
            if let Some(first) = self.look() {
                return first;
            }
            woken.await;
        }
    }

    /// The same for one who can do with the beginning of an answer.
    pub async fn begun(&self) -> Begun {
        loop {
            let woken = self.wake.notified();
            tokio::pin!(woken);
            woken.as_mut().enable();
            if let Some(begun) = self.state.lock().welcome() {
                return Begun::Passing(begun);
            }
            if let Some(first) = self.look() {
                return Begun::All(first);
            }
            woken.await;
        }
    }

    /// It takes too long: whoever waited reads a stream from now on, unless the answer has begun.
    pub fn no_longer(&self) -> Begun {
        match self.state.lock().decline() {
            Some(passage) => Begun::Passing(passage),
            None => Begun::All(First::Stream),
        }
    }

    /// Its only answer has begun. False if that is to wait until all of it is here.
    pub(crate) fn begin(&self, passage: Passage) -> bool {
        let mut state = self.state.lock();
        let alone = !state.ended && state.due == Some(1) && state.last() == 0;
        if !alone || !matches!(state.passing, Passing::Welcome) {
            return false;
        }
        state.passing = Passing::Begun(passage);
        drop(state);
        self.wake.notify_waiters();
        true
    }

    /// Takes over reading: after message `after`, or after what was handed out before.
    pub fn read(self: &Arc<Self>, after: Option<u64>) -> Reader {
        let mut state = self.state.lock();
        state.reader += 1;
        // An agent may name any number; beyond the last message is after the last message.
        let cursor = after.unwrap_or(state.delivered).min(state.last());
        let turn = state.reader;
        drop(state);
        self.wake.notify_waiters();
        Reader { outlet: Arc::clone(self), turn, cursor }
    }

    fn add(&self, body: Pieces, status: Option<u16>, answers: bool) {
        let mut state = self.state.lock();
        if state.ended {
            return;
        }
        // What has begun to be an answer can be nothing else any more.
        if let Passing::Begun(_) | Passing::Taken = state.passing {
            return state.one_less_due();
        }
        state.bytes += body.len();
        state.events.push_back(body);
        while state.events.len() > MAX_EVENTS || (state.bytes > MAX_BYTES && state.events.len() > 1)
        {
            state.drop_oldest();
        }
        if answers {
            state.one_less_due();
            state.status = status;
        }
        drop(state);
        self.wake.notify_waiters();
    }

    fn look(&self) -> Option<First> {
        let mut state = self.state.lock();
        if state.ended && state.front == 1 && state.events.len() == 1 {
            let status = state.status.unwrap_or(200);
            state.bytes = 0;
            return state.events.pop_front().map(|body| First::Answer(body, status));
        }
        let shown = state.ended || !state.events.is_empty() || state.pause.is_some();
        shown.then_some(First::Stream)
    }
}

impl State {
    /// The answer that has begun; if there is none, one is welcome.
    fn welcome(&mut self) -> Option<Passage> {
        match std::mem::replace(&mut self.passing, Passing::Welcome) {
            Passing::Begun(passage) => {
                self.passing = Passing::Taken;
                Some(passage)
            }
            _ => None,
        }
    }

    /// The answer that has begun; if there is none, none is welcome any more.
    fn decline(&mut self) -> Option<Passage> {
        let begun = self.welcome();
        if begun.is_none() {
            self.passing = Passing::No;
        }
        begun
    }

    fn one_less_due(&mut self) {
        let due = self.due.unwrap_or(1).saturating_sub(1);
        self.due = Some(due);
        self.ended |= due == 0;
    }

    /// Number of the newest message; 0 if there never was one.
    fn last(&self) -> u64 {
        self.front - 1 + self.events.len() as u64
    }

    fn drop_oldest(&mut self) {
        if let Some(oldest) = self.events.pop_front() {
            self.bytes -= oldest.len();
            self.front += 1;
        }
    }

    fn after(&self, cursor: u64) -> Option<&Pieces> {
        let index = (cursor + 1).checked_sub(self.front)?;
        self.events.get(usize::try_from(index).ok()?)
    }
}

// === impl Reader ===

impl Reader {
    /// The next message, as soon as there is one.
    pub async fn next(&mut self) -> Next {
        let outlet = Arc::clone(&self.outlet);
        loop {
            let woken = outlet.wake.notified();
            tokio::pin!(woken);
            woken.as_mut().enable();
            if let Some(next) = self.poll() {
                return next;
            }
            woken.await;
        }
    }

    /// Whether what was answered is in the shape of protocol 2026-07-28.
    pub fn is_newer(&self) -> bool {
        self.outlet.is_newer()
    }

    /// Which stream this reads.
    pub fn number(&self) -> u64 {
        self.outlet.number
    }

    fn poll(&mut self) -> Option<Next> {
        let mut state = self.outlet.state.lock();
        if state.reader != self.turn {
            return Some(Next::End);
        }
        if self.cursor + 1 < state.front {
            // The next read goes on with what is left.
            self.cursor = state.front - 1;
            return Some(Next::Gap);
        }
        if let Some(body) = state.after(self.cursor).cloned() {
            self.cursor += 1;
            state.delivered = state.delivered.max(self.cursor);
            return Some(Next::Event(self.cursor, body.into_bytes()));
        }
        if state.ended {
            return Some(Next::End);
        }
        state.pause.take().map(|pause| Next::Pause(pause.retry))
    }
}
