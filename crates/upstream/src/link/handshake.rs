//! How a link comes up: connect, `initialize` (or `server/discover`, see `link/discover.rs`), and
//! after a loss all of it again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolgate_admission::clearance::{Clearance, Closed};
use toolgate_admission::list_kind::Kind;
use toolgate_json::{peek, text};
use toolgate_mcp::modern::VERSION;
use toolgate_mcp::{Incoming, Limits, Message, Payload, method, parse_server, write};

use super::discover::Discovered;
use super::inbound::Ear;
use super::on_behalf;
use super::waiting::Waiting;
use super::{Link, Unanswered};
use crate::backoff::Backoff;
use crate::channel::{Channel, Heads, Outbound, SendError};
use crate::era::Era;
use crate::failure::Failure;
use crate::rewrite::error_in;

/// A channel that dies younger than this is not brought up again at once.
const YOUNG: Duration = Duration::from_secs(10);

/// How opening a conversation ended.
pub enum Opened {
    /// The server agreed; this is its answer.
    Yes(Bytes),
    /// The server refused; this is its answer, a JSON-RPC error.
    No(Bytes),
}

/// A channel that has been through the handshake.
pub(super) struct Up {
    pub(super) channel: Arc<dyn Channel>,
    pub(super) epoch: u64,
    /// What is spoken over it.
    pub(super) era: Era,
    /// Cancelled when the channel is gone.
    pub(super) gone: CancellationToken,
    since: Instant,
    listening: AtomicBool,
    tasks: TaskTracker,
}

// === impl Link ===

impl Link {
    /// Opens the conversation with the agent's own `initialize`, which arrived at `since`; the agent
    /// itself says when it is initialized.
    pub async fn open(self: &Arc<Self>, since: Instant) -> Result<Opened, Failure> {
        let deadline = self.deadline(since);
        let Some(_turn) = in_time(deadline, self.connecting.lock()).await else {
            return Err(self.no_handshake());
        };
        if let Some(welcome) = self.unstarted_welcome() {
            return Ok(Opened::Yes(welcome));
        }
        self.bring_up(left_until(deadline, self.server.settings.start_timeout)).await
    }

    /// The server's answer to the `initialize` of this link, which is opened if it has to be, for a
    /// request that arrived at `since`. Requests that waited for an attempt share its failure.
    pub async fn opened(self: &Arc<Self>, since: Instant) -> Result<Opened, Failure> {
        let deadline = self.deadline(since);
        let failed = self.failures.load(Ordering::Acquire);
        let Some(_turn) = in_time(deadline, self.connecting.lock()).await else {
            return Err(self.no_handshake());
        };
        let known = self.opened.lock().clone();
        if let (Some(answer), true) = (known, self.up.load().is_some()) {
            return Ok(Opened::Yes(answer));
        }
        if let Some(welcome) = self.unstarted_welcome() {
            return Ok(Opened::Yes(welcome));
        }
        if let Some(failure) = self.failed_since(failed) {
            return Err(failure);
        }
        let limit = left_until(deadline, self.server.settings.start_timeout);
        let opened = self.bring_up(limit).await?;
        if let Opened::Yes(_) = &opened {
            self.settle_in(deadline).await;
        }
        Ok(opened)
    }

    /// The channel, brought up again if it was lost, for somebody who has waited since then. A
    /// server that is no child has [`ServerSettings::reconnect_timeout`] from that moment on,
    /// whatever takes the time: another attempt, the probe, two protocols, two transports.
    ///
    /// [`ServerSettings::reconnect_timeout`]: super::server::ServerSettings::reconnect_timeout
    pub(super) async fn come_up(self: &Arc<Self>, since: Instant) -> Result<Arc<Up>, Failure> {
        if let Some(up) = self.up.load_full() {
            return Ok(up);
        }
        if self.ended.load(Ordering::Acquire) {
            return Err(Failure::unavailable("the agent session has ended"));
        }
        let deadline = self.deadline(since);
        let failed = self.failures.load(Ordering::Acquire);
        let Some(_turn) = in_time(deadline, self.connecting.lock()).await else {
            return self.up.load_full().ok_or_else(|| self.no_handshake());
        };
        if let Some(up) = self.up.load_full() {
            return Ok(up);
        }
        if let Some(failure) = self.failed_since(failed) {
            return Err(failure);
        }
        let limit = left_until(deadline, self.server.settings.reconnect_timeout);
        match self.bring_up(limit).await? {
            Opened::Yes(_) => {}
            Opened::No(_) => return Err(Failure::unavailable("it refuses a new session")),
        }
        let up = self.settle_in(deadline).await;
        up.ok_or_else(|| Failure::unavailable("it went away right after the handshake"))
    }

    /// Until when a request that arrived at `since` waits for the channel; none for a child, whose
    /// start has a limit of its own.
    fn deadline(&self, since: Instant) -> Option<Instant> {
        let settings = &self.server.settings;
        (!settings.backs_off).then(|| since + settings.reconnect_timeout)
    }

    /// How the last attempt failed, if one has failed since there were so many.
    fn failed_since(&self, failed: u64) -> Option<Failure> {
        let is_newer = self.failures.load(Ordering::Acquire) != failed;
        self.failure.lock().clone().filter(|_| is_newer)
    }

    fn no_handshake(&self) -> Failure {
        let limit = self.server.settings.reconnect_timeout;
        Failure::unavailable(format!("no handshake within {limit:?}"))
    }

    /// What follows a handshake that no agent made itself.
    async fn settle_in(self: &Arc<Self>, deadline: Option<Instant>) -> Option<Arc<Up>> {
        let up = self.up.load_full()?;
        if up.era == Era::Legacy {
            let body = write::notification(method::INITIALIZED, None);
            let told = self.tell(body, Closed::INITIALIZED);
            if in_time(deadline, told).await.is_none() {
                tracing::debug!(server = self.server.name(), "`initialized` was not acknowledged");
            }
        }
        if self.is_listening() || self.follows_any() {
            self.listen_over(&up);
        }
        if self.surveyed.load(Ordering::Relaxed) {
            self.survey(&Kind::ALL);
        }
        if up.era == Era::Legacy {
            self.renew_wishes();
        }
        Some(up)
    }

    /// What agents asked of the server before it was lost: to hear of resources, and of how much.
    fn renew_wishes(self: &Arc<Self>) {
        let (mut levels, mut followed) = (BTreeSet::new(), BTreeMap::new());
        let logs = self.offer().can("logging");
        for session in self.sessions() {
            levels.extend(session.wishes().level().filter(|_| logs));
            let label = Arc::clone(&session.grant().label);
            for uri in session.wishes().followed(self.server.name()) {
                if session.admission().may_follow(&label, self.server.name(), &uri) {
                    followed.entry(uri).or_insert_with(|| Arc::clone(&session));
                }
            }
        }
        // Of several levels nobody knows which was the last.
        if let (Some(level), 1) = (levels.first(), levels.len()) {
            let params = format!(r#"{{"level":"{level}"}}"#);
            self.wish(method::LOGGING_SET_LEVEL, params, Closed::SET_LEVEL);
        }
        if followed.is_empty() {
            return;
        }
        let me = Arc::clone(self);
        tokio::spawn(async move {
            for (uri, session) in followed {
                if !on_behalf::follow(&session, &me, &uri).await && !me.is_up() {
                    return;
                }
            }
        });
    }

    async fn bring_up(self: &Arc<Self>, limit: Duration) -> Result<Opened, Failure> {
        if let Some(barred) = self.barred() {
            return Err(Failure::unavailable(barred.why()));
        }
        if let Some(wait) = self.must_wait(Instant::now()) {
            let why = "it failed to start, or died soon after, and is given a pause".to_owned();
            return Err(Failure::Unavailable { why, retry_after: Some(wait) });
        }
        let first = self.server.eras.first(self.prefers);
        let shaken = match timeout(limit, self.shake_hands(first, limit)).await {
            Ok(shaken) => shaken,
            Err(_) => Err(Failure::unavailable(format!("no handshake within {limit:?}"))),
        };
        match shaken {
            Ok((up, opened)) => {
                let epoch = up.epoch;
                self.server.start_worked();
                if let Opened::Yes(answer) = &opened {
                    *self.opened.lock() = Some(answer.clone());
                    self.up.store(Some(Arc::new(up)));
                    if self.died.load(Ordering::Acquire) >= epoch {
                        self.forget(epoch);
                    }
                }
                Ok(opened)
            }
            Err(failure) => {
                if first == Era::Legacy {
                    self.server.eras.forget();
                }
                self.server.start_failed(Instant::now());
                let failure = failure.of_handshake();
                let why = failure.what(self.server.name());
                tracing::warn!(server = self.server.name(), why, "the server did not start");
                *self.failure.lock() = Some(failure.clone());
                self.failures.fetch_add(1, Ordering::Release);
                Err(failure)
            }
        }
    }

    /// How long a start has to wait: the server fails to start, or it starts and dies young.
    fn must_wait(&self, now: Instant) -> Option<Duration> {
        self.server.must_wait(now).max(self.deaths.lock().wait(now))
    }

    fn note_death(&self, up_for: Duration, now: Instant) {
        let mut deaths = self.deaths.lock();
        if up_for < YOUNG && self.server.settings.backs_off {
            deaths.failed(now);
        } else {
            *deaths = Backoff::default();
        }
    }

    /// Opens the conversation in the era `first`, or else in the other.
    async fn shake_hands(
        self: &Arc<Self>,
        first: Era,
        limit: Duration,
    ) -> Result<(Up, Opened), Failure> {
        let mut up = self.connect().await?;
        if first == Era::Modern {
            match self.discover(&up, limit).await {
                Discovered::Modern(welcome) => {
                    up.era = Era::Modern;
                    return Ok((up, Opened::Yes(welcome)));
                }
                Discovered::Not => {}
                // Some servers do not survive a question that they do not know.
                Discovered::Gone => up = self.connect().await?,
            }
        }
        let opened = self.initialize(&up).await;
        let refused =
            matches!(&opened, Ok(Opened::No(_)) | Err(Failure::Refused { status: 400..=405 }));
        if !refused || first == Era::Modern {
            return Ok((up, opened?));
        }
        let mut discovered = self.discover(&up, limit).await;
        if matches!(discovered, Discovered::Gone) {
            // It does not survive having refused a handshake.
            up = self.connect().await?;
            discovered = self.discover(&up, limit).await;
        }
        if let Discovered::Modern(welcome) = discovered {
            self.server.eras.refuses(Era::Legacy);
            up.era = Era::Modern;
            return Ok((up, Opened::Yes(welcome)));
        }
        Ok((up, opened?))
    }

    /// From here on, whatever goes wrong closes the channel.
    async fn connect(self: &Arc<Self>) -> Result<Up, Failure> {
        let epoch = self.epochs.fetch_add(1, Ordering::Relaxed) + 1;
        let channel = self.server.connector.connect(self.ear(epoch, None)).await?;
        let (since, tasks) = (Instant::now(), self.tasks.clone());
        let listening = AtomicBool::new(false);
        let gone = CancellationToken::new();
        Ok(Up { channel, epoch, era: Era::Legacy, gone, since, listening, tasks })
    }

    async fn initialize(self: &Arc<Self>, up: &Up) -> Result<Opened, Failure> {
        let params = String::from_utf8_lossy(&self.opening);
        let answer = self.ask_first(up, Closed::INITIALIZE, |number| {
            (write::request(number, method::INITIALIZE, Some(&params)), Heads::new())
        });
        let answer = answer.await?;
        let Ok(Incoming::One(Message::Response(response))) =
            parse_server(&answer, &Limits::default())
        else {
            return Err(Failure::unavailable("its answer to `initialize` is no answer"));
        };
        match response.payload {
            Payload::Error(_) => Ok(Opened::No(answer.clone())),
            Payload::Result(result) => {
                let version = peek(result, &["protocolVersion"]).ok().flatten().and_then(text);
                let Some(version) = version else {
                    return Err(Failure::unavailable("its handshake names no protocol version"));
                };
                // Some that speak nothing else agree to what no handshake can.
                if version == VERSION {
                    return Ok(Opened::No(answer.clone()));
                }
                up.channel.established(&version);
                self.server.eras.speaks(Era::Legacy);
                Ok(Opened::Yes(answer.clone()))
            }
        }
    }

    /// Asks something before the conversation is open.
    pub(super) async fn ask_first(
        self: &Arc<Self>,
        up: &Up,
        closed: Closed,
        write: impl FnOnce(u64) -> (Bytes, Heads),
    ) -> Result<Bytes, Failure> {
        let number = self.waiting.number();
        let (tell, mut answer) = oneshot::channel();
        self.waiting.insert(number, Waiting::Own(tell, up.epoch));
        // An agent that hangs up, or a limit that is up, breaks this off.
        let _unanswered = Unanswered { link: Arc::clone(self), number };
        let (body, heads) = write(number);
        let ear = self.ear(up.epoch, Some(number));
        let message = Outbound::request(body, heads, Clearance::Closed(closed))?;
        let mut sending = tokio::spawn(send(Arc::clone(&up.channel), message, ear));
        let sent = tokio::select! {
            biased;
            answered = &mut answer => return answered.unwrap_or_else(|_| gone()),
            sent = &mut sending => sent,
        };
        match sent {
            Ok(Ok(())) => answer.await.unwrap_or_else(|_| gone()),
            // A refusal that is itself a JSON-RPC error is the server's answer.
            Ok(Err(SendError::Refused { body, .. })) if error_in(&body).is_some() => Ok(body),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(Failure::unavailable("the handshake broke off")),
        }
    }

    /// The channel of `epoch` ended by itself.
    pub(super) fn lost(&self, epoch: u64, why: &str) {
        self.died.fetch_max(epoch, Ordering::AcqRel);
        let current = self.up.load_full().filter(|up| up.epoch == epoch);
        if let Some(up) = current {
            let now = Instant::now();
            self.note_death(now - up.since, now);
            tracing::warn!(server = self.server.name(), why, "the server went away");
        }
        self.forget(epoch);
        let failure = Failure::Lost { why: why.to_owned() };
        self.waiting.fail_epoch(epoch, &failure, &self.server);
    }
}

// === impl Up ===

impl Up {
    /// Opens the server's own stream, once. Not tracked: it ends when the channel is closed, and
    /// nothing waits for it.
    pub(super) fn listen(&self) {
        if self.listening.swap(true, Ordering::Relaxed) {
            return;
        }
        let channel = Arc::clone(&self.channel);
        tokio::spawn(async move { channel.listen().await });
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        self.gone.cancel();
        // The last call that used the channel is over.
        if tokio::runtime::Handle::try_current().is_ok() {
            let channel = Arc::clone(&self.channel);
            self.tasks.spawn(async move { channel.close().await });
        }
    }
}

/// How long an attempt may take.
fn left_until(deadline: Option<Instant>, of_child: Duration) -> Duration {
    deadline.map_or(of_child, |deadline| deadline.saturating_duration_since(Instant::now()))
}

/// None if it is not done by then.
async fn in_time<T>(deadline: Option<Instant>, work: impl Future<Output = T>) -> Option<T> {
    match deadline {
        Some(deadline) => timeout_at(deadline, work).await.ok(),
        None => Some(work.await),
    }
}

async fn send(
    channel: Arc<dyn Channel>,
    message: Outbound,
    ear: Arc<Ear>,
) -> Result<(), SendError> {
    channel.send(message, ear).await
}

fn gone() -> Result<Bytes, Failure> {
    Err(Failure::unavailable("it went away during the handshake"))
}
