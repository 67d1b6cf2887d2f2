//! The part of a decision that needs neither usage nor time: which entries apply, the results of their
//! conditions, the amounts that a call takes, and the digest of its arguments.
//!
//! Its cost grows with the size of the arguments, so it runs before admission; the rest, which runs
//! inside the admitting transaction ([`super::conclude`]), is small.
//!
//! Invariant: it stays within the budget of a decision (`budget.rs`); exceeding it is an error, which
//! denies.

use smallvec::SmallVec;

use super::{effects, later, later::Known};
use crate::{
    Amount, Call, Digest, Policy, argument_digest, budget, intercept, limit,
    model::{Action, Entry, Increment, Predicate, Rule, RuleKind, Shadow},
    path::Root,
    policy::Place,
    truth::{Facts, NOT_CLEAN, Side},
};

/// A call, examined under a policy.
#[derive(Debug)]
pub struct Examined {
    /// The policy.
    pub(super) of: Digest,
    /// Whether `hide` covers the tool.
    pub(super) hidden: bool,
    pub(super) entries: SmallVec<[Of; 4]>,
    /// Results of predicates and rules, entry by entry in the order of [`predicates`], then its rules.
    known: SmallVec<[Known; 4]>,
    /// Amounts of `increment_from`, in the order of [`increments`].
    pub(super) amounts: SmallVec<[Counted; 2]>,
    /// The digest of the arguments, if a rule needs it and they have one.
    pub(super) digest: Option<Digest>,
}

/// An entry that applies.
#[derive(Debug)]
pub(super) struct Of {
    pub(super) place: Place,
    /// The index of its first result.
    begins: usize,
}

/// An amount, or why there is none; see [`limit::amount`].
pub(super) type Counted = Result<Amount, Option<&'static str>>;

/// Which predicates of an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum List {
    Require,
    DenyIf,
    ApproveIf,
}

/// Examines a call, without usage and time.
pub fn examine(policy: &Policy, call: &Call<'_>) -> Examined {
    let places = policy.places(call);
    let hidden = policy.hides_call(call);
    let mut examined = Examined {
        of: policy.digest,
        hidden,
        entries: SmallVec::new(),
        known: SmallVec::new(),
        amounts: SmallVec::new(),
        digest: None,
    };
    examined.entries.extend(places.into_iter().map(|place| Of { place, begins: 0 }));
    if hidden || is_refused_by_name(policy, call, &examined) {
        return examined;
    }
    let facts = Facts::new(call);
    for at in 0..examined.entries.len() {
        let begins = examined.known.len();
        let Some(of) = examined.entries.get_mut(at) else { break };
        of.begins = begins;
        let Some(entry) = policy.entry(of.place) else { continue };
        for (list, predicate) in predicates(entry) {
            examined.known.push(predicate_known(predicate, list, &facts));
        }
        examined.known.extend(entry.rules.iter().map(|rule| rule_known(rule, &facts)));
        if call.arguments.is_some() {
            examined.amounts.extend(increments(entry).map(|limit| limit::amount(limit, &facts)));
        }
    }
    let digests = |of: &Of| policy.entry(of.place).is_some_and(|entry| entry.repeats.is_some());
    if policy.document.repeat.is_some() || examined.entries.iter().any(digests) {
        examined.digest =
            call.digest.or_else(|| call.arguments.and_then(|raw| argument_digest(raw).ok()));
    }
    examined
}

impl Examined {
    /// The result of a predicate of an entry.
    pub(super) fn predicate(&self, of: &Of, entry: &Entry, list: List, index: usize) -> &Known {
        let before = match list {
            List::Require => 0,
            List::DenyIf => entry.require.len(),
            List::ApproveIf => entry.require.len() + entry.deny_if.len(),
        };
        self.known.get(of.begins + before + index).unwrap_or(&Known::UNKNOWN)
    }

    /// The result of a rule of an entry.
    pub(super) fn rule(&self, of: &Of, entry: &Entry, index: usize) -> &Known {
        let before = entry.require.len() + entry.deny_if.len() + entry.approve_if.len();
        self.known.get(of.begins + before + index).unwrap_or(&Known::UNKNOWN)
    }
}

/// Whether the name alone decides, at any time.
fn is_refused_by_name(policy: &Policy, call: &Call<'_>, examined: &Examined) -> bool {
    let opened = policy.document.default_allow || call.is_my_permissions();
    let (mut hidden, mut opened) = (false, opened);
    for entry in examined.entries.iter().filter_map(|of| policy.entry(of.place)) {
        hidden |= entry.action == Some(Action::Hide) && entry.shadow == Shadow::No;
        opened |= entry.names;
    }
    hidden || !opened
}

/// The predicates of an entry, in the order in which they are kept.
fn predicates(entry: &Entry) -> impl Iterator<Item = (List, &Predicate)> {
    let of = |list: List| move |predicate| (list, predicate);
    let require = entry.require.iter().map(of(List::Require));
    let deny_if = entry.deny_if.iter().map(of(List::DenyIf));
    require.chain(deny_if).chain(entry.approve_if.iter().map(of(List::ApproveIf)))
}

/// The limits of an entry whose amount an argument gives.
fn increments(entry: &Entry) -> impl Iterator<Item = &crate::model::Limit> {
    let rules = entry.rules.iter().filter_map(|rule| rule.limit.as_ref());
    let limits = entry.limits.iter().chain(rules);
    limits.filter(|limit| matches!(limit.increment, Increment::From(_)))
}

fn predicate_known(predicate: &Predicate, list: List, facts: &Facts<'_>) -> Known {
    if facts.call.arguments.is_none() && reads_arguments(predicate) {
        return Known::Skipped;
    }
    let side = if list == List::Require { Side::Require } else { Side::Match };
    later::known(facts, &predicate.test, side, 0)
}

fn reads_arguments(predicate: &Predicate) -> bool {
    let mut conditions = Vec::new();
    predicate.test.conditions(&mut conditions);
    conditions.iter().any(|c| c.path.root == Root::Args)
}

/// Conditions of Intercept rules are true or false. But a rule that requires approval must not be
/// skipped because the budget is spent, or because of a key that only the server finds.
fn rule_known(rule: &Rule, facts: &Facts<'_>) -> Known {
    if facts.call.arguments.is_none() && intercept::reads_arguments(rule) {
        return Known::Skipped;
    }
    let holds = intercept::holds(rule, facts);
    let asks = rule.kind == RuleKind::RequireApproval;
    if asks && !facts.budget.is_spent() && intercept::is_unclear(rule, facts) {
        return Known::Error(effects::undecided(NOT_CLEAN).into());
    }
    match (facts.budget.is_spent(), holds) {
        (true, _) => Known::Error(effects::undecided(budget::OVER).into()),
        (false, true) => Known::True,
        (false, false) => Known::False,
    }
}
