//! Predicates and conditions.

use regex::{Regex, RegexBuilder};

use super::{Reader, find, pointer};
use crate::{
    Class, Code,
    choices::{Choices, Hosts},
    host,
    model::{Condition, Op, Operand, Predicate, Test},
    node::{Key, Kind, Node},
    path::{Path, Root},
    problem::{Span, nearest},
    scalar::Scalar,
};

/// Most regular expressions in one document.
const MAX_REGEXES: usize = 1_000;
/// Longest pattern, in bytes.
const MAX_PATTERN: usize = 4_096;
/// Largest compiled pattern, in bytes.
const MAX_PROGRAM: usize = 256 * 1024;

/// A bare list of conditions, as standing exceptions have it.
pub(crate) fn conditions(reader: &mut Reader<'_, '_>, node: &Node) -> Vec<Test> {
    let items = reader.list(node, "conditions");
    items.iter().filter_map(|item| reader.condition(item).map(Test::Condition)).collect()
}

impl Reader<'_, '_> {
    pub(super) fn predicates(
        &mut self,
        members: &[(Key, Node)],
        base: &str,
        name: &str,
    ) -> Vec<Predicate> {
        let Some(node) = find(members, name) else { return Vec::new() };
        let base = format!("{base}/{name}");
        let items = self.list(node, name);
        let mut predicates = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let on_deny =
                item.get("on_deny").and_then(|n| self.string(n, "on_deny").map(str::to_owned));
            if let Some(test) = self.test(item, &["conditions", "any", "not", "on_deny"]) {
                let rule = pointer(&base, &index.to_string());
                predicates.push(Predicate { rule, on_deny, test, span: item.span });
            }
        }
        predicates
    }

    fn test(&mut self, node: &Node, keys: &[&'static str]) -> Option<Test> {
        let fields = self.fields(node, "a predicate", keys)?;
        let mut forms = fields.iter().filter(|(key, _)| key.text != "on_deny");
        let (Some((key, value)), None) = (forms.next(), forms.next()) else {
            self.bad_predicate(
                node.span,
                "a predicate has exactly one of `conditions`, `any` and `not`",
            );
            return None;
        };
        let nested = ["conditions", "any", "not"];
        match key.text.as_str() {
            "conditions" => Some(Test::All(conditions(self, value))),
            "any" => {
                let items = self.list(value, "any");
                if items.is_empty() {
                    self.bad_predicate(value.span, "`any` of nothing never holds");
                }
                Some(Test::Any(items.iter().filter_map(|i| self.test(i, &nested)).collect()))
            }
            "not" => self.test(value, &nested).map(|test| Test::Not(Box::new(test))),
            _ => None,
        }
    }

    fn bad_predicate(&mut self, span: Span, message: &str) {
        self.findings.add(
            Code::BadPredicate,
            span,
            message,
            "write `{ conditions: [{ path: args.amount, op: gt, value: 100 }] }`",
        );
    }

    fn condition(&mut self, node: &Node) -> Option<Condition> {
        let fields = self.fields(node, "a condition", &["path", "op", "value"])?;
        for (key, example) in
            [("path", "path: args.amount"), ("op", "op: gt"), ("value", "value: 100")]
        {
            if find(fields, key).is_none() {
                self.missing(node.span, "the condition", key, example);
            }
        }
        let path = find(fields, "path").and_then(|n| self.path(n));
        let op = find(fields, "op").and_then(|n| self.op(n));
        let value = find(fields, "value")?;
        let (path, op) = (path?, op?);
        if path.root == Root::RiskClass && matches!(op, Op::Eq | Op::Neq | Op::In | Op::NotIn) {
            self.known_classes(value);
        }
        let operand = if path.root == Root::TimeWeekday {
            self.weekdays(op, value)?
        } else {
            self.operand(op, value)?
        };
        Some(Condition { path, op, operand, span: node.span })
    }

    /// A class that nothing has would never match, and leave a door open.
    fn known_classes(&mut self, value: &Node) {
        match &value.kind {
            Kind::String(word) => drop(self.class(word, value.span)),
            Kind::List(words) => words.iter().for_each(|word| self.known_classes(word)),
            _ => {}
        }
    }

    /// The risk class of that name.
    pub(super) fn class(&mut self, word: &str, span: Span) -> Option<Class> {
        let class = Class::parse(word);
        if class.is_none() {
            let names = Class::ALL.map(Class::as_str);
            let hint = match nearest(&word.to_lowercase(), names) {
                Some(name) => format!("did you mean `{name}`?"),
                None => format!("classes are {}", super::quoted(&names)),
            };
            let message = format!("unknown risk class `{word}`");
            self.findings.add(Code::UnknownClass, span, message, hint);
        }
        class
    }

    fn path(&mut self, node: &Node) -> Option<Path> {
        let text = self.string(node, "path")?;
        match Path::parse(text) {
            Ok(path) => {
                if path.root == Root::ClientName {
                    self.findings.add(
                        Code::ClientName,
                        node.span,
                        "`client.name` is what the client says of itself",
                        "use `grant.label` or `identity.name` where it must be true",
                    );
                }
                Some(path)
            }
            Err(error) => {
                self.findings.add(Code::BadPath, node.span, error.message, error.hint);
                None
            }
        }
    }

    pub(super) fn op(&mut self, node: &Node) -> Option<Op> {
        let text = self.string(node, "op")?;
        if let Some((_, op)) = Op::ALL.iter().find(|(name, _)| *name == text) {
            return Some(*op);
        }
        let names: Vec<&str> = Op::ALL.iter().map(|(name, _)| *name).collect();
        let hint = match (symbol(text), nearest(text, names.iter().copied())) {
            (Some(name), _) | (None, Some(name)) => format!("did you mean `{name}`?"),
            (None, None) => format!("operators are {}", super::quoted(&names)),
        };
        self.findings.add(
            Code::UnknownOperator,
            node.span,
            format!("unknown operator `{text}`"),
            hint,
        );
        None
    }

    /// The operand, if it fits the operator.
    pub(super) fn operand(&mut self, op: Op, node: &Node) -> Option<Operand> {
        match op {
            Op::Eq | Op::Neq | Op::Contains => self.scalar(op, node).map(Operand::Scalar),
            Op::In | Op::NotIn => {
                let Kind::List(items) = &node.kind else {
                    return self.unfit(op, node, "a list of values");
                };
                let scalars: Vec<Scalar> =
                    items.iter().filter_map(|item| self.scalar(op, item)).collect();
                (scalars.len() == items.len()).then(|| Operand::List(Choices::new(scalars)))
            }
            Op::Lt | Op::Lte | Op::Gt | Op::Gte => match &node.kind {
                Kind::Number(text) if crate::number::Number::is_held(text) => {
                    Some(Operand::Scalar(Scalar::Number(text.clone())))
                }
                _ => self.unfit(op, node, "a number"),
            },
            Op::Regex | Op::Matches => match &node.kind {
                Kind::String(text) => self.pattern(text, op == Op::Matches, node.span),
                _ => self.unfit(op, node, "a pattern in quotes"),
            },
            Op::StartsWith | Op::EndsWith => match &node.kind {
                Kind::String(text) => Some(Operand::Text(text.clone())),
                _ => self.unfit(op, node, "a string"),
            },
            Op::Exists => match node.kind {
                Kind::Bool(flag) => Some(Operand::Flag(flag)),
                _ => self.unfit(op, node, "`true` or `false`"),
            },
            Op::HostIn => self.hosts(node),
            Op::Owned => match &node.kind {
                Kind::String(kind) if !kind.is_empty() => Some(Operand::Text(kind.clone())),
                _ => self.unfit(op, node, "the kind of thing owned, as in `job`"),
            },
        }
    }

    fn unfit(&mut self, op: Op, node: &Node, wanted: &str) -> Option<Operand> {
        self.findings.add(
            Code::BadOperand,
            node.span,
            format!("`{}` takes {wanted}, not {}", op.as_str(), node.what()),
            format!("write {wanted}"),
        );
        None
    }

    fn scalar(&mut self, op: Op, node: &Node) -> Option<Scalar> {
        match &node.kind {
            Kind::Null => Some(Scalar::Null),
            Kind::Bool(flag) => Some(Scalar::Bool(*flag)),
            Kind::Number(text) if crate::number::Number::is_held(text) => {
                Some(Scalar::Number(text.clone()))
            }
            Kind::String(text) => Some(Scalar::String(text.clone())),
            _ => {
                self.unfit(op, node, "single values (string, number, boolean or null)");
                None
            }
        }
    }

    fn hosts(&mut self, node: &Node) -> Option<Operand> {
        let Kind::List(items) = &node.kind else {
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
                    format!("`{text}` is no host name"),
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
        // The bare pattern must stand on its own, or it could close our group.
        let compiled = compile(text).and_then(|plain| {
            if anchored { compile(&format!(r"\A(?:{text})\z")) } else { Ok(plain) }
        });
        match compiled {
            Ok(regex) => Some(Operand::Pattern(Box::new(regex), text.to_owned())),
            Err(why) => {
                self.findings.add(
                    Code::BadRegex,
                    span,
                    format!("`{}` is no usable pattern: {why}", shorten(text)),
                    "patterns are RE2-like: no look-around, no back-references, limited size",
                );
                None
            }
        }
    }

    /// Weekdays may be written as names; ISO numbers are what they mean.
    fn weekdays(&mut self, op: Op, node: &Node) -> Option<Operand> {
        if matches!(op, Op::Exists) {
            return self.operand(op, node);
        }
        let list = matches!(op, Op::In | Op::NotIn);
        let items = match (&node.kind, list) {
            (Kind::List(items), true) => items.as_slice(),
            (Kind::List(_), false) | (_, true) => return self.unfit(op, node, weekday_form(list)),
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
        "a weekday (`mon`…`sun` or 1…7, Monday first) and a comparing operator"
    }
}

fn weekday(node: &Node) -> Option<Scalar> {
    const DAYS: [&str; 7] =
        ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    let number = match &node.kind {
        Kind::Number(text) => text.parse::<usize>().ok().filter(|n| (1..=7).contains(n))?,
        Kind::String(text) => {
            let lower = text.to_lowercase();
            let full = lower.len() >= 3;
            1 + DAYS.iter().position(|d| full && (*d == lower || d.get(..3) == Some(&lower)))?
        }
        _ => return None,
    };
    Some(Scalar::Number(number.to_string()))
}

fn symbol(text: &str) -> Option<&'static str> {
    Some(match text {
        "==" | "=" | "equals" => "eq",
        "!=" | "<>" | "not_equals" => "neq",
        "<" => "lt",
        "<=" => "lte",
        ">" => "gt",
        ">=" => "gte",
        "=~" => "regex",
        _ => return None,
    })
}

fn compile(text: &str) -> Result<Regex, String> {
    if text.len() > MAX_PATTERN {
        return Err(format!("longer than {MAX_PATTERN} bytes"));
    }
    RegexBuilder::new(text)
        .size_limit(MAX_PROGRAM)
        .dfa_size_limit(MAX_PROGRAM)
        .nest_limit(50)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => "it becomes too large".to_owned(),
            error => error
                .to_string()
                .lines()
                .last()
                .unwrap_or_default()
                .trim_start_matches("error: ")
                .to_owned(),
        })
}

fn shorten(text: &str) -> String {
    if text.chars().count() <= 60 {
        return text.to_owned();
    }
    text.chars().take(60).chain(['…']).collect()
}
