//! Event buffers: what waits to be read by one agent on one stream.
//!
//! A buffer is a bounded, numbered ring of messages. Writers push and never wait; one reader pulls
//! at its own pace and may come back after a broken connection with the number of the last message
//! it saw. The ring is the only buffer between a server and an agent.
//!
//! Invariant: a buffer holds at most [`MAX_EVENTS`] messages and [`MAX_BYTES`] bytes, or one
//! message if that alone is larger. What falls out unread is lost, and the reader is told
//! ([`Next::Gap`]), so that an agent that does not read holds no memory.
//! Invariant: one reader at a time; the newest wins, the one before is told to go ([`Next::End`]).
//!
//! Start at [`EventBuffer::push`] and [`Reader::next`]. Tested by `event_buffer/tests.rs`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;
use toolgate_mcp::Pieces;

use crate::relay::RelayReader;

#[cfg(test)]
mod tests;

/// How many messages a buffer keeps for its reader.
pub const MAX_EVENTS: usize = 1_000;
/// How many bytes of messages a buffer keeps for its reader.
pub const MAX_BYTES: usize = 4 * 1024 * 1024;

/// A bounded stream of messages to one agent.
#[derive(Debug)]
pub struct EventBuffer {
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
    /// Set if the answer rejects the request itself.
    rejection: Option<Rejection>,
    /// Whether the answer came from a server of protocol 2026-07-28 and is in its shape.
    sessionless: bool,
    /// What the server asked for that its client did not declare: capabilities, raw JSON.
    missing_capability: Option<&'static str>,
    /// Whether its only answer may be passed on while it comes.
    relaying: Relaying,
    /// How many answers are still to come; a buffer with none due is open until it is ended.
    due: Option<usize>,
    ended: bool,
    /// A pause that no reader has been told of yet.
    pause: Option<Pause>,
    /// Which reader is the current one.
    reader: u64,
}

/// What may become of an answer that comes piece by piece.
#[derive(Debug, Default)]
enum Relaying {
    /// It is awaited whole.
    #[default]
    No,
    /// Whoever waits can do with a beginning.
    Welcome,
    /// It has begun, and nobody has seen it yet.
    Begun(RelayReader),
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

/// An answer that rejects the request itself; the transport shows it to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rejection {
    /// The request is invalid.
    InvalidRequest,
    /// The method does not exist.
    UnknownMethod,
}

/// What the first look at the buffer of a request shows.
#[derive(Debug)]
pub enum First {
    /// The answer came first and is complete: it can be sent as one body.
    Answer(Pieces, Option<Rejection>),
    /// There is more than one message, or it takes longer.
    Stream,
}

/// The same for whoever can do with the beginning of an answer.
#[derive(Debug)]
pub enum Begun {
    /// As it will be.
    All(First),
    /// The answer has begun, and its rest follows.
    Relaying(RelayReader),
}

/// Reads one buffer.
#[derive(Debug)]
pub struct Reader {
    buffer: Arc<EventBuffer>,
    turn: u64,
    /// Number of the last message read.
    cursor: u64,
}

// === impl EventBuffer ===

impl EventBuffer {
    /// A buffer that stays open until it is ended; `number` tells the streams of one agent
    /// session apart.
    pub fn new(number: u64) -> Self {
        let state = State { front: 1, ..State::default() };
        Self { number, state: Mutex::new(state), wake: Notify::new() }
    }

    /// A buffer that ends with the last of that many answers.
    pub fn expecting(number: u64, answers: usize) -> Self {
        let buffer = Self::new(number);
        buffer.state.lock().due = Some(answers);
        buffer
    }

    /// Which stream of its agent session this is.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Adds a message. Does nothing once the buffer has ended.
    pub fn push(&self, body: Bytes) {
        self.add(body.into(), None, false);
    }

    /// Adds an answer, and ends the buffer if no more are due.
    pub fn answer(&self, body: impl Into<Pieces>, rejection: Option<Rejection>) {
        self.add(body.into(), rejection, true);
    }

    /// One of the answers will never come; ends the buffer if no more are due.
    pub fn skip_answer(&self) {
        self.state.lock().one_less_due();
        self.wake.notify_waiters();
    }

    /// Ends the buffer without a further message.
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
    pub(crate) fn mark_sessionless(&self) {
        self.state.lock().sessionless = true;
    }

    /// Whether what was answered is in the shape of protocol 2026-07-28.
    pub fn is_sessionless(&self) -> bool {
        self.state.lock().sessionless
    }

    /// The server has asked for something that takes these capabilities (raw JSON), which its
    /// client did not declare. The first such thing is remembered.
    pub(crate) fn mark_missing_capability(&self, capabilities: &'static str) {
        self.state.lock().missing_capability.get_or_insert(capabilities);
    }

    /// Which capabilities the server missed, raw JSON.
    pub(crate) fn missing_capability(&self) -> Option<&'static str> {
        self.state.lock().missing_capability
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

    /// Waits until the buffer shows whether one answer is all there will be.
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
                return Begun::Relaying(begun);
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
            Some(relay_reader) => Begun::Relaying(relay_reader),
            None => Begun::All(First::Stream),
        }
    }

    /// Its only answer has begun. False if that is to wait until all of it is here.
    pub(crate) fn begin(&self, relay_reader: RelayReader) -> bool {
        let mut state = self.state.lock();
        let alone = !state.ended && state.due == Some(1) && state.last() == 0;
        if !alone || !matches!(state.relaying, Relaying::Welcome) {
            return false;
        }
        state.relaying = Relaying::Begun(relay_reader);
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
        Reader { buffer: Arc::clone(self), turn, cursor }
    }

    fn add(&self, body: Pieces, rejection: Option<Rejection>, answers: bool) {
        let mut state = self.state.lock();
        if state.ended {
            return;
        }
        // What has begun to be an answer can be nothing else any more.
        if let Relaying::Begun(_) | Relaying::Taken = state.relaying {
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
            state.rejection = rejection;
        }
        drop(state);
        self.wake.notify_waiters();
    }

    fn look(&self) -> Option<First> {
        let mut state = self.state.lock();
        if state.ended && state.front == 1 && state.events.len() == 1 {
            let rejection = state.rejection;
            state.bytes = 0;
            return state.events.pop_front().map(|body| First::Answer(body, rejection));
        }
        let shown = state.ended || !state.events.is_empty() || state.pause.is_some();
        shown.then_some(First::Stream)
    }
}

impl State {
    /// The answer that has begun; if there is none, one is welcome.
    fn welcome(&mut self) -> Option<RelayReader> {
        match std::mem::replace(&mut self.relaying, Relaying::Welcome) {
            Relaying::Begun(relay_reader) => {
                self.relaying = Relaying::Taken;
                Some(relay_reader)
            }
            _ => None,
        }
    }

    /// The answer that has begun; if there is none, none is welcome any more.
    fn decline(&mut self) -> Option<RelayReader> {
        let begun = self.welcome();
        if begun.is_none() {
            self.relaying = Relaying::No;
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
        let buffer = Arc::clone(&self.buffer);
        loop {
            let woken = buffer.wake.notified();
            tokio::pin!(woken);
            woken.as_mut().enable();
            if let Some(next) = self.poll() {
                return next;
            }
            woken.await;
        }
    }

    /// Whether what was answered is in the shape of protocol 2026-07-28.
    pub fn is_sessionless(&self) -> bool {
        self.buffer.is_sessionless()
    }

    /// Which stream this reads.
    pub fn number(&self) -> u64 {
        self.buffer.number
    }

    fn poll(&mut self) -> Option<Next> {
        let mut state = self.buffer.state.lock();
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
