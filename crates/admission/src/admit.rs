//! Admission: every request that needs a permit is decided, counted and recorded before it is sent.
//!
//! [`Admission::admit`] asks the store, which decides the call inside the transaction that takes its
//! counters and writes its intent. Only the result of that can be sent
//! ([`crate::clearance::Clearance`]).
//!
//! Invariant: fail closed. Without a policy, without a recorded intent, or after any error nothing
//! is sent, and the agent receives the reason (`refused.rs`).
//! Invariant: argument values reach the audit only as its mode allows, and never a log.
//!
//! Start at [`Admission::admit`].

mod checks;
mod denials;
mod examine;
mod refresh;

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use data_encoding::HEXLOWER;
use jiff::Timestamp;
use toolgate_audit::{ArgumentHashKey, ArgumentMode, CallId};
use toolgate_policy::{Excepting, Verdict};
use toolgate_store::{
    AdmitOutcome, AdmitRequest, Admitted, HoldRequest, RoundKind, Store, StoredApproval,
};

use crate::access::{Access, Approvers};
use crate::auth_failures::AuthFailures;
use crate::call_context::CallContext;
use crate::delegation::Delegations;
use crate::environment::{Clock, Ids};
use crate::fair_queue::FairQueue;
use crate::holds::Holds;
use crate::metrics::CallMetrics;
use crate::refused::Refused;
use crate::store_timeout::admit_in_time;
use crate::task_book::TaskBook;

use examine::{HoldParts, Prepared};
pub use refresh::{Refresh, RefreshError, UsageError};

/// Admits calls.
pub struct Admission {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    access: ArcSwap<Access>,
    recording: ArcSwap<ArgumentRecording>,
    refresh: OnceLock<Box<Refresh>>,
    /// The tasks that admitted calls have created.
    pub tasks: TaskBook,
    auth_failures: AuthFailures,
    metrics: CallMetrics,
    delegations: Delegations,
    holds: Holds,
    /// For calls with large arguments.
    large_calls: FairQueue,
    /// For reads of the counters.
    usage_reads: FairQueue,
}

/// How often a call is decided again because grants, policies or freezes keep changing.
const MAX_ATTEMPTS: usize = 8;

/// A call that waits for a person.
#[derive(Debug)]
pub struct Held {
    /// The verdict that holds it.
    pub verdict: Box<Verdict>,
    /// Its approval.
    pub approval: Box<StoredApproval>,
}

impl Held {
    /// Whether no person can answer outside of the agent's client: only the requester may, and the
    /// grant has no identity.
    pub(crate) fn has_no_answerer(&self) -> bool {
        let Self { approval, .. } = self;
        approval.question.asks_only_requester() && approval.call.identity.is_none()
    }
}

/// Why a call may not be sent now.
#[derive(Debug)]
pub(crate) enum NotAdmitted {
    /// It is refused.
    Refused(Box<Refused>),
    /// It waits for a person.
    Held(Box<Held>),
}

impl From<Refused> for NotAdmitted {
    fn from(refused: Refused) -> Self {
        Self::Refused(Box::new(refused))
    }
}

/// How the audit records arguments.
#[derive(Debug)]
pub struct ArgumentRecording {
    /// How much of them.
    pub mode: ArgumentMode,
    /// The key of the `hashed` mode.
    pub secret: ArgumentHashKey,
}

impl Admission {
    /// Admission through `store`. Every call is denied before [`Admission::set_access`].
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
        recording: ArgumentRecording,
    ) -> Self {
        Self {
            auth_failures: AuthFailures::new(Arc::clone(&store), Arc::clone(&clock)),
            delegations: Delegations::default(),
            store,
            clock,
            ids,
            access: ArcSwap::default(),
            recording: ArcSwap::from_pointee(recording),
            refresh: OnceLock::new(),
            tasks: TaskBook::default(),
            metrics: CallMetrics::new(),
            holds: Holds::default(),
            large_calls: FairQueue::default(),
            usage_reads: FairQueue::default(),
        }
    }

    /// Counts, logs and records failed authentication.
    pub fn auth_failures(&self) -> &AuthFailures {
        &self.auth_failures
    }

    /// The calls that wait for people.
    pub fn holds(&self) -> &Holds {
        &self.holds
    }

    /// Metrics of calls.
    pub fn metrics(&self) -> &CallMetrics {
        &self.metrics
    }

    /// The active access.
    pub(crate) fn access(&self) -> Arc<Access> {
        self.access.load_full()
    }

    /// Who may answer approvals now.
    pub fn approvers(&self) -> Approvers {
        self.access.load().approvers.clone()
    }

    /// Whether this access is still the active one.
    pub(crate) fn is_active(&self, access: &Arc<Access>) -> bool {
        Arc::ptr_eq(&self.access.load(), access)
    }

    /// Whether the store has changed, perhaps by another process, and the change is not active here
    /// yet.
    pub(crate) fn is_behind(&self) -> bool {
        self.generation().is_some_and(|known| known != self.store.generation())
    }

    /// The generation of the store that is active.
    pub fn generation(&self) -> Option<u64> {
        self.access.load().generation
    }

    /// Makes another access active, from the next request on.
    pub fn set_access(&self, access: Access) {
        self.access.store(Arc::new(access));
    }

    /// Records arguments in another way, from the next request on.
    pub fn set_recording(&self, recording: ArgumentRecording) {
        self.recording.store(Arc::new(recording));
    }

    /// The store that decides, counts and records calls.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The time by the wall clock.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The id of a call that begins now; `None` without randomness.
    pub(crate) fn call_id(&self, now: Timestamp) -> Option<CallId> {
        let millisecond = u64::try_from(now.as_millisecond()).unwrap_or_default();
        Some(CallId::new(millisecond, self.ids.call()?))
    }

    /// Random bytes, to be used once; `None` without randomness.
    pub fn random(&self) -> Option<[u8; 10]> {
        self.ids.call()
    }

    /// The secret of the data folder.
    pub fn secret(&self) -> ArgumentHashKey {
        self.recording.load().secret.clone()
    }

    /// Decides, counts and records a call. A call that is not admitted must not be sent.
    ///
    /// The store admits only under the generation that is active here: a revocation, policy change
    /// or freeze of any process is looked up before the call is decided.
    ///
    /// A call that must wait for a person is refused; [`Admission::admit_or_hold`] is for those that
    /// can wait.
    pub async fn admit(&self, context: &Arc<CallContext>) -> Result<Admitted, Refused> {
        self.or_refuse(context, self.admit_or_hold(context).await).await
    }

    /// Decides the next round of a call that was counted before.
    pub(crate) async fn admit_next(&self, context: &Arc<CallContext>) -> Result<Admitted, Refused> {
        self.or_refuse(context, self.admit_round(context, RoundKind::Next).await).await
    }

    /// The same as [`Admission::admit`], for a call that can wait for a person.
    pub(crate) async fn admit_or_hold(
        &self,
        context: &Arc<CallContext>,
    ) -> Result<Admitted, NotAdmitted> {
        self.admit_round(context, RoundKind::First).await
    }

    async fn or_refuse(
        &self,
        context: &Arc<CallContext>,
        admitted: Result<Admitted, NotAdmitted>,
    ) -> Result<Admitted, Refused> {
        match admitted {
            Ok(admitted) => Ok(admitted),
            Err(NotAdmitted::Refused(refused)) => Err(*refused),
            Err(NotAdmitted::Held(held)) => Err(self.unanswered(context, &held).await),
        }
    }

    /// Refuses and records a held call that no person has answered in time.
    pub(crate) async fn unanswered(&self, context: &Arc<CallContext>, held: &Held) -> Refused {
        let page = self.holds.page(&held.approval.id);
        let refused =
            Refused::approval_required(context.call_id, &held.verdict, &held.approval, page);
        self.recorded(context, refused).await
    }

    /// Refuses and records a held call that no person can answer.
    pub(crate) async fn unanswerable(&self, context: &Arc<CallContext>, held: &Held) -> Refused {
        let refused = Refused::unanswerable(context.call_id, &held.verdict, &held.approval);
        self.recorded(context, refused).await
    }

    /// Refuses and records a held call whose approval has expired.
    pub(crate) async fn expired(&self, context: &Arc<CallContext>, held: &Held) -> Refused {
        self.recorded(context, Refused::approval_expired(context.call_id, &held.approval)).await
    }

    async fn recorded(&self, context: &Arc<CallContext>, refused: Refused) -> Refused {
        match self.record_denial(context, &refused).await {
            Ok(()) => refused,
            Err(not_recorded) => not_recorded,
        }
    }

    fn hold_request(&self, parts: HoldParts, access: &Arc<Access>) -> Option<Box<HoldRequest>> {
        let random = HEXLOWER.encode(&self.ids.call()?);
        let (access, now) = (Arc::clone(access), self.now());
        Some(Box::new(HoldRequest {
            id: format!("apr_{random}").into(),
            binding: parts.binding,
            digest: parts.digest,
            members: parts.members,
            arguments: parts.arguments,
            is_valid: Box::new(move |approval, answer| {
                access.approvers.accepts(approval, answer, now)
            }),
        }))
    }

    async fn admit_round(
        &self,
        context: &Arc<CallContext>,
        round: RoundKind,
    ) -> Result<Admitted, NotAdmitted> {
        let call_id = context.call_id;
        for _ in 0..MAX_ATTEMPTS {
            let access = self.access.load_full();
            let token = context.sender.grant.token;
            let context = context.under(&access);
            // A held call is decided long after its token was checked.
            let grant = &context.sender.grant;
            let is_replaced = grant.policy.is_some() && grant.token != token;
            if round == RoundKind::First && (is_replaced || grant.has_expired(self.now())) {
                let refused = Refused::token_not_valid(call_id);
                self.record_denial(&context, &refused).await?;
                return Err(refused.into());
            }
            if let Some(what) = context.frozen(&access) {
                let refused = Refused::frozen(call_id, &what);
                self.record_denial(&context, &refused).await?;
                return Err(refused.into());
            }
            if !context.is_within(&context.sender.grant) {
                let refused = Refused::out_of_reach(call_id);
                self.record_denial(&context, &refused).await?;
                return Err(refused.into());
            }
            let Prepared { draft, examined, hold, exceptions } =
                self.prepare(&context, &access).await?;
            let request = AdmitRequest {
                draft,
                round,
                generation: access.generation,
                decide: Box::new({
                    let context = Arc::clone(&context);
                    move |usage, approval, now| {
                        let usage = Excepting { usage, exceptions: &exceptions };
                        context.conclude(&examined, approval, &usage, now)
                    }
                }),
                hold: hold.and_then(|parts| self.hold_request(parts, &access)),
            };
            let slot = context.sender.grant.slots.take().await;
            let outcome = admit_in_time(|| self.store.admit(request), &self.clock).await;
            drop(slot);
            match outcome {
                Ok(AdmitOutcome::Admitted(admitted)) => return Ok(admitted),
                Ok(AdmitOutcome::Refused(verdict)) => {
                    return Err(Refused::by_policy(call_id, &verdict).into());
                }
                Ok(AdmitOutcome::Held(verdict, Some(approval))) => {
                    return Err(NotAdmitted::Held(Box::new(Held { verdict, approval })));
                }
                Ok(AdmitOutcome::Held(verdict, None)) => {
                    let refused = Refused::cannot_be_held(call_id, &verdict);
                    self.record_denial(&context, &refused).await?;
                    return Err(refused.into());
                }
                Ok(AdmitOutcome::AnsweredNo(approval)) => {
                    return Err(Refused::approval_denied(call_id, &approval).into());
                }
                Ok(AdmitOutcome::Stale) => {
                    let refreshed = self.refresh_in_time().await;
                    refreshed.map_err(|why| Refused::not_audited(call_id, &why.to_string()))?;
                }
                // Only a further round waits, and it may be too late.
                Ok(AdmitOutcome::NotWaiting) => break,
                Err(error) => return Err(Refused::not_audited(call_id, &error.to_string()).into()),
            }
        }
        Err(Refused::not_audited(call_id, "grants and policies change too often").into())
    }
}
