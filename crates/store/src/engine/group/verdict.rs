//! What a verdict means for counters and rows.

use std::sync::Arc;

use jiff::Timestamp;
use toolgate_audit::{CounterChange, Decision, Draft, RowKind, truncate};
use toolgate_policy::{self as policy, Amount, Reservation, Take, Unavailable, Usage, Verdict};

/// The limit is reached, or the counter is unavailable.
pub(super) struct LimitReached;

impl From<Unavailable> for LimitReached {
    fn from(_: Unavailable) -> Self {
        LimitReached
    }
}

/// The counter change that the reservation makes, if it fits.
pub(super) fn fits(
    usage: &(impl Usage + ?Sized),
    reservation: &Reservation,
    now: Timestamp,
) -> Result<Option<CounterChange>, LimitReached> {
    let key = &reservation.key;
    let (before, amount, max) = match reservation.take {
        Take::Calendar { period, amount, max } => (usage.used(key, period)?, amount, max),
        Take::Sliding { window, amount, max } => {
            let taken = usage.taken(key, window.before(now))?;
            let sum = taken.iter().try_fold(Amount::ZERO, |sum, taken| sum.plus(taken.amount));
            (sum.ok_or(LimitReached)?, amount, max)
        }
        Take::InFlight { max } => {
            (Amount::whole(usage.in_flight(key)?), Amount::ONE, Amount::whole(max))
        }
        Take::Seen { .. } => return Ok(None),
    };
    let after = before.plus(amount).filter(|after| *after <= max).ok_or(LimitReached)?;
    Ok(Some(CounterChange { counter: reservation.counter.as_str().into(), before, after }))
}

/// The row of a call that the policy refused.
pub(super) fn refusal(asked: &Draft, verdict: &Verdict) -> Draft {
    let hide = verdict.effect == policy::Effect::Hide;
    let mut draft = Draft { kind: RowKind::Denied, ..asked.clone() };
    draft.decision = Some(if hide { Decision::Hide } else { Decision::Deny });
    draft.error_code = verdict.refusal.map(|refusal| refusal.as_str().into());
    draft.rule =
        verdict.rule.as_ref().map(|rule| truncate(rule).unwrap_or_else(|| Arc::clone(rule)));
    draft.message =
        Some(truncate(&verdict.message).unwrap_or_else(|| verdict.message.as_str().into()));
    draft.truncate_arguments()
}

pub(super) fn shadow(effect: policy::Effect) -> Decision {
    match effect {
        policy::Effect::Allow => Decision::Allow,
        policy::Effect::Hold => Decision::ShadowHold,
        policy::Effect::Deny | policy::Effect::Hide => Decision::ShadowDeny,
    }
}
