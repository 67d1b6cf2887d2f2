//! Sockets: received frames and liveness.
//!
//! Invariant: nothing is sent to a socket that is closing; of what it sends, only answers are
//! accepted.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use toolgate_mcp::{code, write};

use super::SessionMachine;
use crate::frame::parse_error;
use crate::io::{Output, SessionEventKind, SocketId};
use crate::parsed_frame::{ClientMessage, ParsedFrame};
use crate::reach::SocketToken;
use crate::time::Millis;
use crate::timers::Timer;

/// One WebSocket.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) token: Arc<SocketToken>,
    pub(crate) peer: Option<IpAddr>,
    pub(crate) opened: Millis,
    alive_at: Millis,
    pinged: Millis,
    pub(crate) bond: SocketOwner,
}

/// What a socket belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SocketOwner {
    /// No session has registered on it.
    Anonymous,
    /// It belongs to a session.
    Bound {
        /// The session.
        uid: Arc<str>,
        /// Bound by a register, not by a late answer.
        registered: bool,
    },
    /// It is being closed.
    Leaving,
}

/// WebSocket close codes and reasons.
mod close {
    pub(super) const BYE: (u16, &str) = (1000, "bye");
    pub(super) const REVOKED: (u16, &str) = (1008, "the token is no longer valid");
    pub(super) const RESTART: (u16, &str) = (1012, "service restart");
    pub(super) const SUPERSEDED: (u16, &str) = (4001, "superseded");
    pub(super) const NOT_REGISTERED: (u16, &str) = (4002, "no session.register in time");
    pub(super) const DEAD: (u16, &str) = (4003, "no sign of life");
}

impl SessionMachine {
    pub(super) fn opened(&mut self, id: SocketId, token: Arc<SocketToken>, peer: Option<IpAddr>) {
        let now = self.now;
        let bond = SocketOwner::Anonymous;
        let socket = Socket { token, peer, opened: now, alive_at: now, pinged: now, bond };
        self.sockets.insert(id, socket);
        self.time_socket(id);
    }

    pub(super) fn alive(&mut self, id: SocketId) {
        if let Some(socket) = self.sockets.get_mut(&id) {
            socket.alive_at = self.now;
        }
    }

    pub(super) fn closed(&mut self, id: SocketId) {
        self.timers.clear(&Timer::Socket(id));
        let bond = self.sockets.remove(&id).map(|socket| socket.bond);
        if let Some(SocketOwner::Bound { uid, .. }) = bond {
            self.lose(&uid, id, "the socket was closed");
        }
    }

    pub(super) fn spoken(&mut self, id: SocketId, ParsedFrame(message): ParsedFrame<'_>) {
        self.alive(id);
        let Some(socket) = self.sockets.get(&id) else { return };
        let leaving = socket.bond == SocketOwner::Leaving;
        match message {
            Ok(ClientMessage::Answer { id: wire, result }) => self.response(id, wire, result),
            _ if leaving => {}
            Ok(ClientMessage::Register { id: request, read }) => self.register(id, request, read),
            Ok(ClientMessage::ToolsChanged { id: request, read }) => {
                self.tools_changed(id, request, read);
            }
            Ok(ClientMessage::Bye { id: request }) => self.bye(id, request),
            Ok(ClientMessage::Ping { id: request }) => self.send(id, write::result(request, "{}")),
            Ok(ClientMessage::Unknown { id: request }) => {
                self.refuse(id, request, code::METHOD_NOT_FOUND, "no such method");
            }
            Ok(ClientMessage::Nothing) => {}
            Err(error) => {
                self.event(SessionEventKind::BadFrame, None, Some(id), error.to_string());
                self.send(id, parse_error(&error));
            }
        }
    }

    pub(super) fn refuse(&mut self, id: SocketId, request: &str, code: i32, message: &str) {
        self.send(id, write::error(Some(request), code, message, None));
    }

    pub(super) fn send(&mut self, socket: SocketId, frame: Bytes) {
        self.push(Output::Send { socket, frame });
    }

    pub(super) fn say_bye(&mut self, id: SocketId) {
        self.leave(id, close::BYE);
    }

    pub(super) fn supersede(&mut self, id: SocketId) {
        self.leave(id, close::SUPERSEDED);
    }

    /// Stops sending on it; its answers are accepted until it is closed.
    fn leave(&mut self, id: SocketId, (code, reason): (u16, &'static str)) {
        self.timers.clear(&Timer::Socket(id));
        if let Some(socket) = self.sockets.get_mut(&id)
            && socket.bond != SocketOwner::Leaving
        {
            socket.bond = SocketOwner::Leaving;
            self.push(Output::Close { socket: id, code, reason });
        }
    }

    pub(super) fn revoke(&mut self, token: Option<u32>) {
        let ids: Vec<SocketId> = self.sockets.keys().copied().collect();
        for id in ids {
            if self.sockets.get(&id).is_some_and(|socket| socket.token.id == token) {
                self.leave(id, close::REVOKED);
            }
        }
        let uids: Vec<Arc<str>> = self.by_uid.keys().cloned().collect();
        for uid in uids {
            if self.by_uid.get(&uid).is_some_and(|session| session.token == token) {
                self.event(
                    SessionEventKind::Ended,
                    Some(&uid),
                    None,
                    "its token is no longer valid",
                );
                self.end(&uid);
            }
        }
    }

    pub(super) fn stop(&mut self) {
        let ids: Vec<SocketId> = self.sockets.keys().copied().collect();
        for id in ids {
            self.leave(id, close::RESTART);
        }
        let uids: Vec<Arc<str>> = self.by_uid.keys().cloned().collect();
        for uid in uids {
            self.end(&uid);
        }
    }

    /// Ping, liveness, or the deadline to register.
    pub(super) fn socket_due(&mut self, id: SocketId) {
        let (now, dead_after) = (self.now, self.settings.dead_after);
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        if now >= socket.alive_at.after(dead_after) {
            let bond = socket.bond.clone();
            self.leave(id, close::DEAD);
            if let SocketOwner::Bound { uid, .. } = bond {
                self.lose(&uid, id, "no sign of life");
            }
            return;
        }
        if socket.bond == SocketOwner::Anonymous
            && now >= socket.opened.after(self.settings.register_within)
        {
            self.event(SessionEventKind::NotRegistered, None, Some(id), "");
            self.leave(id, close::NOT_REGISTERED);
            return;
        }
        if let Some(interval) = self.settings.ping_interval
            && now >= socket.pinged.after(interval)
        {
            socket.pinged = now;
            self.push(Output::Ping { socket: id });
        }
        self.time_socket(id);
    }

    pub(super) fn time_socket(&mut self, id: SocketId) {
        let Some(socket) = self.sockets.get(&id) else { return };
        let settings = &self.settings;
        let register = (socket.bond == SocketOwner::Anonymous)
            .then(|| socket.opened.after(settings.register_within));
        let ping = settings.ping_interval.map(|interval| socket.pinged.after(interval));
        let dead = socket.alive_at.after(settings.dead_after);
        let due = [register, ping].into_iter().flatten().fold(dead, Millis::min);
        self.timers.set(Timer::Socket(id), due);
    }
}
