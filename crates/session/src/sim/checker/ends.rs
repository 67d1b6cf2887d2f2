//! Calls end once, in time, by their own answer or for a valid reason.

use super::{Checker, Observed, Verdict, demand};
use crate::{CallAnswer, CallNumber, Effect, Millis, SessionFailure, ToolResult};

impl Checker {
    pub(super) fn ended(&mut self, seen: &Observed, answer: &CallAnswer, now: Millis) -> Verdict {
        let call = answer.call;
        let book = self.books.calls.get_mut(&call).ok_or("ended a call that never started")?;
        demand!(!book.ended, "call {call:?} ended twice");
        demand!(book.uid == *answer.session_id, "call {call:?} ended elsewhere");
        book.ended = true;
        if let Some(allowed) = book.allowed {
            demand!(now <= book.admitted.after(allowed), "call {call:?} ended after its deadline");
        }
        match &answer.result {
            Ok(result) => self.answered(seen, call, result),
            Err(failure) => self.failed(seen, call, failure, now),
        }
    }

    fn answered(&mut self, seen: &Observed, call: CallNumber, result: &ToolResult) -> Verdict {
        let book = &self.books.calls[&call];
        let own = format!("{}@{}", call.0, book.uid);
        demand!(result.json.contains(&format!("\"{own}")), "{call:?} got {}", result.json);
        let Observed::Frame(socket, frame) = seen else {
            return Err("answered by an unknown socket".to_owned());
        };
        let wire = frame["id"].as_str().and_then(|wire| self.books.wires.get(wire));
        demand!(wire == Some(&call), "{call:?} was answered by guess");
        demand!(self.books.may_answer(*socket, call), "{call:?} was answered by a stranger");
        let uid = book.uid.clone();
        let session = self.books.sessions.get_mut(&uid).ok_or("answered by an unknown socket")?;
        session.slots.remove(&call);
        self.count("answered");
        Ok(())
    }

    fn failed(
        &mut self,
        seen: &Observed,
        call: CallNumber,
        failure: &SessionFailure,
        now: Millis,
    ) -> Verdict {
        let book = &self.books.calls[&call];
        let unknown = failure.effect() == Effect::Unknown;
        demand!(book.sent == unknown, "{call:?}: {failure:?}, sent: {}", book.sent);
        let (uid, admitted) = (book.uid.clone(), book.admitted);
        let due = book.allowed.map(|allowed| admitted.after(allowed));
        let (cancelled, hastened) = (book.cancelled, book.hastened);
        let is_new = matches!(seen, Observed::Call { call: new, .. } if *new == call);
        let gone = !self.books.sessions.contains_key(&uid);
        let away = self.books.sessions.get(&uid).is_some_and(|session| session.socket.is_none());
        let late = self.late_answer(&uid);
        match failure {
            SessionFailure::Timeout { .. } => {
                demand!(due == Some(now) || hastened, "{call:?} timed out too early");
                self.count(if unknown { "timeout running" } else { "timeout queued" });
                self.keep_slot(&uid, call, now.after(late), now);
            }
            SessionFailure::Cancelled { .. } => {
                let at = cancelled.ok_or("cancelled without a request")?;
                self.count(if unknown { "cancelled running" } else { "cancelled queued" });
                self.keep_slot(&uid, call, at.after(late), now);
            }
            SessionFailure::SessionGone { .. } if unknown => {
                let over = self.books.ended_now.contains(&uid) || matches!(seen, Observed::Stop);
                demand!(over, "{call:?} ended although `{uid}` may come back");
                self.count("gone running");
            }
            SessionFailure::SessionGone { .. } | SessionFailure::NoLiveSession { .. } => {
                let over = gone || away || matches!(seen, Observed::Stop) || is_new;
                demand!(over, "{call:?} ended although `{uid}` is there");
                self.count("gone queued");
            }
            SessionFailure::SessionMismatch { .. } | SessionFailure::ToolChanged { .. } => {
                self.count("mismatch queued");
            }
            SessionFailure::SessionBusy { .. } => {
                demand!(is_new, "{call:?} was started and then refused");
            }
            other => return Err(format!("{call:?} ended with {other:?}")),
        }
        if let Some(session) = self.books.sessions.get_mut(&uid) {
            session.queue.retain(|queued| *queued != call);
        }
        Ok(())
    }

    fn late_answer(&self, uid: &str) -> std::time::Duration {
        let kind = self.books.sessions.get(uid).map(|session| session.kind.as_str());
        self.settings.of_kind(kind.unwrap_or_default()).late_answer
    }

    fn keep_slot(&mut self, uid: &str, call: CallNumber, until: Millis, now: Millis) {
        let session = self.books.sessions.get_mut(uid);
        if let Some(slot) = session.and_then(|session| session.slots.get_mut(&call)) {
            slot.until = Some(until);
            self.count("quarantined");
        }
        self.books.free_slots(now);
    }

    /// The gate has restarted; unless it crashed, everything must have ended.
    pub(in super::super) fn restart(&mut self, crash: bool) -> Verdict {
        if !crash {
            self.at_rest()?;
        }
        for call in self.books.calls.values_mut() {
            call.ended = true;
        }
        self.books.sessions.clear();
        self.books.sockets.clear();
        self.count(if crash { "crash" } else { "restart" });
        Ok(())
    }

    /// Nothing may be left open.
    pub(in super::super) fn at_rest(&self) -> Verdict {
        let open = self.books.calls.iter().find(|(_, call)| !call.ended);
        demand!(open.is_none(), "{open:?} never ended");
        Ok(())
    }
}
