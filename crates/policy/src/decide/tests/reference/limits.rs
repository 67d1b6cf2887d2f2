//! Step 10: every counter of a call, counted from the whole history.

use std::collections::{BTreeMap, BTreeSet};

use super::super::{
    history::{Counter, until_next},
    world::{Ent, J},
};
use super::{Interpreter, Said, in_shadow};

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

impl Interpreter<'_> {
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
    pub(super) fn limits(
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
}
