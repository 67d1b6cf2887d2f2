//! The re-check: a call that is written later than it was admitted is decided again.
//!
//! A call may wait after its admission: for a child to start, for a handshake, in a queue, for the
//! answer of its agent. Meanwhile a person may freeze it, change its policy, or remove its server or
//! its grant. The code that writes it runs a [`Recheck`] immediately before.
//!
//! Invariant: nothing is counted or recorded here, and no counter can refuse, because the call has
//! already taken its counters. Ownership is not checked again; a changed policy that requires it
//! denies.
//! Invariant: it never waits, so it may run under a lock and in a socket's writer.
//!
//! Start at [`Recheck::of`], which is created before the call is admitted, and [`Recheck::check`].

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use toolgate_audit::CallId;
use toolgate_policy::{Claim, Counted, Effect, Unavailable, Verdict};

use crate::access::{Access, Grant};
use crate::admit::Admission;
use crate::call_context::CallContext;
use crate::refused::Refused;

/// How long a decision holds if nothing has changed; rules may depend on the time.
const HOLDS: SignedDuration = SignedDuration::from_secs(1);

/// Decides an admitted call again when it is written.
pub struct Recheck {
    admission: Arc<Admission>,
    context: Arc<CallContext>,
    decided: Mutex<Decided>,
    /// Whether a person's answer or a standing exception lifted a hold of the call.
    is_lifted: bool,
}

/// The access under which a call was last decided, and when.
struct Decided {
    access: Arc<Access>,
    at: Timestamp,
}

impl Recheck {
    /// For a call that is about to be admitted.
    pub fn of(admission: &Arc<Admission>, context: &Arc<CallContext>) -> Self {
        let decided = Decided { access: admission.access(), at: admission.now() };
        Self {
            admission: Arc::clone(admission),
            context: Arc::clone(context),
            decided: Mutex::new(decided),
            is_lifted: false,
        }
    }

    /// A hold of the call was lifted; under the same policy it does not stop the call again.
    #[must_use]
    pub(crate) fn with_lifted_hold(mut self, is_lifted: bool) -> Self {
        self.is_lifted = is_lifted;
        self
    }

    /// The id of the call.
    pub fn call_id(&self) -> CallId {
        self.context.call_id
    }

    /// Whether nothing has changed since the call was decided, a moment ago. Cheap.
    pub(crate) fn holds(&self) -> bool {
        let decided = self.decided.lock();
        self.admission.is_active(&decided.access) && is_recent(decided.at, self.admission.now())
    }

    /// Decides the call again if anything may have changed. A refused call must not be written.
    pub fn check(&self) -> Result<(), Refused> {
        if self.holds() {
            return Ok(());
        }
        let (access, now) = (self.admission.access(), self.admission.now());
        let before = Arc::clone(&self.decided.lock().access);
        decide(&self.context, self.is_lifted, &before, &access, now)?;
        *self.decided.lock() = Decided { access, at: now };
        Ok(())
    }

    /// The same, after changes by other processes have become active here.
    pub async fn check_fresh(&self) -> Result<(), Refused> {
        if self.admission.is_behind() {
            let refreshed = self.admission.refresh_in_time().await;
            refreshed
                .map_err(|why| Refused::not_audited(self.context.call_id, &why.to_string()))?;
        }
        self.check()
    }
}

/// False after the clock was set back.
fn is_recent(then: Timestamp, now: Timestamp) -> bool {
    (SignedDuration::ZERO..HOLDS).contains(&now.duration_since(then))
}

fn decide(
    context: &Arc<CallContext>,
    is_lifted: bool,
    before: &Access,
    access: &Access,
    now: Timestamp,
) -> Result<(), Refused> {
    let call_id = context.call_id;
    let label = Arc::clone(&context.sender.grant.label);
    if let Some(what) = context.frozen(access) {
        return Err(Refused::frozen(call_id, &what));
    }
    let context = context.under(access);
    let grant = &context.sender.grant;
    if grant.has_expired(now) {
        let (name, _) = context.subject.name();
        return Err(Refused::by_policy(call_id, &Verdict::no_policy(name)));
    }
    if !context.is_within(grant) {
        return Err(Refused::out_of_reach(call_id));
    }
    let same = before.of_label(&label).is_some_and(|before| has_same_policy(before, grant));
    // Ownership was checked at admission, under the policy of that time.
    let owns = |_: &Claim<'_>| if same { Ok(true) } else { Err(Unavailable) };
    let usage = Counted { owns: &owns, exceptions: &[] };
    let verdict = context.decide(Some(&context.arguments), &usage, now);
    match verdict.effect {
        Effect::Allow => Ok(()),
        Effect::Hold if is_lifted && same => Ok(()),
        Effect::Hold => Err(Refused::cannot_be_held(call_id, &verdict)),
        Effect::Deny | Effect::Hide => Err(Refused::by_policy(call_id, &verdict)),
    }
}

fn has_same_policy(before: &Grant, now: &Grant) -> bool {
    match (&before.policy, &now.policy) {
        (Some(before), Some(now)) => {
            Arc::ptr_eq(before, now) || (before.hash.is_some() && before.hash == now.hash)
        }
        _ => false,
    }
}
