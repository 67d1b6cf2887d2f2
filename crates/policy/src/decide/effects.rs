//! The effects of rules, and their texts for the model.

use std::sync::Arc;

use super::{Engine, strictness};
use crate::{
    Contribution, Effect, Hold, Refusal, Verdict,
    budget::OVER,
    model::{Approve, Condition, Operand, Predicate},
    scalar::Scalar,
    truth::Fault,
};

/// The effect of a rule on a call, with the text of its refusal.
pub(super) struct RuleEffect {
    pub(super) effect: Effect,
    pub(super) refusal: Option<Refusal>,
    pub(super) rule: Arc<str>,
    pub(super) message: String,
    pub(super) retry_after: Option<u64>,
}

/// Writes the text of an effect, if the text will be read.
#[derive(Clone, Copy)]
pub(super) struct Wording {
    read: bool,
}

impl Wording {
    pub(super) fn of(self, text: impl FnOnce() -> String) -> String {
        if self.read { text() } else { String::new() }
    }
}

impl RuleEffect {
    pub(super) fn denied(rule: &Arc<str>, message: String) -> Self {
        Self {
            effect: Effect::Deny,
            refusal: Some(Refusal::PolicyDenied),
            rule: Arc::clone(rule),
            message,
            retry_after: None,
        }
    }

    pub(super) fn limited(rule: &Arc<str>, message: String, retry_after: Option<u64>) -> Self {
        let refusal = Some(Refusal::RateLimited);
        Self { refusal, retry_after, ..Self::denied(rule, message) }
    }

    pub(super) fn into_verdict(self) -> Verdict {
        Verdict {
            effect: self.effect,
            refusal: self.refusal,
            rule: Some(self.rule),
            message: self.message,
            retry_after: self.retry_after,
            ..Verdict::allowed()
        }
    }

    pub(super) fn strictness(&self) -> u8 {
        strictness(self.effect, self.refusal)
    }
}

impl Engine<'_, '_, '_> {
    /// Records the effect of a rule. The first enforced effect is the verdict, so only its text is
    /// written. Texts of rules in shadow are never read.
    pub(super) fn record(
        &mut self,
        shadow: bool,
        rule: &Arc<str>,
        effect: Effect,
        worded: impl FnOnce(Wording) -> RuleEffect,
    ) {
        self.rules.push(Contribution { rule: Arc::clone(rule), effect, shadow });
        let wording = Wording { read: self.enforced && !shadow };
        let slot = if shadow { &mut self.would } else { &mut self.first };
        if slot.is_none() {
            *slot = Some(RuleEffect { effect, ..worded(wording) });
        }
    }
}

/// Merges several holds into the strictest one: most people, shortest times, and only approvers
/// that every rule with approvers accepts.
pub(super) fn merge_holds(holds: &[(&Approve, Arc<str>, bool)]) -> Option<Hold> {
    let mut enforced = holds.iter().filter(|(_, _, shadow)| !shadow);
    let (first, rule, _) = enforced.next()?;
    let mut hold = Hold {
        rule: Arc::clone(rule),
        wait: first.wait,
        expires: first.expires,
        approvers: first.approvers.clone(),
        no_common_group: false,
        people: first.people,
        note: first.note.clone(),
    };
    for (next, ..) in enforced {
        hold.wait = hold.wait.min(next.wait);
        hold.expires = hold.expires.min(next.expires);
        hold.people = hold.people.max(next.people);
        hold.note = hold.note.or_else(|| next.note.clone());
        if hold.approvers.is_empty() && !hold.no_common_group {
            hold.approvers.clone_from(&next.approvers);
        } else if !next.approvers.is_empty() {
            hold.approvers.retain(|group| next.approvers.contains(group));
            hold.no_common_group = hold.approvers.is_empty();
        }
    }
    Some(hold)
}

/// The text of a denial: the operator's text if there is one, and what to do.
pub(super) fn worded(
    on_deny: Option<&str>,
    otherwise: impl FnOnce() -> String,
    then: &str,
) -> String {
    let text = on_deny.map_or_else(otherwise, str::to_owned);
    format!("{text}; {then}")
}

/// Most conditions of a predicate that a refusal shows.
const SHOWN: usize = 8;

/// The text for a predicate that failed, or matched.
pub(super) fn predicate_text(predicate: &Predicate, tool: &str, required: bool) -> String {
    let mut conditions = Vec::new();
    predicate.test.conditions(&mut conditions);
    let left_out = conditions.len().saturating_sub(SHOWN);
    let mut list: Vec<String> = conditions.into_iter().take(SHOWN).map(condition_text).collect();
    if left_out > 0 {
        list.push(format!("{left_out} more"));
    }
    match (required, list.is_empty()) {
        (_, true) => format!("the tool `{tool}` is denied by this policy"),
        (true, false) => format!("the tool `{tool}` requires {}", list.join(" and ")),
        (false, false) => format!("the tool `{tool}` is denied when {}", list.join(" and ")),
    }
}

fn condition_text(condition: &Condition) -> String {
    let value = match &condition.operand {
        Operand::Scalar(scalar) => scalar_text(scalar),
        Operand::List(list) => {
            let shown: Vec<String> = list.iter().take(8).map(scalar_text).collect();
            let more = if list.len() > 8 { ", …" } else { "" };
            format!("[{}{more}]", shown.join(", "))
        }
        Operand::Pattern(_, text) | Operand::Text(text) => format!("\"{text}\""),
        Operand::Flag(flag) => flag.to_string(),
        Operand::Hosts(hosts) => {
            let shown: Vec<&str> = hosts.iter().take(8).map(String::as_str).collect();
            let more = if hosts.len() > 8 { ", …" } else { "" };
            format!("[{}{more}]", shown.join(", "))
        }
    };
    format!("`{} {} {value}`", condition.path.text, condition.op.as_str())
}

fn scalar_text(scalar: &Scalar) -> String {
    match scalar {
        Scalar::Null => "null".to_owned(),
        Scalar::Bool(flag) => flag.to_string(),
        Scalar::Number(text) => text.clone(),
        Scalar::String(text) => format!("\"{text}\""),
    }
}

/// The text for a condition that is an error.
pub(super) fn fault_text(fault: Fault<'_>) -> String {
    let Fault { condition, why } = fault;
    let (path, op) = (&condition.path.text, condition.op.as_str());
    if why == OVER {
        return undecided(&format!("`{path} {op}` {why}"));
    }
    undecided(&format!("`{path}` {why}, which `{op}` needs"))
}

/// Why a call cannot be decided.
pub(super) fn undecided(why: &str) -> String {
    format!("the policy cannot decide this call: {why}")
}
