//! Predicates and conditions.

use super::{Reader, entry::default_approve, find, pointer};
use crate::{
    Class, Code, Span,
    model::{Approve, Condition, Op, Predicate, Test},
    path::{Path, Root},
    problem::nearest,
    syntax::{Member, Node, Value},
};

/// The forms of a predicate; it has exactly one of them.
const FORMS: [&str; 3] = ["conditions", "any", "not"];
/// The keys of a predicate of `require` and `deny_if`.
const DENYING: [&str; 4] = ["conditions", "any", "not", "on_deny"];
/// The keys of a predicate of `approve_if`.
const HOLDING: [&str; 9] =
    ["conditions", "any", "not", "on_deny", "wait", "expires", "approvers", "people", "note"];

/// A list of conditions, as in standing exceptions.
pub(crate) fn conditions(reader: &mut Reader<'_, '_>, node: &Node) -> Vec<Test> {
    reader.valid_conditions(node).unwrap_or_default()
}

impl Reader<'_, '_> {
    pub(super) fn predicates(
        &mut self,
        members: &[Member],
        base: &str,
        name: &str,
    ) -> Vec<Predicate> {
        let Some(list) = find(members, name) else { return Vec::new() };
        let base = format!("{base}/{name}");
        let items = self.list(list, name);
        let mut predicates = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let on_deny =
                item.get("on_deny").and_then(|n| self.string(n, "on_deny").map(str::to_owned));
            let asks = name == "approve_if";
            let keys = if asks { &HOLDING[..] } else { &DENYING[..] };
            if let Some(test) = self.test(item, keys) {
                let rule = pointer(&base, &index.to_string());
                let approve = asks.then(|| {
                    let approve = self.approve_of(item, default_approve(""));
                    let note = approve.note.clone().or_else(|| on_deny.clone());
                    Box::new(Approve { rule: rule.clone(), note, ..approve })
                });
                predicates.push(Predicate { rule, on_deny, test, approve, span: item.span });
            }
        }
        predicates
    }

    fn test(&mut self, node: &Node, keys: &[&'static str]) -> Option<Test> {
        let fields = self.fields(node, "a predicate", keys)?;
        let mut forms = fields.iter().filter(|field| FORMS.contains(&field.key.text.as_str()));
        let (Some(Member { key, value }), None) = (forms.next(), forms.next()) else {
            self.bad_predicate(
                node.span,
                "a predicate has exactly one of `conditions`, `any` and `not`",
            );
            return None;
        };
        let nested = FORMS;
        match key.text.as_str() {
            "conditions" => self.valid_conditions(value).map(Test::All),
            "any" => {
                let items = self.list(value, "any");
                if items.is_empty() {
                    self.bad_predicate(value.span, "an empty `any` never matches");
                }
                let tests: Vec<_> = items.iter().map(|item| self.test(item, &nested)).collect();
                tests.into_iter().collect::<Option<_>>().map(Test::Any)
            }
            "not" => self.test(value, &nested).map(|test| Test::Not(Box::new(test))),
            _ => None,
        }
    }

    /// The conditions, if all of them are valid: a list that lost one would mean something else.
    fn valid_conditions(&mut self, node: &Node) -> Option<Vec<Test>> {
        let Value::List(items) = node.value() else {
            self.wrong_type(node, "conditions", "a list");
            return None;
        };
        let read: Vec<_> = items.iter().map(|item| self.condition(item)).collect();
        read.into_iter()
            .map(|condition| condition.map(|it| Test::Condition(Box::new(it))))
            .collect()
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

    /// A misspelt class would never match and so protect nothing.
    fn known_classes(&mut self, value: &Node) {
        match value.value() {
            Value::Text(word) => drop(self.class(word, value.span)),
            Value::List(words) => words.iter().for_each(|word| self.known_classes(word)),
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
                        "`client.name` is not authenticated: the client chooses it",
                        "use `grant.label` or `identity.name` for access control",
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
