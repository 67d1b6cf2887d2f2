//! The naive truth of predicates, and Intercept's.

use super::{
    reference::Interpreter,
    world::{Cond, IRule, J, PATTERNS, Pattern, Pred, URLS},
};

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Truth {
    No,
    Error,
    Yes,
}

impl Interpreter<'_> {
    /// Every way the absent values could be; the strictest outcome counts.
    pub(super) fn truth(&mut self, pred: &Pred, require: bool) -> Truth {
        let mut absent = 0;
        self.eval(pred, require, 0, &mut || {
            absent += 1;
            false
        });
        let outcomes: Vec<Truth> = (0..1u32 << absent)
            .map(|mask| {
                self.eval(pred, require, 0, &mut {
                    let mut at = 0;
                    move || {
                        at += 1;
                        mask >> (at - 1) & 1 == 1
                    }
                })
            })
            .collect();
        let order = if require {
            [Truth::No, Truth::Error, Truth::Yes]
        } else {
            [Truth::Yes, Truth::Error, Truth::No]
        };
        order.into_iter().find(|t| outcomes.contains(t)).unwrap()
    }

    fn eval(
        &mut self,
        pred: &Pred,
        require: bool,
        depth: u32,
        absent: &mut dyn FnMut() -> bool,
    ) -> Truth {
        match pred {
            Pred::All(conditions) => {
                let all: Vec<Truth> = conditions
                    .iter()
                    .map(|c| {
                        *self.history.reached.entry(c.op).or_default() += 1;
                        let root = self.root(c.path);
                        let steps = steps(c.path);
                        self.condition(c, root, &steps, require, depth, absent)
                    })
                    .collect();
                every(&all)
            }
            Pred::Any(preds) => {
                let all: Vec<Truth> =
                    preds.iter().map(|p| self.eval(p, require, depth, absent)).collect();
                some(&all)
            }
            Pred::Not(inner) => match self.eval(inner, require, depth + 1, absent) {
                Truth::No => Truth::Yes,
                Truth::Yes => Truth::No,
                Truth::Error => Truth::Error,
            },
        }
    }

    fn root(&self, path: &str) -> Option<J> {
        let call = self.call;
        let local = call.at + self.doc.zone.1;
        let number = |n: i64| J::Num(n * 100, n.to_string());
        match path.split('[').next().unwrap() {
            "grant.label" => Some(J::Str(call.grant.into())),
            "identity.name" => call.identity.map(|i| J::Str(i.into())),
            "identity.groups" => call
                .identity
                .map(|_| J::List(call.groups.iter().map(|g| J::Str(g.clone())).collect())),
            "server" => Some(J::Str(call.server.into())),
            "tool" => Some(J::Str(call.tool.into())),
            "risk.class" => Some(J::Str(call.class.into())),
            "session.kind" => call.kind.map(|k| J::Str(k.into())),
            "time.hour" => Some(number(local.rem_euclid(86_400) / 3600)),
            // 1970-01-01 was a Thursday.
            "time.weekday" => Some(number((local.div_euclid(86_400) + 3).rem_euclid(7) + 1)),
            _ => Some(call.args.clone()),
        }
    }

    /// A single value, for sums.
    pub(super) fn look(&self, path: &str) -> Option<J> {
        let mut value = self.root(path)?;
        for step in steps(path) {
            value = down(&value, &step)?;
        }
        Some(value)
    }

    fn condition(
        &mut self,
        c: &Cond,
        value: Option<J>,
        steps: &[String],
        require: bool,
        depth: u32,
        absent: &mut dyn FnMut() -> bool,
    ) -> Truth {
        let Some(value) = value else {
            return match (c.op, &c.value) {
                ("exists", J::Bool(wanted)) => truth(!wanted),
                (op, _) if !require && depth == 0 => truth(op == "neq" || op == "not_in"),
                _ => truth(absent()),
            };
        };
        let Some((step, rest)) = steps.split_first() else { return self.compare(c, &value) };
        if step == "[any]" || step == "[all]" {
            let J::List(items) = &value else {
                return self.condition(c, None, rest, require, depth, absent);
            };
            let all: Vec<Truth> = items
                .iter()
                .map(|item| self.condition(c, Some(item.clone()), rest, require, depth, absent))
                .collect();
            return match (all.is_empty(), step.as_str()) {
                (true, _) => Truth::No,
                (false, "[any]") => some(&all),
                _ => every(&all),
            };
        }
        self.condition(c, down(&value, step), rest, require, depth, absent)
    }

    fn compare(&self, c: &Cond, value: &J) -> Truth {
        match (c.op, value, &c.value) {
            ("eq", v, w) => truth(equal(v, w)),
            ("neq", v, w) => truth(!equal(v, w)),
            ("in", v, J::List(w)) => truth(w.iter().any(|w| equal(v, w))),
            ("not_in", v, J::List(w)) => truth(!w.iter().any(|w| equal(v, w))),
            ("lt", J::Num(a, _), J::Num(b, _)) => truth(a < b),
            ("lte", J::Num(a, _), J::Num(b, _)) => truth(a <= b),
            ("gt", J::Num(a, _), J::Num(b, _)) => truth(a > b),
            ("gte", J::Num(a, _), J::Num(b, _)) => truth(a >= b),
            ("exists", _, J::Bool(w)) => truth(*w),
            ("contains", J::Str(a), J::Str(b)) => truth(a.contains(b.as_str())),
            ("contains", J::List(items), w) => truth(items.iter().any(|i| equal(i, w))),
            ("starts_with", J::Str(a), J::Str(b)) => truth(a.starts_with(b.as_str())),
            ("ends_with", J::Str(a), J::Str(b)) => truth(a.ends_with(b.as_str())),
            ("regex", J::Str(a), J::Str(p)) => truth(pattern(p).1(a)),
            ("matches", J::Str(a), J::Str(p)) => truth(pattern(p).2(a)),
            ("host_in", J::Str(a), J::List(hosts)) => {
                match URLS.iter().find(|(url, _)| url == a).and_then(|(_, host)| *host) {
                    Some(host) => truth(
                        hosts.iter().any(|h| matches!(h, J::Str(h) if h.to_lowercase() == host)),
                    ),
                    None => Truth::Error,
                }
            }
            // The first grant owns the strings "a" and "b" and the number one.
            ("owned", J::Str(a), _) => truth(self.call.grant == "g1" && (a == "a" || a == "b")),
            ("owned", J::Num(n, _), _) if n % 100 == 0 => {
                truth(self.call.grant == "g1" && *n == 100)
            }
            _ => Truth::Error,
        }
    }

    /// Intercept's own truth.
    pub(super) fn intercept(&self, rule: &IRule) -> bool {
        rule.conditions.iter().all(|c| {
            let value = self.look(c.path);
            if let ("exists", J::Bool(wanted)) = (c.op, &c.value) {
                return *wanted == !matches!(value, None | Some(J::Null));
            }
            let Some(value) = value else { return false };
            match (c.op, &value, &c.value) {
                ("eq", v, w) => printed_equal(v, w),
                ("neq", v, w) => !printed_equal(v, w),
                ("in", v, J::List(w)) => w.iter().any(|w| printed_equal(v, w)),
                ("not_in", v, J::List(w)) => !w.iter().any(|w| printed_equal(v, w)),
                ("lt", J::Num(a, _), J::Num(b, _)) => a < b,
                ("lte", J::Num(a, _), J::Num(b, _)) => a <= b,
                ("gt", J::Num(a, _), J::Num(b, _)) => a > b,
                ("gte", J::Num(a, _), J::Num(b, _)) => a >= b,
                ("regex", J::Str(a), J::Str(p)) => pattern(p).1(a),
                ("contains", J::Str(a), J::Str(b)) => a.contains(b.as_str()),
                ("contains", J::List(items), w) => items.iter().any(|i| printed_equal(i, w)),
                _ => false,
            }
        })
    }
}

fn truth(holds: bool) -> Truth {
    if holds { Truth::Yes } else { Truth::No }
}

fn every(all: &[Truth]) -> Truth {
    [Truth::No, Truth::Error].into_iter().find(|t| all.contains(t)).unwrap_or(Truth::Yes)
}

fn some(all: &[Truth]) -> Truth {
    [Truth::Yes, Truth::Error].into_iter().find(|t| all.contains(t)).unwrap_or(Truth::No)
}

fn pattern(text: &str) -> Pattern {
    *PATTERNS.iter().find(|(p, ..)| *p == text).unwrap()
}

fn equal(a: &J, b: &J) -> bool {
    match (a, b) {
        (J::Num(a, _), J::Num(b, _)) => a == b,
        (J::List(_) | J::Obj(_), _) => false,
        _ => a == b,
    }
}

fn printed_equal(a: &J, b: &J) -> bool {
    let print = |j: &J| match j {
        J::Null => Some("<nil>".to_owned()),
        J::Bool(b) => Some(b.to_string()),
        J::Num(n, _) if n % 100 == 0 => Some((n / 100).to_string()),
        J::Num(_, text) => Some(text.clone()),
        J::Str(s) => Some(s.clone()),
        J::List(_) | J::Obj(_) => None,
    };
    match (a, b) {
        (J::Num(a, _), J::Num(b, _)) => a == b,
        _ => print(a).is_some() && print(a) == print(b),
    }
}

fn down(value: &J, step: &str) -> Option<J> {
    match value {
        J::Obj(members) => members.iter().find(|(k, _)| k == step).map(|(_, v)| v.clone()),
        J::List(items) => {
            items.get(step.strip_prefix('[')?.strip_suffix(']')?.parse::<usize>().ok()?).cloned()
        }
        _ => None,
    }
}

/// The steps of a path below its root: names, `[0]`, `[any]`, `[all]`.
fn steps(path: &str) -> Vec<String> {
    let rest = match path.strip_prefix("args") {
        Some(rest) => rest.to_owned(),
        None => path.split_once('[').map_or(String::new(), |(_, rest)| format!("[{rest}")),
    };
    if rest == ".\"a.b\"" {
        return vec!["a.b".into()];
    }
    rest.replace('[', ".[").split('.').filter(|s| !s.is_empty()).map(str::to_owned).collect()
}
