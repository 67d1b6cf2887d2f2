//! Notifications of a server, and the agents that they concern.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use tokio::time::Instant;
use toolgate_admission::list_kind::Kind;
use toolgate_json::{peek, text};
use toolgate_mcp::{Incoming, Limits, Message, Notification, method, parse_server, write};

use crate::link::agent::Agent;
use crate::link::changes::without_tag;
use crate::link::{Link, Parties};
use crate::rewrite::push;
use crate::tasks::Named;

/// How many bytes of what a shared server says are logged.
const MAX_LOGGED: usize = 512;

impl Link {
    pub(in crate::link) fn hear_notification(
        &self,
        notification: &Notification<'_>,
        body: &Bytes,
        call: Option<u64>,
    ) {
        if self.hear_more(notification, call) {
            return;
        }
        if notification.method != method::PROGRESS
            && let Some(named) = Named::of(&notification.method, notification.params)
        {
            return self.hear_of_task(notification, &named, call);
        }
        match notification.method.as_ref() {
            method::PROGRESS => self.hear_progress(notification),
            method::CANCELLED => self.hear_cancelled(notification),
            method::LISTEN_ACKNOWLEDGED => self.hear_acknowledged(notification, call),
            method if is_general(method) => {
                self.note_change(method);
                match without_tag(notification) {
                    Some(untagged) => self.tell_untagged(&untagged),
                    None => self.tell_all(notification, body),
                }
            }
            // It names no task.
            method::TASKS_STATUS | method::TASKS_CHANGED => {
                self.server.metrics.dropped.inc();
            }
            _ => match self.outlet_of(call) {
                Some(outlet) => outlet.push(body.clone()),
                None => self.tell_all(notification, body),
            },
        }
    }

    /// What names a task is for the grants whose calls created it.
    fn hear_of_task(&self, notification: &Notification<'_>, named: &Named<'_>, call: Option<u64>) {
        let sessions = match &self.parties {
            Parties::One(session) => session.upgrade().into_iter().collect(),
            // One server speaks to many: whoever created the task, or asked for it last.
            Parties::Many(sessions) => {
                let sessions: Vec<_> = sessions.lock().iter().filter_map(Weak::upgrade).collect();
                let book = sessions.first().map(|session| Arc::clone(session.admission()));
                let holders = book.map(|it| it.tasks.holders(self.server.name(), &named.own));
                let holders = holders.unwrap_or_default();
                let holds = |session: &Arc<dyn Agent>| {
                    holders.contains(&(Arc::clone(&session.grant().label), session.key()))
                };
                sessions.into_iter().filter(holds).collect::<Vec<_>>()
            }
        };
        let server = self.server.name();
        let mut told = false;
        for session in sessions.iter().filter(|session| named.is_of(*session, server)) {
            if let Some(heard) = &named.heard {
                let who = (&*session.grant().label, session.key());
                session.admission().tasks.hear(who, server, &named.own, heard);
            }
            let Some((raw, shown)) = named.change(session, server) else { continue };
            let is_one = session.sees_one_server() && !self.is_shared();
            let outlet = is_one.then(|| self.outlet_of(call)).flatten();
            let outlet = outlet.unwrap_or_else(|| Arc::clone(session.general()));
            push(&outlet, notification.raw, &[(raw, &shown)]);
            told = true;
        }
        if !told && let Some(forgotten) = self.early.keep(&named.own, notification.raw, call) {
            self.server.metrics.dropped.inc_by(forgotten);
            tracing::debug!(server, "dropped a notification about a task that no agent here has");
        }
    }

    /// What is kept of a list that has changed is asked for again.
    fn note_change(&self, method: &str) {
        let changed = Kind::changed_by(method);
        if !changed.is_empty()
            && self.surveyed.load(Ordering::Relaxed)
            && let Some(me) = self.me.upgrade()
        {
            me.survey(changed);
        }
    }

    fn hear_progress(&self, notification: &Notification<'_>) {
        let token =
            notification.params.and_then(|params| peek(params, &["progressToken"]).ok().flatten());
        let number: Option<u64> = token.and_then(|token| token.parse().ok());
        let found = number.and_then(|number| self.waiting.progress_of(number));
        if let (Some((outlet, theirs)), Some(ours)) = (found, token) {
            push(&outlet, notification.raw, &[(ours, &theirs)]);
        } else {
            self.server.metrics.dropped.inc();
        }
    }

    /// The server withdraws what it asked an agent.
    fn hear_cancelled(&self, notification: &Notification<'_>) {
        let id = notification.params.and_then(|params| peek(params, &["requestId"]).ok().flatten());
        if self.hear_ended(id) {
            return;
        }
        let (Some(id), Parties::One(session)) = (id, &self.parties) else { return };
        let Some(session) = session.upgrade() else { return };
        if let Some((number, outlet)) = session.withdraw_asked(&self.me, id) {
            self.unasked();
            push(&outlet, notification.raw, &[(id, &number.to_string())]);
        }
    }

    /// Gives a notification that belongs to no request to every agent that it concerns.
    fn tell_all(&self, notification: &Notification<'_>, body: &Bytes) {
        match &self.parties {
            Parties::One(session) => {
                if let Some(session) = session.upgrade() {
                    session.hear_general(&self.server, notification, body);
                }
            }
            Parties::Many(sessions) => {
                let sessions = sessions.lock().clone();
                let sessions = sessions.iter().filter_map(Weak::upgrade);
                if notification.method == method::RESOURCES_UPDATED {
                    let params = notification.params.unwrap_or("{}");
                    let uri = peek(params, &["uri"]).ok().flatten().and_then(text);
                    let uri = uri.unwrap_or_default();
                    let follows = |session: &Arc<dyn Agent>| {
                        session.wishes().subscribed(self.server.name(), &uri)
                    };
                    for session in sessions.filter(follows) {
                        session.hear_general(&self.server, notification, body);
                    }
                } else if Kind::changed_by(&notification.method).is_empty() {
                    self.log_unattributed(notification);
                } else {
                    // Whatever else it holds may be about one of them.
                    let bare = write::notification(&notification.method, None);
                    for session in sessions {
                        session.hear_general(&self.server, notification, &bare);
                    }
                }
            }
        }
    }

    /// What belongs to no agent's request or subscription may be about any of those who share the
    /// server.
    fn log_unattributed(&self, notification: &Notification<'_>) {
        self.server.metrics.dropped.inc();
        if self.nonsense.lock().allows(Instant::now()) {
            let said = notification.params.unwrap_or_default();
            let said = said.get(..said.floor_char_boundary(MAX_LOGGED)).unwrap_or_default();
            let (server, method) = (self.server.name(), &*notification.method);
            tracing::info!(server, method, said, "a shared server spoke to no agent in particular");
        }
    }

    pub(super) fn tell_untagged(&self, body: &Bytes) {
        if let Ok(Incoming::One(Message::Notification(notification))) =
            parse_server(body, &Limits::default())
        {
            self.tell_all(&notification, body);
        }
    }
}

/// Notifications about what a server offers, which never belong to one request.
pub(in crate::link) fn is_general(method: &str) -> bool {
    method.ends_with("/list_changed") || method == method::RESOURCES_UPDATED
}
