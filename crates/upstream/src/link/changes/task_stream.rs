//! Task streams: the tasks that a sessionless client follows at a sessionless server, over a stream
//! of their own.
//!
//! Invariant: notifications on such a stream reach only its client.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use toolgate_json::{items, peek};
use toolgate_mcp::sessionless::key;
use toolgate_mcp::{Incoming, Limits, Message, Notification, method, parse_server};

use super::{ACK_WAIT, FIRST_PAUSE, LONGEST_PAUSE, Link, Listening};
use crate::era::Era;
use crate::event_buffer::EventBuffer;
use crate::link::Agent;
use crate::rewrite::{error_in, push};
use crate::tasks::{TaskMessage, shown_if_own};

/// A stream of one client.
pub struct TaskStream {
    /// The agent session and the name of the server.
    session: Weak<dyn Agent>,
    server: String,
    /// The members of the filter, raw JSON.
    wanted: String,
    /// The id of the client's own request.
    id: Box<str>,
    buffer: Arc<EventBuffer>,
    /// The members of the filter that the server has acknowledged, raw JSON.
    agreed: watch::Sender<Option<String>>,
    /// Notifications are held until the client has received the acknowledgement.
    begun: Mutex<Begun>,
    over: CancellationToken,
}

#[derive(Default)]
struct Begun {
    yes: bool,
    before: Vec<String>,
}

/// How many notifications are held before the acknowledgement.
const MAX_BEFORE: usize = 100;

impl TaskStream {
    /// A stream of these tasks, under the server's own ids.
    pub fn new(
        (session, server): (Weak<dyn Agent>, &str),
        tasks: &[String],
        id: &str,
        buffer: &Arc<EventBuffer>,
    ) -> Arc<Self> {
        Arc::new(Self {
            session,
            server: server.to_owned(),
            wanted: format!(r#""taskIds":{}"#, json!(tasks)),
            id: id.into(),
            buffer: Arc::clone(buffer),
            agreed: watch::Sender::new(None),
            begun: Mutex::default(),
            over: CancellationToken::new(),
        })
    }

    /// The client has received the acknowledgement: delivers held notifications.
    pub fn begin(&self) {
        let mut begun = self.begun.lock();
        begun.yes = true;
        for raw in begun.before.drain(..) {
            self.push(&raw);
        }
    }

    /// The client has stopped listening.
    pub fn end(&self) {
        self.over.cancel();
    }

    fn notify(&self, notification: &Notification<'_>) {
        let mut begun = self.begun.lock();
        if begun.yes {
            self.push(notification.raw);
        } else if begun.before.len() < MAX_BEFORE {
            begun.before.push(notification.raw.to_owned());
        }
    }

    /// Delivers a notification about a task of the client; others were not requested.
    fn push(&self, raw: &str) {
        let Some(session) = self.session.upgrade() else { return };
        let Ok(Incoming::One(Message::Notification(received))) =
            parse_server(raw.as_bytes(), &Limits::default())
        else {
            return;
        };
        let named = TaskMessage::of(&received.method, received.params);
        let Some(named) = named.filter(|named| named.is_of(&session, &self.server)) else { return };
        let Some(update) = &named.update else { return };
        let who = (&*session.grant().label, session.key());
        session.admission().task_updated(who, &self.server, &named.own, update);
        let Some((id, shown)) = named.change(&session, &self.server) else { return };
        let tag = peek(raw, &["params", "_meta", key::SUBSCRIPTION_ID]).ok().flatten();
        let mut changes = vec![(id, shown.as_str())];
        changes.extend(tag.map(|tag| (tag, &*self.id)));
        push(&self.buffer, raw, &changes);
    }

    /// The acknowledged part of the filter with the client's task ids: members in raw JSON.
    fn agreed_to(&self, filter: &str) -> String {
        let tasks = peek(filter, &["taskIds"]).ok().flatten();
        let tasks = tasks.and_then(|raw| items(raw).ok().flatten()).unwrap_or_default();
        let Some(session) = self.session.upgrade() else { return String::new() };
        let shown = tasks.into_iter().filter_map(|raw| shown_if_own(&session, &self.server, raw));
        let shown: Vec<_> = shown.collect();
        if shown.is_empty() { String::new() } else { format!(r#""taskIds":[{}]"#, shown.join(",")) }
    }
}

impl Link {
    /// Opens a task stream for a client; returns the acknowledged members of the filter, raw JSON.
    pub async fn open_task_stream(&self, more: &Arc<TaskStream>) -> String {
        let mut agreed = more.agreed.subscribe();
        tokio::spawn(keep(Weak::clone(&self.me), Arc::clone(more)));
        let known = timeout(ACK_WAIT, agreed.wait_for(Option::is_some)).await;
        known.ok().and_then(Result::ok).and_then(|known| known.clone()).unwrap_or_default()
    }

    /// Receives a notification on a task stream; false if it belongs to none.
    pub(in crate::link) fn receive_on_task_stream(
        &self,
        notification: &Notification<'_>,
        call: Option<u64>,
    ) -> bool {
        let state = self.changes.0.lock();
        if state.more.is_empty() {
            return false;
        }
        let params = notification.params.unwrap_or("{}");
        let tag = || peek(params, &["_meta", key::SUBSCRIPTION_ID]).ok().flatten()?.parse().ok();
        let more = call.or_else(tag).and_then(|number| state.more.get(&number)).cloned();
        drop(state);
        let Some(more) = more else { return false };
        match notification.method.as_ref() {
            method::LISTEN_ACKNOWLEDGED => {
                let filter = peek(params, &["notifications"]).ok().flatten().unwrap_or("{}");
                more.agreed.send_replace(Some(more.agreed_to(filter)));
            }
            method::CANCELLED => return false,
            _ => more.notify(notification),
        }
        true
    }

    fn prepare_task_stream(&self, more: &Arc<TaskStream>) -> Option<Listening> {
        let up = self.up.load_full().filter(|up| up.era == Era::Sessionless)?;
        let params = format!(r#"{{"notifications":{{{}}}}}"#, more.wanted);
        let listening = self.listening(&up, &params).ok()?;
        self.changes.0.lock().more.insert(listening.number, Arc::clone(more));
        Some(listening)
    }
}

/// Keeps a stream open while its client listens.
async fn keep(link: Weak<Link>, more: Arc<TaskStream>) {
    let mut pause = FIRST_PAUSE;
    while let Some(here) = link.upgrade() {
        let listening = here.prepare_task_stream(&more);
        drop(here);
        if let Some(listening) = listening {
            let number = listening.number;
            let ended = more.over.run_until_cancelled(listening.read_to_end()).await;
            let Some(here) = link.upgrade() else { return };
            drop(here.waiting.take(number));
            here.changes.0.lock().more.remove(&number);
            let Some(ended) = ended else { return here.end_listening(number).await };
            if ended.is_ok_and(|answer| error_in(&answer).is_some()) {
                break;
            }
        }
        tokio::select! {
            () = more.over.cancelled() => return,
            () = sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
        }
    }
    // Releases the waiters for the acknowledgement.
    more.agreed.send_modify(|agreed| {
        agreed.get_or_insert_default();
    });
}
