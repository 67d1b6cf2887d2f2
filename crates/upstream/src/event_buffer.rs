//! Event buffers: messages that wait for one agent on one stream.
//!
//! A buffer is a bounded, numbered ring of messages. Writers push and never wait. One reader pulls
//! at its own pace and can resume after a broken connection with the number of the last message it
//! received. The ring is the only buffer between a server and an agent.
//!
//! Invariant: a buffer holds at most [`MAX_EVENTS`] messages and [`MAX_BYTES`] bytes, or one
//! message if that alone is larger. Messages evicted unread are lost, and the reader is told
//! ([`Next::Gap`]), so an agent that does not read cannot hold memory.
//! Invariant: one reader at a time; the newest takes over, and the previous one ends
//! ([`Next::End`]).
//!
//! Start at [`EventBuffer::push`] and [`Reader::next`]. Tested by `event_buffer/tests.rs`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;
use toolgate_mcp::Pieces;

use crate::relay::RelayReader;

mod reader;
mod state;
#[cfg(test)]
mod tests;

use self::state::{Pause, Relaying, State};
pub use reader::Reader;

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

/// A connection that waits for a buffer or reads it.
#[derive(Debug)]
pub struct Attending(Arc<EventBuffer>);

/// What a reader receives next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// A message and its number.
    Event(u64, Bytes),
    /// The server paused: close this connection; the agent reconnects after the given time.
    Pause(Option<Duration>),
    /// Messages were lost because the reader was too slow.
    Gap,
    /// There are no further messages, or a newer reader has taken over.
    End,
}

/// An answer that rejects the request itself; the transport chooses the status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rejection {
    /// The request is invalid.
    InvalidRequest,
    /// The method does not exist.
    UnknownMethod,
}

/// The first result of waiting on the buffer of a request.
#[derive(Debug)]
pub enum First {
    /// The answer came first and is complete: it can be sent as one body.
    Answer(Pieces, Option<Rejection>),
    /// There is more than one message, or the answer takes longer: read a stream.
    Stream,
}

/// As [`First`], for a reader that accepts a relayed answer.
#[derive(Debug)]
pub enum Begun {
    /// Not relayed.
    All(First),
    /// The answer is relayed while it arrives.
    Relaying(RelayReader),
}

// === impl EventBuffer ===

impl EventBuffer {
    /// A buffer that stays open until it is ended. `number` identifies the stream within its agent
    /// session.
    pub fn new(number: u64) -> Self {
        let state = State { front: 1, ..State::default() };
        Self { number, state: Mutex::new(state), wake: Notify::new() }
    }

    /// A buffer that ends with the last of `answers` answers.
    pub fn expecting(number: u64, answers: usize) -> Self {
        let buffer = Self::new(number);
        buffer.state.lock().due = Some(answers);
        buffer
    }

    /// The number of the stream within its agent session.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Adds a message. Does nothing once the buffer has ended.
    pub fn push(&self, body: Bytes) {
        self.add(body.into(), None, false);
    }

    /// Adds an answer; the buffer ends if it was the last one.
    pub fn answer(&self, body: impl Into<Pieces>, rejection: Option<Rejection>) {
        self.add(body.into(), rejection, true);
    }

    /// One answer will not be delivered; the buffer ends if it was the last one.
    pub fn skip_answer(&self) {
        self.state.lock().one_less_due();
        self.wake.notify_waiters();
    }

    /// Ends the buffer without a further message.
    pub fn end(&self) {
        self.state.lock().ended = true;
        self.wake.notify_waiters();
    }

    /// Waits until it has ended.
    pub async fn until_ended(&self) {
        loop {
            let woken = self.wake.notified();
            tokio::pin!(woken);
            woken.as_mut().enable();
            if self.state.lock().ended {
                return;
            }
            woken.await;
        }
    }

    /// Asks the reader to disconnect and to reconnect after `retry`.
    pub fn pause(&self, retry: Option<Duration>) {
        let mut state = self.state.lock();
        (state.pause, state.paused) = (Some(Pause { retry }), None);
        drop(state);
        self.wake.notify_waiters();
    }

    /// Waits until the agent has reconnected after a pause that was reported to it.
    pub(crate) async fn resumed(self: Arc<Self>) {
        loop {
            let woken = self.wake.notified();
            tokio::pin!(woken);
            woken.as_mut().enable();
            if self.state.lock().has_resumed() {
                return;
            }
            woken.await;
        }
    }

    /// From now on, until that is dropped, a connection waits for the buffer or reads it.
    pub fn attend(self: &Arc<Self>) -> Attending {
        *self.state.lock().attended.get_or_insert(0) += 1;
        Attending(Arc::clone(self))
    }

    /// Waits until the last connection is gone. A buffer that never had one is not left.
    pub async fn left(&self) {
        loop {
            let woken = self.wake.notified();
            tokio::pin!(woken);
            woken.as_mut().enable();
            if self.state.lock().attended == Some(0) {
                return;
            }
            woken.await;
        }
    }

    /// Further answers have the shape of protocol 2026-07-28.
    pub(crate) fn mark_sessionless(&self) {
        self.state.lock().sessionless = true;
    }

    /// Whether the answers have the shape of protocol 2026-07-28.
    pub fn is_sessionless(&self) -> bool {
        self.state.lock().sessionless
    }

    /// Records a capability (raw JSON) that the server required and its client did not declare. The
    /// first one is kept.
    pub(crate) fn mark_missing_capability(&self, capabilities: &'static str) {
        self.state.lock().missing_capability.get_or_insert(capabilities);
    }

    /// The missing capability, raw JSON.
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

    /// Waits until it is known whether one answer is all there is.
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

    /// As [`Self::first`], and accepts a relayed answer.
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

    /// Stops waiting: a stream is read from now on, unless relaying has begun.
    pub fn no_longer(&self) -> Begun {
        match self.state.lock().decline() {
            Some(relay_reader) => Begun::Relaying(relay_reader),
            None => Begun::All(First::Stream),
        }
    }

    /// Starts to relay the only answer. Returns false if the complete answer is required.
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

    /// Takes over reading, after message `after` or after the last delivered message.
    pub fn read(self: &Arc<Self>, after: Option<u64>) -> Reader {
        let mut state = self.state.lock();
        state.reader += 1;
        // An agent may name any number; a number beyond the last message means the last message.
        let cursor = after.unwrap_or(state.delivered).min(state.last());
        let turn = state.reader;
        drop(state);
        self.wake.notify_waiters();
        Reader::new(Arc::clone(self), turn, cursor)
    }

    fn add(&self, body: Pieces, rejection: Option<Rejection>, answers: bool) {
        let mut state = self.state.lock();
        if state.ended {
            return;
        }
        // After relaying has begun, nothing else can be the answer.
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

impl Drop for Attending {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.attended = state.attended.map(|count| count.saturating_sub(1));
        drop(state);
        self.0.wake.notify_waiters();
    }
}
