//! Holds: calls that wait for a person.
//!
//! A held call waits for a change of its approval, its time, its agent, or the stop of toolgate.
//! Waiting sends nothing: after a change the call is admitted anew, and the store decides.
//!
//! Invariant: a held call costs no thread, and the store is not asked while nothing changes.
//! Start at [`Holds::wait`].

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use toolgate_policy::ApprovalState;
use toolgate_store::{Store, StoredApproval};

use crate::hold_room::{HoldRoom, Place};
use crate::multi_round::{self, Rounds, Step};
use crate::user_question::{UserAnswer, UserQuestion};

/// How often a waiting agent receives progress.
const PROGRESS: Duration = Duration::from_secs(10);

/// The agent's side of a call that may wait for a person.
pub trait HeldCaller: Send {
    /// Tells the agent that its call waits, and for how long of the time it may wait.
    fn hold_progress(&self, waited: Duration, total: Duration, approval: &str);

    /// Waits until the agent hangs up or cancels the call, before it is sent.
    fn agent_gone(&mut self) -> impl Future<Output = ()> + Send;

    /// Asks the user of the agent's own client, with these `params` of `elicitation/create`. `None`
    /// if the client cannot be asked.
    fn ask_user(&self, params: &str) -> Option<UserQuestion>;
}

/// By approval: who is notified of a change, and how many calls wait.
type WaitingCalls = HashMap<Arc<str>, (Arc<Notify>, usize)>;

/// The calls that wait for people.
#[derive(Debug, Default)]
pub struct Holds {
    waiting: Mutex<WaitingCalls>,
    room: HoldRoom,
    /// The version of the approvals that was last seen.
    version: AtomicU64,
    stop: CancellationToken,
    /// How long people take to answer.
    answers: AnswerTimes,
    /// The address of the admin listener.
    own_url: OnceLock<String>,
    /// The address in links, if the operator sets one.
    public_url: ArcSwapOption<String>,
}

/// How long people take to answer, in seconds.
#[derive(Debug)]
struct AnswerTimes(Histogram);

impl Default for AnswerTimes {
    fn default() -> Self {
        Self(Histogram::new([
            1.0, 5.0, 15.0, 45.0, 120.0, 300.0, 900.0, 1_800.0, 7_200.0, 86_400.0,
        ]))
    }
}

/// Why a held call no longer waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waited {
    /// Its approval has changed: the call is decided again.
    Changed,
    /// The user of its agent answered in the agent's client.
    Answered(UserAnswer),
    /// Its approval has expired.
    Expired,
    /// Its time is up.
    TimedOut,
    /// Its agent hung up or cancelled it.
    Gone,
    /// toolgate stops.
    Stopping,
}

/// How long a held call waits, and for what besides a change.
pub(crate) struct HeldWait<'w> {
    /// When the request began to wait.
    pub(crate) began: Instant,
    /// How long a request waits.
    pub(crate) wait: Duration,
    /// A question to the user of the agent.
    pub(crate) question: Option<UserQuestion>,
    /// The rounds of a call of a sessionless client.
    pub(crate) rounds: &'w mut Option<Rounds>,
}

/// One waiting call.
struct Waiting<'h> {
    holds: &'h Holds,
    id: Arc<str>,
    changed: Arc<Notify>,
}

impl Holds {
    /// An approval has changed: calls that wait for it are decided again.
    pub fn changed(&self, id: &str) {
        if let Some((changed, _)) = self.waiting.lock().get(id) {
            changed.notify_waiters();
        }
    }

    /// Approvals may have changed, perhaps by another process. Call it with every tick.
    pub fn sync(&self, version: u64) {
        if self.version.swap(version, Ordering::Relaxed) == version {
            return;
        }
        for (changed, _) in self.waiting.lock().values() {
            changed.notify_waiters();
        }
    }

    /// Every waiting call is answered at once; their approvals stay pending.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// A place for the call of this approval to wait; `None` if too many calls of its grant wait.
    pub(crate) fn place(&self, approval: &StoredApproval) -> Option<Place<'_>> {
        self.room.take(&approval.call.grant, approval.argument_bytes())
    }

    /// How many calls wait.
    pub fn len(&self) -> usize {
        self.waiting.lock().values().map(|(_, count)| count).sum()
    }

    /// Whether no call waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.lock().is_empty()
    }

    /// A person has answered an approval of this age.
    pub fn answered(&self, age: Duration) {
        self.answers.0.observe(age.as_secs_f64());
    }

    /// Registers its metrics.
    pub fn register(&self, registry: &mut Registry) {
        let help = "Time from the hold of a call to a person's answer";
        registry.register_with_unit("approval_answer", help, Unit::Seconds, self.answers.0.clone());
    }

    /// Sets the address of the admin listener; once.
    pub fn set_own_url(&self, url: String) {
        if self.own_url.set(url).is_err() {
            tracing::error!("`set_own_url` called twice; keeping the first");
        }
    }

    /// Sets the address in links, without a slash at its end; `None` means the admin listener.
    pub fn set_public_url(&self, url: Option<String>) {
        self.public_url.store(url.map(Arc::new));
    }

    /// The page of an approval.
    pub fn page(&self, id: &str) -> String {
        let public = self.public_url.load();
        let base = public.as_ref().map(|url| url.as_str());
        let base = base.or_else(|| self.own_url.get().map(String::as_str)).unwrap_or_default();
        format!("{base}/approvals/{id}")
    }

    /// Waits until the approval changes, but no longer than its time, the agent or toolgate.
    ///
    /// A sessionless client is asked with the answer to its request. Until it sends the next one, no
    /// request waits, and the call does not continue.
    pub(crate) async fn wait<C: HeldCaller>(
        &self,
        store: &Arc<dyn Store>,
        approval: &StoredApproval,
        held: &mut HeldWait<'_>,
        caller: &mut C,
    ) -> Waited {
        let waiting = self.enter(&approval.id);
        let (mut told, mut is_parked) = (None, false);
        loop {
            let changed = waiting.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if !is_parked {
                match state(store, approval).await {
                    ApprovalState::Pending => {}
                    ApprovalState::Expired => return Waited::Expired,
                    _ => return Waited::Changed,
                }
                let waited = held.began.elapsed().min(held.wait);
                // Progress must grow with each notification.
                if told.is_none_or(|told| waited.as_secs() > told) {
                    told = Some(waited.as_secs());
                    caller.hold_progress(waited, held.wait, &approval.id);
                }
            }
            tokio::select! {
                biased;
                () = caller.agent_gone() => return Waited::Gone,
                () = self.stop.cancelled() => return Waited::Stopping,
                step = multi_round::next(held.rounds) => match step {
                    Step::InputRequired(ended) => {
                        is_parked = ended.send(()).is_ok();
                    }
                    Step::Continue(_, decided) => {
                        // Nothing is sent to a server: the answer is for toolgate.
                        drop(decided.send(Ok(None)));
                        held.began = Instant::now();
                        return Waited::Answered(match held.question.take() {
                            Some(mut question) => question.answer().await,
                            None => UserAnswer::Nothing,
                        });
                    }
                },
                answer = answer(&mut held.question), if !is_parked => return Waited::Answered(answer),
                () = changed, if !is_parked => {}
                () = sleep_until(held.began + held.wait), if !is_parked => return Waited::TimedOut,
                () = sleep(PROGRESS), if !is_parked => {}
            }
        }
    }

    fn enter(&self, id: &Arc<str>) -> Waiting<'_> {
        let mut waiting = self.waiting.lock();
        let (changed, count) = waiting.entry(Arc::clone(id)).or_default();
        *count += 1;
        Waiting { holds: self, id: Arc::clone(id), changed: Arc::clone(changed) }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut waiting = self.holds.waiting.lock();
        if let Some((_, count)) = waiting.get_mut(&self.id) {
            *count -= 1;
            if *count == 0 {
                waiting.remove(&self.id);
            }
        }
    }
}

/// Waits for the answer and closes the question; without a question it never returns.
async fn answer(question: &mut Option<UserQuestion>) -> UserAnswer {
    let Some(open) = question else { return std::future::pending().await };
    let answer = open.answer().await;
    *question = None;
    answer
}

/// The state of an approval now. If it cannot be read, it is still pending: nothing is sent.
async fn state(store: &Arc<dyn Store>, approval: &StoredApproval) -> ApprovalState {
    match store.approval(&approval.id).await {
        Ok(Some(now)) => now.state,
        Ok(None) => ApprovalState::Expired,
        Err(error) => {
            tracing::warn!(%error, "an approval cannot be read; its call waits on");
            ApprovalState::Pending
        }
    }
}
