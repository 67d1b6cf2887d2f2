//! Change notifications of a sessionless server: one `subscriptions/listen` for all agents of a
//! link.
//!
//! A stream is never changed. When more is wanted, a new stream is opened, and the old one ends
//! once the server has acknowledged the new one.
//!
//! Invariant: the stream itself is invisible to agents: its acknowledgement and the tag of each
//! message are removed here.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use memchr::memmem;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::{oneshot, watch};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use toolgate_admission::clearance::{Clearance, Closed};
use toolgate_json::{Edit, entries, items, peek, text};
use toolgate_mcp::sessionless::key;
use toolgate_mcp::{Notification, method, write};

use super::Link;
use super::handshake::LiveChannel;
use super::inbound::Inbound;
use super::waiting::Waiter;
use crate::channel::{Channel, Outbound, SendError, Uncleared};
use crate::era::Era;
use crate::failure::Failure;
use crate::rewrite::error_in;

mod task_stream;

pub use task_stream::TaskStream;

/// How long a server may take to acknowledge a subscription.
const ACK_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a listening client waits for the acknowledgement.
const ACK_WAIT: Duration = Duration::from_secs(3);
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// An empty filter.
const NOTHING: &str = r#"{"notifications":{}}"#;

/// The change stream of one link.
#[derive(Default)]
pub(super) struct Changes(Mutex<State>);

#[derive(Default)]
struct State {
    /// Followed resources, with the agent sessions that follow them.
    followed: BTreeMap<String, BTreeSet<u64>>,
    current: Option<Stream>,
    /// Task streams of sessionless clients, by the numbers of their requests.
    more: HashMap<u64, Arc<TaskStream>>,
}

/// Why a resource is not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum FollowError {
    /// The request belongs to no agent session any more.
    #[error("the agent session has ended")]
    NoAgent,
    /// The server did not agree to it.
    #[error("the server sends no notifications about changes of this resource")]
    NotOffered,
}

/// One stream of changes.
#[derive(Clone)]
struct Stream {
    epoch: u64,
    /// The number of its request, once it has one.
    number: Arc<Mutex<Option<u64>>>,
    /// The resources that the server has acknowledged.
    agreed: watch::Sender<Option<BTreeSet<String>>>,
    over: CancellationToken,
    /// The stream that it replaces.
    before: Arc<Mutex<Option<CancellationToken>>>,
}

impl Link {
    /// Whether an agent follows a resource.
    pub(super) fn follows_any(&self) -> bool {
        !self.changes.0.lock().followed.is_empty()
    }

    /// Opens the change stream, if it is not open.
    pub(super) fn open_change_stream(&self) {
        let Some(up) = self.up.load_full().filter(|up| up.era == Era::Sessionless) else { return };
        let mut state = self.changes.0.lock();
        let is_current = |stream: &Stream| stream.epoch == up.epoch && !stream.over.is_cancelled();
        if !state.current.as_ref().is_some_and(is_current) && self.filter(&state) != NOTHING {
            self.open_stream(&mut state, &up);
        }
    }

    /// Follows a resource for an agent session.
    pub(super) async fn follow(
        self: &Arc<Self>,
        session: Option<u64>,
        uri: &str,
        up: &Arc<LiveChannel>,
    ) -> Result<Result<(), FollowError>, Failure> {
        let Some(session) = session else { return Ok(Err(FollowError::NoAgent)) };
        let mut agreed = {
            let mut state = self.changes.0.lock();
            let others = state.followed.entry(uri.to_owned()).or_default();
            let is_new = others.is_empty();
            others.insert(session);
            let stream = match &state.current {
                Some(stream) if !is_new && stream.epoch == up.epoch => stream.clone(),
                _ => self.open_stream(&mut state, up),
            };
            stream.agreed.subscribe()
        };
        let known = agreed.wait_for(Option::is_some);
        let tells = match timeout(ACK_TIMEOUT, known).await {
            Ok(Ok(known)) => known.as_ref().is_some_and(|uris| uris.contains(uri)),
            Ok(Err(_)) => false,
            Err(_) => {
                self.unfollow(Some(session), uri);
                return Err(Failure::Timeout { after: ACK_TIMEOUT });
            }
        };
        if tells {
            return Ok(Ok(()));
        }
        self.unfollow(Some(session), uri);
        Ok(Err(FollowError::NotOffered))
    }

    /// Waits a short time until the server has acknowledged the change stream.
    pub async fn wait_for_change_stream(&self) {
        let Some(stream) = self.changes.0.lock().current.clone() else { return };
        let mut agreed = stream.agreed.subscribe();
        let known = agreed.wait_for(Option::is_some);
        if timeout(ACK_WAIT, known).await.is_err() {
            tracing::debug!(server = self.server.name(), "change stream not acknowledged in time");
        }
    }

    /// Stops following all resources for an agent session.
    pub(super) fn unfollow_all(&self, session: u64) {
        let uris: Vec<_> = self.changes.0.lock().followed.keys().cloned().collect();
        for uri in uris {
            self.unfollow(Some(session), &uri);
        }
    }

    /// Stops following a resource.
    pub(super) fn unfollow(&self, session: Option<u64>, uri: &str) {
        let mut state = self.changes.0.lock();
        let Some(others) = state.followed.get_mut(uri) else { return };
        if let Some(session) = session {
            others.remove(&session);
        }
        if !others.is_empty() {
            return;
        }
        state.followed.remove(uri);
        if state.followed.is_empty() && !self.is_listening() {
            if let Some(stream) = state.current.take() {
                stream.over.cancel();
            }
        } else if let Some(up) = self.up.load_full().filter(|up| up.era == Era::Sessionless) {
            self.open_stream(&mut state, &up);
        }
    }

    /// The server has acknowledged a stream.
    pub(super) fn receive_acknowledged(&self, notification: &Notification<'_>, call: Option<u64>) {
        let params = notification.params.unwrap_or("{}");
        let tag = peek(params, &["_meta", key::SUBSCRIPTION_ID]).ok().flatten();
        let number = call.or_else(|| tag.and_then(|tag| tag.parse().ok()));
        let state = self.changes.0.lock();
        let Some(stream) = state.current.as_ref().filter(|it| *it.number.lock() == number) else {
            return;
        };
        let uris = peek(params, &["notifications", "resourceSubscriptions"]).ok().flatten();
        let uris = uris.and_then(|raw| items(raw).ok().flatten()).unwrap_or_default();
        let uris = uris.into_iter().filter_map(|raw| Some(text(raw)?.into_owned())).collect();
        stream.agreed.send_replace(Some(uris));
        if let Some(before) = stream.before.lock().take() {
            before.cancel();
        }
    }

    /// The server ends a stream; false if the id belongs to something else.
    pub(super) fn receive_listen_ended(&self, id: Option<&str>) -> bool {
        let number = id.and_then(|id| id.parse().ok());
        let state = self.changes.0.lock();
        let is_it = |stream: &Stream| number.is_some() && *stream.number.lock() == number;
        let is_more = number.is_some_and(|number| state.more.contains_key(&number));
        let is_its = is_more || state.current.as_ref().is_some_and(is_it);
        drop(state);
        if let (true, Some(number)) = (is_its, number) {
            drop(self.waiting.take(number));
        }
        is_its
    }

    fn open_stream(&self, state: &mut State, up: &Arc<LiveChannel>) -> Stream {
        let before = state.current.take();
        // The new stream covers everything that the old one has not delivered by then.
        let before = before.filter(|stream| stream.epoch == up.epoch).map(|stream| stream.over);
        let stream = Stream {
            epoch: up.epoch,
            number: Arc::default(),
            agreed: watch::Sender::new(None),
            over: CancellationToken::new(),
            before: Arc::new(Mutex::new(before)),
        };
        state.current = Some(stream.clone());
        let params = self.filter(state);
        tokio::spawn(keep(Weak::clone(&self.me), stream.clone(), params));
        stream
    }

    /// The notifications that the server declares, and the followed resources.
    fn filter(&self, state: &State) -> String {
        let uris: Vec<_> = state.followed.keys().cloned().collect();
        let advertised = self.advertised();
        let tells = |kind: &str| {
            matches!(peek(&advertised.capabilities, &[kind, "listChanged"]), Ok(Some("true")))
        };
        let mut wanted = Map::new();
        for (kind, name) in [
            ("tools", "toolsListChanged"),
            ("prompts", "promptsListChanged"),
            ("resources", "resourcesListChanged"),
        ] {
            if tells(kind) {
                wanted.insert(name.to_owned(), true.into());
            }
        }
        if !uris.is_empty() {
            wanted.insert("resourceSubscriptions".to_owned(), Value::from(uris));
        }
        format!(r#"{{"notifications":{}}}"#, Value::Object(wanted))
    }

    /// Prepares a stream; `None` if its channel is no longer the current one.
    fn prepare(&self, stream: &Stream, params: &str) -> Option<Listening> {
        let up = self.up.load_full().filter(|up| up.epoch == stream.epoch)?;
        let listening = self.listening(&up, params).ok()?;
        *stream.number.lock() = Some(listening.number);
        Some(listening)
    }

    /// A stream that is about to be opened over `up`.
    fn listening(&self, up: &LiveChannel, params: &str) -> Result<Listening, Uncleared> {
        let number = self.waiting.number();
        let body = write::request(number, method::LISTEN, Some(params));
        let message = self.own_outbound(body, up, Clearance::Closed(Closed::LISTEN))?;
        let (tell, answer) = oneshot::channel();
        self.waiting.insert(number, Waiter::Own(tell, up.epoch));
        let inbound = self.inbound(up.epoch, Some(number));
        Ok(Listening { channel: Arc::clone(&up.channel), message, inbound, number, answer })
    }

    /// Tells the server that the stream `number` is no longer needed.
    async fn end_listening(&self, number: u64) {
        let params = format!(r#"{{"requestId":{number},"reason":"no longer needed"}}"#);
        let body = write::notification(method::CANCELLED, Some(&params));
        self.forward_cleared(body, Closed::CANCELLED).await;
    }
}

/// A stream that is about to be opened. It holds neither the link nor the live channel.
struct Listening {
    channel: Arc<dyn Channel>,
    message: Outbound,
    inbound: Arc<Inbound>,
    number: u64,
    answer: oneshot::Receiver<Result<Bytes, Failure>>,
}

impl Listening {
    /// Reads it to its end.
    async fn read_to_end(self) -> Result<Bytes, Failure> {
        match self.channel.send(self.message, self.inbound).await {
            Ok(()) => self.answer.await.unwrap_or_else(|_| Err(ended())),
            Err(SendError::Refused { body, .. }) if error_in(&body).is_some() => Ok(body),
            Err(error) => Err(error.into()),
        }
    }
}

/// Keeps a stream open while its channel is up and it is wanted.
async fn keep(link: Weak<Link>, stream: Stream, params: String) {
    let mut pause = FIRST_PAUSE;
    while let Some(listening) = link.upgrade().and_then(|link| link.prepare(&stream, &params)) {
        let number = listening.number;
        let ended = stream.over.run_until_cancelled(listening.read_to_end()).await;
        let Some(here) = link.upgrade() else { return };
        drop(here.waiting.take(number));
        let Some(ended) = ended else {
            return here.end_listening(number).await;
        };
        drop(here);
        // A server that does not support this answers with an error at once.
        if ended.is_ok_and(|answer| error_in(&answer).is_some()) {
            break;
        }
        tokio::select! {
            () = stream.over.cancelled() => return,
            () = sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
        }
    }
    // Releases the waiters for the acknowledgement.
    stream.agreed.send_modify(|agreed| {
        agreed.get_or_insert_default();
    });
}

fn ended() -> Failure {
    Failure::Lost { why: "it ended the stream".to_owned() }
}

/// The notification without the tag of its stream; `None` if it has no tag.
pub(super) fn without_tag(notification: &Notification<'_>) -> Option<Bytes> {
    memmem::find(notification.raw.as_bytes(), key::SUBSCRIPTION_ID.as_bytes())?;
    let meta = peek(notification.params?, &["_meta"]).ok()??;
    let is_tag = |raw: &str| text(raw).as_deref() == Some(key::SUBSCRIPTION_ID);
    let kept = entries(meta).ok()??.into_iter().filter(|(key, _)| !is_tag(key));
    let kept: Vec<_> = kept.map(|(key, value)| format!("{key}:{value}")).collect();
    let edit = Edit::new(notification.raw).replace(meta, format!("{{{}}}", kept.join(",")));
    Some(edit.ok()?.finish())
}
