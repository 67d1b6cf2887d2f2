//! Sessions register, reconnect, are taken over and change their tools.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use toolgate_mcp::{code, write};

use super::SessionMachine;
use super::room::definitions_len;
use super::session::{Phase, Session};
use super::socket::SocketOwner;
use crate::error::ParamsError;
use crate::io::{SessionEventKind, SocketId};
use crate::pool::ReadTools;
use crate::reach::SocketToken;
use crate::registration::{Registration, SessionInfo};
use crate::showcase::Publication;
use crate::timers::Timer;
use crate::tool::Tools;

/// The uid is live and may not be taken over.
const UID_IN_USE: i32 = -32010;
/// The sessions of this token have no room for another list of tools.
const NO_ROOM: i32 = -32011;

impl SessionMachine {
    pub(super) fn register(
        &mut self,
        id: SocketId,
        request: &str,
        read: Result<Registration, ParamsError>,
    ) {
        let Some(socket) = self.sockets.get(&id) else { return };
        let token = Arc::clone(&socket.token);
        if matches!(socket.bond, SocketOwner::Bound { registered: true, .. }) {
            let message = "a register was already accepted on this socket";
            return self.refuse(id, request, code::INVALID_REQUEST, message);
        }
        let registration = match read {
            Ok(registration) => registration,
            Err(error) => {
                let what = error.to_string();
                self.event(SessionEventKind::RegisterRefused, None, Some(id), what.as_str());
                return self.refuse(id, request, code::INVALID_PARAMS, &what);
            }
        };
        let Registration { uid, card, tools } = registration;
        if let Some(field) = token.outside(&uid, &card.kind, &card.infobase_name) {
            let what = format!("`{field}` is outside the bounds of this token");
            self.event(SessionEventKind::OutsideBounds, Some(&uid), Some(id), what.as_str());
            return self.refuse(id, request, code::INVALID_PARAMS, &what);
        }
        if let Some(what) = self.too_many_away(&uid, token.id, &tools.tools) {
            self.event(SessionEventKind::TooManyAway, Some(&uid), Some(id), what.as_str());
            return self.refuse(id, request, NO_ROOM, &what);
        }
        if let Some(what) = self.lists_full(&uid, token.id, &tools.tools) {
            self.event(SessionEventKind::ListsFull, Some(&uid), Some(id), what.as_str());
            return self.refuse(id, request, NO_ROOM, &what);
        }
        if !self.make_way(id, &uid, &token, &card) {
            let what = "this `client_uid` is live and may not be taken over: it needs the same token, kind and infobase_name";
            self.event(SessionEventKind::TakeoverRefused, Some(&uid), Some(id), host(&card));
            return self.refuse(id, request, UID_IN_USE, what);
        }
        // A late answer had bound this socket to a session that it does not belong to.
        if let Some(SocketOwner::Bound { uid: other, .. }) =
            self.sockets.get(&id).map(|s| s.bond.clone())
            && other != uid
        {
            self.lose(&other, id, "its socket has registered as another session");
        }
        let back = self.by_uid.contains_key(&uid);
        self.put(&uid, card, tools, token.id);
        self.bind(&uid, id, true);
        self.greet(id, request, &uid, back);
        self.pump(&uid);
    }

    /// Clears the uid for a socket that registers it; false if another program uses it.
    fn make_way(
        &mut self,
        id: SocketId,
        uid: &Arc<str>,
        token: &SocketToken,
        card: &SessionInfo,
    ) -> bool {
        let Some(session) = self.by_uid.get(uid) else { return true };
        let same = session.same_program(token.id, card);
        match session.socket.filter(|live| *live != id) {
            Some(live) if same => self.take_over(uid, live, card),
            Some(_) => return false,
            None if same => {}
            None => {
                self.event(
                    SessionEventKind::Ended,
                    Some(uid),
                    None,
                    "another program has taken its uid",
                );
                self.end(uid);
            }
        }
        true
    }

    fn take_over(&mut self, uid: &Arc<str>, live: SocketId, card: &SessionInfo) {
        self.event(SessionEventKind::TakenOver, Some(uid), Some(live), host(card));
        self.supersede(live);
        let now = self.now;
        let Some(session) = self.by_uid.get_mut(uid) else { return };
        let rival = session.card.host_id.clone();
        let text = format!("hosts `{rival}` and `{}`", card.host_id);
        session.rival = Some(rival);
        if session.taken_over(now) {
            self.event(SessionEventKind::Conflict, Some(uid), None, text);
        }
    }

    /// Starts the session, or replaces its description.
    fn put(&mut self, uid: &Arc<str>, card: SessionInfo, read: ReadTools, token: Option<u32>) {
        self.warn(uid, &read);
        let (now, grace) = (self.now, self.settings.grace);
        let restarted = self.by_uid.get(uid).is_some_and(
            |session| matches!((session.card.pid, card.pid), (Some(old), Some(new)) if old != new),
        );
        if restarted {
            self.hasten(uid, grace);
        }
        self.lives += 1;
        let card = Arc::new(card);
        let life = self.lives;
        let fresh = || Session {
            card: Arc::clone(&card),
            tools: Arc::new(Tools::new()),
            bytes: 0,
            token,
            life,
            generation: 0,
            socket: None,
            registered_at: now,
            lost_at: None,
            last_call: None,
            last_answer: None,
            used_at: now,
            hidden: false,
            queue: VecDeque::new(),
            flights: Vec::new(),
            takeovers: VecDeque::new(),
            rival: None,
            timeouts: 0,
            pace: Duration::ZERO,
        };
        let session = self.by_uid.entry(Arc::clone(uid)).or_insert_with(fresh);
        session.card = card;
        session.registered_at = now;
        self.replace_tools(uid, read.tools, true);
    }

    /// Another process has replaced the one that was called: calls of the old process will hardly
    /// be answered, so they do not block the queue longer than a lost session would.
    fn hasten(&mut self, uid: &Arc<str>, grace: Duration) {
        let latest = self.now.after(grace);
        let Some(session) = self.by_uid.get_mut(uid) else { return };
        for flight in &mut session.flights {
            if flight.phase == Phase::Running && flight.deadline.is_none_or(|at| at > latest) {
                flight.deadline = Some(latest);
                flight.allowed = None;
                self.timers.set(Timer::Call(flight.call), latest);
            }
        }
    }

    /// Binds the socket to the session.
    pub(super) fn bind(&mut self, uid: &Arc<str>, id: SocketId, registered: bool) {
        let now = self.now;
        if let Some(socket) = self.sockets.get_mut(&id) {
            socket.bond = SocketOwner::Bound { uid: Arc::clone(uid), registered };
        }
        self.time_socket(id);
        self.timers.clear(&Timer::Grace(Arc::clone(uid)));
        if let Some(session) = self.by_uid.get_mut(uid) {
            session.socket = Some(id);
            session.generation += 1;
            session.lost_at = None;
            session.used_at = now;
        }
        self.show(uid);
        self.time_idle(uid);
        self.stop_waiting(uid);
    }

    fn greet(&mut self, id: SocketId, request: &str, uid: &Arc<str>, back: bool) {
        let Some(session) = self.by_uid.get(uid) else { return };
        let idle = self.settings.of_kind(&session.card.kind).idle_timeout.unwrap_or_default();
        let mut result = json!({
            "session_id": &**uid,
            "server_version": self.settings.server_version,
            "heartbeat_interval_ms": u64::try_from(self.settings.heartbeat_interval.as_millis()).unwrap_or(u64::MAX),
            "idle_timeout_secs": self.settings.reported_idle_secs.unwrap_or(idle.as_secs()),
        });
        if back && let Some(result) = result.as_object_mut() {
            result.insert("reconnected".to_owned(), true.into());
        }
        let what = if back { SessionEventKind::Reconnected } else { SessionEventKind::Registered };
        let card = &session.card;
        let text = format!(
            "kind `{}`, infobase `{}`, {}, {} tools",
            card.kind,
            card.infobase_name,
            host(card),
            session.tools.len()
        );
        self.event(what, Some(uid), Some(id), text);
        self.send(id, write::result(request, &result.to_string()));
    }

    pub(super) fn tools_changed(
        &mut self,
        id: SocketId,
        request: Option<&str>,
        read: Result<ReadTools, ParamsError>,
    ) {
        let bond = self.sockets.get(&id).map(|socket| socket.bond.clone());
        let Some(SocketOwner::Bound { uid, .. }) = bond else {
            if let Some(request) = request {
                self.refuse(id, request, code::INVALID_REQUEST, "send session.register first");
            }
            return;
        };
        let token = self.by_uid.get(&uid).and_then(|session| session.token);
        let read = read.and_then(|read| match self.lists_full(&uid, token, &read.tools) {
            None => Ok(read),
            Some(what) => {
                self.event(SessionEventKind::ListsFull, Some(&uid), Some(id), what.as_str());
                Err(ParamsError::ListsFull(what))
            }
        });
        match read {
            Ok(read) => {
                self.warn(&uid, &read);
                self.replace_tools(&uid, read.tools, false);
                if let Some(request) = request {
                    self.send(id, write::result(request, "{}"));
                }
                self.pump(&uid);
            }
            Err(error) => {
                let what = error.to_string();
                self.event(SessionEventKind::BadFrame, Some(&uid), Some(id), what.as_str());
                if let Some(request) = request {
                    self.refuse(id, request, code::INVALID_PARAMS, &what);
                }
            }
        }
    }

    fn warn(&mut self, uid: &Arc<str>, read: &ReadTools) {
        if !read.doubled.is_empty() {
            let names = read.doubled.join("`, `");
            let text = format!("published more than once; the first definition is used: `{names}`");
            self.event(SessionEventKind::DoubledTool, Some(uid), None, text);
        }
    }

    fn replace_tools(&mut self, uid: &Arc<str>, tools: Arc<Tools>, registered: bool) {
        let Some(session) = self.by_uid.get_mut(uid) else { return };
        let before = std::mem::replace(&mut session.tools, tools);
        session.bytes = definitions_len(&session.tools);
        for name in before.keys().filter(|name| !session.tools.contains_key(*name)) {
            if let Some(uids) = self.serving.get_mut(name) {
                uids.remove(uid);
            }
        }
        for name in session.tools.keys() {
            self.serving.entry(Arc::clone(name)).or_default().insert(Arc::clone(uid));
        }
        self.serving.retain(|_, uids| !uids.is_empty());
        if self.settings.showcase {
            let publication =
                Publication { uid, card: &session.card, tools: &session.tools, registered };
            self.out.extend(self.showcase.publish(publication, self.settings.room, self.now));
            self.time_showcase();
        }
        self.lists_may_differ();
    }
}

fn host(card: &SessionInfo) -> String {
    match card.pid {
        Some(pid) => format!("host `{}`, pid {pid}", card.host_id),
        None => format!("host `{}`", card.host_id),
    }
}
