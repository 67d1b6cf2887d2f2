//! Calls: queued in order of arrival, sent when the session has a free slot, ended in time.
//!
//! Invariant: the queue of a session is served strictly from the front.
//! Invariant: a slot is free only after the client has answered, or has had `late_answer` to do so
//! after its call ended.

use std::sync::Arc;
use std::time::Duration;

use super::SessionMachine;
use super::session::{InFlightCall, Phase, QueuedCall, Session};
use crate::failure::{Effect, SessionFailure};
use crate::frame::{tool_call, tool_cancel};
use crate::io::{CallAnswer, CallNumber, Output, SessionCall, SessionEventKind, SocketId};
use crate::timers::Timer;
use crate::tool::Tool;

impl SessionMachine {
    pub(super) fn admit(&mut self, call: SessionCall) {
        let SessionCall { call, target, random } = call;
        let uid = Arc::clone(&target.session_id);
        let refused = self.refusal(&target);
        let (now, wait) = (self.now, self.reconnect_wait(&uid));
        let Some(session) = self.by_uid.get_mut(&uid).filter(|_| refused.is_none()) else {
            let failure = refused.unwrap_or_else(|| target.gone());
            return self.answer(CallAnswer {
                call,
                session_id: uid,
                result: Err(failure),
                cancelled: false,
                has_output_schema: target.tool.has_output_schema(),
            });
        };
        let deadline = target.allowed.map(|allowed| now.after(allowed));
        let waits_until = session.socket.is_none().then(|| now.after(wait));
        session.last_call = Some(now);
        session.used_at = now;
        session.queue.push_back(QueuedCall {
            call,
            tool: target.tool,
            published: target.published,
            arguments: target.arguments,
            random,
            allowed: target.allowed,
            deadline,
            waits_until,
            selected: target.selected,
        });
        self.calls.insert(call, Arc::clone(&uid));
        let due = [deadline, waits_until].into_iter().flatten().min();
        if let Some(due) = due {
            self.timers.set(Timer::Call(call), due);
        }
        self.show(&uid);
        if !self.timers.is_set(&Timer::Idle(Arc::clone(&uid))) {
            self.time_idle(&uid);
        }
        self.pump(&uid);
    }

    pub(crate) fn reconnect_wait(&self, uid: &str) -> Duration {
        let kind = self.by_uid.get(uid).map(|session| session.card.kind.as_str());
        self.settings.of_kind(kind.unwrap_or_default()).reconnect_wait
    }

    /// Sends the calls that may be sent.
    pub(super) fn pump(&mut self, uid: &Arc<str>) {
        loop {
            let Some(session) = self.by_uid.get_mut(uid) else { return };
            let Some(socket) = session.socket else { return };
            let Some(head) = session.queue.front() else { return };
            match session.publishes(uid, &head.tool, &head.published).cloned() {
                Ok(tool) => {
                    let concurrency = self.settings.concurrency(&session.card.kind, &tool);
                    if !session.has_room(concurrency) {
                        return;
                    }
                    let Some(next) = session.queue.pop_front() else { return };
                    self.send_call(uid, socket, &next, tool, concurrency);
                }
                Err(failure) => {
                    let Some(next) = session.queue.pop_front() else { return };
                    self.end_queued(uid, &next, failure);
                }
            }
        }
    }

    fn send_call(
        &mut self,
        uid: &Arc<str>,
        socket: SocketId,
        next: &QueuedCall,
        tool: Arc<Tool>,
        concurrency: usize,
    ) {
        let wire = self.wire(next.random);
        let frame = tool_call(&wire, &tool.name, &next.arguments);
        self.wires.insert(wire.clone(), (Arc::clone(uid), next.call));
        match next.deadline {
            Some(deadline) => self.timers.set(Timer::Call(next.call), deadline),
            None => self.timers.clear(&Timer::Call(next.call)),
        }
        let now = self.now;
        if let Some(session) = self.by_uid.get_mut(uid) {
            session.flights.push(InFlightCall {
                call: next.call,
                tool,
                wire,
                socket,
                concurrency,
                sent_at: now,
                allowed: next.allowed,
                deadline: next.deadline,
                phase: Phase::Running,
            });
        }
        self.push(Output::SendCall { socket, call: next.call, frame });
    }

    /// The client has seen nothing of the call, so its slot is free at once.
    pub(super) fn unsent(&mut self, call: CallNumber) {
        let Some(uid) = self.calls.get(&call).cloned() else { return };
        let flights = self.by_uid.get(&uid).map(|session| session.flights.iter());
        let phase = flights.and_then(|mut flights| flights.find(|flight| flight.call == call));
        match phase.map(|flight| flight.phase) {
            None => return,
            Some(Phase::Running | Phase::Cancelled(_)) => {
                self.end_flight(
                    &uid,
                    call,
                    SessionFailure::Cancelled { effect: Effect::NotStarted },
                );
            }
            // Its end was already reported.
            Some(Phase::Quarantined) => {}
        }
        self.free(&uid, call);
    }

    /// The id on the wire: unique and unguessable.
    fn wire(&mut self, random: u128) -> String {
        self.sent += 1;
        format!("mgr-{}-{random:032x}", self.sent)
    }

    /// The session is back: calls that waited for it become normally queued.
    pub(super) fn stop_waiting(&mut self, uid: &Arc<str>) {
        let Some(session) = self.by_uid.get_mut(uid) else { return };
        for queued in &mut session.queue {
            if queued.waits_until.take().is_some() {
                match queued.deadline {
                    Some(deadline) => self.timers.set(Timer::Call(queued.call), deadline),
                    None => self.timers.clear(&Timer::Call(queued.call)),
                }
            }
        }
    }

    pub(super) fn cancel(&mut self, call: CallNumber) {
        let Some(uid) = self.calls.get(&call).cloned() else { return };
        let now = self.now;
        let Some(session) = self.by_uid.get_mut(&uid) else { return };
        if let Some(at) = session.queue.iter().position(|queued| queued.call == call) {
            if let Some(queued) = session.queue.remove(at) {
                self.end_queued(
                    &uid,
                    &queued,
                    SessionFailure::Cancelled { effect: Effect::NotStarted },
                );
            }
            return self.pump(&uid);
        }
        let late = self.settings.of_kind(&session.card.kind).late_answer;
        let socket = session.socket;
        let Some(flight) = session.flights.iter_mut().find(|flight| flight.call == call) else {
            return;
        };
        if flight.phase != Phase::Running {
            return;
        }
        let until = now.after(late);
        flight.phase = Phase::Cancelled(until);
        let due = flight.deadline.map_or(until, |deadline| deadline.min(until));
        let frame = tool_cancel(&flight.wire, "cancelled by the caller");
        self.timers.set(Timer::Call(call), due);
        if let Some(socket) = socket {
            self.send(socket, frame);
        }
    }

    /// A deadline, the end of a wait, or the end of a quarantine.
    pub(super) fn call_due(&mut self, call: CallNumber) {
        let Some(uid) = self.calls.get(&call).cloned() else { return };
        let now = self.now;
        let Some(session) = self.by_uid.get_mut(&uid) else { return };
        if let Some(at) = session.queue.iter().position(|queued| queued.call == call) {
            if let Some(queued) = session.queue.remove(at) {
                let failure = overdue(session, &uid, &queued, now);
                self.end_queued(&uid, &queued, failure);
            }
            return self.pump(&uid);
        }
        let phase = session.flights.iter().find(|flight| flight.call == call).map(|f| f.phase);
        match phase {
            Some(Phase::Running) => self.time_out(&uid, call),
            Some(Phase::Cancelled(until)) => {
                self.end_flight(&uid, call, SessionFailure::Cancelled { effect: Effect::Unknown });
                self.quarantine(&uid, call, until);
            }
            Some(Phase::Quarantined) | None => self.free(&uid, call),
        }
    }

    fn time_out(&mut self, uid: &Arc<str>, call: CallNumber) {
        let now = self.now;
        let Some(session) = self.by_uid.get_mut(uid) else { return };
        session.timeouts = session.timeouts.saturating_add(1);
        let (unresponsive, count) = (session.is_unresponsive(), session.timeouts);
        let late = self.settings.of_kind(&session.card.kind).late_answer;
        let socket = session.socket;
        let Some(flight) = session.flights.iter().find(|flight| flight.call == call) else {
            return;
        };
        let after = flight.allowed.unwrap_or_else(|| now.since(flight.sent_at));
        let frame = tool_cancel(&flight.wire, "timeout");
        let session_id = Arc::clone(uid);
        let failure =
            SessionFailure::Timeout { session_id, after, effect: Effect::Unknown, unresponsive };
        self.end_flight(uid, call, failure);
        if let Some(socket) = socket {
            self.send(socket, frame);
        }
        if unresponsive {
            let text = format!("{count} calls in a row have timed out");
            self.event(SessionEventKind::Unresponsive, Some(uid), socket, text);
        }
        self.quarantine(uid, call, now.after(late));
    }

    /// The call has ended; its slot stays occupied until its late answer arrives, or until then.
    fn quarantine(&mut self, uid: &Arc<str>, call: CallNumber, until: crate::time::Millis) {
        if until <= self.now {
            return self.free(uid, call);
        }
        let Some(session) = self.by_uid.get_mut(uid) else { return };
        if let Some(flight) = session.flights.iter_mut().find(|flight| flight.call == call) {
            flight.phase = Phase::Quarantined;
            self.timers.set(Timer::Call(call), until);
        }
    }

    fn free(&mut self, uid: &Arc<str>, call: CallNumber) {
        self.forget(call);
        let Some(session) = self.by_uid.get_mut(uid) else { return };
        if let Some(at) = session.flights.iter().position(|flight| flight.call == call) {
            let flight = session.flights.remove(at);
            self.wires.remove(&flight.wire);
        }
        self.pump(uid);
    }

    pub(super) fn forget(&mut self, call: CallNumber) {
        self.calls.remove(&call);
        self.timers.clear(&Timer::Call(call));
    }

    fn end_queued(&mut self, uid: &Arc<str>, queued: &QueuedCall, failure: SessionFailure) {
        self.forget(queued.call);
        self.answer(CallAnswer {
            call: queued.call,
            session_id: Arc::clone(uid),
            cancelled: matches!(failure, SessionFailure::Cancelled { .. }),
            result: Err(failure),
            has_output_schema: queued.tool.has_output_schema(),
        });
    }

    fn end_flight(&mut self, uid: &Arc<str>, call: CallNumber, failure: SessionFailure) {
        let flights = self.by_uid.get(uid).map(|session| session.flights.iter());
        let flight = flights.and_then(|mut flights| flights.find(|flight| flight.call == call));
        let Some(flight) = flight else { return };
        let has_output_schema = flight.tool.has_output_schema();
        self.answer(CallAnswer {
            call,
            session_id: Arc::clone(uid),
            cancelled: matches!(failure, SessionFailure::Cancelled { .. }),
            result: Err(failure),
            has_output_schema,
        });
    }
}

/// Why a queued call has waited long enough.
fn overdue(
    session: &Session,
    uid: &Arc<str>,
    queued: &QueuedCall,
    now: crate::time::Millis,
) -> SessionFailure {
    if queued.waits_until.is_some_and(|until| until <= now) {
        return session.away(uid, &queued.published, queued.selected);
    }
    SessionFailure::Timeout {
        session_id: Arc::clone(uid),
        after: queued.allowed.unwrap_or_default(),
        effect: Effect::NotStarted,
        unresponsive: session.is_unresponsive(),
    }
}
