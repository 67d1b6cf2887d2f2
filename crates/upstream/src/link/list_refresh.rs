//! List refresh: fetching a server's lists in the background.
//!
//! A refresh runs when a link connects, when the server reports a change, and when the cached lists
//! are old. One refresh of a link runs at a time, and the pause after it grows with its duration,
//! so that a slow server takes a bounded share of time.
//!
//! Invariant: a failed refresh keeps the cached lists.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};
use toolgate_admission::clearance::{Clearance, Closed};
use toolgate_admission::list_kind::Kind;
use toolgate_json::peek;
use toolgate_mcp::{Incoming, Limits, Message, Payload, code, parse_server, write};

use super::Parties;
use super::waiting::Waiter;
use super::{FailOnDrop, Link};
use crate::channel::SendError;
use crate::failure::Failure;
use crate::list_cache::Advertised;
use crate::lists::{Builder, List, without_hidden};
use crate::pins::Met;
use crate::rewrite::error_in;

/// How long one page of a list may take.
const PAGE: Duration = Duration::from_secs(30);
/// How many pages a list may have.
const MAX_PAGES: usize = 10_000;
/// The least time between two refreshes of one link.
const SPACING: Duration = Duration::from_millis(500);
/// The pause after a refresh, as a multiple of its duration.
const REST: u32 = 9;
/// How many times in a row a failed refresh is repeated.
const MAX_RETRIES: u32 = 6;

/// Which lists are due.
#[derive(Debug, Default)]
pub(super) struct ListRefresh {
    /// A bit for each kind.
    due: AtomicU8,
    running: AtomicBool,
    /// How many times in a row it has failed.
    failures: AtomicU32,
}

impl ListRefresh {
    fn add(&self, kinds: &[Kind]) {
        let bits = kinds.iter().fold(0, |bits, kind| bits | bit(*kind));
        self.due.fetch_or(bits, Ordering::AcqRel);
    }

    /// Whether nothing is due; then another caller may start a refresh.
    fn is_done(&self) -> bool {
        if self.due.load(Ordering::Acquire) != 0 {
            return false;
        }
        self.running.store(false, Ordering::Release);
        // A list may have become due between the two operations.
        self.due.load(Ordering::Acquire) == 0 || self.running.swap(true, Ordering::AcqRel)
    }

    fn take(&self) -> Vec<Kind> {
        let due = self.due.swap(0, Ordering::AcqRel);
        Kind::ALL.into_iter().filter(|kind| due & bit(*kind) != 0).collect()
    }
}

// === impl Link ===

impl Link {
    /// Fetches these lists in the background, as soon as allowed.
    pub fn refresh_lists(self: &Arc<Self>, kinds: &[Kind]) {
        self.list_refresh.add(kinds);
        if self.list_refresh.running.swap(true, Ordering::AcqRel) {
            return;
        }
        if !self.may_start_refresh() {
            self.list_refresh.take();
            self.list_refresh.running.store(false, Ordering::Release);
            return;
        }
        self.server.list_cache.note_request();
        // Not tracked: nothing waits for it. Between two refreshes it holds no link, so that an
        // unused link can end.
        tokio::spawn(run_refreshes(Weak::clone(&self.me)));
    }

    /// Has the tools listed over a process of toolgate's own, because an agent lists them while its own
    /// process does not run. A server without a process reports no changes.
    pub fn want_listing(&self) {
        if !self.is_up() && self.start_denied().is_none() {
            self.server.want_listing(&self.opening, self.prefers);
        }
    }

    /// Whether the server may be contacted without a call. A process is started for a few agent
    /// sessions of a grant; the others see the lists of those.
    fn may_start_refresh(self: &Arc<Self>) -> bool {
        if self.is_cheap() {
            return true;
        }
        let session = match &self.parties {
            Parties::One(session) => session.upgrade(),
            Parties::Many(_) => return self.start_denied().is_none(),
            Parties::Toolgate => return true,
        };
        let Some(session) = session else { return false };
        self.start_denied().is_none()
            && self.server.may_start_for_lists(&session.grant().label, self)
    }

    /// Whether a refresh is running or about to.
    pub(crate) fn is_refreshing(&self) -> bool {
        self.list_refresh.running.load(Ordering::Acquire)
    }

    /// Fetches what is due; returns the pause after it, or `None` if nothing was due.
    async fn next_refresh(self: Arc<Self>) -> Option<Duration> {
        let began = Instant::now();
        if self.list_refresh.is_done() {
            return None;
        }
        let pause = match self.list_now_due().await {
            Ok(()) => began.elapsed() * REST,
            Err(failure) => {
                let why = failure.what(self.server.name());
                tracing::debug!(server = self.server.name(), why, "list refresh failed");
                self.pause_after_failure(&failure)
            }
        };
        Some(SPACING.max(pause))
    }

    /// The pause after a failed refresh. While there are no lists for this client profile, the
    /// refresh is repeated a few times; otherwise the next list request starts one.
    fn pause_after_failure(&self, failure: &Failure) -> Duration {
        self.list_refresh.take();
        let failures = self.list_refresh.failures.fetch_add(1, Ordering::Relaxed);
        let ended = self.ended.load(Ordering::Acquire);
        if ended || failures >= MAX_RETRIES || self.server.list_cache.has_own(&self.client_profile)
        {
            return Duration::ZERO;
        }
        self.list_refresh.add(&Kind::ALL);
        failure.retry_after().unwrap_or_default().max(Duration::from_secs(1 << failures.min(6)))
    }

    /// Fetches all lists now and caches them.
    pub async fn list_now(self: &Arc<Self>) -> Result<(), Failure> {
        self.list_refresh.add(&Kind::ALL);
        self.server.list_cache.note_request();
        self.list_now_due().await
    }

    async fn list_now_due(self: &Arc<Self>) -> Result<(), Failure> {
        let listed = self.refresh_once().await;
        if listed.is_ok() {
            self.list_refresh.failures.store(0, Ordering::Relaxed);
        }
        // An attempt that ended with its agent session shows nothing about the server.
        if listed.is_ok() || !self.ended.load(Ordering::Acquire) {
            self.server.list_cache.settle();
        }
        listed
    }

    async fn refresh_once(self: &Arc<Self>) -> Result<(), Failure> {
        self.ensure_up(Instant::now()).await?;
        // After connecting, because connecting makes all lists due.
        let kinds = self.list_refresh.take();
        let mut advertised = self.advertised();
        let before = self.server.list_cache.of(&self.client_profile);
        for kind in Kind::ALL {
            // Lists that are not due are kept; lists that were never fetched are fetched.
            let kept = before.as_ref().map(|before| Arc::clone(before.list(kind)));
            let list = match kept {
                Some(kept) if !kinds.contains(&kind) => kept,
                _ if advertised.can(kind.capability()) => Arc::new(self.fetch(kind).await?),
                _ => Arc::default(),
            };
            self.server.listed_names.learn_list(kind, &list);
            advertised.set_list(kind, list);
        }

        self.server.list_cache.put(&self.client_profile, advertised, Instant::now());
        Ok(())
    }

    /// Fetches the tools alone. A server whose other lists fail has tools all the same.
    pub async fn fetch_tools(self: &Arc<Self>) -> Result<List, Failure> {
        self.ensure_up(Instant::now()).await?;
        if self.advertised().can(Kind::Tools.capability()) {
            return self.fetch(Kind::Tools).await;
        }
        Ok(List::default())
    }

    /// Fetches a list to learn its names; a failure is only logged.
    pub(crate) async fn learn_list(self: &Arc<Self>, kind: Kind) {
        let listed = async {
            self.ensure_up(Instant::now()).await?;
            if self.advertised().can(kind.capability()) {
                self.server.listed_names.learn_list(kind, &self.fetch(kind).await?);
            }
            Ok::<_, Failure>(())
        };
        if let Err(failure) = listed.await {
            let why = failure.what(self.server.name());
            tracing::debug!(server = self.server.name(), why, "list not fetched");
        }
    }

    /// What the server advertised in its handshake.
    pub(super) fn advertised(&self) -> Advertised {
        let welcome = self.opened.lock().clone().unwrap_or_default();
        match payload_of(&welcome) {
            Some(Payload::Result(welcome)) => Advertised::new(welcome),
            _ => Advertised::new("{}"),
        }
    }

    /// The lists that the server declares in its handshake; `None` before the handshake.
    pub fn lists(&self) -> Option<Vec<Kind>> {
        self.opened.lock().as_ref()?;
        let advertised = self.advertised();
        Some(Kind::ALL.into_iter().filter(|kind| advertised.can(kind.capability())).collect())
    }

    /// One list. A list of tools is judged.
    pub(super) async fn fetch(self: &Arc<Self>, kind: Kind) -> Result<List, Failure> {
        match kind {
            Kind::Tools => self.fetch_judged_tools().await,
            _ => self.fetch_pages(kind).await.map(|(list, _)| list),
        }
    }

    /// All pages of one list, and the facts of its tools.
    pub(super) async fn fetch_pages(
        self: &Arc<Self>,
        kind: Kind,
    ) -> Result<(List, Vec<Met>), Failure> {
        let mut met = Vec::new();
        let mut builder = Builder::new(kind, &self.server.naming);
        let mut params = None;
        for _ in 0..MAX_PAGES {
            let clearance = Clearance::Closed(Closed::list(kind));
            let asking = self.ask(kind.method(), params.as_deref(), clearance);
            let answer = timeout(PAGE, asking).await;
            let answer = answer.map_err(|_| Failure::Timeout { after: PAGE })??;
            let Some(result) = listed(&answer, kind)? else { break };
            if kind == Kind::Tools {
                let tools = self.tools_of(result).map_err(|_| {
                    Failure::unavailable("its tools can be read in several ways".to_owned())
                })?;
                met.extend(tools);
            }
            let usable = self.without_broken(kind, result);
            let result = usable.as_deref().unwrap_or(result);
            let next = builder.add(result).map_err(|refusal| {
                Failure::unavailable(format!("its {} cannot be parsed: {refusal}", kind.member()))
            })?;
            if next.is_some() {
                self.server.note_pages();
            }
            let next = next.map(|cursor| format!(r#"{{"cursor":{cursor}}}"#));
            if next.is_none() || next == params {
                break;
            }
            params = next;
        }
        if kind == Kind::Tools {
            self.server.annotations.set_whole();
        }
        let list = builder.finish();
        if list.is_cut() {
            let shown = list.len();
            let (server, what) = (self.server.name(), kind.member());
            tracing::warn!(server, what, shown, "list truncated: too many entries or bytes");
        }
        Ok((list, met))
    }

    /// A page without tools whose annotations are invalid; `None` if there are none.
    fn without_broken(&self, kind: Kind, result: &str) -> Option<String> {
        if kind != Kind::Tools {
            return None;
        }
        let broken = self.server.learn_annotations(result);
        if broken.is_empty() || !self.is_sessionless() {
            return None;
        }
        // A page that cannot be parsed is rejected when it is added.
        without_hidden(kind, result, |own| broken.contains(own)).ok().flatten()
    }

    /// Sends a request of toolgate's own.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        method: &str,
        params: Option<&str>,
        clearance: Clearance,
    ) -> Result<Bytes, Failure> {
        let up = self.ensure_up(Instant::now()).await?;
        let number = self.waiting.number();
        let message = self.own_outbound(write::request(number, method, params), &up, clearance)?;
        let (tell, answer) = oneshot::channel();
        self.waiting.insert(number, Waiter::Own(tell, up.epoch));
        let _unanswered = FailOnDrop { link: Arc::clone(self), number };
        match up.channel.send(message, self.inbound(up.epoch, Some(number))).await {
            Ok(()) => {}
            Err(SendError::Refused { body, .. }) if error_in(&body).is_some() => return Ok(body),
            Err(SendError::SessionLost) => {
                self.forget(up.epoch);
                return Err(SendError::SessionLost.into());
            }
            Err(error) => return Err(error.into()),
        }
        answer.await.unwrap_or_else(|_| Err(Failure::Lost { why: "it disconnected".to_owned() }))
    }
}

async fn run_refreshes(link: Weak<Link>) {
    while let Some(link) = link.upgrade() {
        match link.next_refresh().await {
            Some(rest) => sleep(rest).await,
            None => return,
        }
    }
}

fn bit(kind: Kind) -> u8 {
    match kind {
        Kind::Tools => 1,
        Kind::Prompts => 2,
        Kind::Resources => 4,
        Kind::Templates => 8,
    }
}

/// A page of a list; `None` if the server does not support such lists.
fn listed(answer: &Bytes, kind: Kind) -> Result<Option<&str>, Failure> {
    let payload = payload_of(answer);
    if let Some(Payload::Result(result)) = payload {
        return Ok(Some(result));
    }
    let unknown = code::METHOD_NOT_FOUND.to_string();
    match payload {
        Some(Payload::Error(error)) if matches!(peek(error, &["code"]), Ok(Some(code)) if code == unknown) => {
            Ok(None)
        }
        _ => Err(Failure::unavailable(format!("it does not list its {}", kind.member()))),
    }
}

fn payload_of(answer: &Bytes) -> Option<Payload<'_>> {
    match parse_server(answer, &Limits::default()) {
        Ok(Incoming::One(Message::Response(response))) => Some(response.payload),
        _ => None,
    }
}
