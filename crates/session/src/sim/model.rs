//! The model of the checker: its view of sockets, sessions and calls.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use serde_json::Value;

use crate::{CallNumber, Millis, SocketId};

/// A socket.
#[derive(Debug)]
pub(super) struct SocketModel {
    pub(super) token: Option<u32>,
    /// A register was accepted on it.
    pub(super) registered: bool,
    /// Its current session.
    pub(super) uid: Option<String>,
    /// The machine has closed it, or has reported that another one replaced it.
    pub(super) leaving: bool,
}

/// A session.
#[derive(Debug)]
pub(super) struct SessionModel {
    pub(super) token: Option<u32>,
    pub(super) kind: String,
    pub(super) base: String,
    pub(super) pid: Value,
    /// Its tools and how many calls each can take.
    pub(super) tools: BTreeMap<String, usize>,
    pub(super) socket: Option<SocketId>,
    pub(super) lost_at: Option<Millis>,
    /// Calls that wait, in order of arrival.
    pub(super) queue: VecDeque<CallNumber>,
    /// Calls that hold a slot.
    pub(super) slots: BTreeMap<CallNumber, Slot>,
}

/// A sent call that occupies a slot.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) socket: SocketId,
    pub(super) concurrency: usize,
    /// If its call ended without an answer, until when it is occupied.
    pub(super) until: Option<Millis>,
}

/// A call.
#[derive(Debug)]
pub(super) struct CallModel {
    pub(super) uid: String,
    pub(super) tool: String,
    pub(super) admitted: Millis,
    pub(super) allowed: Option<Duration>,
    pub(super) sent: bool,
    pub(super) ended: bool,
    pub(super) cancelled: Option<Millis>,
    /// Its client was restarted, so its deadline may be earlier.
    pub(super) hastened: bool,
}

impl SessionModel {
    /// Whether one more call may be sent.
    pub(super) fn has_room(&self, concurrency: usize) -> bool {
        let least = self.slots.values().map(|slot| slot.concurrency).min().unwrap_or(concurrency);
        self.slots.len() < least.min(concurrency)
    }
}

/// The params of a register or of `tools_changed`, as the client intended.
pub(super) fn tools(params: &Value) -> BTreeMap<String, usize> {
    let tools = params["tools"].as_array().into_iter().flatten();
    let concurrency = |tool: &Value| tool["concurrency"].as_u64().unwrap_or(1);
    tools
        .map(|tool| {
            let name = tool["name"].as_str().unwrap().to_owned();
            (name, usize::try_from(concurrency(tool)).unwrap())
        })
        .collect()
}

/// All sockets, sessions and calls.
#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) sockets: BTreeMap<SocketId, SocketModel>,
    pub(super) sessions: BTreeMap<String, SessionModel>,
    pub(super) calls: BTreeMap<CallNumber, CallModel>,
    /// Every id that was ever on the wire.
    pub(super) wires: BTreeMap<String, CallNumber>,
    /// Sessions that have ended in this step.
    pub(super) ended_now: BTreeSet<String>,
}

impl Model {
    /// Whether a socket may answer a call that holds a slot.
    pub(super) fn may_answer(&self, socket: SocketId, call: CallNumber) -> bool {
        let uid = self.calls.get(&call).map(|call| &call.uid);
        let session = uid.and_then(|uid| self.sessions.get(uid));
        session.is_some_and(|session| {
            let went_to = session.slots.get(&call).map(|slot| slot.socket);
            went_to == Some(socket) || session.socket == Some(socket)
        })
    }

    /// Frees the slots whose time has passed.
    pub(super) fn free_slots(&mut self, now: Millis) {
        for session in self.sessions.values_mut() {
            session.slots.retain(|_, slot| slot.until.is_none_or(|until| until > now));
        }
    }
}
