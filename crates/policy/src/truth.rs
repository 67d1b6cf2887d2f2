//! Strict truth: three values, free of order, and absence always on the stricter side.
//!
//! `conditions` is false if one is false, else an error if one is; `any` is true if one is true,
//! else an error if one is; `not` of an error is an error.

use std::{borrow::Cow, cmp::Ordering};

use toolgate_json::walk::Walk;

use crate::{
    Call,
    budget::{Budget, OVER},
    host,
    json::{self, Arguments, Malformed, Value},
    model::{Condition, Op, Operand, Test},
    number::Number,
    path::{Path, Root, Segment},
    scalar::Scalar,
};

/// The truth of a test.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Truth<'p> {
    False,
    True,
    Error(Fault<'p>),
}

/// Why a condition has no truth.
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

/// Everything conditions can look at, but for time and ownership (`decide/later.rs`).
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

    /// The values that a condition looks at, absent ones among them, put together by what its path
    /// says of lists.
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

    /// What a condition is that cannot be looked at.
    pub(crate) fn broken<'p>(&self, condition: &'p Condition) -> Truth<'p> {
        let why = if self.budget.is_spent() { OVER } else { NOT_CLEAN };
        Truth::Error(Fault { condition, why })
    }

    /// The value a path starts from, and the steps that are left.
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
            return fault("is a number that readers cannot hold");
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
                        None => fault("is not an absolute URL with one host for every reader"),
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

/// What a condition on an absent value is: whatever makes the whole predicate stricter, except
/// that outside `not` only `neq` and `not_in` match an absent value. `exists` decides by itself.
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

/// Follows the steps; `[any]` and `[all]` ask the rest of every element.
fn walk<'a, 'p>(
    value: Option<Value<'a>>,
    segments: &[Segment],
    budget: &Budget,
    leaf: &impl Fn(Option<Value<'a>>) -> Truth<'p>,
) -> Result<Truth<'p>, Malformed> {
    let (at, rest) = follow(value, segments, budget)?;
    let (Some(list), Some((segment, rest))) = (&at, rest.split_first()) else {
        return Ok(leaf(at));
    };
    let mut fold = Fold::default();
    let is_list = each(list, budget, |item| {
        fold.add(walk(Some(item), rest, budget, leaf)?);
        Ok(())
    })?;
    Ok(match (is_list, segment) {
        (false, _) => leaf(None),
        (true, Segment::All) => fold.every(),
        (true, _) => fold.some(),
    })
}

/// The same, for whatever is made of a value: `fold` puts together what was made of the elements
/// of a list, of which all count if it is told `true`, and any otherwise.
fn gather<'a, T>(
    value: Option<Value<'a>>,
    segments: &[Segment],
    budget: &Budget,
    leaf: &impl Fn(Option<Value<'a>>) -> T,
    fold: &impl Fn(Vec<T>, bool) -> T,
) -> Result<T, Malformed> {
    let (at, rest) = follow(value, segments, budget)?;
    let (Some(list), Some((segment, rest))) = (&at, rest.split_first()) else {
        return Ok(leaf(at));
    };
    let mut made = Vec::new();
    let is_list = each(list, budget, |item| {
        made.push(gather(Some(item), rest, budget, leaf, fold)?);
        Ok(())
    })?;
    Ok(if is_list { fold(made, matches!(segment, Segment::All)) } else { leaf(None) })
}

/// Follows the steps up to `[any]` or `[all]`, or to where nothing is.
fn follow<'a, 's>(
    mut value: Option<Value<'a>>,
    mut segments: &'s [Segment],
    budget: &Budget,
) -> Result<(Option<Value<'a>>, &'s [Segment]), Malformed> {
    while let (Some(at), Some((segment, rest))) = (&value, segments.split_first()) {
        if matches!(segment, Segment::Any | Segment::All) {
            break;
        }
        (value, segments) = (step(at, segment, budget)?, rest);
    }
    Ok((value, segments))
}

/// Visits every element, if the value is a list.
fn each<'a>(
    value: &Value<'a>,
    budget: &Budget,
    mut visit: impl FnMut(Value<'a>) -> Result<(), Malformed>,
) -> Result<bool, Malformed> {
    match value {
        Value::List(raw) => {
            budget.look_at(raw.len())?;
            let mut items = Walk::list(raw)?;
            while let Some(item) = items.element()? {
                budget.compare()?;
                visit(Value::of(item)?)?;
            }
        }
        Value::Words(words) => {
            for word in *words {
                budget.compare()?;
                visit(Value::String(Cow::Borrowed(word.as_str())))?;
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Truths put together, in any order.
#[derive(Default)]
struct Fold<'p> {
    trues: bool,
    falses: bool,
    fault: Option<Fault<'p>>,
}

impl<'p> Fold<'p> {
    fn add(&mut self, truth: Truth<'p>) {
        match truth {
            Truth::True => self.trues = true,
            Truth::False => self.falses = true,
            Truth::Error(fault) => self.fault = self.fault.or(Some(fault)),
        }
    }

    /// True of every one; false of none.
    fn every(self) -> Truth<'p> {
        match (self.falses, self.fault) {
            (true, _) => Truth::False,
            (false, Some(fault)) => Truth::Error(fault),
            (false, None) => truth(self.trues),
        }
    }

    /// True of one at least.
    fn some(self) -> Truth<'p> {
        match (self.trues, self.fault) {
            (true, _) => Truth::True,
            (false, Some(fault)) => Truth::Error(fault),
            (false, None) => Truth::False,
        }
    }
}

fn step<'a>(
    value: &Value<'a>,
    segment: &Segment,
    budget: &Budget,
) -> Result<Option<Value<'a>>, Malformed> {
    match (value, segment) {
        (Value::Object(raw), Segment::Key(name)) => {
            budget.look_at(raw.len())?;
            json::member(raw, name)?.map(Value::of).transpose()
        }
        (Value::List(raw), Segment::Index(index)) => {
            budget.look_at(raw.len())?;
            let mut items = Walk::list(raw)?;
            let mut left = *index;
            while let Some(item) = items.element()? {
                if left == 0 {
                    return Value::of(item).map(Some);
                }
                left -= 1;
            }
            Ok(None)
        }
        (Value::Words(words), Segment::Index(index)) => {
            Ok(words.get(*index).map(|w| Value::String(Cow::Borrowed(w.as_str()))))
        }
        _ => Ok(None),
    }
}

/// Why two numbers cannot be compared.
const ROUNDED: &str = "is a number that readers round differently";

/// Type and value; numbers by exact value, if readers that round find the same.
fn equal(value: &Value<'_>, wanted: &Scalar) -> Option<bool> {
    match (value, wanted) {
        (Value::Null, Scalar::Null) => Some(true),
        (Value::Bool(a), Scalar::Bool(b)) => Some(a == b),
        (Value::String(a), Scalar::String(b)) => Some(a == b),
        (Value::Number(a), Scalar::Number(b)) => Number::agrees(a, b, Ordering::is_eq),
        _ => Some(false),
    }
}

/// Whether a value equals one of several.
pub(crate) fn among<'s>(
    value: &Value<'_>,
    mut list: impl Iterator<Item = &'s Scalar>,
) -> Option<bool> {
    let mut sure = true;
    let found = list.any(|wanted| {
        let is = equal(value, wanted);
        sure &= is.is_some();
        is == Some(true)
    });
    (found || sure).then_some(found)
}

pub(crate) fn ordered(op: Op, ordering: Ordering) -> bool {
    match op {
        Op::Lt => ordering.is_lt(),
        Op::Lte => ordering.is_le(),
        Op::Gt => ordering.is_gt(),
        Op::Gte => ordering.is_ge(),
        _ => false,
    }
}

/// Whether a value contains another.
enum Contains {
    Yes,
    No,
    /// Readers may differ.
    Unsure,
    /// The types do not go together.
    Unfit,
}

fn contains(value: &Value<'_>, wanted: &Scalar, budget: &Budget) -> Result<Contains, Malformed> {
    let sure = |found: bool| if found { Contains::Yes } else { Contains::No };
    match (value, wanted) {
        (Value::String(text), Scalar::String(part)) => Ok(sure(text.contains(part.as_str()))),
        (Value::List(raw), wanted) => {
            budget.look_at(raw.len())?;
            let mut items = Walk::list(raw)?;
            let mut found = Contains::No;
            while let Some(item) = items.element()? {
                budget.compare()?;
                match equal(&Value::of(item)?, wanted) {
                    Some(true) => return Ok(Contains::Yes),
                    Some(false) => {}
                    None => found = Contains::Unsure,
                }
            }
            Ok(found)
        }
        (Value::Words(words), Scalar::String(wanted)) => Ok(sure(words.contains(wanted))),
        (Value::Words(_), _) => Ok(Contains::No),
        _ => Ok(Contains::Unfit),
    }
}

/// The one spelling of a value that can be owned: a JSON string or an integer, ≤ 256 bytes.
pub(crate) fn owned_value(value: &Value<'_>) -> Option<String> {
    match value {
        Value::String(text) if text.len() <= 256 => {
            let mut out = String::new();
            toolgate_json::push_quoted(text, &mut out);
            Some(out)
        }
        // Of an integer that is rounded another might be meant.
        Value::Number(text) => Number::whole(text),
        _ => None,
    }
}
