//! The checker: maintains its own model of everything that happens and knows every promise.
//!
//! Invariant: it queries the machine only for what agents can see (`published`).

mod ends;
mod lives;
mod routes;
mod sends;

use std::collections::BTreeSet;

use serde_json::Value;

use super::Stats;
use super::model::{CallModel, Model, SocketModel, tools};
use crate::{
    CallNumber, CallTarget, Millis, Output, Reach, SessionCall, SessionEvent, SessionEventKind,
    SessionMachine, SessionSettings, SocketId,
};

/// An input of the machine, as observed by the checker.
#[derive(Debug)]
pub(super) enum Observed {
    Nothing,
    Stop,
    Opened(SocketId, Option<u32>),
    Closed(SocketId),
    /// A frame; null if it is not JSON.
    Frame(SocketId, Value),
    Call {
        call: CallNumber,
        uid: String,
        tool: String,
        allowed: Option<std::time::Duration>,
    },
    Cancel(CallNumber),
}

impl Observed {
    pub(super) fn frame(socket: SocketId, text: &str) -> Self {
        Self::Frame(socket, serde_json::from_str(text).unwrap_or_default())
    }

    pub(super) fn call(call: &SessionCall) -> Self {
        let CallTarget { session_id, tool, allowed, .. } = &call.target;
        let (uid, tool) = (session_id.to_string(), tool.name.to_string());
        Self::Call { call: call.call, uid, tool, allowed: *allowed }
    }

    fn method(&self) -> &str {
        match self {
            Self::Frame(_, frame) => frame["method"].as_str().unwrap_or_default(),
            _ => "",
        }
    }
}

type Verdict = Result<(), String>;

pub(super) struct Checker {
    pub(super) stats: Stats,
    settings: SessionSettings,
    books: Model,
    /// The list at the last notification of the view.
    list: [u8; 32],
    /// Since when the list has differed from the notified one, at which revision.
    stale_since: Option<(Millis, u64)>,
    steps: u64,
}

macro_rules! demand {
    ($holds:expr, $($what:tt)*) => {
        if !$holds {
            return Err(format!($($what)*));
        }
    };
}
use demand;

impl Checker {
    pub(super) fn new(settings: &SessionSettings) -> Self {
        Self {
            stats: Stats::new(),
            settings: settings.clone(),
            books: Model::default(),
            list: [0; 32],
            stale_since: None,
            steps: 0,
        }
    }

    pub(super) fn watches(&mut self, digest: [u8; 32]) {
        self.list = digest;
        self.stale_since = None;
    }

    pub(super) fn observe(
        &mut self,
        seen: &Observed,
        outputs: &[Output],
        now: Millis,
        gate: &SessionMachine,
    ) -> Verdict {
        self.books.free_slots(now);
        self.books.ended_now.clear();
        self.note(seen, now);
        for output in outputs {
            match output {
                Output::Send { socket, frame } | Output::SendCall { socket, frame, .. } => {
                    self.sent(*socket, frame)?;
                }
                Output::Ping { socket } => self.may_send(*socket)?,
                Output::Close { socket, code, .. } => {
                    self.may_send(*socket)?;
                    let book = self.books.sockets.get_mut(socket).unwrap();
                    book.leaving = true;
                    if *code == 4003 {
                        self.count("dead socket");
                    }
                }
                Output::Answer(answer) => self.ended(seen, answer, now)?,
                Output::Event(event) => self.event(seen, event, now)?,
                Output::ListChanged { .. } => {
                    let digest = gate.published(&Reach::default()).digest;
                    demand!(digest != self.list, "a view was notified without a change");
                    self.list = digest;
                    self.stale_since = None;
                    self.count("list changed");
                }
                Output::Keep(_) | Output::Forget(_) => {}
            }
        }
        self.after(seen, outputs, now, gate)
    }

    /// Records an input.
    fn note(&mut self, seen: &Observed, now: Millis) {
        match seen {
            Observed::Opened(socket, token) => {
                let book =
                    SocketModel { token: *token, registered: false, uid: None, leaving: false };
                self.books.sockets.insert(*socket, book);
            }
            Observed::Closed(socket) => {
                self.books.sockets.remove(socket);
            }
            Observed::Call { call, uid, tool, allowed } => {
                let book = CallModel {
                    uid: uid.clone(),
                    tool: tool.clone(),
                    admitted: now,
                    allowed: *allowed,
                    sent: false,
                    ended: false,
                    cancelled: None,
                    hastened: false,
                };
                self.books.calls.insert(*call, book);
                if let Some(session) = self.books.sessions.get_mut(uid) {
                    session.queue.push_back(*call);
                }
                self.count("admitted");
            }
            Observed::Cancel(call) => {
                if let Some(call) = self.books.calls.get_mut(call).filter(|call| !call.ended) {
                    call.cancelled = Some(now);
                }
            }
            Observed::Frame(socket, frame) => self.note_frame(*socket, frame),
            Observed::Nothing | Observed::Stop => {}
        }
    }

    fn note_frame(&mut self, socket: SocketId, frame: &Value) {
        let leaving = self.books.sockets.get(&socket).is_none_or(|book| book.leaving);
        let uid = self.books.sockets.get(&socket).and_then(|book| book.uid.clone());
        let session = uid.and_then(|uid| self.books.sessions.get_mut(&uid));
        if frame["method"] == "session.tools_changed"
            && !leaving
            && let Some(session) = session
        {
            session.tools = tools(&frame["params"]);
        }
        // A late answer frees the slot that was reserved for it.
        let call = frame["id"].as_str().and_then(|wire| self.books.wires.get(wire)).copied();
        if let Some(call) = call.filter(|_| frame.get("method").is_none())
            && self.books.may_answer(socket, call)
            && self.books.calls[&call].ended
        {
            let uid = self.books.calls[&call].uid.clone();
            let session = self.books.sessions.get_mut(&uid).unwrap();
            if session.slots.remove(&call).is_some() {
                self.count("late answer");
            }
        }
    }

    fn event(&mut self, seen: &Observed, event: &SessionEvent, now: Millis) -> Verdict {
        let uid = event.session_id.as_deref().unwrap_or_default().to_owned();
        self.count(event.what.as_str());
        match (event.what, event.socket) {
            (SessionEventKind::Registered, Some(socket)) => {
                demand!(!self.books.sessions.contains_key(&uid), "`{uid}` began twice");
                self.registers(seen, &uid, socket)
            }
            (SessionEventKind::Reconnected, Some(socket)) => {
                demand!(self.books.sessions.contains_key(&uid), "`{uid}` came back from nowhere");
                self.registers(seen, &uid, socket)
            }
            (SessionEventKind::TakenOver, Some(old)) => {
                let session = self.books.sessions.get(&uid);
                demand!(session.is_some_and(|s| s.socket == Some(old)), "took over a stranger");
                if let Some(book) = self.books.sockets.get_mut(&old) {
                    book.uid = None;
                }
                Ok(())
            }
            (SessionEventKind::Rebound, Some(socket)) => self.rebinds(seen, &uid, socket),
            (SessionEventKind::Lost, Some(socket)) => {
                let session = self.books.sessions.get_mut(&uid).ok_or("lost an unknown session")?;
                demand!(session.socket == Some(socket), "lost a socket that was not in use");
                session.socket = None;
                session.lost_at = Some(now);
                if let Some(book) = self.books.sockets.get_mut(&socket) {
                    book.uid = None;
                }
                Ok(())
            }
            (SessionEventKind::Bye | SessionEventKind::Expired | SessionEventKind::Ended, _) => {
                self.session_ends(seen, event, &uid, now)
            }
            _ => Ok(()),
        }
    }

    /// What must hold after every step.
    fn after(
        &mut self,
        seen: &Observed,
        outputs: &[Output],
        now: Millis,
        gate: &SessionMachine,
    ) -> Verdict {
        self.steps += 1;
        for uid in &self.books.ended_now {
            let left = self.books.calls.iter().find(|(_, call)| call.uid == *uid && !call.ended);
            demand!(left.is_none(), "`{uid}` has ended and its call {left:?} has not");
        }
        for (uid, session) in &self.books.sessions {
            let (Some(head), Some(_)) = (session.queue.front(), session.socket) else { continue };
            let concurrency = session.tools.get(&self.books.calls[head].tool);
            let waits = concurrency.is_some_and(|concurrency| !session.has_room(*concurrency));
            demand!(waits, "`{uid}` has room and call {head:?} waits");
        }
        let lost = |output: &Output| {
            matches!(
                output,
                Output::Event(SessionEvent {
                    what: SessionEventKind::Lost | SessionEventKind::Rebound,
                    ..
                })
            )
        };
        let mattered = outputs.iter().any(lost) || self.steps.is_multiple_of(16);
        if mattered && !matches!(seen, Observed::Stop) {
            self.look_at_list(now, gate)?;
        }
        Ok(())
    }

    /// The list contains what the sessions of the model publish, connected or not, and views know
    /// it.
    fn look_at_list(&mut self, now: Millis, gate: &SessionMachine) -> Verdict {
        let published = gate.published(&Reach::default());
        let sessions = self.books.sessions.values();
        let expected: BTreeSet<&str> =
            sessions.flat_map(|session| session.tools.keys()).map(String::as_str).collect();
        let served = published.tools.iter().filter(|tool| tool.sessions > 0);
        let served: BTreeSet<&str> = served.map(|tool| &*tool.original).collect();
        demand!(expected == served, "the list has {served:?} where {expected:?} are served");
        if published.digest == self.list {
            self.stale_since = None;
        } else {
            let stale = self.stale_since.filter(|(_, revision)| *revision == gate.revision());
            let (since, _) = *self.stale_since.insert(stale.unwrap_or((now, gate.revision())));
            demand!(
                now.since(since) <= self.settings.coalesce,
                "a view was not notified of a change"
            );
        }
        Ok(())
    }

    pub(super) fn count(&mut self, what: &'static str) {
        *self.stats.entry(what).or_default() += 1;
    }
}
