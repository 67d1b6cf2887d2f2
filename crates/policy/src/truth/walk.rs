//! Follows paths into values; `[any]` and `[all]` visit every element of a list.

use std::borrow::Cow;

use toolgate_json::walk::Walk;

use super::{Fault, Truth, truth};
use crate::{
    budget::Budget,
    json::{self, Malformed, Value},
    path::Segment,
};

/// Follows the steps; `[any]` and `[all]` follow the rest from every element.
pub(super) fn walk<'a, 'p>(
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

/// The same for any result type: `fold` combines the results of a list's elements, all of them if its
/// flag is `true`, any of them otherwise.
pub(super) fn gather<'a, T>(
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

/// Follows the steps up to `[any]` or `[all]`, or until the value is absent.
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

/// Combines results in any order.
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

    /// True if all are true and there is at least one.
    fn every(self) -> Truth<'p> {
        match (self.falses, self.fault) {
            (true, _) => Truth::False,
            (false, Some(fault)) => Truth::Error(fault),
            (false, None) => truth(self.trues),
        }
    }

    /// True if at least one is true.
    fn some(self) -> Truth<'p> {
        match (self.trues, self.fault) {
            (true, _) => Truth::True,
            (false, Some(fault)) => Truth::Error(fault),
            (false, None) => Truth::False,
        }
    }
}

pub(super) fn step<'a>(
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
