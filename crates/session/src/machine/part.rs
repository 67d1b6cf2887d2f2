//! Sessions leave, lose their socket, become idle and end.
//!
//! Invariant: when a session ends, all of its calls end with it.

use std::sync::Arc;

use toolgate_mcp::write;

use super::SessionMachine;
use super::session::Phase;
use super::socket::SocketOwner;
use crate::failure::{Effect, SessionFailure};
use crate::frame::session_shutdown;
use crate::io::{CallAnswer, Output, SessionEventKind, SocketId};
use crate::settings::Idle;
use crate::timers::Timer;

impl SessionMachine {
    pub(super) fn bye(&mut self, id: SocketId, request: Option<&str>) {
        let bond = self.sockets.get(&id).map(|socket| socket.bond.clone());
        if let Some(request) = request {
            self.send(id, write::result(request, "{}"));
        }
        self.say_bye(id);
        if let Some(SocketOwner::Bound { uid, .. }) = bond {
            self.event(SessionEventKind::Bye, Some(&uid), Some(id), "");
            self.end(&uid);
        }
    }

    /// The session lost its socket; it is kept for the grace period.
    pub(super) fn lose(&mut self, uid: &Arc<str>, id: SocketId, why: &str) {
        let now = self.now;
        let Some(session) = self.by_uid.get_mut(uid) else { return };
        if session.socket != Some(id) {
            return;
        }
        session.socket = None;
        session.lost_at = Some(now);
        self.timers.clear(&Timer::Idle(Arc::clone(uid)));
        self.event(SessionEventKind::Lost, Some(uid), Some(id), why);
        self.timers.set(Timer::Grace(Arc::clone(uid)), now.after(self.settings.grace));
    }

    pub(super) fn grace_over(&mut self, uid: &Arc<str>) {
        if self.by_uid.get(uid).is_some_and(|session| session.socket.is_none()) {
            self.event(SessionEventKind::Expired, Some(uid), None, "");
            self.end(uid);
        }
    }

    /// Ends the session and all of its calls.
    pub(super) fn end(&mut self, uid: &Arc<str>) {
        let Some(session) = self.by_uid.remove(uid) else { return };
        self.timers.clear(&Timer::Grace(Arc::clone(uid)));
        self.timers.clear(&Timer::Idle(Arc::clone(uid)));
        for name in session.tools.keys() {
            if let Some(uids) = self.serving.get_mut(name) {
                uids.remove(uid);
            }
        }
        self.serving.retain(|_, uids| !uids.is_empty());
        let last_seen = session.lost_at.unwrap_or(self.now);
        self.out.extend(self.showcase.left(uid, &session.card, last_seen));
        for flight in &session.flights {
            self.forget(flight.call);
            self.wires.remove(&flight.wire);
            if flight.phase != Phase::Quarantined {
                let session_id = Arc::clone(uid);
                self.answer(CallAnswer {
                    call: flight.call,
                    session_id: Arc::clone(uid),
                    result: Err(SessionFailure::SessionGone {
                        session_id,
                        effect: Effect::Unknown,
                    }),
                    cancelled: matches!(flight.phase, Phase::Cancelled(_)),
                    has_output_schema: flight.tool.has_output_schema(),
                });
            }
        }
        for queued in &session.queue {
            self.forget(queued.call);
            let selected = queued.selected || queued.waits_until.is_none();
            self.answer(CallAnswer {
                call: queued.call,
                session_id: Arc::clone(uid),
                result: Err(session.away(uid, &queued.published, selected)),
                cancelled: false,
                has_output_schema: queued.tool.has_output_schema(),
            });
        }
        self.lists_may_differ();
    }

    /// The idle timeout has passed.
    pub(super) fn idle_due(&mut self, uid: &Arc<str>) {
        let (now, number) = (self.now, self.sent);
        let Some(session) = self.by_uid.get_mut(uid) else { return };
        let kind = self.settings.of_kind(&session.card.kind);
        let (Some(timeout), Some(socket)) = (kind.idle_timeout, session.socket) else { return };
        let busy = !session.flights.is_empty() || !session.queue.is_empty();
        if busy || now < session.used_at.after(timeout) {
            let at = if busy { now } else { session.used_at };
            self.timers.set(Timer::Idle(Arc::clone(uid)), at.after(timeout));
            return;
        }
        let action = kind.idle;
        self.event(SessionEventKind::Idle, Some(uid), Some(socket), "");
        match action {
            Idle::Hide => {
                if let Some(session) = self.by_uid.get_mut(uid) {
                    session.hidden = true;
                }
                self.lists_may_differ();
            }
            Idle::Shutdown => {
                let grace = self.settings.shutdown_grace.as_millis();
                self.sent += 1;
                self.push(Output::Send {
                    socket,
                    frame: session_shutdown(number + 1, "idle", grace),
                });
            }
        }
    }

    pub(super) fn time_idle(&mut self, uid: &Arc<str>) {
        let Some(session) = self.by_uid.get(uid) else { return };
        let timer = Timer::Idle(Arc::clone(uid));
        match self.settings.of_kind(&session.card.kind).idle_timeout {
            Some(timeout) if session.socket.is_some() => {
                self.timers.set(timer, session.used_at.after(timeout));
            }
            _ => self.timers.clear(&timer),
        }
    }

    /// A hidden session that is used again becomes visible again.
    pub(super) fn show(&mut self, uid: &Arc<str>) {
        if let Some(session) = self.by_uid.get_mut(uid)
            && std::mem::take(&mut session.hidden)
        {
            self.lists_may_differ();
        }
    }
}
