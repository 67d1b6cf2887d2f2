//! The decision: pure and deterministic; the strictest effect wins.
//!
//! The steps are in the order in which a reason is named: hidden, default deny, `action: deny`,
//! `require`, `deny_if`, `rules`, repeats, `loop`, errors of `approve_if`, invalid amounts, spent
//! limits, holds, allow. The first effect of an enforced rule is the verdict; all effects are
//! reported.
//!
//! It has two halves. [`examine`] evaluates the arguments and needs neither usage nor time;
//! [`conclude`] computes the verdict, and is all that runs inside the admitting transaction.
//!
//! Invariant: same document, call, usage and time give the same verdict, byte for byte.
//! Start at [`decide`]. Tested against a naive interpreter in `decide/tests`.

mod counters;
mod effects;
mod examine;
mod later;
mod steps;

use std::sync::Arc;

use jiff::Timestamp;

use crate::{
    Call, Class, Contribution, Effect, Lifted, Policy, Refusal, Reservation, Shadowed, Usage,
    Verdict,
    model::{Approve, Entry, Rule, RuleKind},
};
use effects::RuleEffect;
use examine::Of;
pub use examine::{Examined, examine};
use later::Moment;

/// Decides one call, by its arguments alone.
pub fn decide(policy: &Policy, call: &Call<'_>, usage: &dyn Usage, now: Timestamp) -> Verdict {
    conclude(policy, call, &examine(policy, call), usage, now)
}

/// Decides a call that was examined, by what has been used and the time. The call must be the one
/// that was examined; under another policy it is examined again.
pub fn conclude(
    policy: &Policy,
    call: &Call<'_>,
    examined: &Examined,
    usage: &dyn Usage,
    now: Timestamp,
) -> Verdict {
    if examined.of != policy.digest {
        return conclude(policy, call, &examine(policy, call), usage, now);
    }
    weigh(policy, call, examined, usage, now, !policy.is_shadow(now))
}

/// The same as [`decide`] if the document were not in shadow.
pub(crate) fn as_if_enforced(
    policy: &Policy,
    call: &Call<'_>,
    usage: &dyn Usage,
    now: Timestamp,
) -> Verdict {
    weigh(policy, call, &examine(policy, call), usage, now, true)
}

fn weigh(
    policy: &Policy,
    call: &Call<'_>,
    examined: &Examined,
    usage: &dyn Usage,
    now: Timestamp,
    enforced: bool,
) -> Verdict {
    let mut entries = smallvec::SmallVec::<[(&Of, &Entry); 4]>::new();
    entries.extend(examined.entries.iter().filter_map(|of| Some((of, policy.entry(of.place)?))));
    let moment = Moment { call, usage, now, zone: &policy.document.zone };
    let engine = Engine {
        policy,
        call,
        usage,
        now,
        moment: &moment,
        examined,
        entries: &entries,
        enforced,
        first: None,
        would: None,
        rules: smallvec::SmallVec::new(),
        reservations: Vec::new(),
        holds: smallvec::SmallVec::new(),
        lifted: None,
    };
    engine.run()
}

/// Whether a tool is hidden: absent from lists, searches, permissions and completions. The same
/// step that [`decide`] takes first.
pub fn is_hidden(policy: &Policy, server: &str, tool: &str, class: Class, now: Timestamp) -> bool {
    is_call_hidden(policy, &Call { server, tool, class, ..Call::default() }, now)
}

/// The same for a tool that may have several names.
pub fn is_call_hidden(policy: &Policy, call: &Call<'_>, now: Timestamp) -> bool {
    if policy.is_shadow(now) {
        return false;
    }
    let hidden = policy.hides_call(call);
    let entries = policy.entries(call);
    steps::hidden(hidden, entries.iter().copied(), now).0
}

/// Whether `tools/list` and everything like it show a tool: it is not hidden and, unless the
/// document says `list: all`, not denied by `(default deny)`. A document in shadow shows everything.
pub fn is_listed(policy: &Policy, call: &Call<'_>, now: Timestamp) -> bool {
    if policy.is_shadow(now) {
        return true;
    }
    let entries = policy.entries(call);
    let hidden = steps::hidden(policy.hides_call(call), entries.iter().copied(), now).0;
    let document = &policy.document;
    let named = |entry: &&Entry| steps::names(entry, now);
    let open = document.default_allow || document.list_all || call.is_my_permissions();
    !hidden && (open || entries.iter().any(named))
}

/// Whether a rule may hold this call for a person.
pub fn may_hold(policy: &Policy, call: &Call<'_>) -> bool {
    let asks = |rule: &Rule| rule.kind == RuleKind::RequireApproval;
    policy.entries(call).iter().any(|entry| {
        entry.approve.is_some() || !entry.approve_if.is_empty() || entry.rules.iter().any(asks)
    })
}

/// The state of one decision.
struct Engine<'p, 'a, 'f> {
    policy: &'p Policy,
    call: &'a Call<'a>,
    usage: &'a dyn Usage,
    now: Timestamp,
    moment: &'f Moment<'a>,
    examined: &'f Examined,
    /// Borrowed, so that steps can iterate over them and change the rest.
    entries: &'f [(&'f Of, &'p Entry)],
    /// Whether the document is enforced; in shadow the call passes after the same decision.
    enforced: bool,
    /// The first effect of an enforced rule.
    first: Option<RuleEffect>,
    /// The first effect of a rule in shadow.
    would: Option<RuleEffect>,
    rules: smallvec::SmallVec<[Contribution; 4]>,
    reservations: Vec<Reservation>,
    /// Rules that hold, and whether they are in shadow.
    holds: smallvec::SmallVec<[(&'p Approve, Arc<str>, bool); 2]>,
    lifted: Option<Lifted>,
}

impl Engine<'_, '_, '_> {
    fn run(mut self) -> Verdict {
        if self.step_hidden() || self.step_default_deny() {
            return self.finish();
        }
        self.step_actions();
        self.step_require();
        self.step_deny_if();
        self.step_rules();
        self.step_repeats();
        self.step_loop();
        self.step_approve();
        self.step_limits();
        self.step_hold();
        self.finish()
    }

    /// Assembles the verdict.
    fn finish(mut self) -> Verdict {
        let mut verdict = match self.first.take() {
            Some(effect) => effect.into_verdict(),
            None => Verdict::allowed(),
        };
        verdict.rules = self.rules;
        if verdict.effect <= Effect::Hold {
            verdict.reservations = self.reservations;
            verdict.lifted = self.lifted;
        }
        if verdict.effect == Effect::Hold {
            verdict.hold = effects::merge_holds(&self.holds).map(Box::new);
        }
        if !self.enforced {
            return let_pass(verdict);
        }
        verdict.shadow =
            self.would.filter(|would| would.strictness() > word(&verdict)).map(|would| {
                Box::new(Shadowed {
                    effect: would.effect,
                    refusal: would.refusal,
                    rule: would.rule,
                })
            });
        verdict
    }
}

/// Turns the verdict of a document in shadow into one that lets the call pass.
pub(crate) fn let_pass(verdict: Verdict) -> Verdict {
    let mut passed = Verdict { rules: verdict.rules, ..Verdict::allowed() };
    for contribution in &mut passed.rules {
        contribution.shadow = true;
    }
    if verdict.effect <= Effect::Hold {
        passed.reservations = verdict.reservations;
        passed.reservations.iter_mut().for_each(|r| r.enforced = false);
        passed.lifted = verdict.lifted;
    }
    if let Some(rule) = verdict.rule {
        let Verdict { effect, refusal, .. } = verdict;
        passed.shadow = Some(Box::new(Shadowed { effect, refusal, rule }));
    }
    passed
}

/// How strict an effect is: hide > deny > spent limit > hold > allow.
fn strictness(effect: Effect, refusal: Option<Refusal>) -> u8 {
    match (effect, refusal) {
        (Effect::Hide, _) => 4,
        (Effect::Deny, Some(Refusal::RateLimited)) => 2,
        (Effect::Deny, _) => 3,
        (Effect::Hold, _) => 1,
        (Effect::Allow, _) => 0,
    }
}

fn word(verdict: &Verdict) -> u8 {
    strictness(verdict.effect, verdict.refusal)
}

#[cfg(test)]
mod tests;
