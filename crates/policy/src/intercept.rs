//! Intercept `rules`, with Intercept's semantics: a condition must hold to allow the call, absent values
//! and wrong types are false, equality is that of the printed text.
//!
//! The one difference: numbers are compared exactly, never as floats.

use std::cmp::Ordering;

use toolgate_json::walk::Walk;

use crate::{
    Amount,
    budget::Budget,
    json::{self, Malformed, Value},
    model::{Op, Operand, Rule, RuleCondition, RulePath},
    number::Number,
    scalar::{Scalar, print_number, print_scalar},
    truth::{Facts, ordered},
    usage::Unavailable,
};

/// The value of a counter, by entry, name and window.
pub(crate) type StateLookup<'s> =
    &'s dyn Fn(&str, &str, crate::Window) -> Result<Amount, Unavailable>;

/// Whether all conditions of a rule on arguments hold.
pub(crate) fn holds(rule: &Rule, facts: &Facts<'_>) -> bool {
    rule.conditions.iter().all(|condition| match &condition.path {
        RulePath::Args(names) => argument_holds(condition, names, facts).unwrap_or(false),
        RulePath::State { .. } => true,
    })
}

/// Whether all conditions of a rule on counters hold.
pub(crate) fn holds_of_counters(rule: &Rule, state: StateLookup<'_>) -> bool {
    rule.conditions.iter().all(|condition| match &condition.path {
        RulePath::Args(_) => true,
        RulePath::State { entry, counter, window } => match state(entry, counter, *window) {
            Ok(used) => {
                let (text, budget) = (used.to_string(), Budget::default());
                compare(condition, Some(&Value::Number(&text)), &budget).unwrap_or(false)
            }
            Err(Unavailable) => false,
        },
    })
}

/// Whether the rule refers to a value that readers may interpret differently.
pub(crate) fn is_unclear(rule: &Rule, facts: &Facts<'_>) -> bool {
    rule.conditions.iter().any(|condition| match &condition.path {
        RulePath::Args(names) => lookup(facts, names).is_err(),
        RulePath::State { .. } => false,
    })
}

/// Whether the rule refers to arguments.
pub(crate) fn reads_arguments(rule: &Rule) -> bool {
    rule.conditions.iter().any(|c| matches!(c.path, RulePath::Args(_)))
}

fn argument_holds(
    condition: &RuleCondition,
    names: &[String],
    facts: &Facts<'_>,
) -> Result<bool, Malformed> {
    facts.budget.compare()?;
    let value = lookup(facts, names)?;
    compare(condition, value.as_ref(), &facts.budget)
}

/// Objects only: no index, no escape for dots.
fn lookup<'a>(facts: &Facts<'a>, names: &[String]) -> Result<Option<Value<'a>>, Malformed> {
    let Some((first, rest)) = names.split_first() else { return Ok(None) };
    facts.budget.look_at(facts.arguments.len())?;
    let mut raw = facts.arguments.get(first)?;
    for name in rest {
        raw = match raw.map(Value::of).transpose()? {
            Some(Value::Object(object)) => {
                facts.budget.look_at(object.len())?;
                json::member(object, name)?
            }
            _ => None,
        };
    }
    raw.map(Value::of).transpose()
}

fn compare(
    condition: &RuleCondition,
    value: Option<&Value<'_>>,
    budget: &Budget,
) -> Result<bool, Malformed> {
    if let (Op::Exists, Operand::Flag(wanted)) = (condition.op, &condition.operand) {
        return Ok(*wanted == !matches!(value, None | Some(Value::Null)));
    }
    let Some(value) = value else { return Ok(false) };
    budget.look_at(value.text_len())?;
    Ok(match (condition.op, &condition.operand) {
        (Op::Eq, Operand::Scalar(wanted)) => equal(value, wanted),
        (Op::Neq, Operand::Scalar(wanted)) => !equal(value, wanted),
        (Op::In, Operand::List(list)) => list.candidates(value).any(|wanted| equal(value, wanted)),
        (Op::NotIn, Operand::List(list)) => {
            !list.candidates(value).any(|wanted| equal(value, wanted))
        }
        (Op::Lt | Op::Lte | Op::Gt | Op::Gte, Operand::Scalar(Scalar::Number(wanted))) => {
            match value {
                Value::Number(text) => {
                    Number::compare_texts(text, wanted).is_some_and(|o| ordered(condition.op, o))
                }
                _ => false,
            }
        }
        (Op::Regex, Operand::Pattern(pattern, _)) => match value {
            Value::String(text) => pattern.is_match(text),
            _ => false,
        },
        (Op::Contains, Operand::Scalar(wanted)) => match (value, wanted) {
            (Value::String(text), Scalar::String(part)) => text.contains(part.as_str()),
            (Value::List(raw), wanted) => {
                budget.look_at(raw.len())?;
                let mut items = Walk::list(raw)?;
                while let Some(item) = items.element()? {
                    budget.compare()?;
                    if equal(&Value::of(item)?, wanted) {
                        return Ok(true);
                    }
                }
                false
            }
            _ => false,
        },
        _ => false,
    })
}

/// Two numbers by value, everything else by its printed text: `5` equals `"5"`.
pub(crate) fn equal(value: &Value<'_>, wanted: &Scalar) -> bool {
    if let (Value::Number(a), Scalar::Number(b)) = (value, wanted) {
        return Number::compare_texts(a, b) == Some(Ordering::Equal);
    }
    let printed = match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(text) => print_number(text),
        Value::String(text) => text.clone().into_owned(),
        Value::List(_) | Value::Object(_) | Value::Words(_) => return false,
    };
    printed == print_scalar(wanted)
}
