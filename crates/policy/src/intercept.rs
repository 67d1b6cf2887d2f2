//! Intercept's `rules`, with Intercept's own truth: a condition says what must hold to allow,
//! absent values and wrong types are false, equality is by printed text.
//!
//! The one difference: numbers are compared exactly, never as floats.

use std::cmp::Ordering;

use crate::{
    Amount,
    json::{self, Malformed, Raw, Value},
    model::{Op, Operand, Rule, RuleCondition, RulePath, Scalar},
    mutant::{self, Mutant},
    number::Number,
    truth::{Facts, ordered},
    usage::Unavailable,
};

/// The value of a counter, by entry, name and window.
pub(crate) type StateLookup<'s> =
    &'s dyn Fn(&str, &str, crate::Window) -> Result<Amount, Unavailable>;

/// Whether all conditions of a rule hold.
pub(crate) fn holds(rule: &Rule, facts: &Facts<'_>, state: StateLookup<'_>) -> bool {
    rule.conditions.iter().all(|condition| condition_holds(condition, facts, state))
}

/// Whether the rule looks at arguments.
pub(crate) fn reads_arguments(rule: &Rule) -> bool {
    rule.conditions.iter().any(|c| matches!(c.path, RulePath::Args(_)))
}

fn condition_holds(condition: &RuleCondition, facts: &Facts<'_>, state: StateLookup<'_>) -> bool {
    match &condition.path {
        RulePath::Args(names) => {
            let value = lookup(facts, names);
            matches!(value.map(|v| compare(condition, v.as_ref())), Ok(Ok(true)))
        }
        RulePath::State { entry, counter, window } => match state(entry, counter, *window) {
            Ok(used) => {
                let text = used.to_string();
                compare(condition, Some(&Value::Number(&text))).unwrap_or(false)
            }
            Err(Unavailable) => false,
        },
    }
}

/// Objects only: no index, no escape for dots.
fn lookup<'a>(facts: &Facts<'a>, names: &[String]) -> Result<Option<Value<'a>>, Malformed> {
    let Some((first, rest)) = names.split_first() else { return Ok(None) };
    let mut raw = facts.arguments.get(first)?;
    for name in rest {
        raw = match raw.map(Raw::read).transpose()? {
            Some(Value::Object(object)) => json::member(object, name)?,
            _ => None,
        };
    }
    raw.map(Raw::read).transpose()
}

fn compare(condition: &RuleCondition, value: Option<&Value<'_>>) -> Result<bool, Malformed> {
    if let (Op::Exists, Operand::Flag(wanted)) = (condition.op, &condition.operand) {
        return Ok(*wanted == !matches!(value, None | Some(Value::Null)));
    }
    let Some(value) = value else { return Ok(mutant::on(Mutant::RulesAbsentPasses)) };
    Ok(match (condition.op, &condition.operand) {
        (Op::Eq, Operand::Scalar(wanted)) => equal(value, wanted),
        (Op::Neq, Operand::Scalar(wanted)) => !equal(value, wanted),
        (Op::In, Operand::List(list)) => list.iter().any(|wanted| equal(value, wanted)),
        (Op::NotIn, Operand::List(list)) => !list.iter().any(|wanted| equal(value, wanted)),
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
                let mut items = json::elements(raw)?;
                while let Some(item) = items.next_element()? {
                    if equal(&item.read()?, wanted) {
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
fn equal(value: &Value<'_>, wanted: &Scalar) -> bool {
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
    let wanted = match wanted {
        Scalar::Null => "<nil>".to_owned(),
        Scalar::Bool(flag) => flag.to_string(),
        Scalar::Number(text) => print_number(text),
        Scalar::String(text) => text.clone(),
    };
    printed == wanted
}

fn print_number(text: &str) -> String {
    Number::parse(text).and_then(|n| n.integer()).unwrap_or_else(|| text.to_owned())
}
