//! Connecting a link: connect, then `initialize` (or `server/discover`, see `link/discover.rs`);
//! after a loss the same again.

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
use super::inbound::Inbound;
use super::on_behalf;
use super::waiting::Waiter;
use super::{FailOnDrop, Link};
use crate::backoff::Backoff;
use crate::channel::{Channel, Heads, Outbound, SendError, StatusClass};
use crate::era::Era;
use crate::failure::Failure;
use crate::rewrite::error_in;

/// A channel that closes earlier than this is not reopened at once.
const YOUNG: Duration = Duration::from_secs(10);

/// How a handshake ended.
pub enum HandshakeOutcome {
    /// The server accepted it with this answer.
    Accepted(Bytes),
    /// The server rejected it with this answer, a JSON-RPC error.
    Rejected(Bytes),
}

/// A channel after its handshake.
pub(super) struct LiveChannel {
    pub(super) channel: Arc<dyn Channel>,
    pub(super) epoch: u64,
    /// The era spoken over it.
    pub(super) era: Era,
    /// Cancelled when the channel is gone.
    pub(super) gone: CancellationToken,
    since: Instant,
    listening: AtomicBool,
    tasks: TaskTracker,
}

// === impl Link ===

impl Link {
    /// Opens the conversation with the agent's own `initialize`, which arrived at `since`; the
    /// agent itself sends `initialized`.
    pub async fn open(self: &Arc<Self>, since: Instant) -> Result<HandshakeOutcome, Failure> {
        let deadline = self.deadline(since);
        let Some(_turn) = in_time(deadline, self.connecting.lock()).await else {
            return Err(self.no_handshake());
        };
        if let Some(welcome) = self.unstarted_welcome() {
            return Ok(HandshakeOutcome::Accepted(welcome));
        }
        self.bring_up(left_until(deadline, self.server.settings.start_timeout)).await
    }

    /// The server's answer to the `initialize` of this link, for a request that arrived at `since`.
    /// Connects if necessary; requests that waited for an attempt share its failure.
    pub async fn opened(self: &Arc<Self>, since: Instant) -> Result<HandshakeOutcome, Failure> {
        let deadline = self.deadline(since);
        let failed = self.failures.load(Ordering::Acquire);
        let Some(_turn) = in_time(deadline, self.connecting.lock()).await else {
            return Err(self.no_handshake());
        };
        let known = self.opened.lock().clone();
        if let (Some(answer), true) = (known, self.up.load().is_some()) {
            return Ok(HandshakeOutcome::Accepted(answer));
        }
        if let Some(welcome) = self.unstarted_welcome() {
            return Ok(HandshakeOutcome::Accepted(welcome));
        }
        if let Some(failure) = self.failed_since(failed) {
            return Err(failure);
        }
        let limit = left_until(deadline, self.server.settings.start_timeout);
        let opened = self.bring_up(limit).await?;
        if let HandshakeOutcome::Accepted(_) = &opened {
            self.after_handshake(deadline).await;
        }
        Ok(opened)
    }

    /// The live channel for a request that has waited since `since`; reconnects if it was lost. A
    /// server that is not a child has [`ServerSettings::reconnect_timeout`] from that moment on,
    /// which covers other attempts, the probe, both eras and both transports.
    ///
    /// [`ServerSettings::reconnect_timeout`]: super::server::ServerSettings::reconnect_timeout
    pub(super) async fn ensure_up(
        self: &Arc<Self>,
        since: Instant,
    ) -> Result<Arc<LiveChannel>, Failure> {
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
            HandshakeOutcome::Accepted(_) => {}
            HandshakeOutcome::Rejected(_) => {
                return Err(Failure::unavailable("it rejects a new session"));
            }
        }
        let up = self.after_handshake(deadline).await;
        up.ok_or_else(|| Failure::unavailable("it disconnected right after the handshake"))
    }

    /// Until when a request that arrived at `since` waits for the channel; `None` for a child,
    /// whose start has its own limit.
    fn deadline(&self, since: Instant) -> Option<Instant> {
        let settings = &self.server.settings;
        (!settings.backs_off).then(|| since + settings.reconnect_timeout)
    }

    /// The last failure, if an attempt has failed since the count was `failed`.
    fn failed_since(&self, failed: u64) -> Option<Failure> {
        let has_failed = self.failures.load(Ordering::Acquire) != failed;
        self.failure.lock().clone().filter(|_| has_failed)
    }

    fn no_handshake(&self) -> Failure {
        let limit = self.server.settings.reconnect_timeout;
        Failure::unavailable(format!("no handshake within {limit:?}"))
    }

    /// Completes a handshake that no agent made itself.
    async fn after_handshake(
        self: &Arc<Self>,
        deadline: Option<Instant>,
    ) -> Option<Arc<LiveChannel>> {
        let up = self.up.load_full()?;
        if up.era == Era::Sessionful {
            let body = write::notification(method::INITIALIZED, None);
            let told = self.tell(body, Closed::INITIALIZED);
            if in_time(deadline, told).await.is_none() {
                tracing::debug!(server = self.server.name(), "`initialized` was not acknowledged");
            }
        }
        if self.is_listening() || self.follows_any() {
            self.listen_over(&up);
        }
        if self.keeps_lists.load(Ordering::Relaxed) {
            self.refresh_lists(&Kind::ALL);
        }
        if up.era == Era::Sessionful {
            self.resubscribe();
        }
        Some(up)
    }

    /// Renews the agents' subscriptions and log level after a loss.
    fn resubscribe(self: &Arc<Self>) {
        let (mut levels, mut followed) = (BTreeSet::new(), BTreeMap::new());
        let logs = self.advertised().can("logging");
        for session in self.sessions() {
            levels.extend(session.server_subscriptions().level().filter(|_| logs));
            let grant = session.grant();
            for uri in session.server_subscriptions().followed(self.server.name()) {
                if session.admission().may_follow(&grant, self.server.name(), &uri) {
                    followed.entry(uri).or_insert_with(|| Arc::clone(&session));
                }
            }
        }
        // With different levels, the last one is unknown.
        if let (Some(level), 1) = (levels.first(), levels.len()) {
            let params = format!(r#"{{"level":"{level}"}}"#);
            self.request_detached(method::LOGGING_SET_LEVEL, params, Closed::SET_LEVEL);
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

    async fn bring_up(self: &Arc<Self>, limit: Duration) -> Result<HandshakeOutcome, Failure> {
        if let Some(barred) = self.barred() {
            return Err(Failure::unavailable(barred.why()));
        }
        if let Some(wait) = self.must_wait(Instant::now()) {
            let why =
                "it failed to start, or exited soon after; the next attempt is delayed".to_owned();
            return Err(Failure::Unavailable { why, retry_after: Some(wait) });
        }
        let first = self.server.eras.first(self.prefers);
        let shaken = match timeout(limit, self.negotiate(first, limit)).await {
            Ok(shaken) => shaken,
            Err(_) => Err(Failure::unavailable(format!("no handshake within {limit:?}"))),
        };
        match shaken {
            Ok((up, opened)) => {
                let epoch = up.epoch;
                self.server.start_worked();
                if let HandshakeOutcome::Accepted(answer) = &opened {
                    *self.opened.lock() = Some(answer.clone());
                    self.up.store(Some(Arc::new(up)));
                    if self.died.load(Ordering::Acquire) >= epoch {
                        self.forget(epoch);
                    }
                }
                Ok(opened)
            }
            Err(failure) => {
                if first == Era::Sessionful {
                    self.server.eras.forget();
                }
                self.server.start_failed(Instant::now());
                let failure = failure.of_handshake();
                let why = failure.what(self.server.name());
                tracing::warn!(server = self.server.name(), why, "server did not start");
                *self.failure.lock() = Some(failure.clone());
                self.failures.fetch_add(1, Ordering::Release);
                Err(failure)
            }
        }
    }

    /// How long a start must wait, because the server fails to start or closes soon after.
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

    /// Negotiates in the era `first`, or else in the other.
    async fn negotiate(
        self: &Arc<Self>,
        first: Era,
        limit: Duration,
    ) -> Result<(LiveChannel, HandshakeOutcome), Failure> {
        let mut up = self.connect().await?;
        if first == Era::Sessionless {
            match self.discover(&up, limit).await {
                Discovered::Sessionless(welcome) => {
                    up.era = Era::Sessionless;
                    return Ok((up, HandshakeOutcome::Accepted(welcome)));
                }
                Discovered::Sessionful => {}
                // Some servers exit on a request that they do not know.
                Discovered::Gone => up = self.connect().await?,
            }
        }
        let opened = self.initialize(&up).await;
        let refused = match &opened {
            Ok(HandshakeOutcome::Rejected(_)) => true,
            Err(Failure::Refused { status }) => matches!(
                status.class,
                StatusClass::BadRequest | StatusClass::Credentials | StatusClass::NoEndpoint
            ),
            _ => false,
        };
        if !refused || first == Era::Sessionless {
            return Ok((up, opened?));
        }
        let mut discovered = self.discover(&up, limit).await;
        if matches!(discovered, Discovered::Gone) {
            // Some servers exit after refusing a handshake.
            up = self.connect().await?;
            discovered = self.discover(&up, limit).await;
        }
        if let Discovered::Sessionless(welcome) = discovered {
            self.server.eras.refuses(Era::Sessionful);
            up.era = Era::Sessionless;
            return Ok((up, HandshakeOutcome::Accepted(welcome)));
        }
        Ok((up, opened?))
    }

    /// From here on, any error closes the channel.
    async fn connect(self: &Arc<Self>) -> Result<LiveChannel, Failure> {
        let epoch = self.epochs.fetch_add(1, Ordering::Relaxed) + 1;
        let channel = self.server.connector.connect(self.inbound(epoch, None)).await?;
        let (since, tasks) = (Instant::now(), self.tasks.clone());
        let listening = AtomicBool::new(false);
        let gone = CancellationToken::new();
        Ok(LiveChannel { channel, epoch, era: Era::Sessionful, gone, since, listening, tasks })
    }

    async fn initialize(self: &Arc<Self>, up: &LiveChannel) -> Result<HandshakeOutcome, Failure> {
        let params = String::from_utf8_lossy(&self.opening);
        let answer = self.handshake_request(up, Closed::INITIALIZE, |number| {
            (write::request(number, method::INITIALIZE, Some(&params)), Heads::new())
        });
        let answer = answer.await?;
        let Ok(Incoming::One(Message::Response(response))) =
            parse_server(&answer, &Limits::default())
        else {
            return Err(Failure::unavailable(
                "its answer to `initialize` is not a JSON-RPC response",
            ));
        };
        match response.payload {
            Payload::Error(_) => Ok(HandshakeOutcome::Rejected(answer.clone())),
            Payload::Result(result) => {
                let version = peek(result, &["protocolVersion"]).ok().flatten().and_then(text);
                let Some(version) = version else {
                    return Err(Failure::unavailable("its handshake has no protocol version"));
                };
                // Some sessionless servers accept `initialize` with a version that has no
                // handshake.
                if version == VERSION {
                    return Ok(HandshakeOutcome::Rejected(answer.clone()));
                }
                up.channel.established(&version);
                self.server.eras.speaks(Era::Sessionful);
                Ok(HandshakeOutcome::Accepted(answer.clone()))
            }
        }
    }

    /// Sends a request before the handshake is complete.
    pub(super) async fn handshake_request(
        self: &Arc<Self>,
        up: &LiveChannel,
        closed: Closed,
        write: impl FnOnce(u64) -> (Bytes, Heads),
    ) -> Result<Bytes, Failure> {
        let number = self.waiting.number();
        let (tell, mut answer) = oneshot::channel();
        self.waiting.insert(number, Waiter::Own(tell, up.epoch));
        // Fails the request if the agent disconnects or the time limit expires.
        let _unanswered = FailOnDrop { link: Arc::clone(self), number };
        let (body, heads) = write(number);
        let inbound = self.inbound(up.epoch, Some(number));
        let message = Outbound::request(body, heads, Clearance::Closed(closed))?;
        let mut sending = tokio::spawn(send(Arc::clone(&up.channel), message, inbound));
        let sent = tokio::select! {
            biased;
            answered = &mut answer => return answered.unwrap_or_else(|_| gone()),
            sent = &mut sending => sent,
        };
        match sent {
            Ok(Ok(())) => answer.await.unwrap_or_else(|_| gone()),
            // A rejection that is a JSON-RPC error is the server's answer.
            Ok(Err(SendError::Refused { body, .. })) if error_in(&body).is_some() => Ok(body),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(Failure::unavailable("the handshake was aborted")),
        }
    }

    /// The channel of `epoch` closed by itself.
    pub(super) fn lost(&self, epoch: u64, why: &str) {
        self.died.fetch_max(epoch, Ordering::AcqRel);
        let current = self.up.load_full().filter(|up| up.epoch == epoch);
        if let Some(up) = current {
            let now = Instant::now();
            self.note_death(now - up.since, now);
            tracing::warn!(server = self.server.name(), why, "server connection lost");
        }
        self.forget(epoch);
        let failure = Failure::Lost { why: why.to_owned() };
        self.waiting.fail_epoch(epoch, &failure, &self.server);
    }
}

// === impl LiveChannel ===

impl LiveChannel {
    /// Opens the server's own stream, once. Not tracked: it ends with the channel, and nothing
    /// waits for it.
    pub(super) fn listen(&self) {
        if self.listening.swap(true, Ordering::Relaxed) {
            return;
        }
        let channel = Arc::clone(&self.channel);
        tokio::spawn(async move { channel.listen().await });
    }
}

impl Drop for LiveChannel {
    fn drop(&mut self) {
        self.gone.cancel();
        // The last call over this channel is complete.
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

/// `None` if it is not done by then.
async fn in_time<T>(deadline: Option<Instant>, work: impl Future<Output = T>) -> Option<T> {
    match deadline {
        Some(deadline) => timeout_at(deadline, work).await.ok(),
        None => Some(work.await),
    }
}

async fn send(
    channel: Arc<dyn Channel>,
    message: Outbound,
    inbound: Arc<Inbound>,
) -> Result<(), SendError> {
    channel.send(message, inbound).await
}

fn gone() -> Result<Bytes, Failure> {
    Err(Failure::unavailable("it disconnected during the handshake"))
}
