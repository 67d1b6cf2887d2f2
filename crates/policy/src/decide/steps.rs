//! The steps of a decision, one function each.

use std::sync::Arc;

use jiff::Timestamp;

use super::{
    Engine,
    effects::{self, RuleEffect, Wording, worded},
    examine::List,
    later::{self, Settled},
};
use crate::{
    Approval, Contribution, Effect, Lifted, intercept, limit,
    model::{Action, Entry, Predicate, RuleKind, Test},
    truth::{Facts, Side},
};

pub(super) const CHANGE: &str = "change the arguments before you retry";
const STOP: &str = "do not retry";

/// Whether the tool is hidden, by `hide` or an entry, and whether rules in shadow would hide it.
pub(super) fn hidden<'e>(
    by_list: bool,
    entries: impl Iterator<Item = &'e Entry>,
    now: Timestamp,
) -> (bool, bool) {
    let mut would = false;
    if by_list {
        return (true, would);
    }
    for entry in entries.filter(|e| e.action == Some(Action::Hide)) {
        if entry.shadow.holds_at(now) {
            would = true;
        } else {
            return (true, would);
        }
    }
    (false, would)
}

/// Whether an entry allows the tools it matches under `default: deny`.
pub(super) fn names(entry: &Entry, now: Timestamp) -> bool {
    entry.names && !entry.shadow.holds_at(now)
}

impl Engine<'_, '_, '_> {
    pub(super) fn shadow(&self, entry: &Entry) -> bool {
        entry.shadow.holds_at(self.now)
    }

    pub(super) fn step_hidden(&mut self) -> bool {
        let entries = self.entries.iter().map(|(_, entry)| *entry);
        let (hidden, would) = hidden(self.examined.hidden, entries, self.now);
        let rule = Arc::clone(&self.policy.implicit.hidden);
        let tool = self.call.tool;
        let hides = |wording: Wording| {
            let text = || format!("the tool `{tool}` is not available under this policy; {STOP}");
            let text = wording.of(text);
            RuleEffect::denied(&rule, text)
        };
        if hidden {
            self.record(false, &rule, Effect::Hide, hides);
        } else if would {
            self.record(true, &rule, Effect::Hide, hides);
        }
        hidden
    }

    pub(super) fn step_default_deny(&mut self) -> bool {
        let call = self.call;
        let now = self.now;
        let named = |entry: &Entry| names(entry, now);
        let opened = self.policy.document.default_allow
            || call.is_my_permissions()
            || self.entries.iter().any(|(_, entry)| named(entry));
        if !opened {
            let rule = Arc::clone(&self.policy.implicit.default_deny);
            self.record(false, &rule, Effect::Deny, |wording| {
                let tool = call.tool;
                let text = || format!("the tool `{tool}` is not permitted by this policy; {STOP}");
                RuleEffect::denied(&rule, wording.of(text))
            });
            return true;
        }
        for (_, entry) in self.entries.iter().filter(|(_, entry)| named(entry)) {
            let rule = Arc::clone(&entry.opens);
            self.rules.push(Contribution { rule, effect: Effect::Allow, shadow: false });
        }
        false
    }

    pub(super) fn step_actions(&mut self) {
        for &(_, entry) in self.entries {
            if entry.action != Some(Action::Deny) {
                continue;
            }
            let tool = self.call.tool;
            self.record(self.shadow(entry), &entry.action_rule, Effect::Deny, |wording| {
                let otherwise = || format!("the tool `{tool}` is denied by this policy");
                let text = wording.of(|| worded(entry.reason.as_deref(), otherwise, STOP));
                RuleEffect::denied(&entry.action_rule, text)
            });
        }
    }

    pub(super) fn step_require(&mut self) {
        for &(of, entry) in self.entries {
            for (index, predicate) in entry.require.iter().enumerate() {
                let known = self.examined.predicate(of, entry, List::Require, index);
                match known.at(self.moment) {
                    Settled::True | Settled::Skipped => {}
                    truth => self.deny_by(entry, predicate, truth, true),
                }
            }
        }
    }

    pub(super) fn step_deny_if(&mut self) {
        for &(of, entry) in self.entries {
            for (index, predicate) in entry.deny_if.iter().enumerate() {
                let known = self.examined.predicate(of, entry, List::DenyIf, index);
                match known.at(self.moment) {
                    Settled::False | Settled::Skipped => {}
                    truth => self.deny_by(entry, predicate, truth, false),
                }
            }
        }
    }

    fn deny_by(
        &mut self,
        entry: &Entry,
        predicate: &Predicate,
        truth: Settled<'_>,
        required: bool,
    ) {
        let tool = self.call.tool;
        self.record(self.shadow(entry), &predicate.rule, Effect::Deny, |wording| {
            let text = wording.of(|| match truth {
                Settled::Error(why) => format!("{why}; {CHANGE}"),
                _ => worded(
                    predicate.on_deny.as_deref(),
                    || effects::predicate_text(predicate, tool, required),
                    CHANGE,
                ),
            });
            RuleEffect::denied(&predicate.rule, text)
        });
    }

    /// Intercept rules, in order: the first that fails denies; approvals are collected.
    pub(super) fn step_rules(&mut self) {
        let (policy, usage, now) = (self.policy, self.usage, self.now);
        let state = |entry: &str, counter: &str, window: crate::Window| {
            let key = limit::state_key(policy, entry, counter, window);
            usage.used(&key, window.calendar(now, &jiff::tz::TimeZone::UTC))
        };
        for &(of, entry) in self.entries {
            let shadow = self.shadow(entry);
            for (index, rule) in entry.rules.iter().enumerate() {
                let known = self.examined.rule(of, entry, index).at(self.moment);
                if known == Settled::Skipped {
                    continue;
                }
                let holds = rule.kind != RuleKind::Deny
                    && known == Settled::True
                    && intercept::holds_of_counters(rule, &state);
                if let Settled::Error(why) = known {
                    self.record(shadow, &rule.pointer, Effect::Deny, |wording| {
                        let text = wording.of(|| format!("{why}; {CHANGE}"));
                        RuleEffect::denied(&rule.pointer, text)
                    });
                    break;
                } else if rule.kind == RuleKind::RequireApproval {
                    if holds {
                        self.holds.push((&rule.approve, Arc::clone(&rule.pointer), shadow));
                    }
                } else if !holds {
                    self.record(shadow, &rule.pointer, Effect::Deny, |wording| {
                        let otherwise = || format!("Denied by rule \"{}\"", rule.name);
                        let then = if rule.kind == RuleKind::Deny { STOP } else { CHANGE };
                        let text = wording.of(|| worded(rule.on_deny.as_deref(), otherwise, then));
                        RuleEffect::denied(&rule.pointer, text)
                    });
                    break;
                }
            }
        }
    }

    /// Collects holds; a predicate that is an error denies.
    pub(super) fn step_approve(&mut self) {
        for &(of, entry) in self.entries {
            let shadow = self.shadow(entry);
            if let Some(approve) = &entry.approve {
                self.holds.push((approve, Arc::clone(&approve.rule), shadow));
            }
            for (index, predicate) in entry.approve_if.iter().enumerate() {
                let known = self.examined.predicate(of, entry, List::ApproveIf, index);
                match known.at(self.moment) {
                    Settled::False | Settled::Skipped => {}
                    Settled::True => {
                        let approve = predicate.approve.as_deref();
                        let approve = approve.unwrap_or(&self.policy.implicit.approve);
                        self.holds.push((approve, Arc::clone(&predicate.rule), shadow));
                    }
                    truth @ Settled::Error(_) => self.deny_by(entry, predicate, truth, false),
                }
            }
        }
    }

    /// Holds the call, unless a person has approved it or a standing exception covers it.
    pub(super) fn step_hold(&mut self) {
        if self.holds.is_empty() {
            return;
        }
        if self.call.approval == Approval::Approved {
            self.lifted = Some(Lifted::Approval);
            return;
        }
        if let Some(id) = self.exception() {
            self.lifted = Some(Lifted::Exception(id));
            return;
        }
        let tool = self.call.tool;
        for (approve, rule, shadow) in self.holds.clone() {
            self.record(shadow, &rule, Effect::Hold, |wording| {
                let otherwise = || format!("`{tool}` needs the approval of a person");
                let note = approve.note.as_ref();
                let text = wording.of(|| note.map_or_else(otherwise, Clone::clone));
                RuleEffect { refusal: None, ..RuleEffect::denied(&rule, text) }
            });
        }
    }

    /// The exception that lifts these holds: of the same call but for its arguments, and given by
    /// those whom these holds ask, too.
    fn exception(&self) -> Option<String> {
        let call = self.call;
        let asks = effects::merge_holds(&self.holds);
        let facts = std::cell::OnceCell::new();
        let holds = |test: &Test| {
            let facts = facts.get_or_init(|| Facts::new(call));
            later::known(facts, test, Side::Require, 0).at(self.moment) == Settled::True
        };
        let covers = |exception: &&Arc<crate::Exception>| {
            exception.grant == call.grant
                && exception.server == call.server
                && exception.session == call.target
                && exception.tool == call.tool
                && exception.fingerprint == call.fingerprint
                && exception.policy_hash == self.policy.hash
                && self.now < exception.expires
                && asks.as_ref().is_none_or(|asks| exception.question.covers(asks))
                && exception.constraints.iter().all(&holds)
        };
        self.usage.exceptions().iter().find(covers).map(|exception| exception.id.clone())
    }
}
