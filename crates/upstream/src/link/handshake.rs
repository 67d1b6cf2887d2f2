//! Connecting a link: connect, then `initialize` (or `server/discover`, see `link/discover.rs`);
//! after a loss the same again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolgate_admission::clearance::Closed;
use toolgate_admission::list_kind::Kind;
use toolgate_mcp::{method, write};

use super::Link;
use super::on_behalf;
use crate::backoff::Backoff;
use crate::channel::Channel;
use crate::era::Era;
use crate::failure::Failure;
use crate::status::Running;

mod negotiate;

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
    /// Set after the handshake.
    running: Option<Running>,
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
        if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return Err(self.no_handshake());
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
        if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return Err(self.no_handshake());
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
            let sent = self.forward_cleared(body, Closed::INITIALIZED);
            if in_time(deadline, sent).await.is_none() {
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
                if session.admission().may_subscribe(&grant, self.server.name(), &uri) {
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
        if let Some(barred) = self.start_denied() {
            return Err(Failure::unavailable(barred.to_string()));
        }
        if let Some(wait) = self.must_wait(Instant::now()) {
            let cause = self.server.last_cause();
            let cause = cause.map(|cause| format!(" ({cause})")).unwrap_or_default();
            let why = format!(
                "it failed to start, or exited soon after{cause}; the next attempt is delayed"
            );
            return Err(Failure::Unavailable { why, retry_after: Some(wait) });
        }
        match self.start(limit).await {
            Ok((mut up, opened)) => {
                let epoch = up.epoch;
                up.running = Some(self.server.start_worked());
                if let HandshakeOutcome::Accepted(answer) = &opened {
                    *self.opened.lock() = Some(answer.clone());
                    self.up.store(Some(Arc::new(up)));
                    if self.died.load(Ordering::Acquire) >= epoch {
                        self.forget(epoch);
                    }
                }
                Ok(opened)
            }
            // The agent session ended during the start.
            Err(failure) if self.ended.load(Ordering::Acquire) => Err(failure.of_handshake()),
            Err(failure) => {
                let failure = failure.of_handshake();
                self.server.start_failed(failure.cause(), Instant::now());
                let why = failure.what(self.server.name());
                tracing::warn!(server = self.server.name(), why, "server did not start");
                *self.failure.lock() = Some(failure.clone());
                self.failures.fetch_add(1, Ordering::Release);
                Err(failure)
            }
        }
    }

    /// Starts the server. If it exits while another start runs, it is started again, alone: some
    /// servers lock a file while they start.
    async fn start(
        self: &Arc<Self>,
        limit: Duration,
    ) -> Result<(LiveChannel, HandshakeOutcome), Failure> {
        let mut starting = self.server.begin_start().await;
        let started = self.start_once(limit).await;
        let is_ended = self.ended.load(Ordering::Acquire);
        let (_, attempt) = &starting;
        let exited = matches!(started, Err(Failure::Lost { .. }));
        if !exited || is_ended || !attempt.overlaps() || !self.server.settings.backs_off {
            return started;
        }
        self.server.start_one_at_a_time();
        drop(starting);
        starting = self.server.begin_start().await;
        let started = self.start_once(limit).await;
        drop(starting);
        started
    }

    async fn start_once(
        self: &Arc<Self>,
        limit: Duration,
    ) -> Result<(LiveChannel, HandshakeOutcome), Failure> {
        let first = self.server.eras.first(self.prefers);
        let negotiated = timeout(limit, self.negotiate(first, limit)).await;
        let negotiated = negotiated.unwrap_or_else(|_| {
            Err(Failure::unavailable(format!("no handshake within {:?}", to_tenths(limit))))
        });
        if negotiated.is_err() {
            self.server.eras.forget();
        }
        negotiated
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

    /// The channel of `epoch` closed by itself.
    pub(super) fn lost(&self, epoch: u64, why: &str) {
        self.died.fetch_max(epoch, Ordering::AcqRel);
        let current = self.up.load_full().filter(|up| up.epoch == epoch);
        if let Some(up) = current {
            let now = Instant::now();
            self.note_death(now - up.since, now);
            self.server.was_lost(why, now);
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

/// A duration for people.
fn to_tenths(duration: Duration) -> Duration {
    let tenths = duration.as_millis().saturating_add(50) / 100;
    Duration::from_millis(u64::try_from(tenths * 100).unwrap_or(u64::MAX))
}

/// `None` if it is not done by then.
async fn in_time<T>(deadline: Option<Instant>, work: impl Future<Output = T>) -> Option<T> {
    match deadline {
        Some(deadline) => timeout_at(deadline, work).await.ok(),
        None => Some(work.await),
    }
}
