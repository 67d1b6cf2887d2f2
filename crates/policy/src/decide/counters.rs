//! The steps that use counters: repeats, `loop`, limits, calls in flight.

use std::{collections::HashMap, sync::Arc};

use super::{
    Engine,
    effects::{RuleEffect, Wording, worded},
    steps::CHANGE,
};
use crate::{
    Amount, Approval, Contribution, Effect, Reservation, Take,
    limit::{self, Applied, Failure},
    model::{Entry, Increment, Limit, Scope},
    window::seconds_until,
};

impl<'p> Engine<'p, '_, '_> {
    pub(super) fn step_repeats(&mut self) {
        for &(_, entry) in self.entries {
            let Some(repeats) = &entry.repeats else { continue };
            let Some(digest) = self.examined.digest else {
                self.unreadable(entry, &repeats.rule);
                continue;
            };
            let key = limit::seen_key(self.call, &digest.to_string());
            let shadow = self.shadow(entry);
            let tool = self.call.tool;
            let Ok(last) = self.usage.last_admitted(&key) else {
                self.unavailable(shadow, &repeats.rule);
                continue;
            };
            let until = last.map(|at| repeats.window.after(at)).filter(|end| *end > self.now);
            if let Some(until) = until.filter(|_| self.call.approval == Approval::None) {
                let wait = seconds_until(self.now, until);
                self.record(shadow, &repeats.rule, Effect::Deny, |wording| {
                    let text = wording.of(|| format!(
                        "the same call of `{tool}` was already made within the last {}; do not \
                         repeat it, use the earlier result (the same call is possible again in {wait} s)",
                        repeats.window
                    ));
                    let denied = RuleEffect::denied(&repeats.rule, text);
                    RuleEffect { retry_after: Some(wait), ..denied }
                });
            } else {
                self.reservations.push(Reservation {
                    rule: Arc::clone(&repeats.rule),
                    counter: "unless_seen_within".to_owned(),
                    key,
                    take: Take::Seen { within: repeats.window },
                    enforced: !shadow,
                });
            }
        }
    }

    pub(super) fn step_loop(&mut self) {
        let Some(repeat) = self.policy.document.repeat else { return };
        let rule = Arc::clone(&self.policy.implicit.repeat);
        let Some(digest) = self.examined.digest else {
            if self.call.arguments.is_some() {
                self.record(false, &rule, Effect::Deny, |wording| unreadable(&rule, wording));
            }
            return;
        };
        let key = limit::loop_key(self.policy, self.call, &digest.to_string(), repeat.window);
        let max = Amount::whole(repeat.max);
        let limit = Limit {
            rule: Arc::clone(&rule),
            counter: "loop".to_owned(),
            window: repeat.window,
            max,
            scope: Scope::Grant,
            increment: Increment::Fixed(Amount::ONE),
            sliding: false,
            utc: false,
            on_deny: None,
            span: crate::Span::default(),
        };
        let applied = Applied { limit: &limit, key, amount: Amount::ONE, shadow: false };
        match limit::check(&applied, self.policy, self.usage, self.now) {
            Ok(take) => {
                self.reservations.push(limit::reservation(applied, take, self.call.tool));
            }
            Err(Failure::Spent(retry)) => {
                let (tool, window) = (self.call.tool, repeat.window);
                self.record(false, &rule, Effect::Deny, |wording| {
                    let text = wording.of(|| format!(
                        "you have made this very call of `{tool}` {max} times within {}: \
                         you are in a loop; stop, do not repeat it, and try something else or ask the person",
                        window.spelled()
                    ));
                    RuleEffect::limited(&rule, text, retry)
                });
            }
            Err(_) => self.unavailable(false, &rule),
        }
    }

    /// Invalid amounts deny, spent limits refuse, the rest is reserved.
    pub(super) fn step_limits(&mut self) {
        let mut applied = Vec::new();
        let mut spent = Vec::new();
        let mut counted = self.examined.amounts.iter();
        for &(_, entry) in self.entries {
            let shadow = self.shadow(entry);
            let rules = entry.rules.iter().filter_map(|rule| rule.limit.as_ref());
            for limit in entry.limits.iter().chain(rules) {
                if self.call.arguments.is_none() && matches!(limit.increment, Increment::From(_)) {
                    continue;
                }
                let key = limit::counter_key(self.policy, &entry.pointer, limit, self.call);
                let amount = match &limit.increment {
                    Increment::Fixed(amount) => Ok(*amount),
                    Increment::From(_) => counted.next().copied().unwrap_or(Err(None)),
                };
                match amount {
                    Ok(amount) => applied.push(Applied { limit, key, amount, shadow }),
                    Err(Some(why)) => self.bad_amount(shadow, limit, why),
                    Err(None) => spent.push((limit, shadow, None)),
                }
            }
        }
        if applied.len() > 1 {
            share_amounts(&mut applied);
        }
        let mut taken: Vec<Reservation> = Vec::new();
        for one in applied {
            match limit::check(&one, self.policy, self.usage, self.now) {
                Ok(take) => {
                    let reservation = limit::reservation(one, take, self.call.tool);
                    let rule = Arc::clone(&reservation.rule);
                    let shadow = !reservation.enforced;
                    self.rules.push(Contribution { rule, effect: Effect::Allow, shadow });
                    taken.push(reservation);
                }
                Err(Failure::Spent(retry)) => spent.push((one.limit, one.shadow, retry)),
                Err(_) => self.unavailable(one.shadow, &one.limit.rule),
            }
        }
        self.reservations.extend(merge(taken));
        for (limit, shadow, retry) in spent {
            self.spent(shadow, limit, retry);
        }
        self.step_concurrency();
    }

    fn step_concurrency(&mut self) {
        for &(_, entry) in self.entries {
            let Some(limit) = &entry.concurrency else { continue };
            let shadow = self.shadow(entry);
            let key = limit::in_flight_key(self.policy, &entry.pointer, limit, self.call);
            match limit::in_flight(limit, &key, self.usage) {
                Ok(take) => {
                    let rule = Arc::clone(&limit.rule);
                    let counter = "concurrency".to_owned();
                    self.rules.push(Contribution {
                        rule: Arc::clone(&rule),
                        effect: Effect::Allow,
                        shadow,
                    });
                    self.reservations.push(Reservation {
                        rule,
                        counter,
                        key,
                        take,
                        enforced: !shadow,
                    });
                }
                Err(Failure::Spent(retry)) => {
                    let (max, tool) = (limit.max, self.call.tool);
                    self.record(shadow, &limit.rule, Effect::Deny, |wording| {
                        let text = wording.of(|| in_flight_text(tool, max));
                        RuleEffect::limited(&limit.rule, text, retry)
                    });
                }
                Err(_) => self.unavailable(shadow, &limit.rule),
            }
        }
    }

    fn bad_amount(&mut self, shadow: bool, limit: &'p Limit, why: &'static str) {
        let Increment::From(path) = &limit.increment else { return };
        self.record(shadow, &limit.rule, Effect::Deny, |wording| {
            let text = wording.of(|| {
                format!(
                    "`{}` {why}, but the limit `{}` counts it; {CHANGE}",
                    path.text, limit.counter
                )
            });
            RuleEffect::denied(&limit.rule, text)
        });
    }

    fn spent(&mut self, shadow: bool, limit: &'p Limit, retry: Option<u64>) {
        let tool = self.call.tool;
        self.record(shadow, &limit.rule, Effect::Deny, |wording| {
            let text = wording.of(|| spent_text(limit, tool, retry));
            RuleEffect::limited(&limit.rule, text, retry)
        });
    }

    fn unavailable(&mut self, shadow: bool, rule: &Arc<str>) {
        self.record(shadow, rule, Effect::Deny, |wording| {
            let text = "the counters of this policy cannot be read now; retry later";
            let text = wording.of(|| text.to_owned());
            RuleEffect::denied(rule, text)
        });
    }

    fn unreadable(&mut self, entry: &Entry, rule: &Arc<str>) {
        if self.call.arguments.is_some() {
            self.record(self.shadow(entry), rule, Effect::Deny, |wording| {
                unreadable(rule, wording)
            });
        }
    }
}

fn in_flight_text(tool: &str, max: u64) -> String {
    if max == 1 {
        return format!(
            "`{tool}` is limited to 1 call at a time and one is running; wait for it to end, then \
             retry"
        );
    }
    format!(
        "`{tool}` is limited to {max} calls at a time and {max} are running; wait for one of them \
         to end, then retry"
    )
}

fn spent_text(limit: &Limit, tool: &str, retry: Option<u64>) -> String {
    let name = limit::shown_name(&limit.counter, tool);
    let otherwise =
        || format!("`{tool}` is limited to {} (limit `{name}`)", limit::describe(limit));
    let then = match retry {
        Some(wait) => format!("retry in {wait} s"),
        None => format!("this call alone is over the limit; {CHANGE}"),
    };
    worded(limit.on_deny.as_deref(), otherwise, &then)
}

fn unreadable(rule: &Arc<str>, wording: Wording) -> RuleEffect {
    let text = wording.of(|| format!("the arguments are not clean JSON; {CHANGE}"));
    RuleEffect::denied(rule, text)
}

/// A call takes each counter once, with the largest amount of its limits.
fn share_amounts(applied: &mut [Applied<'_>]) {
    let mut largest: HashMap<String, Amount> = HashMap::new();
    for one in applied.iter() {
        let amount = largest.entry(one.key.clone()).or_default();
        *amount = one.amount.max(*amount);
    }
    for one in applied {
        one.amount = largest.get(&one.key).copied().unwrap_or(one.amount);
    }
}

/// Merges reservations into one per counter, with the lowest `max`; enforced ones take precedence
/// over those in shadow.
fn merge(reservations: Vec<Reservation>) -> Vec<Reservation> {
    let mut merged: Vec<Reservation> = Vec::with_capacity(reservations.len());
    let mut places: HashMap<String, usize> = HashMap::new();
    for next in reservations {
        let place = *places.entry(next.key.clone()).or_insert(merged.len());
        match merged.get_mut(place) {
            None => merged.push(next),
            Some(first) if next.enforced && !first.enforced => *first = next,
            Some(first) if next.enforced == first.enforced => tighten(&mut first.take, &next.take),
            Some(_) => {}
        }
    }
    merged
}

fn tighten(take: &mut Take, other: &Take) {
    match (take, other) {
        (Take::Calendar { max, .. }, Take::Calendar { max: other, .. })
        | (Take::Sliding { max, .. }, Take::Sliding { max: other, .. }) => {
            *max = (*max).min(*other);
        }
        _ => {}
    }
}
