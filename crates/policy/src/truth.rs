//! Evaluation of conditions: three truth values, independent of order. An absent value always takes
//! the stricter side.
//!
//! `conditions` is false if one is false, else an error if one is an error; `any` is true if one is
//! true, else an error if one is an error; `not` of an error is an error.

mod compare;
mod walk;

use std::borrow::Cow;

use crate::{
    Call,
    budget::{Budget, OVER},
    host,
    json::{Arguments, Malformed, Value},
    model::{Condition, Op, Operand, Test},
    number::Number,
    path::{Path, Root, Segment},
    scalar::Scalar,
};
use compare::{Contains, ROUNDED, contains, equal};
pub(crate) use compare::{among, ordered, owned_value};
use walk::{gather, step, walk};

/// The truth of a test.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Truth<'p> {
    False,
    True,
    Error(Fault<'p>),
}

/// Why a condition is an error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault<'p> {
    pub(crate) condition: &'p Condition,
    pub(crate) why: &'static str,
}

/// Which side is the strict one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// `require`: failing denies.
    Require,
    /// `deny_if` and `approve_if`: holding denies or holds.
    Match,
}

/// Everything that conditions refer to, except time and ownership (`decide/later.rs`).
pub(crate) struct Facts<'a> {
    pub(crate) call: &'a Call<'a>,
    pub(crate) arguments: Arguments<'a>,
    pub(crate) budget: Budget,
}

impl<'a> Facts<'a> {
    pub(crate) fn new(call: &'a Call<'a>) -> Self {
        let arguments = Arguments::new(call.arguments.unwrap_or("{}"));
        Self { call, arguments, budget: Budget::default() }
    }

    /// Whether a test holds. `depth` counts the `not`s around it.
    pub(crate) fn test<'p>(&self, test: &'p Test, side: Side, depth: usize) -> Truth<'p> {
        match test {
            Test::All(tests) => all(tests.iter().map(|t| self.test(t, side, depth))),
            Test::Any(tests) => any(tests.iter().map(|t| self.test(t, side, depth))),
            Test::Not(test) => match self.test(test, side, depth + 1) {
                Truth::True => Truth::False,
                Truth::False => Truth::True,
                error @ Truth::Error(_) => error,
            },
            Test::Condition(condition) => self.condition(condition, side, depth),
        }
    }

    fn condition<'p>(&self, condition: &'p Condition, side: Side, depth: usize) -> Truth<'p> {
        let leaf = |value: Option<Value<'a>>| match value {
            Some(value) => self.compare(condition, &value),
            None => absent(condition, side, depth),
        };
        let walked = self.budget.compare().and_then(|()| {
            let (value, rest) = self.root(&condition.path)?;
            walk(value, rest, &self.budget, &leaf)
        });
        walked.unwrap_or_else(|Malformed| self.broken(condition))
    }

    /// Folds over the values that a condition refers to, including absent ones.
    pub(crate) fn gather<T>(
        &self,
        condition: &Condition,
        leaf: &impl Fn(Option<Value<'a>>) -> T,
        fold: &impl Fn(Vec<T>, bool) -> T,
    ) -> Result<T, Malformed> {
        self.budget.compare()?;
        let (value, rest) = self.root(&condition.path)?;
        gather(value, rest, &self.budget, leaf, fold)
    }

    /// The result of a condition that cannot be evaluated.
    pub(crate) fn broken<'p>(&self, condition: &'p Condition) -> Truth<'p> {
        let why = if self.budget.is_spent() { OVER } else { NOT_CLEAN };
        Truth::Error(Fault { condition, why })
    }

    /// The value that a path starts from, and the remaining steps.
    fn root<'p>(&self, path: &'p Path) -> Result<(Option<Value<'a>>, &'p [Segment]), Malformed> {
        let text = |text: Option<&'a str>| text.map(|t| Value::String(Cow::Borrowed(t)));
        let session = self.call.session;
        let value = match path.root {
            Root::Args | Root::Result => {
                let Some((Segment::Key(name), rest)) = path.segments.split_first() else {
                    return Ok((None, &[]));
                };
                self.budget.look_at(self.arguments.len())?;
                let value = self.arguments.get(name)?.map(Value::of).transpose()?;
                let (Some(Value::Object(raw)), Some((Segment::Key(name), rest))) =
                    (&value, rest.split_first())
                else {
                    return Ok((value, rest));
                };
                self.budget.look_at(raw.len())?;
                let value = self.arguments.within(raw, name)?.map(Value::of).transpose()?;
                return Ok((value, rest));
            }
            Root::GrantLabel => text(Some(self.call.grant)),
            Root::IdentityName => text(self.call.identity.map(|i| i.name)),
            Root::IdentityGroups => self.call.identity.map(|i| Value::Words(i.groups)),
            Root::ClientName => text(self.call.client),
            Root::Server => text(Some(self.call.server)),
            Root::Tool => text(Some(self.call.tool)),
            Root::RiskClass => text(Some(self.call.class.as_str())),
            Root::SessionKind => text(session.and_then(|s| s.kind)),
            Root::SessionInfobase => text(session.and_then(|s| s.infobase_name)),
            Root::SessionHost => text(session.and_then(|s| s.host_id)),
            // Time is not known yet; see `decide/later.rs`.
            Root::TimeHour | Root::TimeWeekday => None,
        };
        Ok((value, &path.segments))
    }

    /// A single value at a path, for counters and ownership.
    pub(crate) fn value(&self, path: &Path) -> Result<Option<Value<'a>>, Malformed> {
        let (mut value, rest) = self.root(path)?;
        for segment in rest {
            value = match value {
                Some(value) => step(&value, segment, &self.budget)?,
                None => return Ok(None),
            };
        }
        Ok(value)
    }

    pub(crate) fn compare<'p>(&self, condition: &'p Condition, value: &Value<'_>) -> Truth<'p> {
        let fault = |why| Truth::Error(Fault { condition, why });
        if self.budget.look_at(value.text_len()).is_err() {
            return fault(OVER);
        }
        let sure = |holds: Option<bool>| holds.map_or_else(|| fault(ROUNDED), truth);
        if let (Value::Number(text), true) = (value, condition.op != Op::Exists)
            && !Number::is_held(text)
        {
            return fault("is a number that a double cannot hold");
        }
        match (condition.op, &condition.operand) {
            (Op::Eq, Operand::Scalar(wanted)) => sure(equal(value, wanted)),
            (Op::Neq, Operand::Scalar(wanted)) => sure(equal(value, wanted).map(|is| !is)),
            (Op::In, Operand::List(list)) => sure(among(value, list.candidates(value))),
            (Op::NotIn, Operand::List(list)) => {
                sure(among(value, list.candidates(value)).map(|is| !is))
            }
            (Op::Lt | Op::Lte | Op::Gt | Op::Gte, Operand::Scalar(Scalar::Number(wanted))) => {
                let Value::Number(text) = value else { return fault("is not a number") };
                sure(Number::agrees(text, wanted, |ordering| ordered(condition.op, ordering)))
            }
            (Op::Exists, Operand::Flag(wanted)) => truth(*wanted),
            (Op::Contains, Operand::Scalar(wanted)) => {
                match contains(value, wanted, &self.budget) {
                    Ok(Contains::Yes) => truth(true),
                    Ok(Contains::No) => truth(false),
                    Ok(Contains::Unsure) => fault(ROUNDED),
                    Ok(Contains::Unfit) => fault("is neither text to search nor a list"),
                    Err(Malformed) => self.broken(condition),
                }
            }
            (op, operand) => {
                let Value::String(text) = value else { return fault("is not a string") };
                match (op, operand) {
                    (Op::Regex | Op::Matches, Operand::Pattern(pattern, _)) => {
                        truth(pattern.is_match(text))
                    }
                    (Op::StartsWith, Operand::Text(part)) => truth(text.starts_with(part.as_str())),
                    (Op::EndsWith, Operand::Text(part)) => truth(text.ends_with(part.as_str())),
                    (Op::HostIn, Operand::Hosts(hosts)) => match host::of_url(text) {
                        Some(host) => truth(hosts.has(&host)),
                        None => fault("is not an absolute URL that every reader takes to one host"),
                    },
                    _ => fault("cannot be compared"),
                }
            }
        }
    }
}

pub(crate) const NOT_CLEAN: &str = "cannot be read by all alike: the arguments are not clean JSON, or a key \
    differs from it by case or form only";

pub(crate) fn truth<'p>(holds: bool) -> Truth<'p> {
    if holds { Truth::True } else { Truth::False }
}

pub(crate) fn all<'p>(truths: impl Iterator<Item = Truth<'p>>) -> Truth<'p> {
    let mut fault = None;
    for truth in truths {
        match truth {
            Truth::False => return Truth::False,
            Truth::Error(f) => fault = fault.or(Some(f)),
            Truth::True => {}
        }
    }
    fault.map_or(Truth::True, Truth::Error)
}

pub(crate) fn any<'p>(truths: impl Iterator<Item = Truth<'p>>) -> Truth<'p> {
    let mut fault = None;
    for truth in truths {
        match truth {
            Truth::True => return Truth::True,
            Truth::Error(f) => fault = fault.or(Some(f)),
            Truth::False => {}
        }
    }
    fault.map_or(Truth::False, Truth::Error)
}

/// The result of a condition on an absent value: the stricter one, except that outside `not` only
/// `neq` and `not_in` match. `exists` decides absence itself.
pub(crate) fn absent(condition: &Condition, side: Side, depth: usize) -> Truth<'_> {
    if let (Op::Exists, Operand::Flag(wanted)) = (condition.op, &condition.operand) {
        return truth(!wanted);
    }
    let negated = !depth.is_multiple_of(2);
    match side {
        Side::Require => truth(negated),
        Side::Match if depth == 0 => truth(matches!(condition.op, Op::Neq | Op::NotIn)),
        Side::Match => truth(!negated),
    }
}
