//! The naive history: everything that ever happened, counted anew for every question.

use std::collections::BTreeMap;

use super::{
    reference::Answer,
    world::{J, RCall},
};

/// Who a counter belongs to: entry, name, tool, scope value, window.
pub(super) type Counter = (String, String, String, String, i64);

/// Everything that ever happened.
#[derive(Default)]
pub(super) struct History {
    /// When, which counter, how much.
    taken: Vec<(i64, Counter, i64)>,
    pub(super) running: Vec<(String, String)>,
    pub(super) seen: Vec<(i64, String)>,
    /// What the generator reached: operators, scopes.
    pub(super) reached: BTreeMap<&'static str, u64>,
}

impl History {
    pub(super) fn admit(&mut self, call: &RCall, answer: &Answer) {
        for (counter, amount) in &answer.takes {
            self.taken.push((call.at, counter.clone(), *amount));
        }
        self.running.extend(answer.flights.iter().cloned());
        if answer.marks {
            self.seen.push((call.at, same_call(call)));
        }
    }

    pub(super) fn settle(&mut self) {
        self.running.clear();
    }

    pub(super) fn used(&self, counter: &Counter, now: i64, offset: i64) -> i64 {
        let here = window_number(now, counter.4, offset);
        let same = |(at, c, _): &&(i64, Counter, i64)| {
            c == counter && window_number(*at, counter.4, offset) == here
        };
        self.taken.iter().filter(same).map(|(_, _, n)| n).sum()
    }

    pub(super) fn log(&self, counter: &Counter, now: i64) -> Vec<(i64, i64)> {
        self.taken
            .iter()
            .filter(|(at, c, _)| c == counter && *at + counter.4 > now)
            .map(|(at, _, n)| (*at, *n))
            .collect()
    }
}

fn window_number(at: i64, length: i64, offset: i64) -> i64 {
    if length < 86_400 {
        at.div_euclid(length)
    } else {
        (at + offset).div_euclid(86_400).div_euclid(length / 86_400)
    }
}

/// Seconds until the next window, found by looking at each second boundary that could be it.
pub(super) fn until_next(at: i64, length: i64, offset: i64) -> i64 {
    let here = window_number(at, length, offset);
    let step = if length < 86_400 { 1 } else { 60 };
    let mut wait = step - at.rem_euclid(step);
    while window_number(at + wait, length, offset) == here {
        wait += step;
    }
    wait
}

pub(super) fn same_call(call: &RCall) -> String {
    format!("{} {} {} {}", call.grant, call.server, call.tool, sorted(&call.args))
}

fn sorted(json: &J) -> String {
    match json {
        J::Obj(members) => {
            let mut members: Vec<String> =
                members.iter().map(|(k, v)| format!("{k:?}:{}", sorted(v))).collect();
            members.sort();
            format!("{{{}}}", members.join(","))
        }
        J::List(items) => format!("[{}]", items.iter().map(sorted).collect::<Vec<_>>().join(",")),
        other => other.write(),
    }
}
