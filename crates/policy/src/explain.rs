//! Explaining a verdict: every rule that took part, where it stands, and what is left of limits.

use jiff::Timestamp;
use serde::Serialize;

use crate::{
    Amount, Call, Class, Effect, Policy, Usage, Verdict,
    decide::as_if_enforced,
    limit,
    node::{self, Kind, Node},
    problem::Findings,
};

/// The explain object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// What happens; a document in shadow is explained as if enforced.
    pub effect: Effect,
    /// The rule that decided; empty for a plain allow.
    pub rule: String,
    /// In which words.
    pub message: String,
    /// Every rule that took part.
    pub rules: Vec<ExplainedRule>,
    /// The risk class the call was decided with.
    pub class: Class,
}

/// One rule's part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExplainedRule {
    /// Its name.
    pub rule: String,
    /// What it said.
    pub effect: Effect,
}

/// What is left of a limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LimitState {
    /// The counter's name.
    pub counter: String,
    /// Used so far.
    pub used: Amount,
    /// The most there is.
    pub max: Amount,
    /// In which window.
    pub window: String,
    /// When it starts anew; sliding windows have no such time.
    #[serde(serialize_with = "rfc3339")]
    pub resets_at: Option<Timestamp>,
}

#[expect(clippy::ref_option, reason = "the signature serde asks for")]
fn rfc3339<S: serde::Serializer>(at: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    at.map(|at| at.to_string()).serialize(serializer)
}

/// Decides a call and says why; of a document in shadow, what it would do.
pub fn explain(policy: &Policy, call: &Call<'_>, usage: &dyn Usage, now: Timestamp) -> Explanation {
    let verdict = as_if_enforced(policy, call, usage, now);
    let rules = verdict
        .rules
        .iter()
        .map(|c| ExplainedRule { rule: c.rule.to_string(), effect: c.effect })
        .collect();
    let class = call.class;
    let Verdict { effect, rule, message, .. } = verdict;
    let rule = rule.map(|rule| rule.to_string()).unwrap_or_default();
    Explanation { effect, rule, message, rules, class }
}

/// The limits that apply to a call and what is used of them.
pub fn limits(
    policy: &Policy,
    call: &Call<'_>,
    usage: &dyn Usage,
    now: Timestamp,
) -> Vec<LimitState> {
    let mut states = Vec::new();
    for entry in policy.entries(call) {
        let rules = entry.rules.iter().filter_map(|rule| rule.limit.as_ref());
        for one in entry.limits.iter().chain(rules) {
            let key = limit::counter_key(policy, &entry.pointer, one, call);
            let (used, resets_at) = if one.sliding {
                let log = usage.taken(&key, one.window.before(now)).unwrap_or_default();
                let sum = log.iter().try_fold(Amount::ZERO, |sum, t| sum.plus(t.amount));
                (sum.unwrap_or(Amount::MAX), None)
            } else {
                let period = limit::period(one, policy, now);
                (usage.used(&key, period).unwrap_or(one.max), Some(period.end))
            };
            states.push(LimitState {
                counter: limit::shown_name(&one.counter, call.tool),
                used,
                max: one.max,
                window: one.window.spelling(),
                resets_at,
            });
        }
    }
    states
}

/// Line and column of a rule in the source, both from 1.
pub fn locate(source: &str, rule: &str) -> Option<(usize, usize)> {
    let mut findings = Findings::new(source);
    let root = node::parse(source, &mut findings)?;
    let mut place = root.span;
    let mut node = &root;
    for step in rule.strip_prefix('/')?.split('/') {
        let step = step.replace("~1", "/").replace("~0", "~");
        (place, node) = child(node, &step)?;
    }
    Some(findings.position(place.start))
}

/// One step of a pointer: a key, an index, or the name of a limit or rule.
fn child<'n>(node: &'n Node, step: &str) -> Option<(crate::Span, &'n Node)> {
    match &node.kind {
        Kind::Map(members) => {
            members.iter().find(|(key, _)| key.text == step).map(|(key, node)| (key.span, node))
        }
        Kind::List(items) => {
            let named = |item: &&Node| {
                ["counter", "name"].iter().any(|key| {
                    matches!(item.get(key).map(|n| &n.kind), Some(Kind::String(s)) if s == step)
                })
            };
            let item =
                items.iter().find(named).or_else(|| items.get(step.parse::<usize>().ok()?))?;
            Some((item.span, item))
        }
        _ => None,
    }
}
