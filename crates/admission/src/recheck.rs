//! The re-check: a call that is written later than it was admitted is judged once more.
//!
//! A call may wait after its admission: for a child to start, for a handshake, in a queue, for the
//! answer of its agent. Meanwhile a person may freeze it, change its policy, or take its server or
//! its grant away. Whoever writes it asks a [`Recheck`] immediately before.
//!
//! Invariant: nothing is counted or recorded here, and no counter can refuse: the call has taken
//! its share. Who owns what is not asked again; a policy that has changed since and asks for it
//! denies.
//! Invariant: it never waits, so that it can be asked under a lock and from a socket's writer.
//!
//! Start at [`Recheck::of`], to be made before the call is admitted, and [`Recheck::check`].

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use tokio::time::timeout;
use toolgate_audit::CallId;
use toolgate_policy::{Claim, Counted, Effect, Unavailable, Verdict};

use crate::access::{Access, Grant};
use crate::admit::{Admission, Wanted};
use crate::refused::Refused;
use crate::store_timeout::PATIENCE;

/// For how long a judgement holds if nothing has changed: rules may depend on the time.
const HOLDS: SignedDuration = SignedDuration::from_secs(1);

/// What a call that was admitted must still be allowed to do when it is written.
pub struct Recheck {
    admission: Arc<Admission>,
    wanted: Arc<Wanted>,
    judged: Mutex<Judged>,
}

/// Under what a call was last judged, and when.
struct Judged {
    access: Arc<Access>,
    at: Timestamp,
}

impl Recheck {
    /// For a call that is about to be admitted.
    pub fn of(admission: &Arc<Admission>, wanted: &Arc<Wanted>) -> Self {
        let judged = Judged { access: admission.in_force(), at: admission.now() };
        Self {
            admission: Arc::clone(admission),
            wanted: Arc::clone(wanted),
            judged: Mutex::new(judged),
        }
    }

    /// The id of the call.
    pub fn call_id(&self) -> CallId {
        self.wanted.call_id
    }

    /// Whether nothing has changed since the call was last judged, a moment ago. Costs next to
    /// nothing.
    pub(crate) fn holds(&self) -> bool {
        let judged = self.judged.lock();
        self.admission.is_in_force(&judged.access) && is_recent(judged.at, self.admission.now())
    }

    /// Judges the call again if anything may have changed. If it is refused, it must not be
    /// written.
    pub fn check(&self) -> Result<(), Refused> {
        if self.holds() {
            return Ok(());
        }
        let (access, now) = (self.admission.in_force(), self.admission.now());
        let before = Arc::clone(&self.judged.lock().access);
        judge(&self.wanted, &before, &access, now)?;
        *self.judged.lock() = Judged { access, at: now };
        Ok(())
    }

    /// The same; before that, what another process has changed is put in force here.
    pub async fn check_fresh(&self) -> Result<(), Refused> {
        if self.admission.is_behind() {
            let refreshed = timeout(PATIENCE, self.admission.refresh()).await;
            let refreshed = refreshed.unwrap_or_else(|_| Err("it takes too long".into()));
            refreshed.map_err(|why| Refused::not_audited(self.wanted.call_id, &why))?;
        }
        self.check()
    }
}

/// A clock that was set back says nothing.
fn is_recent(then: Timestamp, now: Timestamp) -> bool {
    (SignedDuration::ZERO..HOLDS).contains(&now.duration_since(then))
}

fn judge(
    wanted: &Arc<Wanted>,
    before: &Access,
    access: &Access,
    now: Timestamp,
) -> Result<(), Refused> {
    let call_id = wanted.call_id;
    let label = Arc::clone(&wanted.sender.grant.label);
    if let Some(what) = wanted.frozen(access) {
        return Err(Refused::frozen(call_id, &what));
    }
    let wanted = wanted.under(access);
    let grant = &wanted.sender.grant;
    if grant.has_expired(now) {
        let (name, _) = wanted.what.name();
        return Err(Refused::by_policy(call_id, &Verdict::no_policy(name)));
    }
    if !wanted.is_within(grant) {
        return Err(Refused::out_of_reach(call_id));
    }
    let same = before.of_label(&label).is_some_and(|before| has_same_policy(before, grant));
    // What it names was found to be its grant's when it was admitted, under the policy of then.
    let owns = |_: &Claim<'_>| if same { Ok(true) } else { Err(Unavailable) };
    let usage = Counted { owns: &owns, exceptions: &[] };
    let verdict = wanted.decide(Some(&wanted.arguments), &usage, now);
    match verdict.effect {
        Effect::Allow => Ok(()),
        Effect::Hold => Err(Refused::held(call_id, &verdict)),
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
