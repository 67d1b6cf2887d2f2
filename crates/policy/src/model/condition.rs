//! Predicates: tests over conditions, and their operators.

use std::sync::Arc;

use regex::Regex;

use super::Approve;
use crate::{
    Span,
    choices::{Choices, Hosts},
    path::Path,
    scalar::Scalar,
};

#[derive(Debug)]
pub(crate) struct Predicate {
    pub(crate) rule: Arc<str>,
    pub(crate) on_deny: Option<String>,
    pub(crate) test: Test,
    /// How a person is asked; only in `approve_if`.
    pub(crate) approve: Option<Box<Approve>>,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum Test {
    All(Vec<Test>),
    Any(Vec<Test>),
    Not(Box<Test>),
    Condition(Box<Condition>),
}

impl Test {
    pub(crate) fn conditions<'t>(&'t self, out: &mut Vec<&'t Condition>) {
        match self {
            Test::All(tests) | Test::Any(tests) => tests.iter().for_each(|t| t.conditions(out)),
            Test::Not(test) => test.conditions(out),
            Test::Condition(condition) => out.push(condition),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Condition {
    pub(crate) path: Path,
    pub(crate) op: Op,
    pub(crate) operand: Operand,
    pub(crate) span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Op {
    Eq,
    Neq,
    In,
    NotIn,
    Lt,
    Lte,
    Gt,
    Gte,
    Regex,
    Contains,
    Exists,
    StartsWith,
    EndsWith,
    Matches,
    HostIn,
    Owned,
}

impl Op {
    pub(crate) const ALL: [(&'static str, Op); 16] = [
        ("eq", Op::Eq),
        ("neq", Op::Neq),
        ("in", Op::In),
        ("not_in", Op::NotIn),
        ("lt", Op::Lt),
        ("lte", Op::Lte),
        ("gt", Op::Gt),
        ("gte", Op::Gte),
        ("regex", Op::Regex),
        ("contains", Op::Contains),
        ("exists", Op::Exists),
        ("starts_with", Op::StartsWith),
        ("ends_with", Op::EndsWith),
        ("matches", Op::Matches),
        ("host_in", Op::HostIn),
        ("owned", Op::Owned),
    ];

    pub(crate) fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(_, op)| *op == self).map_or("", |(name, _)| name)
    }
}

/// The operand of a condition, checked against its operator.
#[derive(Debug)]
pub(crate) enum Operand {
    Scalar(Scalar),
    List(Choices),
    Pattern(Box<Regex>, String),
    Text(String),
    Flag(bool),
    /// Host names, in the form that URLs have.
    Hosts(Hosts),
}
