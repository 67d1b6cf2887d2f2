//! Strict truth: three values, free of order, and absence always on the stricter side.
//!
//! `conditions` is false if one is false, else an error if one is; `any` is true if one is true,
//! else an error if one is; `not` of an error is an error.

use std::{borrow::Cow, cell::OnceCell, cmp::Ordering};

use jiff::{Timestamp, tz::TimeZone};

use crate::{
    Call, Usage, host,
    json::{self, Arguments, Malformed, Raw, Value},
    model::{Condition, Op, Operand, Scalar, Test},
    mutant::{self, Mutant},
    number::Number,
    path::{Path, Root, Segment},
    usage::Claim,
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

/// Everything conditions can look at.
pub(crate) struct Facts<'a> {
    pub(crate) call: &'a Call<'a>,
    pub(crate) usage: &'a dyn Usage,
    pub(crate) now: Timestamp,
    pub(crate) zone: &'a TimeZone,
    pub(crate) arguments: Arguments<'a>,
    clock: OnceCell<(&'static str, &'static str)>,
}

impl<'a> Facts<'a> {
    pub(crate) fn new(
        call: &'a Call<'a>,
        usage: &'a dyn Usage,
        now: Timestamp,
        zone: &'a TimeZone,
    ) -> Self {
        let arguments = Arguments::new(call.arguments.unwrap_or("{}"));
        Self { call, usage, now, zone, arguments, clock: OnceCell::new() }
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
        match self.root(&condition.path) {
            Ok((value, rest)) => {
                walk(value, rest, &leaf).unwrap_or_else(|Malformed| broken(condition))
            }
            Err(Malformed) => broken(condition),
        }
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
                let value = self.arguments.get(name)?.map(Raw::read).transpose()?;
                let (Some(Value::Object(raw)), Some((Segment::Key(name), rest))) =
                    (&value, rest.split_first())
                else {
                    return Ok((value, rest));
                };
                let value = self.arguments.within(raw, name)?.map(Raw::read).transpose()?;
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
            Root::TimeHour => Some(Value::Number(self.clock().0)),
            Root::TimeWeekday => Some(Value::Number(self.clock().1)),
        };
        Ok((value, &path.segments))
    }

    /// Local hour and ISO weekday.
    fn clock(&self) -> (&'static str, &'static str) {
        const NUMBERS: [&str; 24] = [
            "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15",
            "16", "17", "18", "19", "20", "21", "22", "23",
        ];
        *self.clock.get_or_init(|| {
            let local = self.zone.to_datetime(self.now);
            let number = |n: i8| {
                usize::try_from(n).ok().and_then(|n| NUMBERS.get(n)).copied().unwrap_or("0")
            };
            (number(local.hour()), number(local.date().weekday().to_monday_one_offset()))
        })
    }

    /// A single value at a path, for counters and ownership.
    pub(crate) fn value(&self, path: &Path) -> Result<Option<Value<'a>>, Malformed> {
        let (mut value, rest) = self.root(path)?;
        for segment in rest {
            value = match value {
                Some(value) => step(&value, segment)?,
                None => return Ok(None),
            };
        }
        Ok(value)
    }

    fn compare<'p>(&self, condition: &'p Condition, value: &Value<'_>) -> Truth<'p> {
        let fault = |why| Truth::Error(Fault { condition, why });
        let sure = |holds: Option<bool>| holds.map_or_else(|| fault(ROUNDED), truth);
        if let (Value::Number(text), true) = (value, condition.op != Op::Exists)
            && !Number::is_held(text)
        {
            return fault("is a number that readers cannot hold");
        }
        match (condition.op, &condition.operand) {
            (Op::Eq, Operand::Scalar(wanted)) => sure(equal(value, wanted)),
            (Op::Neq, Operand::Scalar(wanted)) => sure(equal(value, wanted).map(|is| !is)),
            (Op::In, Operand::List(list)) => sure(among(value, list.iter())),
            (Op::NotIn, Operand::List(list)) => sure(among(value, list.iter()).map(|is| !is)),
            (Op::Lt | Op::Lte | Op::Gt | Op::Gte, Operand::Scalar(Scalar::Number(wanted))) => {
                let Value::Number(text) = value else { return fault("is not a number") };
                sure(Number::agrees(text, wanted, |ordering| ordered(condition.op, ordering)))
            }
            (Op::Exists, Operand::Flag(wanted)) => truth(*wanted),
            (Op::Contains, Operand::Scalar(wanted)) => match contains(value, wanted) {
                Ok(Contains::Yes) => truth(true),
                Ok(Contains::No) => truth(false),
                Ok(Contains::Unsure) => fault(ROUNDED),
                Ok(Contains::Unfit) => fault("is neither text to search nor a list"),
                Err(Malformed) => broken(condition),
            },
            (Op::Owned, Operand::Text(kind)) => self.owned(condition, kind, value),
            (op, operand) => {
                let Value::String(text) = value else { return fault("is not a string") };
                match (op, operand) {
                    (Op::Regex | Op::Matches, Operand::Pattern(pattern, _)) => {
                        truth(pattern.is_match(text))
                    }
                    (Op::StartsWith, Operand::Text(part)) => truth(text.starts_with(part.as_str())),
                    (Op::EndsWith, Operand::Text(part)) => truth(text.ends_with(part.as_str())),
                    (Op::HostIn, Operand::Hosts(hosts)) => match host::of_url(text) {
                        Some(host) => truth(hosts.contains(&host)),
                        None => fault("is not an absolute URL with one host for every reader"),
                    },
                    _ => fault("cannot be compared"),
                }
            }
        }
    }

    fn owned<'p>(&self, condition: &'p Condition, kind: &str, value: &Value<'_>) -> Truth<'p> {
        let fault = |why| Truth::Error(Fault { condition, why });
        let Some(value) = owned_value(value) else {
            return fault("is not a string or integer of at most 256 bytes");
        };
        let claim = Claim {
            grant: self.call.grant,
            identity: self.call.identity.map(|i| i.name),
            server: self.call.server,
            kind,
            value: &value,
            now: self.now,
        };
        match self.usage.owns(&claim) {
            Ok(owns) => truth(owns),
            Err(_) => fault("cannot be looked up now"),
        }
    }
}

fn truth<'p>(holds: bool) -> Truth<'p> {
    if holds { Truth::True } else { Truth::False }
}

const NOT_CLEAN: &str = "cannot be read by all alike: the arguments are not clean JSON, or a key \
    differs from it by case or form only";

fn broken(condition: &Condition) -> Truth<'_> {
    Truth::Error(Fault { condition, why: NOT_CLEAN })
}

fn all<'p>(truths: impl Iterator<Item = Truth<'p>>) -> Truth<'p> {
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

fn any<'p>(truths: impl Iterator<Item = Truth<'p>>) -> Truth<'p> {
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
fn absent(condition: &Condition, side: Side, depth: usize) -> Truth<'_> {
    if let (Op::Exists, Operand::Flag(wanted)) = (condition.op, &condition.operand) {
        return truth(!wanted);
    }
    let negated = !depth.is_multiple_of(2);
    match side {
        _ if mutant::on(Mutant::AbsentIsFalse) => Truth::False,
        Side::Require => truth(negated),
        Side::Match if depth == 0 => truth(matches!(condition.op, Op::Neq | Op::NotIn)),
        Side::Match => truth(!negated),
    }
}

/// Follows the steps; `[any]` and `[all]` ask the rest of every element.
fn walk<'a, 'p>(
    mut value: Option<Value<'a>>,
    mut segments: &[Segment],
    leaf: &impl Fn(Option<Value<'a>>) -> Truth<'p>,
) -> Result<Truth<'p>, Malformed> {
    while let (Some(at), Some((segment, rest))) = (&value, segments.split_first()) {
        match segment {
            Segment::Any => return each(at, rest, false, leaf),
            Segment::All => return each(at, rest, true, leaf),
            segment => (value, segments) = (step(at, segment)?, rest),
        }
    }
    Ok(leaf(value))
}

/// Asks the rest of every element of a list.
fn each<'a, 'p>(
    value: &Value<'a>,
    rest: &[Segment],
    every: bool,
    leaf: &impl Fn(Option<Value<'a>>) -> Truth<'p>,
) -> Result<Truth<'p>, Malformed> {
    let mut fold = Fold::default();
    match value {
        Value::List(raw) => {
            let mut items = json::elements(raw)?;
            while let Some(item) = items.next_element()? {
                fold.add(walk(Some(item.read()?), rest, leaf)?);
            }
        }
        Value::Words(words) => {
            for word in *words {
                let word = Value::String(Cow::Borrowed(word.as_str()));
                fold.add(walk(Some(word), rest, leaf)?);
            }
        }
        _ => return Ok(leaf(None)),
    }
    Ok(if every { fold.every() } else { fold.some() })
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
            (false, None) => truth(self.trues || mutant::on(Mutant::AllOfEmptyIsTrue)),
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

fn step<'a>(value: &Value<'a>, segment: &Segment) -> Result<Option<Value<'a>>, Malformed> {
    match (value, segment) {
        (Value::Object(raw), Segment::Key(name)) => {
            json::member(raw, name)?.map(Raw::read).transpose()
        }
        (Value::List(raw), Segment::Index(index)) => {
            let mut items = json::elements(raw)?;
            let mut left = *index;
            while let Some(item) = items.next_element()? {
                if left == 0 {
                    return item.read().map(Some);
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
pub(crate) fn equal(value: &Value<'_>, wanted: &Scalar) -> Option<bool> {
    match (value, wanted) {
        (Value::Null, Scalar::Null) => Some(true),
        (Value::Bool(a), Scalar::Bool(b)) => Some(a == b),
        (Value::String(a), Scalar::String(b)) => Some(a == b),
        (Value::Number(a), Scalar::Number(b)) => Number::agrees(a, b, Ordering::is_eq),
        _ => Some(false),
    }
}

/// Whether a value equals one of several.
fn among<'s>(value: &Value<'_>, mut list: impl Iterator<Item = &'s Scalar>) -> Option<bool> {
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
        Op::Gt if mutant::on(Mutant::GtIsGte) => ordering.is_ge(),
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

fn contains(value: &Value<'_>, wanted: &Scalar) -> Result<Contains, Malformed> {
    let sure = |found: bool| if found { Contains::Yes } else { Contains::No };
    match (value, wanted) {
        (Value::String(text), Scalar::String(part)) => Ok(sure(text.contains(part.as_str()))),
        (Value::List(raw), wanted) => {
            let mut items = json::elements(raw)?;
            let mut found = Contains::No;
            while let Some(item) = items.next_element()? {
                match equal(&item.read()?, wanted) {
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
            crate::canonical::write_string(text, &mut out);
            Some(out)
        }
        // Of an integer that is rounded another might be meant.
        Value::Number(text) => Number::whole(text),
        _ => None,
    }
}
