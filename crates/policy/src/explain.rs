//! Explains a verdict: every rule that took part, its position, and the use of limits.

use jiff::Timestamp;
use serde::Serialize;

use crate::{
    Amount, Call, Class, Contribution, Effect, Policy, Usage, Verdict,
    decide::as_if_enforced,
    limit,
    problem::Findings,
    syntax::{self, Node, Value},
};

/// The explain object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// What happens; a document in shadow is explained as if enforced.
    pub effect: Effect,
    /// The rule that decided; empty for a plain allow.
    pub rule: String,
    /// The text for the model.
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
    /// Its effect.
    pub effect: Effect,
}

/// The use of a limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LimitState {
    /// The counter's name.
    pub counter: String,
    /// Used so far.
    pub used: Amount,
    /// The maximum.
    pub max: Amount,
    /// Its window.
    pub window: String,
    /// When it starts again; sliding windows have no such time.
    #[serde(serialize_with = "rfc3339")]
    pub resets_at: Option<Timestamp>,
}

#[expect(clippy::ref_option, reason = "the signature serde asks for")]
fn rfc3339<S: serde::Serializer>(at: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    at.map(|at| at.to_string()).serialize(serializer)
}

/// Decides a call and explains why; a document in shadow is explained as if enforced.
pub fn explain(policy: &Policy, call: &Call<'_>, usage: &dyn Usage, now: Timestamp) -> Explanation {
    let verdict = as_if_enforced(policy, call, usage, now);
    let rules = merged(&verdict.rules);
    let class = call.class;
    let Verdict { effect, rule, message, .. } = verdict;
    let rule = rule.map(|rule| rule.to_string()).unwrap_or_default();
    Explanation { effect, rule, message, rules, class }
}

/// One line for each rule, with the strictest of its effects: an entry with `action: deny` both
/// names its tool and denies it.
fn merged(contributions: &[Contribution]) -> Vec<ExplainedRule> {
    let mut rules: Vec<ExplainedRule> = Vec::new();
    for Contribution { rule, effect, .. } in contributions {
        match rules.iter_mut().find(|known| *known.rule == **rule) {
            Some(known) => known.effect = known.effect.max(*effect),
            None => rules.push(ExplainedRule { rule: rule.to_string(), effect: *effect }),
        }
    }
    rules
}

/// The limits that apply to a call, and their use.
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
    RuleLines::of(source)?.find(rule)
}

/// A document in which many rules are looked up; it is read once.
#[derive(Debug)]
pub struct RuleLines<'s> {
    findings: Findings<'s>,
    root: Node,
}

impl<'s> RuleLines<'s> {
    /// The places of this document; `None` if it has no tree.
    pub fn of(source: &'s str) -> Option<Self> {
        let mut findings = Findings::new(source);
        let root = syntax::parse(source, &mut findings)?;
        Some(Self { findings, root })
    }

    /// Line and column of a rule, both from 1.
    pub fn find(&self, rule: &str) -> Option<(usize, usize)> {
        Some(self.findings.position(self.start(rule)?))
    }

    /// Its line alone, which costs less where lines are long.
    pub fn line(&self, rule: &str) -> Option<usize> {
        Some(self.findings.line(self.start(rule)?))
    }

    fn start(&self, rule: &str) -> Option<usize> {
        let mut place = self.root.span;
        let mut node = &self.root;
        for step in rule.strip_prefix('/')?.split('/') {
            let step = step.replace("~1", "/").replace("~0", "~");
            (place, node) = child(node, &step)?;
        }
        Some(place.start)
    }
}

/// One step of a pointer: a key, an index, or the name of a limit or rule.
fn child<'n>(node: &'n Node, step: &str) -> Option<(crate::Span, &'n Node)> {
    match node.value() {
        Value::Map(members) => {
            members.iter().find(|m| m.key.text == step).map(|m| (m.key.span, &m.value))
        }
        Value::List(items) => {
            let named = |item: &&Node| {
                ["counter", "name"].iter().any(|key| {
                    matches!(item.get(key).map(Node::value), Some(Value::Text(s)) if s == step)
                })
            };
            let item =
                items.iter().find(named).or_else(|| items.get(step.parse::<usize>().ok()?))?;
            Some((item.span, item))
        }
        _ => None,
    }
}
