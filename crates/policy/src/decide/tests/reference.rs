//! The naive interpreter: straight from the text of the language, slow and obvious. It shares no
//! code with the engine: its own globs, numbers, truth, windows and history.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    history::{Counter, History, same_call, until_next},
    truth::Truth,
    world::{Doc, Ent, J, RCall, Shade},
};

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

/// A limit that applies.
struct One {
    rule: String,
    counter: Counter,
    amount: i64,
    max: i64,
    sliding: bool,
    shadow: bool,
    utc: bool,
}

struct Said {
    shadow: bool,
    rule: String,
    effect: &'static str,
    code: &'static str,
    retry: Option<i64>,
}

/// One name against one glob: try everything.
fn glob(pattern: &[char], text: &[char]) -> bool {
    match pattern.first() {
        None => text.is_empty(),
        Some('*') => (0..=text.len()).any(|n| glob(&pattern[1..], &text[n..])),
        Some('?') => !text.is_empty() && glob(&pattern[1..], &text[1..]),
        Some('[') => {
            let end = pattern.iter().position(|c| *c == ']').unwrap();
            !text.is_empty()
                && pattern[1..end].contains(&text[0])
                && glob(&pattern[end + 1..], &text[1..])
        }
        Some(c) => text.first() == Some(c) && glob(&pattern[1..], &text[1..]),
    }
}

fn globs(pattern: &str, text: &str) -> bool {
    glob(&pattern.chars().collect::<Vec<_>>(), &text.chars().collect::<Vec<_>>())
}

fn key_matches(key: &str, call: &RCall) -> bool {
    match key.split_once('/') {
        Some((server, tool)) => globs(server, call.server) && globs(tool, call.tool),
        None => globs(key, call.tool),
    }
}

fn literals(key: &str) -> usize {
    let mut inside = false;
    key.chars()
        .filter(|c| {
            match c {
                '[' => inside = true,
                ']' => inside = false,
                _ => {}
            }
            !inside && !"*?[]/".contains(*c)
        })
        .count()
}

fn in_shadow(shadow: Shade, now: i64) -> bool {
    match shadow {
        Shade::No => false,
        Shade::Always => true,
        Shade::Until(end) => now < end,
    }
}

/// The entries that apply, with their pointers, in the order reasons are named.
fn entries<'d>(doc: &'d Doc, call: &RCall) -> Vec<(String, &'d Ent)> {
    let mut keys: Vec<&&str> = doc.tools.keys().filter(|k| key_matches(k, call)).collect();
    let exact = |k: &str| !k.contains(['*', '?', '[']);
    keys.sort_by_key(|k| (!exact(k), !k.contains('/'), usize::MAX - literals(k), (**k).to_owned()));
    let mut out: Vec<(String, &Ent)> = keys
        .iter()
        .map(|k| (format!("/tools/{}", k.replace('/', "~1")), &doc.tools[**k]))
        .collect();
    if let Some(entry) = doc.classes.get(call.class) {
        out.push((format!("/classes/{}", call.class), entry));
    }
    if let Some(entry) = &doc.all_tools {
        out.push(("/all_tools".into(), entry));
    }
    out
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

    fn scope(&mut self, scope: &'static str) -> String {
        let call = self.call;
        *self.history.reached.entry(scope).or_default() += 1;
        match scope {
            "grant" => format!("grant {}", call.grant),
            "identity" => match call.identity {
                Some(name) => format!("identity {name}"),
                None => format!("grant {}", call.grant),
            },
            "session" => format!("session {}", call.agent_session),
            "target" => format!("target {}", call.target),
            _ => "global".into(),
        }
    }

    /// The limits that apply; an amount that is none denies.
    fn applied(&mut self, all: &[(String, &Ent)]) -> Vec<One> {
        let call = self.call;
        let mut list: Vec<One> = Vec::new();
        let tool = format!("{}/{}", call.server, call.tool);
        for (pointer, entry) in all {
            let shadow = in_shadow(entry.shadow, call.at);
            for limit in &entry.limits {
                let rule = format!("{pointer}/limits/{}", limit.counter);
                let amount = match limit.by {
                    Ok(n) => n,
                    Err(_) => match self.look("args.n") {
                        Some(J::Num(n, _)) if n >= 0 => n,
                        _ => {
                            self.say(shadow, rule, "deny", "policy_denied");
                            continue;
                        }
                    },
                };
                let scope = self.scope(limit.scope);
                let owner = if limit.counter.starts_with("global.") { "global" } else { pointer };
                let per_tool =
                    if limit.counter.contains("{tool}") { tool.clone() } else { String::new() };
                let counter =
                    (owner.to_owned(), limit.counter.to_owned(), per_tool, scope, limit.window.1);
                list.push(One {
                    rule,
                    counter,
                    amount,
                    max: limit.max,
                    sliding: limit.sliding,
                    shadow,
                    utc: false,
                });
            }
            if let Some((max, window)) = entry.rate_limit {
                let scope = self.scope("grant");
                let name = "{tool}_rate".to_owned();
                list.push(One {
                    rule: format!("{pointer}/rate_limit"),
                    counter: (pointer.clone(), name, tool.clone(), scope, window.1),
                    amount: 100,
                    max,
                    sliding: false,
                    shadow,
                    utc: false,
                });
            }
            for rule in &entry.rules {
                let Some((max, window)) = rule.rate else { continue };
                let name = format!("_rate_{}", window.0);
                let counter = (pointer.clone(), name, String::new(), "global".into(), window.1);
                let rule = format!("{pointer}/rules/{}", rule.name);
                list.push(One {
                    rule,
                    counter,
                    amount: 100,
                    max,
                    sliding: false,
                    shadow,
                    utc: true,
                });
            }
        }
        list
    }

    /// 10.
    fn limits(
        &mut self,
        all: &[(String, &Ent)],
    ) -> (BTreeMap<Counter, i64>, BTreeSet<(String, String)>) {
        let call = self.call;
        let list = self.applied(all);
        let mut takes: BTreeMap<Counter, i64> = BTreeMap::new();
        let mut spent = Vec::new();
        for one in &list {
            // One counter is taken once a call, with the largest amount.
            let amount =
                list.iter().filter(|o| o.counter == one.counter).map(|o| o.amount).max().unwrap();
            let offset = if one.utc { 0 } else { self.doc.zone.1 };
            let retry = if one.sliding {
                self.sliding(&one.counter, amount, one.max)
            } else if self.history.used(&one.counter, call.at, offset) + amount > one.max {
                Err((amount <= one.max).then(|| until_next(call.at, one.counter.4, offset)))
            } else {
                Ok(())
            };
            if let Err(retry) = retry {
                spent.push(Said {
                    shadow: one.shadow,
                    rule: one.rule.clone(),
                    effect: "deny",
                    code: "rate_limited",
                    retry,
                });
            } else {
                self.allows.push(one.rule.clone());
                takes.insert(one.counter.clone(), amount);
            }
        }
        self.said.extend(spent);
        let mut flights = BTreeSet::new();
        for (pointer, entry) in all {
            let Some((max, scope)) = entry.concurrency else { continue };
            let shadow = in_shadow(entry.shadow, call.at);
            let me = (pointer.clone(), self.scope(scope));
            let running = self.history.running.iter().filter(|r| **r == me).count();
            let rule = format!("{pointer}/concurrency");
            if i64::try_from(running).unwrap() < max {
                self.allows.push(rule);
                flights.insert(me);
            } else {
                let retry = Some(1);
                self.said.push(Said { shadow, rule, effect: "deny", code: "rate_limited", retry });
            }
        }
        (takes, flights)
    }

    /// The wait, unless it fits, if waiting helps: try every instant something leaves.
    fn sliding(&self, counter: &Counter, amount: i64, max: i64) -> Result<(), Option<i64>> {
        let now = self.call.at;
        let sum = |at: i64| -> i64 { self.history.log(counter, at).iter().map(|(_, n)| n).sum() };
        if sum(now) + amount <= max {
            return Ok(());
        }
        let mut instants: Vec<i64> =
            self.history.log(counter, now).iter().map(|(at, _)| at + counter.4).collect();
        instants.sort_unstable();
        Err(instants.into_iter().find(|at| sum(*at) + amount <= max).map(|at| at - now))
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
