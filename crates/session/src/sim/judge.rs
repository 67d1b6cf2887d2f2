//! The judge: keeps its own books of everything that happens and knows every promise.
//!
//! Invariant: nothing of the machine is asked but what agents can see (`published`).

mod ends;
mod sends;

use std::collections::BTreeSet;

use serde_json::Value;

use super::Stats;
use super::model::{Books, CallBook, SessionBook, SocketBook, tools};
use crate::{
    Call, CallId, Event, Failure, Millis, Output, Reach, Sessions, Settings, SocketId, Target, What,
};

/// What goes into the machine, as the judge sees it.
#[derive(Debug)]
pub(super) enum Seen {
    Nothing,
    Stop,
    Opened(SocketId, Option<u32>),
    Closed(SocketId),
    /// A frame; null if it is no JSON.
    Frame(SocketId, Value),
    Call {
        call: CallId,
        uid: String,
        tool: String,
        allowed: Option<std::time::Duration>,
    },
    Cancel(CallId),
}

impl Seen {
    pub(super) fn frame(socket: SocketId, text: &str) -> Self {
        Self::Frame(socket, serde_json::from_str(text).unwrap_or_default())
    }

    pub(super) fn call(call: &Call) -> Self {
        let Target { session_id, tool, allowed, .. } = &call.target;
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

pub(super) struct Judge {
    pub(super) stats: Stats,
    settings: Settings,
    books: Books,
    /// The list that the view was last told of.
    list: [u8; 32],
    /// Since when the list has been another one than the view was told, at which revision.
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

impl Judge {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            stats: Stats::new(),
            settings: settings.clone(),
            books: Books::default(),
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
        seen: &Seen,
        outputs: &[Output],
        now: Millis,
        gate: &Sessions,
    ) -> Verdict {
        self.books.free_slots(now);
        self.books.ended_now.clear();
        self.note(seen, now);
        for output in outputs {
            match output {
                Output::Send { socket, frame } => self.sent(*socket, frame)?,
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
                    demand!(digest != self.list, "a view was told of a change that is none");
                    self.list = digest;
                    self.stale_since = None;
                    self.count("list changed");
                }
                Output::Keep(_) | Output::Forget(_) => {}
            }
        }
        self.after(seen, outputs, now, gate)
    }

    /// Writes down what has come in.
    fn note(&mut self, seen: &Seen, now: Millis) {
        match seen {
            Seen::Opened(socket, token) => {
                let book =
                    SocketBook { token: *token, registered: false, uid: None, leaving: false };
                self.books.sockets.insert(*socket, book);
            }
            Seen::Closed(socket) => {
                self.books.sockets.remove(socket);
            }
            Seen::Call { call, uid, tool, allowed } => {
                let book = CallBook {
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
            Seen::Cancel(call) => {
                if let Some(call) = self.books.calls.get_mut(call).filter(|call| !call.ended) {
                    call.cancelled = Some(now);
                }
            }
            Seen::Frame(socket, frame) => self.note_frame(*socket, frame),
            Seen::Nothing | Seen::Stop => {}
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
        // A late answer frees the slot that was kept for it.
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

    fn event(&mut self, seen: &Seen, event: &Event, now: Millis) -> Verdict {
        let uid = event.session_id.as_deref().unwrap_or_default().to_owned();
        self.count(event.what.as_str());
        match (event.what, event.socket) {
            (What::Registered, Some(socket)) => {
                demand!(!self.books.sessions.contains_key(&uid), "`{uid}` began twice");
                self.registers(seen, &uid, socket)
            }
            (What::Reconnected, Some(socket)) => {
                demand!(self.books.sessions.contains_key(&uid), "`{uid}` came back from nowhere");
                self.registers(seen, &uid, socket)
            }
            (What::TakenOver, Some(old)) => {
                let session = self.books.sessions.get(&uid);
                demand!(session.is_some_and(|s| s.socket == Some(old)), "took over a stranger");
                if let Some(book) = self.books.sockets.get_mut(&old) {
                    book.uid = None;
                }
                Ok(())
            }
            (What::Rebound, Some(socket)) => self.rebinds(seen, &uid, socket),
            (What::Lost, Some(socket)) => {
                let session = self.books.sessions.get_mut(&uid).ok_or("lost nobody")?;
                demand!(session.socket == Some(socket), "lost a socket that was not in use");
                session.socket = None;
                session.lost_at = Some(now);
                if let Some(book) = self.books.sockets.get_mut(&socket) {
                    book.uid = None;
                }
                Ok(())
            }
            (What::Bye | What::Expired | What::Ended, _) => {
                self.session_ends(seen, event, &uid, now)
            }
            _ => Ok(()),
        }
    }

    /// A register was accepted.
    fn registers(&mut self, seen: &Seen, uid: &str, socket: SocketId) -> Verdict {
        let Seen::Frame(on, frame) = seen else { return Err("registered by itself".to_owned()) };
        demand!(*on == socket && seen.method() == "session.register", "registered by itself");
        let params = &frame["params"];
        let text = |key: &str| params[key].as_str().unwrap_or_default().to_owned();
        let book = self.books.sockets.get_mut(&socket).ok_or("registered on no socket")?;
        demand!(!book.leaving, "registered on a socket that is leaving");
        demand!(!book.registered, "registered twice on one socket");
        (book.registered, book.uid) = (true, Some(uid.to_owned()));
        let token = book.token;
        let fresh = || SessionBook {
            token,
            kind: text("kind"),
            base: text("infobase_name"),
            pid: params["pid"].clone(),
            tools: tools(params),
            socket: None,
            lost_at: None,
            queue: std::collections::VecDeque::new(),
            slots: std::collections::BTreeMap::new(),
        };
        let session = self.books.sessions.entry(uid.to_owned()).or_insert_with(fresh);
        let same = session.token == token
            && session.kind == text("kind")
            && session.base == text("infobase_name");
        demand!(same, "`{uid}` was taken by another program");
        if !session.pid.is_null() && session.pid != params["pid"] {
            for call in session.slots.keys() {
                self.books.calls.get_mut(call).unwrap().hastened = true;
            }
        }
        session.pid = params["pid"].clone();
        session.tools = tools(params);
        let old = session.socket.replace(socket).filter(|old| *old != socket);
        session.lost_at = None;
        // Whatever the machine thinks, the socket before this one is done with.
        if let Some(book) = old.and_then(|old| self.books.sockets.get_mut(&old)) {
            demand!(book.leaving, "a superseded socket stays open");
        }
        Ok(())
    }

    fn rebinds(&mut self, seen: &Seen, uid: &str, socket: SocketId) -> Verdict {
        let Seen::Frame(on, frame) = seen else { return Err("re-bound by itself".to_owned()) };
        demand!(self.settings.rebind, "re-bound although that is off");
        let call = frame["id"].as_str().and_then(|wire| self.books.wires.get(wire));
        let call = call.and_then(|call| self.books.calls.get(call)).ok_or("re-bound by guess")?;
        demand!(*on == socket && call.uid == uid && !call.ended, "re-bound to the wrong session");
        let session = self.books.sessions.get_mut(uid).ok_or("re-bound to nobody")?;
        let book = self.books.sockets.get_mut(&socket).ok_or("re-bound no socket")?;
        demand!(session.socket.is_none(), "re-bound a session that has a socket");
        demand!(!book.registered && book.uid.is_none() && !book.leaving, "re-bound a taken socket");
        demand!(session.token == book.token, "re-bound with another token");
        (session.socket, session.lost_at) = (Some(socket), None);
        book.uid = Some(uid.to_owned());
        Ok(())
    }

    fn session_ends(&mut self, seen: &Seen, event: &Event, uid: &str, now: Millis) -> Verdict {
        let session = self.books.sessions.remove(uid).ok_or("nobody has ended")?;
        match event.what {
            What::Bye => {
                demand!(seen.method() == "session.bye", "a goodbye that nobody said");
                demand!(session.socket == event.socket, "a goodbye from an old socket");
            }
            What::Expired => {
                let over = session.lost_at.is_some_and(|at| now >= at.after(self.settings.grace));
                demand!(over, "`{uid}` ended before its grace");
            }
            _ => demand!(session.socket.is_none(), "`{uid}` ended while it was there"),
        }
        self.books.ended_now.insert(uid.to_owned());
        for (call, _) in session.slots {
            self.books.calls.get_mut(&call).unwrap().sent = true;
        }
        Ok(())
    }

    /// What must hold after every step.
    fn after(&mut self, seen: &Seen, outputs: &[Output], now: Millis, gate: &Sessions) -> Verdict {
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
            matches!(output, Output::Event(Event { what: What::Lost | What::Rebound, .. }))
        };
        let mattered = outputs.iter().any(lost) || self.steps.is_multiple_of(16);
        if mattered && !matches!(seen, Seen::Stop) {
            self.look_at_list(now, gate)?;
        }
        Ok(())
    }

    /// The list names what the sessions of the books publish, connected or not, and views know it.
    fn look_at_list(&mut self, now: Millis, gate: &Sessions) -> Verdict {
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
            demand!(now.since(since) <= self.settings.coalesce, "a view was not told of a change");
        }
        Ok(())
    }

    /// Judges where a call was sent to, or why not.
    pub(super) fn routed(
        &mut self,
        name: &str,
        selector: Option<(&str, &str)>,
        endless: bool,
        reach: &Reach,
        found: &Result<Target, Failure>,
    ) -> Verdict {
        let reachable = |uid: &str, s: &SessionBook| reach.allows(uid, &s.kind, &s.base);
        let serving: Vec<(&String, &SessionBook)> = self
            .books
            .sessions
            .iter()
            .filter(|(uid, s)| reachable(uid, s) && s.tools.contains_key(name))
            .collect();
        let fits = |(uid, s): &&(&String, &SessionBook)| match selector {
            Some(("session_id", wanted)) => uid.as_str() == wanted,
            Some(("infobase_name", wanted)) => s.base == wanted,
            Some((_, wanted)) => s.kind == wanted,
            None => true,
        };
        let left: Vec<&(&String, &SessionBook)> = serving.iter().filter(fits).collect();
        let named = selector.filter(|(key, _)| *key == "session_id").map(|(_, uid)| uid);
        let there = named.and_then(|uid| self.books.sessions.get_key_value(uid));
        let expected: &[&str] = match left.as_slice() {
            _ if serving.is_empty() => &["no_live_session", "unknown_tool", "session_mismatch"],
            [(_, s)] if endless && s.kind != "server" => &["invalid_arguments"],
            [(_, s)] if s.socket.is_none() && s.kind != "server" => {
                if selector.is_some() {
                    &["session_gone"]
                } else {
                    &["no_live_session"]
                }
            }
            [(_, s)] if s.queue.len() >= self.settings.of_kind(&s.kind).queue => &["session_busy"],
            [(uid, _)] => {
                let right = found.as_ref().is_ok_and(|target| *target.session_id == ***uid);
                demand!(right, "`{name}` with {selector:?} should go to `{uid}`: {found:?}");
                return Ok(());
            }
            [] if there.is_some_and(|(uid, s)| reachable(uid, s)) => &["session_mismatch"],
            [] => &["unknown_session"],
            _ => &["session_id_required"],
        };
        let code = found.as_ref().map_or_else(Failure::error_code, |_| "let in");
        demand!(expected.contains(&code), "`{name}` with {selector:?}: {code}, not {expected:?}");
        self.count(expected[0]);
        Ok(())
    }

    pub(super) fn count(&mut self, what: &'static str) {
        *self.stats.entry(what).or_default() += 1;
    }
}
