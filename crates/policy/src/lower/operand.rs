//! Operands of conditions: values that fit their operator, patterns, hosts, weekdays.

use regex::{Regex, RegexBuilder};

use super::Reader;
use crate::{
    Code, Span,
    choices::{Choices, Hosts},
    host,
    model::{Op, Operand},
    scalar::Scalar,
    syntax::{Node, Value, type_name},
};

/// Most regular expressions in one document.
const MAX_REGEXES: usize = 1_000;
/// Longest pattern, in bytes.
const MAX_PATTERN: usize = 4_096;
/// Largest compiled pattern, in bytes.
const MAX_PROGRAM: usize = 256 * 1024;

impl Reader<'_, '_> {
    /// The operand, if it fits the operator.
    pub(super) fn operand(&mut self, op: Op, node: &Node) -> Option<Operand> {
        match op {
            Op::Eq | Op::Neq | Op::Contains => self.scalar(op, node).map(Operand::Scalar),
            Op::In | Op::NotIn => {
                let Value::List(items) = node.value() else {
                    return self.unfit(op, node, "a list of values");
                };
                let scalars: Vec<Scalar> =
                    items.iter().filter_map(|item| self.scalar(op, item)).collect();
                (scalars.len() == items.len()).then(|| Operand::List(Choices::new(scalars)))
            }
            Op::Lt | Op::Lte | Op::Gt | Op::Gte => match node.value() {
                Value::Number(text) if crate::number::Number::is_held(text) => {
                    Some(Operand::Scalar(Scalar::Number(text.to_owned())))
                }
                _ => self.unfit(op, node, "a number"),
            },
            Op::Regex | Op::Matches => match node.value() {
                Value::Text(text) => self.pattern(text, op == Op::Matches, node.span),
                _ => self.unfit(op, node, "a pattern in quotes"),
            },
            Op::StartsWith | Op::EndsWith => match node.value() {
                Value::Text(text) => Some(Operand::Text(text.to_owned())),
                _ => self.unfit(op, node, "a string"),
            },
            Op::Exists => match node.value() {
                Value::Bool(flag) => Some(Operand::Flag(flag)),
                _ => self.unfit(op, node, "`true` or `false`"),
            },
            Op::HostIn => self.hosts(node),
            Op::Owned => match node.value() {
                Value::Text(kind) if !kind.is_empty() => Some(Operand::Text(kind.to_owned())),
                _ => self.unfit(op, node, "the kind of the owned id, such as `job`"),
            },
        }
    }

    fn unfit(&mut self, op: Op, node: &Node, wanted: &str) -> Option<Operand> {
        self.findings.add(
            Code::BadOperand,
            node.span,
            format!("`{}` takes {wanted}, not {}", op.as_str(), type_name(node)),
            format!("write {wanted}"),
        );
        None
    }

    fn scalar(&mut self, op: Op, node: &Node) -> Option<Scalar> {
        match node.value() {
            Value::Null => Some(Scalar::Null),
            Value::Bool(flag) => Some(Scalar::Bool(flag)),
            Value::Number(text) if crate::number::Number::is_held(text) => {
                Some(Scalar::Number(text.to_owned()))
            }
            Value::Text(text) => Some(Scalar::String(text.to_owned())),
            _ => {
                self.unfit(op, node, "single values (string, number, boolean or null)");
                None
            }
        }
    }

    fn hosts(&mut self, node: &Node) -> Option<Operand> {
        let Value::List(items) = node.value() else {
            return self.unfit(Op::HostIn, node, "a list of host names");
        };
        let mut hosts = Vec::with_capacity(items.len());
        for item in items {
            let text = self.string(item, "host_in")?;
            if let Some(host) = host::name(text) {
                hosts.push(host);
            } else {
                self.findings.add(
                    Code::BadHost,
                    item.span,
                    format!("`{text}` is not a host name"),
                    "write the bare host, as in `api.example.com`",
                );
            }
        }
        (hosts.len() == items.len()).then(|| Operand::Hosts(Hosts::new(hosts)))
    }

    pub(super) fn pattern(&mut self, text: &str, anchored: bool, span: Span) -> Option<Operand> {
        self.regexes += 1;
        if self.regexes > MAX_REGEXES {
            if self.regexes == MAX_REGEXES + 1 {
                self.findings.add(
                    Code::TooManyRegexes,
                    span,
                    format!("more than {MAX_REGEXES} regular expressions"),
                    "use `in`, `starts_with` or `ends_with`, or join patterns with `|`",
                );
            }
            return None;
        }
        // Compile the bare pattern first: it could close the group that anchors it.
        let compiled = compile(text).and_then(|plain| {
            if anchored { compile(&format!(r"\A(?:{text})\z")) } else { Ok(plain) }
        });
        match compiled {
            Ok(regex) => Some(Operand::Pattern(Box::new(regex), text.to_owned())),
            Err(why) => {
                self.findings.add(
                    Code::BadRegex,
                    span,
                    format!("`{}` is not a valid pattern: {why}", shorten(text)),
                    "patterns are RE2-like: no look-around, no back-references, limited size",
                );
                None
            }
        }
    }

    /// Weekdays, as names or ISO numbers.
    pub(super) fn weekdays(&mut self, op: Op, node: &Node) -> Option<Operand> {
        if matches!(op, Op::Exists) {
            return self.operand(op, node);
        }
        let list = matches!(op, Op::In | Op::NotIn);
        let items = match (node.value(), list) {
            (Value::List(items), true) => items,
            (Value::List(_), false) | (_, true) => return self.unfit(op, node, weekday_form(list)),
            _ => std::slice::from_ref(node),
        };
        let numeric = matches!(
            op,
            Op::Eq | Op::Neq | Op::In | Op::NotIn | Op::Lt | Op::Lte | Op::Gt | Op::Gte
        );
        let days: Option<Vec<Scalar>> = items.iter().map(weekday).collect();
        match days {
            Some(days) if numeric && list => Some(Operand::List(Choices::new(days))),
            Some(days) if numeric => days.into_iter().next().map(Operand::Scalar),
            _ => self.unfit(op, node, weekday_form(list)),
        }
    }
}

fn weekday_form(list: bool) -> &'static str {
    if list {
        "a list of weekdays (`mon`…`sun` or 1…7, Monday first)"
    } else {
        "a weekday (`mon`…`sun` or 1…7, Monday first) and a comparison operator"
    }
}

fn weekday(node: &Node) -> Option<Scalar> {
    const DAYS: [&str; 7] =
        ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    let number = match node.value() {
        Value::Number(text) => text.parse::<usize>().ok().filter(|n| (1..=7).contains(n))?,
        Value::Text(text) => {
            let lower = text.to_lowercase();
            let full = lower.len() >= 3;
            1 + DAYS.iter().position(|d| full && (*d == lower || d.get(..3) == Some(&lower)))?
        }
        _ => return None,
    };
    Some(Scalar::Number(number.to_string()))
}

/// Why a pattern cannot be used.
#[derive(Debug, thiserror::Error)]
enum PatternError {
    #[error("longer than {MAX_PATTERN} bytes")]
    TooLong,
    #[error("the compiled pattern is too large")]
    TooLarge,
    #[error("{}", last_line(.0))]
    Syntax(regex::Error),
}

fn compile(text: &str) -> Result<Regex, PatternError> {
    if text.len() > MAX_PATTERN {
        return Err(PatternError::TooLong);
    }
    RegexBuilder::new(text)
        .size_limit(MAX_PROGRAM)
        .dfa_size_limit(MAX_PROGRAM)
        .nest_limit(50)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => PatternError::TooLarge,
            error => PatternError::Syntax(error),
        })
}

/// The message of a syntax error, without the picture above it.
fn last_line(error: &regex::Error) -> String {
    let text = error.to_string();
    text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

fn shorten(text: &str) -> String {
    if text.chars().count() <= 60 {
        return text.to_owned();
    }
    text.chars().take(60).chain(['…']).collect()
}
