//! Partial evaluation of predicates, before time and ownership are known.
//!
//! A condition on time is evaluated for every hour or weekday; one on ownership is reduced to the
//! values it asks for. So the arguments are no longer needed when both become known.

use std::borrow::Cow;

use jiff::{Timestamp, tz::TimeZone};

use super::effects;
use crate::{
    Call, Usage,
    json::{Malformed, Value},
    model::{Condition, Op, Operand, Test},
    path::Root,
    truth::{Facts, Fault, Side, Truth, absent, owned_value},
    usage::Claim,
};

/// The result of a partial evaluation.
#[derive(Debug)]
pub(super) enum Known {
    False,
    True,
    /// An error, with the text of the refusal.
    Error(Cow<'static, str>),
    /// It depends on arguments, and there are none.
    Skipped,
    Open(Box<Open>),
}

/// A test that depends on time or ownership.
#[derive(Debug)]
pub(super) enum Open {
    All(Vec<Known>),
    Any(Vec<Known>),
    Not(Known),
    /// All elements of a list, at least one.
    Every(Vec<Known>),
    /// One bit for each hour at which it holds.
    Hour(u32),
    /// One bit for each weekday on which it holds, Monday the first.
    Weekday(u32),
    /// Whether the grant owns the value; what to say if that cannot be looked up.
    Owned {
        kind: String,
        value: String,
        unavailable: Box<str>,
    },
}

/// Most values of one predicate whose owner is looked up, because each is a query to the store.
const MAX_OWNED: usize = 256;

/// Everything that the remaining tests depend on.
pub(super) struct Moment<'a> {
    pub(super) call: &'a Call<'a>,
    pub(super) usage: &'a dyn Usage,
    pub(super) now: Timestamp,
    pub(super) zone: &'a TimeZone,
}

/// The final result of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settled<'k> {
    False,
    True,
    Error(&'k str),
    Skipped,
}

/// What is known of a test. `depth` counts the `not`s around it.
pub(super) fn known(facts: &Facts<'_>, test: &Test, side: Side, depth: usize) -> Known {
    if !waits(test) {
        return facts.test(test, side, depth).into();
    }
    let list = |tests: &[Test]| tests.iter().map(|t| known(facts, t, side, depth)).collect();
    match test {
        Test::All(tests) => Open::All(list(tests)).into(),
        Test::Any(tests) => Open::Any(list(tests)).into(),
        Test::Not(test) => Open::Not(known(facts, test, side, depth + 1)).into(),
        Test::Condition(condition) => match condition.path.root {
            Root::TimeHour => at_every(facts, condition, 0..=23, Open::Hour),
            Root::TimeWeekday => at_every(facts, condition, 1..=7, Open::Weekday),
            _ => owned(facts, condition, side, depth),
        },
    }
}

/// Whether a test depends on time or ownership.
fn waits(test: &Test) -> bool {
    match test {
        Test::All(tests) | Test::Any(tests) => tests.iter().any(waits),
        Test::Not(test) => waits(test),
        Test::Condition(condition) => {
            condition.op == Op::Owned
                || matches!(condition.path.root, Root::TimeHour | Root::TimeWeekday)
        }
    }
}

fn at_every(
    facts: &Facts<'_>,
    condition: &Condition,
    times: std::ops::RangeInclusive<u32>,
    open: fn(u32) -> Open,
) -> Known {
    if condition.op == Op::Owned {
        // Ownership of the current hour or day, if such an id exists.
        let at = |time: u32| {
            let time_text = time.to_string();
            let owner = owner(condition, &Value::Number(&time_text));
            Open::All(vec![open(1 << time).into(), owner]).into()
        };
        return Open::Any(times.map(at).collect()).into();
    }
    let mut holds = 0;
    for time in times {
        match facts.compare(condition, &Value::Number(&time.to_string())) {
            Truth::True => holds |= 1 << time,
            Truth::False => {}
            error @ Truth::Error(_) => return error.into(),
        }
    }
    open(holds).into()
}

fn owned(facts: &Facts<'_>, condition: &Condition, side: Side, depth: usize) -> Known {
    let fault = |why| Known::from(Truth::Error(Fault { condition, why }));
    let asked = std::cell::Cell::new(0);
    let leaf = |value: Option<Value<'_>>| {
        let Some(value) = value else { return absent(condition, side, depth).into() };
        asked.set(asked.get() + 1);
        if asked.get() > MAX_OWNED {
            return Known::UNKNOWN;
        }
        owner(condition, &value)
    };
    let fold = |known: Vec<Known>, every: bool| {
        if every { Open::Every(known).into() } else { Open::Any(known).into() }
    };
    match facts.gather(condition, &leaf, &fold) {
        Ok(_) if asked.get() > MAX_OWNED => fault("asks for the owner of more than 256 values"),
        Ok(known) => known,
        Err(Malformed) => facts.broken(condition).into(),
    }
}

/// Whether the grant owns a value.
fn owner(condition: &Condition, value: &Value<'_>) -> Known {
    let fault = |why| effects::fault_text(Fault { condition, why });
    let Operand::Text(kind) = &condition.operand else { return Known::UNKNOWN };
    let Some(value) = owned_value(value) else {
        let why = "is not a string or integer of at most 256 bytes";
        return Known::Error(fault(why).into());
    };
    let (kind, unavailable) = (kind.clone(), fault("cannot be looked up now").into());
    Open::Owned { kind, value, unavailable }.into()
}

impl Known {
    /// What cannot be evaluated is an error.
    pub(super) const UNKNOWN: Known =
        Known::Error(Cow::Borrowed("the policy cannot decide this call"));

    /// Evaluates it at a moment.
    pub(super) fn at(&self, moment: &Moment<'_>) -> Settled<'_> {
        match self {
            Known::False => Settled::False,
            Known::True => Settled::True,
            Known::Error(text) => Settled::Error(text),
            Known::Skipped => Settled::Skipped,
            Known::Open(open) => open.at(moment),
        }
    }
}

impl Open {
    fn at(&self, moment: &Moment<'_>) -> Settled<'_> {
        match self {
            Open::Every(known) if known.is_empty() => Settled::False,
            Open::All(known) | Open::Every(known) => moment.all(known),
            Open::Any(known) => moment.any(known),
            Open::Not(known) => match known.at(moment) {
                Settled::True => Settled::False,
                Settled::False => Settled::True,
                other => other,
            },
            Open::Hour(holds) => {
                let hour = moment.zone.to_datetime(moment.now).hour();
                bit(*holds, hour)
            }
            Open::Weekday(holds) => {
                let date = moment.zone.to_datetime(moment.now).date();
                bit(*holds, date.weekday().to_monday_one_offset())
            }
            Open::Owned { kind, value, unavailable } => {
                let claim = Claim {
                    grant: moment.call.grant,
                    identity: moment.call.identity.map(|i| i.name),
                    server: moment.call.server,
                    kind,
                    value,
                    now: moment.now,
                };
                match moment.usage.owns(&claim) {
                    Ok(true) => Settled::True,
                    Ok(false) => Settled::False,
                    Err(_) => Settled::Error(unavailable),
                }
            }
        }
    }
}

fn bit(bits: u32, at: i8) -> Settled<'static> {
    let set = u32::try_from(at).is_ok_and(|at| bits & (1 << at) != 0);
    if set { Settled::True } else { Settled::False }
}

impl Moment<'_> {
    /// False if one is false, else an error if one is.
    fn all<'k>(&self, known: &'k [Known]) -> Settled<'k> {
        self.fold(known, Settled::False, Settled::True)
    }

    /// True if one is true, else an error if one is.
    fn any<'k>(&self, known: &'k [Known]) -> Settled<'k> {
        self.fold(known, Settled::True, Settled::False)
    }

    fn fold<'k>(
        &self,
        known: &'k [Known],
        decides: Settled<'static>,
        otherwise: Settled<'static>,
    ) -> Settled<'k> {
        let mut fault = None;
        for one in known {
            match one.at(self) {
                settled if settled == decides => return decides,
                error @ (Settled::Error(_) | Settled::Skipped) => fault = fault.or(Some(error)),
                _ => {}
            }
        }
        fault.unwrap_or(otherwise)
    }
}

impl From<Open> for Known {
    fn from(open: Open) -> Self {
        Known::Open(Box::new(open))
    }
}

impl From<Truth<'_>> for Known {
    fn from(truth: Truth<'_>) -> Self {
        match truth {
            Truth::False => Known::False,
            Truth::True => Known::True,
            Truth::Error(fault) => Known::Error(effects::fault_text(fault).into()),
        }
    }
}
