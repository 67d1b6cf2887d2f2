//! Answers of clients: which call they belong to, and what they cause.
//!
//! Invariant: an answer is accepted from the socket its call was sent to, from the current socket
//! of the session, or from an unregistered socket with the same token while the session has none.
//! Nothing else ends a call, and nothing is guessed.

use std::sync::Arc;

use toolgate_json::text;

use super::SessionMachine;
use super::session::{Phase, Session};
use super::socket::SocketOwner;
use crate::frame::is_unawaited;
use crate::io::{CallAnswer, CallNumber, SessionEventKind, SocketId};
use crate::tool_result::ToolResult;

impl SessionMachine {
    pub(super) fn response(&mut self, socket: SocketId, id: &str, result: ToolResult) {
        let Some(wire) = text(id) else {
            return self.drop_answer(socket, None, "an id that was never sent");
        };
        if is_unawaited(&wire) {
            return;
        }
        let Some((uid, call)) = self.wires.get(&*wire).cloned() else {
            return self.drop_answer(socket, None, "no such call, or it has ended");
        };
        match self.judge(socket, &uid, call) {
            Judgement::Accepted => {}
            Judgement::Rebinds => {
                self.bind(&uid, socket, false);
                let text = "a late answer has come on a new socket of the same program";
                self.event(SessionEventKind::Rebound, Some(&uid), Some(socket), text);
            }
            Judgement::Stranger => {
                return self.drop_answer(socket, Some(&uid), "from a socket that was not asked");
            }
        }
        self.complete(&uid, call, socket, result);
        self.pump(&uid);
    }

    fn judge(&self, socket: SocketId, uid: &Arc<str>, call: CallNumber) -> Judgement {
        let session = self.by_uid.get(uid);
        let flights = session.map(|session| session.flights.iter());
        let flight = flights.and_then(|mut flights| flights.find(|flight| flight.call == call));
        let (Some(session), Some(flight)) = (session, flight) else { return Judgement::Stranger };
        if flight.socket == socket || session.socket == Some(socket) {
            return Judgement::Accepted;
        }
        let may = self.settings.rebind
            && flight.phase != Phase::Quarantined
            && self.may_rebind(socket, session);
        if may { Judgement::Rebinds } else { Judgement::Stranger }
    }

    fn may_rebind(&self, socket: SocketId, session: &Session) -> bool {
        let Some(socket) = self.sockets.get(&socket) else { return false };
        session.socket.is_none()
            && socket.bond == SocketOwner::Anonymous
            && socket.token.id == session.token
    }

    fn complete(&mut self, uid: &Arc<str>, call: CallNumber, socket: SocketId, result: ToolResult) {
        let now = self.now;
        let Some(session) = self.by_uid.get_mut(uid) else { return };
        let Some(at) = session.flights.iter().position(|flight| flight.call == call) else {
            return;
        };
        let flight = session.flights.remove(at);
        session.last_answer = Some(now);
        session.used_at = now;
        session.timeouts = 0;
        session.pace = now.since(flight.sent_at);
        self.wires.remove(&flight.wire);
        self.forget(call);
        if flight.phase == Phase::Quarantined {
            self.event(SessionEventKind::LateAnswer, Some(uid), Some(socket), "");
            return;
        }
        self.answer(CallAnswer {
            call,
            session_id: Arc::clone(uid),
            result: Ok(result),
            cancelled: matches!(flight.phase, Phase::Cancelled(_)),
            has_output_schema: flight.tool.has_output_schema(),
        });
    }

    fn drop_answer(&mut self, socket: SocketId, uid: Option<&Arc<str>>, why: &str) {
        self.event(SessionEventKind::AnswerDropped, uid, Some(socket), why);
    }
}

enum Judgement {
    Accepted,
    Rebinds,
    Stranger,
}
