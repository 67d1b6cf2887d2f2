//! Surveys: asking a server, in the background, what it offers.
//!
//! A survey runs over a link when that comes up, when the server says that something changed, and
//! when what is kept has become old. One survey runs at a time, and a server that keeps it busy is
//! asked more and more seldom, so that it cannot cost more than a share of our time.
//!
//! Invariant: a survey that fails leaves what was kept.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
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
use super::waiting::Waiting;
use super::{Link, Unanswered};
use crate::channel::SendError;
use crate::failure::Failure;
use crate::list_cache::Offer;
use crate::lists::{Builder, List, without_hidden};
use crate::rewrite::error_in;

/// How long one page of a list may take.
const PAGE: Duration = Duration::from_secs(30);
/// How many pages a list may have.
const MAX_PAGES: usize = 10_000;
/// How far apart two surveys of one link are at least.
const SPACING: Duration = Duration::from_millis(500);
/// How much longer than the survey itself the pause after it is.
const REST: u32 = 9;

/// What is to be asked.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// A bit for each kind.
    due: AtomicU8,
    running: AtomicBool,
}

impl Survey {
    fn add(&self, kinds: &[Kind]) {
        let bits = kinds.iter().fold(0, |bits, kind| bits | bit(*kind));
        self.due.fetch_or(bits, Ordering::AcqRel);
    }

    /// Whether nothing is due; then somebody else may begin anew.
    fn is_done(&self) -> bool {
        if self.due.load(Ordering::Acquire) != 0 {
            return false;
        }
        self.running.store(false, Ordering::Release);
        // Something may have become due between the two lines.
        self.due.load(Ordering::Acquire) == 0 || self.running.swap(true, Ordering::AcqRel)
    }

    fn take(&self) -> Vec<Kind> {
        let due = self.due.swap(0, Ordering::AcqRel);
        Kind::ALL.into_iter().filter(|kind| due & bit(*kind) != 0).collect()
    }
}

// === impl Link ===

impl Link {
    /// Asks for these lists in the background, now or as soon as it may.
    pub fn survey(self: &Arc<Self>, kinds: &[Kind]) {
        self.survey.add(kinds);
        if self.survey.running.swap(true, Ordering::AcqRel) {
            return;
        }
        if !self.may_start_to_survey() {
            self.survey.take();
            self.survey.running.store(false, Ordering::Release);
            return;
        }
        self.server.offers.asked(Instant::now());
        // Not tracked: nobody waits for it. Between two surveys it holds nothing, so that a link
        // that nobody else holds ends, however much its server has to say.
        tokio::spawn(run_surveys(Weak::clone(&self.me)));
    }

    /// Whether the server may be asked although nobody has called it. One that is a process is
    /// started for a few agent sessions of a grant; the others are shown what those have heard.
    fn may_start_to_survey(self: &Arc<Self>) -> bool {
        if self.is_cheap() {
            return true;
        }
        let Parties::One(session) = &self.parties else { return self.barred().is_none() };
        let Some(session) = session.upgrade() else { return false };
        self.barred().is_none() && self.server.may_survey(&session.grant().label, self)
    }

    /// Whether a survey runs or is about to.
    pub(crate) fn is_surveying(&self) -> bool {
        self.survey.running.load(Ordering::Acquire)
    }

    /// Asks for what is due; how long to rest after that, or none if nothing was due.
    async fn next_survey(self: Arc<Self>) -> Option<Duration> {
        let began = Instant::now();
        if self.survey.is_done() {
            return None;
        }
        if let Err(failure) = self.survey_once().await {
            let why = failure.what(self.server.name());
            tracing::debug!(server = self.server.name(), why, "its lists could not be had");
            self.survey.take();
        }
        self.server.offers.settle();
        Some(SPACING.max(began.elapsed() * REST))
    }

    async fn survey_once(self: &Arc<Self>) -> Result<(), Failure> {
        self.come_up(Instant::now()).await?;
        // Now, because coming up makes everything due.
        let kinds = self.survey.take();
        let mut offer = self.offer();
        let before = self.server.offers.of(&self.audience);
        for kind in Kind::ALL {
            // What is not asked for now stays; what was never asked for is asked for now.
            let kept = before.as_ref().map(|before| Arc::clone(before.list(kind)));
            let list = match kept {
                Some(kept) if !kinds.contains(&kind) => kept,
                _ if offer.can(kind.capability()) => Arc::new(self.fetch(kind).await?),
                _ => Arc::default(),
            };
            self.server.heard.learn_list(kind, &list);
            offer.set_list(kind, list);
        }

        self.server.offers.put(&self.audience, offer, Instant::now());
        Ok(())
    }

    /// Asks for a list, so that its names are known; a list that cannot be had teaches nothing.
    pub(crate) async fn learn_list(self: &Arc<Self>, kind: Kind) {
        let listed = async {
            self.come_up(Instant::now()).await?;
            if self.offer().can(kind.capability()) {
                self.server.heard.learn_list(kind, &self.fetch(kind).await?);
            }
            Ok::<_, Failure>(())
        };
        if let Err(failure) = listed.await {
            let why = failure.what(self.server.name());
            tracing::debug!(server = self.server.name(), why, "its list could not be had");
        }
    }

    /// What the server said of itself in its handshake.
    pub(super) fn offer(&self) -> Offer {
        let welcome = self.opened.lock().clone().unwrap_or_default();
        match payload_of(&welcome) {
            Some(Payload::Result(welcome)) => Offer::new(welcome),
            _ => Offer::new("{}"),
        }
    }

    /// The lists that the server has, by its handshake; none if there was none yet.
    pub fn lists(&self) -> Option<Vec<Kind>> {
        self.opened.lock().as_ref()?;
        let offer = self.offer();
        Some(Kind::ALL.into_iter().filter(|kind| offer.can(kind.capability())).collect())
    }

    /// All pages of one list.
    pub(super) async fn fetch(self: &Arc<Self>, kind: Kind) -> Result<List, Failure> {
        let mut builder = Builder::new(kind, &self.server.naming);
        let mut params = None;
        for _ in 0..MAX_PAGES {
            let clearance = Clearance::Closed(Closed::list(kind));
            let asking = self.ask(kind.method(), params.as_deref(), clearance);
            let answer = timeout(PAGE, asking).await;
            let answer = answer.map_err(|_| Failure::Timeout { after: PAGE })??;
            let Some(result) = listed(&answer, kind)? else { break };
            let usable = self.without_broken(kind, result);
            let result = usable.as_deref().unwrap_or(result);
            let next = builder.add(result).map_err(|refusal| {
                Failure::unavailable(format!("its {} cannot be read: {refusal}", kind.member()))
            })?;
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
            tracing::warn!(server, what, shown, "the server has more than can be shown");
        }
        Ok(list)
    }

    /// A page without tools that nobody can call as their server wants; none if there are none.
    fn without_broken(&self, kind: Kind, result: &str) -> Option<String> {
        if kind != Kind::Tools {
            return None;
        }
        let broken = self.server.annotations.learn(result);
        if broken.is_empty() || !self.speaks_modern() {
            return None;
        }
        // What cannot be read is refused where the page is added.
        without_hidden(kind, result, |own| broken.contains(own)).ok().flatten()
    }

    /// Asks the server something of our own.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        method: &str,
        params: Option<&str>,
        clearance: Clearance,
    ) -> Result<Bytes, Failure> {
        let up = self.come_up(Instant::now()).await?;
        let number = self.waiting.number();
        let message = self.own_outbound(write::request(number, method, params), &up, clearance)?;
        let (tell, answer) = oneshot::channel();
        self.waiting.insert(number, Waiting::Own(tell, up.epoch));
        let _unanswered = Unanswered { link: Arc::clone(self), number };
        match up.channel.send(message, self.ear(up.epoch, Some(number))).await {
            Ok(()) => {}
            Err(SendError::Refused { body, .. }) if error_in(&body).is_some() => return Ok(body),
            Err(SendError::SessionLost) => {
                self.forget(up.epoch);
                return Err(SendError::SessionLost.into());
            }
            Err(error) => return Err(error.into()),
        }
        answer.await.unwrap_or_else(|_| Err(Failure::Lost { why: "it went away".to_owned() }))
    }
}

async fn run_surveys(link: Weak<Link>) {
    while let Some(link) = link.upgrade() {
        match link.next_survey().await {
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

/// A page of a list; none if the server does not know such lists.
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
        _ => Err(Failure::unavailable(format!("it does not say its {}", kind.member()))),
    }
}

fn payload_of(answer: &Bytes) -> Option<Payload<'_>> {
    match parse_server(answer, &Limits::default()) {
        Ok(Incoming::One(Message::Response(response))) => Some(response.payload),
        _ => None,
    }
}
