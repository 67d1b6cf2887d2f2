//! Comparisons of values with what a condition names.

use std::cmp::Ordering;

use toolgate_json::walk::Walk;

use crate::{
    budget::Budget,
    json::{Malformed, Value},
    model::Op,
    number::Number,
    scalar::Scalar,
};

/// Why two numbers cannot be compared.
pub(super) const ROUNDED: &str = "is a number that readers round differently";

/// Equality of type and value. Numbers are compared by exact value; `None` if rounding would change
/// the result.
pub(super) fn equal(value: &Value<'_>, wanted: &Scalar) -> Option<bool> {
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
pub(super) enum Contains {
    Yes,
    No,
    /// Depends on rounding.
    Unsure,
    /// The types cannot be compared.
    Unfit,
}

pub(super) fn contains(
    value: &Value<'_>,
    wanted: &Scalar,
    budget: &Budget,
) -> Result<Contains, Malformed> {
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
        // A rounded integer could be another id.
        Value::Number(text) => Number::whole(text),
        _ => None,
    }
}
