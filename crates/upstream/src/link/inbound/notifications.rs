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
use crate::tasks::TaskMessage;

/// How many bytes of an unattributed notification are logged.
const MAX_LOGGED: usize = 512;

impl Link {
    pub(in crate::link) fn receive_notification(
        &self,
        notification: &Notification<'_>,
        body: &Bytes,
        call: Option<u64>,
    ) {
        if self.receive_on_task_stream(notification, call) {
            return;
        }
        if notification.method != method::PROGRESS
            && let Some(named) = TaskMessage::of(&notification.method, notification.params)
        {
            return self.receive_task_notification(notification, &named, call);
        }
        match notification.method.as_ref() {
            method::PROGRESS => self.receive_progress(notification),
            method::CANCELLED => self.receive_cancelled(notification),
            method::LISTEN_ACKNOWLEDGED => self.receive_acknowledged(notification, call),
            method if is_general(method) => {
                self.note_change(method);
                match without_tag(notification) {
                    Some(untagged) => self.notify_untagged(&untagged),
                    None => self.notify_all(notification, body),
                }
            }
            // Names no task.
            method::TASKS_STATUS | method::TASKS_CHANGED => {
                self.server.metrics.dropped.inc();
            }
            _ => match self.buffer_of(call) {
                Some(buffer) => buffer.push(body.clone()),
                None => self.notify_all(notification, body),
            },
        }
    }

    /// Delivers a notification about a task to the grants that own the task.
    fn receive_task_notification(
        &self,
        notification: &Notification<'_>,
        named: &TaskMessage<'_>,
        call: Option<u64>,
    ) {
        let sessions = match &self.parties {
            Parties::One(session) => session.upgrade().into_iter().collect(),
            Parties::Toolgate => Vec::new(),
            // On a shared server: the agent session that created the task, or asked for it last.
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
        let mut is_delivered = false;
        for session in sessions.iter().filter(|session| named.is_of(*session, server)) {
            if let Some(update) = &named.update {
                let who = (&*session.grant().label, session.key());
                session.admission().task_updated(who, server, &named.own, update);
            }
            let Some((raw, shown)) = named.change(session, server) else { continue };
            let is_one = session.sees_one_server() && !self.is_shared();
            let buffer = is_one.then(|| self.buffer_of(call)).flatten();
            let buffer = buffer.unwrap_or_else(|| Arc::clone(session.general()));
            push(&buffer, notification.raw, &[(raw, &shown)]);
            is_delivered = true;
        }
        if !is_delivered
            && let Some(forgotten) = self.early.keep(&named.own, notification.raw, call)
        {
            self.server.metrics.dropped.inc_by(forgotten);
            tracing::debug!(server, "notification about an unknown task dropped");
        }
    }

    /// Refreshes a cached list that has changed.
    fn note_change(&self, method: &str) {
        let changed = Kind::changed_by(method);
        let is_tools = changed.contains(&Kind::Tools);
        if is_tools {
            self.expect_new_tools();
        }
        // Tools are listed for every link, so that a changed definition is noticed at once.
        if !changed.is_empty()
            && (is_tools || self.keeps_lists.load(Ordering::Relaxed))
            && let Some(me) = self.me.upgrade()
        {
            me.refresh_lists(changed);
        }
    }

    fn receive_progress(&self, notification: &Notification<'_>) {
        let token =
            notification.params.and_then(|params| peek(params, &["progressToken"]).ok().flatten());
        let number: Option<u64> = token.and_then(|token| token.parse().ok());
        let found = number.and_then(|number| self.waiting.progress_of(number));
        if let (Some((buffer, theirs)), Some(ours)) = (found, token) {
            push(&buffer, notification.raw, &[(ours, &theirs)]);
        } else {
            self.server.metrics.dropped.inc();
        }
    }

    /// The server cancels a request to an agent.
    fn receive_cancelled(&self, notification: &Notification<'_>) {
        let id = notification.params.and_then(|params| peek(params, &["requestId"]).ok().flatten());
        if self.receive_listen_ended(id) {
            return;
        }
        let (Some(id), Parties::One(session)) = (id, &self.parties) else { return };
        let Some(session) = session.upgrade() else { return };
        if let Some((number, buffer)) = session.withdraw_server_request(&self.me, id) {
            self.server_request_done();
            push(&buffer, notification.raw, &[(id, &number.to_string())]);
        }
    }

    /// Delivers a notification that belongs to no request to all agents that it concerns.
    fn notify_all(&self, notification: &Notification<'_>, body: &Bytes) {
        if notification.method == method::RESOURCES_UPDATED {
            return self.notify_of_update(notification, body);
        }
        match &self.parties {
            Parties::One(session) => {
                if let Some(session) = session.upgrade() {
                    session.receive_general(&self.server, notification, body);
                }
            }
            Parties::Toolgate => {}
            Parties::Many(_) if Kind::changed_by(&notification.method).is_empty() => {
                self.log_unattributed(notification);
            }
            Parties::Many(_) => {
                // Its parameters may be about one of them.
                let bare = write::notification(&notification.method, None);
                for session in self.sessions() {
                    session.receive_general(&self.server, notification, &bare);
                }
            }
        }
    }

    /// Reports a changed resource to the agents whose policy shows it; on a shared link, to those of
    /// them that subscribed to it.
    fn notify_of_update(&self, notification: &Notification<'_>, body: &Bytes) {
        let params = notification.params.unwrap_or("{}");
        let uri = peek(params, &["uri"]).ok().flatten().and_then(text).unwrap_or_default();
        let server = self.server.name();
        for session in self.sessions() {
            let follows =
                !self.is_shared() || session.server_subscriptions().subscribed(server, &uri);
            if follows && session.admission().may_see_updates(&session.grant(), server, &uri) {
                session.receive_general(&self.server, notification, body);
            }
        }
    }

    /// Logs a notification of a shared server that belongs to no request or subscription: it may be
    /// about any of its agents.
    fn log_unattributed(&self, notification: &Notification<'_>) {
        self.server.metrics.dropped.inc();
        if self.log_limit.lock().allows(Instant::now()) {
            let params = notification.params.unwrap_or_default();
            let params = params.get(..params.floor_char_boundary(MAX_LOGGED)).unwrap_or_default();
            let (server, method) = (self.server.name(), &*notification.method);
            tracing::info!(
                server,
                method,
                params,
                "notification of a shared server matches no agent"
            );
        }
    }

    pub(super) fn notify_untagged(&self, body: &Bytes) {
        if let Ok(Incoming::One(Message::Notification(notification))) =
            parse_server(body, &Limits::default())
        {
            self.notify_all(&notification, body);
        }
    }
}

/// Notifications about a server's lists, which never belong to one request.
pub(in crate::link) fn is_general(method: &str) -> bool {
    method.ends_with("/list_changed") || method == method::RESOURCES_UPDATED
}
