//! Frames are sent to the right socket, in order, once, and within the client's concurrency.

use bytes::Bytes;
use serde_json::Value;

use super::super::model::Slot;
use super::{Checker, Verdict, demand};
use crate::{CallNumber, SocketId};

impl Checker {
    pub(super) fn may_send(&self, socket: SocketId) -> Verdict {
        let book = self.books.sockets.get(&socket);
        demand!(book.is_some_and(|book| !book.leaving), "sent to a socket that is gone");
        Ok(())
    }

    pub(super) fn sent(&mut self, socket: SocketId, frame: &Bytes) -> Verdict {
        self.may_send(socket)?;
        let frame: Value = serde_json::from_slice(frame).map_err(|error| error.to_string())?;
        match frame["method"].as_str() {
            Some("tool.call") => self.call_sent(socket, &frame),
            Some("tool.cancel") => {
                self.count("tool.cancel");
                let wire = frame["params"]["id"].as_str().unwrap_or_default();
                let call = self.books.wires.get(wire).ok_or("cancelled what was never sent")?;
                let uid = &self.books.calls[call].uid;
                let current = self.books.sessions.get(uid).and_then(|session| session.socket);
                demand!(current == Some(socket), "cancelled at a stranger's");
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn call_sent(&mut self, socket: SocketId, frame: &Value) -> Verdict {
        let wire = frame["id"].as_str().unwrap_or_default().to_owned();
        demand!(!self.books.wires.contains_key(&wire), "the id {wire} was used before");
        let tag = frame["params"]["arguments"]["tag"].as_u64().ok_or("sent without its tag")?;
        let call = CallNumber(tag);
        self.books.wires.insert(wire, call);
        let book = self.books.calls.get_mut(&call).ok_or("sent a call that never started")?;
        demand!(!book.sent, "call {call:?} was sent twice");
        demand!(!book.ended, "call {call:?} was sent after its end");
        book.sent = true;
        let session = self.books.sessions.get_mut(&book.uid).ok_or("sent to an unknown socket")?;
        demand!(session.socket == Some(socket), "sent to an old socket");
        demand!(session.queue.pop_front() == Some(call), "call {call:?} was sent out of turn");
        let concurrency = *session.tools.get(&book.tool).ok_or("sent a tool that is gone")?;
        demand!(session.has_room(concurrency), "one call too many at once");
        if !session.slots.is_empty() {
            *self.stats.entry("side by side").or_default() += 1;
        }
        session.slots.insert(call, Slot { socket, concurrency, until: None });
        Ok(())
    }
}
