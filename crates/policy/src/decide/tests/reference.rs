//! The naive interpreter: straight from the text of the language, slow and obvious. It shares no
//! code with the engine: its own globs (`names`), numbers, truth, windows (`limits`) and history.

mod limits;
mod names;

use std::collections::{BTreeMap, BTreeSet};

use super::{
    history::{Counter, History, same_call, until_next},
    truth::Truth,
    world::{Doc, Ent, RCall},
};
use names::{entries, in_shadow, key_matches, literals};

/// What the interpreter says.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Answer {
    pub(super) effect: &'static str,
    pub(super) code: &'static str,
    pub(super) rule: String,
    pub(super) retry: Option<i64>,
    pub(super) shadow: Option<(&'static str, String)>,
    /// Every rule that took part.
    pub(super) rules: Vec<(String, &'static str)>,
    pub(super) takes: BTreeMap<Counter, i64>,
    pub(super) flights: BTreeSet<(String, String)>,
    pub(super) marks: bool,
}

struct Said {
    shadow: bool,
    rule: String,
    effect: &'static str,
    code: &'static str,
    retry: Option<i64>,
}

pub(super) fn answer(doc: &Doc, call: &RCall, history: &mut History) -> Answer {
    let mut world = Interpreter { doc, call, history, said: Vec::new(), allows: Vec::new() };
    let mut answer = world.decide();
    let would_be_refused = answer.effect == "deny" || answer.effect == "hide";
    if would_be_refused {
        answer.takes.clear();
        answer.flights.clear();
        answer.marks = false;
    }
    if in_shadow(doc.shadow, call.at) {
        let passed = (answer.effect != "allow").then(|| (answer.effect, answer.rule.clone()));
        return Answer {
            effect: "allow",
            code: "",
            rule: String::new(),
            retry: None,
            shadow: passed,
            ..answer
        };
    }
    answer
}

pub(super) struct Interpreter<'w> {
    pub(super) doc: &'w Doc,
    pub(super) call: &'w RCall,
    pub(super) history: &'w mut History,
    said: Vec<Said>,
    allows: Vec<String>,
}

impl Interpreter<'_> {
    fn say(&mut self, shadow: bool, rule: String, effect: &'static str, code: &'static str) {
        self.said.push(Said { shadow, rule, effect, code, retry: None });
    }

    fn decide(&mut self) -> Answer {
        let (doc, call) = (self.doc, self.call);
        let all = entries(doc, call);
        // 2. hidden
        if doc.hide.iter().any(|key| key_matches(key, call)) {
            self.say(false, "(hidden)".into(), "hide", "policy_denied");
            return self.finish(Vec::new());
        }
        let hiders: Vec<bool> = all
            .iter()
            .filter(|(_, e)| e.action == Some("hide"))
            .map(|(_, e)| in_shadow(e.shadow, call.at))
            .collect();
        if hiders.contains(&false) {
            self.say(false, "(hidden)".into(), "hide", "policy_denied");
            return self.finish(Vec::new());
        }
        if hiders.contains(&true) {
            self.say(true, "(hidden)".into(), "hide", "policy_denied");
        }
        // 3. default deny
        let named: Vec<String> = all
            .iter()
            .filter(|(pointer, e)| {
                let by_tool = pointer.starts_with("/tools/")
                    && literals(&pointer.replace("/tools/", "").replace("~1", "/")) > 0;
                let by_class = pointer.starts_with("/classes/") && e.action == Some("allow");
                (by_tool || by_class) && !in_shadow(e.shadow, call.at)
            })
            .map(|(p, e)| if e.action.is_some() { format!("{p}/action") } else { p.clone() })
            .collect();
        if !doc.default_allow && named.is_empty() {
            self.say(false, "(default deny)".into(), "deny", "policy_denied");
            return self.finish(Vec::new());
        }
        self.allows = named;
        self.denials(&all);
        let marks = self.repeats(&all);
        let mut takes = self.looped();
        let mut holds = self.approvals(&all);
        let (limit_takes, flights) = self.limits(&all);
        takes.extend(limit_takes);
        if call.approval == 2 {
            holds.clear();
        }
        let mut answer = self.finish(holds);
        answer.takes = takes;
        answer.flights = flights;
        answer.marks = marks;
        answer
    }

    /// 4 to 7.
    fn denials(&mut self, all: &[(String, &Ent)]) {
        for (pointer, entry) in all {
            if entry.action == Some("deny") {
                let shadow = in_shadow(entry.shadow, self.call.at);
                self.say(shadow, format!("{pointer}/action"), "deny", "policy_denied");
            }
        }
        for (pointer, entry) in all {
            for (index, pred) in entry.require.iter().enumerate() {
                if self.truth(pred, true) != Truth::Yes {
                    let shadow = in_shadow(entry.shadow, self.call.at);
                    self.say(shadow, format!("{pointer}/require/{index}"), "deny", "policy_denied");
                }
            }
        }
        for (pointer, entry) in all {
            for (index, pred) in entry.deny_if.iter().enumerate() {
                if self.truth(pred, false) != Truth::No {
                    let shadow = in_shadow(entry.shadow, self.call.at);
                    self.say(shadow, format!("{pointer}/deny_if/{index}"), "deny", "policy_denied");
                }
            }
        }
        for (pointer, entry) in all {
            for rule in &entry.rules {
                let fails = match rule.action {
                    "deny" => true,
                    "evaluate" => rule.rate.is_none() && !self.intercept(rule),
                    _ => false,
                };
                if fails {
                    let shadow = in_shadow(entry.shadow, self.call.at);
                    let rule = format!("{pointer}/rules/{}", rule.name);
                    self.say(shadow, rule, "deny", "policy_denied");
                    break;
                }
            }
        }
    }

    /// 8, first half. Whether the call is to be remembered.
    fn repeats(&mut self, all: &[(String, &Ent)]) -> bool {
        let mut marks = false;
        for (pointer, entry) in all {
            let Some(window) = entry.unless else { continue };
            let me = same_call(self.call);
            let last = self.history.seen.iter().filter(|(_, c)| *c == me).map(|(at, _)| *at).max();
            let left = last.map_or(0, |at| at + window.1 - self.call.at);
            if left > 0 && self.call.approval == 0 {
                let shadow = in_shadow(entry.shadow, self.call.at);
                self.said.push(Said {
                    shadow,
                    rule: format!("{pointer}/unless_seen_within"),
                    effect: "deny",
                    code: "policy_denied",
                    retry: Some(left),
                });
            } else {
                marks = true;
            }
        }
        marks
    }

    /// 8, second half.
    fn looped(&mut self) -> BTreeMap<Counter, i64> {
        let Some((max, window)) = self.doc.looped else { return BTreeMap::new() };
        let call = self.call;
        let me = format!("{} {}", call.target, same_call(call));
        let counter = ("/loop".into(), String::new(), me, String::new(), window.1);
        if self.history.used(&counter, call.at, self.doc.zone.1) + 1 > max {
            self.said.push(Said {
                shadow: false,
                rule: "/loop".into(),
                effect: "deny",
                code: "rate_limited",
                retry: Some(until_next(call.at, window.1, self.doc.zone.1)),
            });
            return BTreeMap::new();
        }
        BTreeMap::from([(counter, 1)])
    }

    /// 9: what holds. A predicate without truth denies here.
    fn approvals(&mut self, all: &[(String, &Ent)]) -> Vec<(bool, String)> {
        let mut by_rule = Vec::new();
        for (pointer, entry) in all {
            let shadow = in_shadow(entry.shadow, self.call.at);
            for rule in &entry.rules {
                // Behind a rule that denies nothing is looked at any more.
                let stops = rule.action == "deny"
                    || (rule.action == "evaluate" && rule.rate.is_none() && !self.intercept(rule));
                if stops {
                    break;
                }
                if rule.action == "require_approval" && self.intercept(rule) {
                    by_rule.push((shadow, format!("{pointer}/rules/{}", rule.name)));
                }
            }
        }
        let mut holds = by_rule;
        for (pointer, entry) in all {
            let shadow = in_shadow(entry.shadow, self.call.at);
            if entry.approve {
                holds.push((shadow, format!("{pointer}/approve")));
            } else if entry.action == Some("require_approval") {
                holds.push((shadow, format!("{pointer}/action")));
            }
            for (index, pred) in entry.approve_if.iter().enumerate() {
                let rule = format!("{pointer}/approve_if/{index}");
                match self.truth(pred, false) {
                    Truth::Yes => holds.push((shadow, rule)),
                    Truth::Error => self.say(shadow, rule, "deny", "policy_denied"),
                    Truth::No => {}
                }
            }
        }
        holds
    }

    /// The strictest word, and its reason.
    fn finish(&mut self, holds: Vec<(bool, String)>) -> Answer {
        for (shadow, rule) in holds {
            self.say(shadow, rule, "hold", "");
        }
        let strict = |said: &Said| match (said.effect, said.code) {
            ("hide", _) => 4,
            ("deny", "policy_denied") => 3,
            ("deny", _) => 2,
            _ => 1,
        };
        let first = self.said.iter().find(|s| !s.shadow);
        let would = self.said.iter().find(|s| s.shadow);
        let mine = first.map_or(0, strict);
        let shadow = would.filter(|w| strict(w) > mine).map(|w| (w.effect, w.rule.clone()));
        let mut rules: Vec<(String, &'static str)> =
            self.said.iter().map(|s| (s.rule.clone(), s.effect)).collect();
        rules.extend(self.allows.iter().map(|r| (r.clone(), "allow")));
        rules.sort();
        Answer {
            effect: first.map_or("allow", |s| s.effect),
            code: first.map_or("", |s| s.code),
            rule: first.map_or(String::new(), |s| s.rule.clone()),
            retry: first.and_then(|s| s.retry),
            shadow,
            rules,
            takes: BTreeMap::new(),
            flights: BTreeSet::new(),
            marks: false,
        }
    }
}
