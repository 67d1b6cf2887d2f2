//! A child that was started before there is a connection to it.
//!
//! Invariant: the inbox of the connection receives everything that arrived before it, in order.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use toolgate_gateway::RelayWriter;
use toolgate_gateway::channel::{BoxFuture, Channel, Inbox, Progress};

/// A server sends little before its first request; more is dropped.
const WAITING: usize = 64;

/// A child, and what it has sent so far.
pub(super) struct Ahead {
    pub(super) channel: Arc<dyn Channel>,
    pub(super) inbox: Arc<LaterInbox>,
}

impl Ahead {
    /// Gives the child to a connection.
    pub(super) fn connect(self, inbox: Arc<dyn Inbox>) -> Arc<dyn Channel> {
        self.inbox.connect(inbox);
        self.channel
    }
}

/// An inbox that keeps what arrives until its owner is known.
#[derive(Default)]
pub(super) struct LaterInbox(Mutex<State>);

#[derive(Default)]
struct State {
    owner: Option<Arc<dyn Inbox>>,
    messages: Vec<Bytes>,
    closed: Option<String>,
}

impl LaterInbox {
    fn connect(&self, inbox: Arc<dyn Inbox>) {
        let mut state = self.0.lock();
        for message in state.messages.drain(..) {
            inbox.message(message);
        }
        match state.closed.take() {
            Some(why) => inbox.closed(&why),
            None => state.owner = Some(inbox),
        }
    }

    fn owner(&self) -> Option<Arc<dyn Inbox>> {
        self.0.lock().owner.clone()
    }
}

impl Inbox for LaterInbox {
    fn message(&self, body: Bytes) -> Progress {
        let mut state = self.0.lock();
        if let Some(owner) = state.owner.clone() {
            drop(state);
            return owner.message(body);
        }
        if state.messages.len() < WAITING {
            state.messages.push(body);
        }
        Progress::Expecting
    }

    fn begins(&self, beginning: &Bytes, size: usize) -> Option<RelayWriter> {
        self.owner()?.begins(beginning, size)
    }

    fn paused(&self, retry: Option<Duration>) {
        if let Some(owner) = self.owner() {
            owner.paused(retry);
        }
    }

    fn resumed(&self) -> BoxFuture<'static, ()> {
        match self.owner() {
            Some(owner) => owner.resumed(),
            None => Box::pin(std::future::pending()),
        }
    }

    fn closed(&self, why: &str) {
        let mut state = self.0.lock();
        // Nothing follows, so the owner is let go.
        match state.owner.take() {
            Some(owner) => {
                drop(state);
                owner.closed(why);
            }
            None => state.closed = Some(why.to_owned()),
        }
    }
}
