//! What a server of protocol 2026-07-28 says without being asked: one `subscriptions/listen` for
//! everything that the agents of a link want to hear.
//!
//! A stream is never changed: when more is wanted, another one is opened, and the one before it is
//! ended as soon as the server has agreed.
//!
//! Invariant: nobody hears of the stream itself: its acknowledgement ends here, and so does the tag
//! of each message.

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
use toolgate_mcp::modern::key;
use toolgate_mcp::{Notification, method, write};

use super::Link;
use super::handshake::Up;
use super::inbound::Ear;
use super::waiting::Waiting;
use crate::channel::{Channel, Outbound, SendError, Uncleared};
use crate::era::Era;
use crate::failure::Failure;
use crate::rewrite::error_in;

mod more;

pub use more::More;

/// How long a server may take to agree to tell something.
const AGREEING: Duration = Duration::from_secs(30);
/// How long somebody who listens waits for that.
const HEARING: Duration = Duration::from_secs(3);
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// To listen to nothing.
const NOTHING: &str = r#"{"notifications":{}}"#;

/// What is heard over one link.
#[derive(Default)]
pub(super) struct Changes(Mutex<State>);

#[derive(Default)]
struct State {
    /// Resources that are followed, and by which agent sessions.
    followed: BTreeMap<String, BTreeSet<u64>>,
    current: Option<Stream>,
    /// Streams of clients of the same protocol, by the numbers of their requests.
    more: HashMap<u64, Arc<More>>,
}

/// One stream of changes.
#[derive(Clone)]
struct Stream {
    epoch: u64,
    /// The number of its request, once it has one.
    number: Arc<Mutex<Option<u64>>>,
    /// The resources that the server has agreed to tell of.
    agreed: watch::Sender<Option<BTreeSet<String>>>,
    over: CancellationToken,
    /// The stream that it replaces.
    before: Arc<Mutex<Option<CancellationToken>>>,
}

impl Link {
    /// Whether somebody follows a resource.
    pub(super) fn follows_any(&self) -> bool {
        !self.changes.0.lock().followed.is_empty()
    }

    /// Hears what the server says from now on, if it is not heard already.
    pub(super) fn hear_changes(&self) {
        let Some(up) = self.up.load_full().filter(|up| up.era == Era::Modern) else { return };
        let mut state = self.changes.0.lock();
        let is_heard = |stream: &Stream| stream.epoch == up.epoch && !stream.over.is_cancelled();
        if !state.current.as_ref().is_some_and(is_heard) && self.filter(&state) != NOTHING {
            self.open_stream(&mut state, &up);
        }
    }

    /// Follows a resource for an agent session; why not, if the server does not agree.
    pub(super) async fn follow(
        self: &Arc<Self>,
        session: Option<u64>,
        uri: &str,
        up: &Arc<Up>,
    ) -> Result<Result<(), String>, Failure> {
        let Some(session) = session else { return Ok(Err("nobody asks for it".to_owned())) };
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
        let tells = match timeout(AGREEING, known).await {
            Ok(Ok(known)) => known.as_ref().is_some_and(|uris| uris.contains(uri)),
            Ok(Err(_)) => false,
            Err(_) => {
                self.unfollow(Some(session), uri);
                return Err(Failure::Timeout { after: AGREEING });
            }
        };
        if tells {
            return Ok(Ok(()));
        }
        self.unfollow(Some(session), uri);
        Ok(Err("the server does not tell of changes of this resource".to_owned()))
    }

    /// Waits until the server has agreed to tell of its changes, but not for long.
    pub async fn hears_changes(&self) {
        let Some(stream) = self.changes.0.lock().current.clone() else { return };
        let mut agreed = stream.agreed.subscribe();
        let known = agreed.wait_for(Option::is_some);
        if timeout(HEARING, known).await.is_err() {
            tracing::debug!(server = self.server.name(), "it has not agreed to tell of changes");
        }
    }

    /// Follows nothing any longer for an agent session.
    pub(super) fn unfollow_all(&self, session: u64) {
        let uris: Vec<_> = self.changes.0.lock().followed.keys().cloned().collect();
        for uri in uris {
            self.unfollow(Some(session), &uri);
        }
    }

    /// Follows a resource no longer.
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
        } else if let Some(up) = self.up.load_full().filter(|up| up.era == Era::Modern) {
            self.open_stream(&mut state, &up);
        }
    }

    /// The server has said what it will tell.
    pub(super) fn hear_acknowledged(&self, notification: &Notification<'_>, call: Option<u64>) {
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

    /// The server ends a stream of changes; false if it is about something else.
    pub(super) fn hear_ended(&self, id: Option<&str>) -> bool {
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

    fn open_stream(&self, state: &mut State, up: &Arc<Up>) -> Stream {
        let before = state.current.take();
        // What the older stream has not been told by then, the newer one is.
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

    /// What the server says that it tells of, and the resources that are followed.
    fn filter(&self, state: &State) -> String {
        let uris: Vec<_> = state.followed.keys().cloned().collect();
        let offer = self.offer();
        let tells = |kind: &str| {
            matches!(peek(&offer.capabilities, &[kind, "listChanged"]), Ok(Some("true")))
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

    /// Prepares to hear a stream; none if its channel is no longer the one that is up.
    fn prepare(&self, stream: &Stream, params: &str) -> Option<Listening> {
        let up = self.up.load_full().filter(|up| up.epoch == stream.epoch)?;
        let listening = self.listening(&up, params).ok()?;
        *stream.number.lock() = Some(listening.number);
        Some(listening)
    }

    /// A stream that is about to be heard over `up`.
    fn listening(&self, up: &Up, params: &str) -> Result<Listening, Uncleared> {
        let number = self.waiting.number();
        let body = write::request(number, method::LISTEN, Some(params));
        let message = self.own_outbound(body, up, Clearance::Closed(Closed::LISTEN))?;
        let (tell, answer) = oneshot::channel();
        self.waiting.insert(number, Waiting::Own(tell, up.epoch));
        let ear = self.ear(up.epoch, Some(number));
        Ok(Listening { channel: Arc::clone(&up.channel), message, ear, number, answer })
    }

    /// Nobody hears the stream `number` any more; the server is told.
    async fn end_listening(&self, number: u64) {
        let params = format!(r#"{{"requestId":{number},"reason":"not needed any more"}}"#);
        let body = write::notification(method::CANCELLED, Some(&params));
        self.tell(body, Closed::CANCELLED).await;
    }
}

/// A stream that is about to be heard. It holds neither the link nor what ends with its last call.
struct Listening {
    channel: Arc<dyn Channel>,
    message: Outbound,
    ear: Arc<Ear>,
    number: u64,
    answer: oneshot::Receiver<Result<Bytes, Failure>>,
}

impl Listening {
    /// Hears it to its end.
    async fn hear(self) -> Result<Bytes, Failure> {
        match self.channel.send(self.message, self.ear).await {
            Ok(()) => self.answer.await.unwrap_or_else(|_| Err(ended())),
            Err(SendError::Refused { body, .. }) if error_in(&body).is_some() => Ok(body),
            Err(error) => Err(error.into()),
        }
    }
}

/// Keeps a stream open for as long as its channel is up and it is wanted.
async fn keep(link: Weak<Link>, stream: Stream, params: String) {
    let mut pause = FIRST_PAUSE;
    while let Some(listening) = link.upgrade().and_then(|link| link.prepare(&stream, &params)) {
        let number = listening.number;
        let heard = stream.over.run_until_cancelled(listening.hear()).await;
        let Some(here) = link.upgrade() else { return };
        drop(here.waiting.take(number));
        let Some(heard) = heard else {
            return here.end_listening(number).await;
        };
        drop(here);
        // A server that knows no such thing, or does not want this, says so at once.
        if heard.is_ok_and(|answer| error_in(&answer).is_some()) {
            break;
        }
        tokio::select! {
            () = stream.over.cancelled() => return,
            () = sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
        }
    }
    // Whoever waits for the server to agree waits no longer.
    stream.agreed.send_modify(|agreed| {
        agreed.get_or_insert_default();
    });
}

fn ended() -> Failure {
    Failure::Lost { why: "it ended the stream".to_owned() }
}

/// The notification without the tag that says to which stream it belongs; none if it has none.
pub(super) fn without_tag(notification: &Notification<'_>) -> Option<Bytes> {
    memmem::find(notification.raw.as_bytes(), key::SUBSCRIPTION_ID.as_bytes())?;
    let meta = peek(notification.params?, &["_meta"]).ok()??;
    let is_tag = |raw: &str| text(raw).as_deref() == Some(key::SUBSCRIPTION_ID);
    let kept = entries(meta).ok()??.into_iter().filter(|(key, _)| !is_tag(key));
    let kept: Vec<_> = kept.map(|(key, value)| format!("{key}:{value}")).collect();
    let edit = Edit::new(notification.raw).replace(meta, format!("{{{}}}", kept.join(",")));
    Some(edit.ok()?.finish())
}
