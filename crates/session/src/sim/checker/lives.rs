//! Sessions start, reconnect, are re-bound and end only as allowed.

use super::super::model::{SessionModel, tools};
use super::{Checker, Observed, Verdict, demand};
use crate::{Millis, SessionEvent, SessionEventKind, SocketId};

impl Checker {
    /// A register was accepted.
    pub(super) fn registers(&mut self, seen: &Observed, uid: &str, socket: SocketId) -> Verdict {
        let Observed::Frame(on, frame) = seen else {
            return Err("registered without a request".to_owned());
        };
        demand!(
            *on == socket && seen.method() == "session.register",
            "registered without a request"
        );
        let params = &frame["params"];
        let text = |key: &str| params[key].as_str().unwrap_or_default().to_owned();
        let book = self.books.sockets.get_mut(&socket).ok_or("registered on no socket")?;
        demand!(!book.leaving, "registered on a socket that is leaving");
        demand!(!book.registered, "registered twice on one socket");
        (book.registered, book.uid) = (true, Some(uid.to_owned()));
        let token = book.token;
        let fresh = || SessionModel {
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
        // Regardless of the machine, the previous socket is finished.
        if let Some(book) = old.and_then(|old| self.books.sockets.get_mut(&old)) {
            demand!(book.leaving, "a superseded socket stays open");
        }
        Ok(())
    }

    pub(super) fn rebinds(&mut self, seen: &Observed, uid: &str, socket: SocketId) -> Verdict {
        let Observed::Frame(on, frame) = seen else {
            return Err("re-bound without an answer".to_owned());
        };
        demand!(self.settings.rebind, "re-bound although that is off");
        let call = frame["id"].as_str().and_then(|wire| self.books.wires.get(wire));
        let call = call.and_then(|call| self.books.calls.get(call)).ok_or("re-bound by guess")?;
        demand!(*on == socket && call.uid == uid && !call.ended, "re-bound to the wrong session");
        let session = self.books.sessions.get_mut(uid).ok_or("re-bound to an unknown session")?;
        let book = self.books.sockets.get_mut(&socket).ok_or("re-bound no socket")?;
        demand!(session.socket.is_none(), "re-bound a session that has a socket");
        demand!(!book.registered && book.uid.is_none() && !book.leaving, "re-bound a taken socket");
        demand!(session.token == book.token, "re-bound with another token");
        (session.socket, session.lost_at) = (Some(socket), None);
        book.uid = Some(uid.to_owned());
        Ok(())
    }

    pub(super) fn session_ends(
        &mut self,
        seen: &Observed,
        event: &SessionEvent,
        uid: &str,
        now: Millis,
    ) -> Verdict {
        let session = self.books.sessions.remove(uid).ok_or("an unknown session ended")?;
        match event.what {
            SessionEventKind::Bye => {
                demand!(seen.method() == "session.bye", "a bye that was not sent");
                demand!(session.socket == event.socket, "a goodbye from an old socket");
            }
            SessionEventKind::Expired => {
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
}
