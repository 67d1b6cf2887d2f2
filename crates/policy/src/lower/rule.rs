//! Intercept `rules`, with Intercept's checks and one more: a counter that is never incremented is
//! an error.

use std::collections::HashSet;

use super::{Reader, entry::default_approve, find, key_span, pointer};
use crate::{
    Amount, Code, Span, Window,
    model::{
        Approve, Increment, Limit, Op, Operand, Rule, RuleCondition, RuleKind, RulePath, Scope,
    },
    scalar::Scalar,
    syntax::{Member, Node, Value},
};

const KEYS: [&str; 7] =
    ["name", "action", "on_deny", "conditions", "state", "rate_limit", "approval_timeout"];

/// Operators of Intercept rules.
const OPS: [Op; 11] = [
    Op::Eq,
    Op::Neq,
    Op::In,
    Op::NotIn,
    Op::Lt,
    Op::Lte,
    Op::Gt,
    Op::Gte,
    Op::Regex,
    Op::Contains,
    Op::Exists,
];

/// A rule's own counter, before its limit is known.
struct State {
    counter: String,
    window: Window,
    increment: Increment,
}

impl Reader<'_, '_> {
    /// Collects all counters first, because a rule may read those of another tool.
    pub(super) fn collect_states(&mut self, tools: &Node) {
        let Value::Map(members) = tools.value() else { return };
        for Member { key, value: entry } in members {
            let Some(Value::List(rules)) = entry.get("rules").map(Node::value) else { continue };
            for rule in rules {
                if let Some((counter, window)) = declared_state(rule) {
                    self.states.insert((key.text.clone(), counter), window);
                }
            }
        }
    }

    pub(super) fn rules(&mut self, members: &[Member], base: &str, key: &str) -> Vec<Rule> {
        let Some(node) = find(members, "rules") else { return Vec::new() };
        let items = self.list(node, "rules");
        let mut rules: Vec<Rule> = Vec::with_capacity(items.len());
        let mut counters = HashSet::new();
        for item in items {
            let Some(rule) = self.rule(item, base, key) else { continue };
            if let Some(limit) = &rule.limit
                && !counters.insert(limit.counter.clone())
            {
                self.findings.add(
                    Code::DuplicateState,
                    item.span,
                    format!("duplicate state counter `{}` in `{base}`", limit.counter),
                    "rename one of them, or merge the two rules",
                );
            }
            rules.push(rule);
        }
        rules
    }

    fn rule(&mut self, node: &Node, base: &str, key: &str) -> Option<Rule> {
        let fields = self.fields(node, "a rule", &KEYS)?;
        let words = [
            ("evaluate", RuleKind::Evaluate),
            ("deny", RuleKind::Deny),
            ("require_approval", RuleKind::RequireApproval),
        ];
        let kind = match find(fields, "action") {
            Some(node) => self.word(node, "action", &words)?,
            None => RuleKind::Evaluate,
        };
        let rate = find(fields, "rate_limit");
        let name = self.rule_name(node, fields, rate)?;
        let rule = pointer(&format!("{base}/rules"), &name);
        let on_deny =
            find(fields, "on_deny").and_then(|n| self.string(n, "on_deny").map(str::to_owned));
        self.rule_form(node.span, fields, kind);
        let approve = self.rule_approve(fields, &rule, on_deny.as_deref())?;
        let mut made = Rule {
            pointer: rule.clone(),
            name,
            kind,
            on_deny,
            conditions: Vec::new(),
            limit: None,
            approve,
        };
        if let Some(rate) = rate {
            made.limit = Some(self.rule_rate(rate, &made)?);
            return Some(made);
        }
        let state = match find(fields, "state") {
            Some(node) => Some(self.state(node)?),
            None => None,
        };
        let own = state.as_ref().map(|s| (own_scope(key), s.counter.as_str()));
        let items = find(fields, "conditions").map_or(&[][..], |n| self.list(n, "conditions"));
        let mut max: Option<Amount> = None;
        for item in items {
            let Some(condition) = self.rule_condition(item, key) else { continue };
            match own_limit(&condition, own) {
                Some(limit) => max = Some(max.map_or(limit, |m| m.min(limit))),
                None => made.conditions.push(condition.0),
            }
        }
        if let Some(state) = state {
            made.limit = Some(self.rule_limit(node.span, &made, state, max)?);
        }
        Some(made)
    }

    fn rule_name(&mut self, node: &Node, fields: &[Member], rate: Option<&Node>) -> Option<String> {
        if let Some(name) = find(fields, "name") {
            return self.name(name, "name").map(str::to_owned);
        }
        // Newer Intercept files omit the name of rate limits.
        if let Some((_, window)) = rate.and_then(rate_of) {
            return Some(format!("_rate_{window}"));
        }
        self.findings.add(
            Code::RuleName,
            node.span,
            "rule must have a name",
            "add a `name`; denials refer to it",
        );
        None
    }

    /// Reports keys that cannot be combined.
    fn rule_form(&mut self, span: Span, fields: &[Member], kind: RuleKind) {
        let has = |name| find(fields, name).is_some();
        let empty = match find(fields, "conditions").map(Node::value) {
            Some(Value::List(items)) => items.is_empty(),
            Some(_) => false,
            None => true,
        };
        let wrong = if has("rate_limit") && (has("conditions") || has("state")) {
            Some(
                "rate_limit cannot be combined with conditions or state; use separate rules or the full syntax instead",
            )
        } else if has("rate_limit") && kind != RuleKind::Evaluate {
            Some("rate_limit cannot be used with action \"deny\" or \"require_approval\"")
        } else if kind == RuleKind::Deny && (has("conditions") || has("state")) {
            Some("deny rules must not have conditions")
        } else if kind == RuleKind::RequireApproval && has("state") {
            Some("require_approval rules must not have state")
        } else if kind == RuleKind::Evaluate && empty && !has("rate_limit") {
            Some("evaluate rules must have at least one condition")
        } else if kind != RuleKind::RequireApproval && has("approval_timeout") {
            Some("approval_timeout needs action \"require_approval\"")
        } else {
            None
        };
        if let Some(wrong) = wrong {
            self.findings.add(
                Code::BadRule,
                span,
                wrong,
                "a rule either denies, or evaluates conditions, or limits a rate, or asks for approval",
            );
        }
    }

    fn rule_approve(
        &mut self,
        fields: &[Member],
        rule: &std::sync::Arc<str>,
        note: Option<&str>,
    ) -> Option<Approve> {
        let mut approve =
            Approve { rule: rule.clone(), note: note.map(str::to_owned), ..default_approve("") };
        if let Some(node) = find(fields, "approval_timeout") {
            approve.expires = self.window(node, "approval_timeout")?;
            approve.wait = approve.wait.min(Some(approve.expires));
        }
        Some(approve)
    }

    fn rule_rate(&mut self, node: &Node, rule: &Rule) -> Option<Limit> {
        let Some((count, window)) = rate_of(node) else {
            self.findings.add(
                Code::RateLimit,
                node.span,
                "rate_limit must be in the format \"N/window\" (e.g. \"5/hour\")",
                "write a positive whole number, a slash and `minute`, `hour` or `day`",
            );
            return None;
        };
        let default = format!("Rate limit of {count} per {window} reached. Try again later.");
        Some(Limit {
            rule: rule.pointer.clone(),
            counter: format!("_rate_{window}"),
            window,
            max: Amount::whole(count),
            scope: Scope::Global,
            increment: Increment::Fixed(Amount::ONE),
            sliding: false,
            utc: true,
            on_deny: Some(rule.on_deny.clone().unwrap_or(default)),
            span: node.span,
        })
    }

    fn rule_limit(
        &mut self,
        span: Span,
        rule: &Rule,
        state: State,
        max: Option<Amount>,
    ) -> Option<Limit> {
        let Some(max) = max else {
            self.findings.add(
                Code::UncountedState,
                span,
                format!(
                    "the counter `{}` has no `lt` or `lte` condition and is never incremented",
                    state.counter
                ),
                "add a condition on the rule's own counter with `lt` or `lte`",
            );
            return None;
        };
        let default = format!("Rate limit exceeded for {}", rule.name);
        Some(Limit {
            rule: rule.pointer.clone(),
            counter: state.counter,
            window: state.window,
            max,
            scope: Scope::Global,
            increment: state.increment,
            sliding: false,
            utc: true,
            on_deny: Some(rule.on_deny.clone().unwrap_or(default)),
            span,
        })
    }

    fn state(&mut self, node: &Node) -> Option<State> {
        let keys = ["counter", "window", "increment", "increment_from"];
        let fields = self.fields(node, "`state`", &keys)?;
        for (key, example) in [("counter", "counter: calls"), ("window", "window: hour")] {
            if find(fields, key).is_none() {
                self.missing(node.span, "`state`", key, example);
            }
        }
        let counter = self.name(find(fields, "counter")?, "counter")?.to_owned();
        let windows = [("minute", Window::MINUTE), ("hour", Window::HOUR), ("day", Window::DAY)];
        let window = self.word(find(fields, "window")?, "window", &windows)?;
        let increment = if let Some(node) = find(fields, "increment_from") {
            Increment::From(self.increment_path(node)?)
        } else {
            let count = match find(fields, "increment") {
                Some(node) => self.whole(node, "increment", 0)?.max(1),
                None => 1,
            };
            Increment::Fixed(Amount::whole(count))
        };
        Some(State { counter, window, increment })
    }

    /// The condition, and its state path if it has one.
    fn rule_condition(
        &mut self,
        node: &Node,
        key: &str,
    ) -> Option<(RuleCondition, Option<(String, String)>)> {
        let fields = self.fields(node, "a condition", &["path", "op", "value"])?;
        let (Some(path), Some(op), Some(value)) =
            (find(fields, "path"), find(fields, "op"), find(fields, "value"))
        else {
            self.missing(
                node.span,
                "the condition",
                "path`, `op` or `value",
                "{ path: args.amount, op: lte, value: 100 }",
            );
            return None;
        };
        let op = self.op(op)?;
        if !OPS.contains(&op) {
            self.findings.add(
                Code::UnknownOperator,
                key_span(fields, "op"),
                format!("Intercept rules do not have the operator `{}`", op.as_str()),
                "use it in `require` or `deny_if` instead",
            );
            return None;
        }
        let operand = self.operand(op, value)?;
        let text = self.string(path, "path")?;
        let (path, state) = self.rule_path(text, path.span, key)?;
        Some((RuleCondition { path, op, operand }, state))
    }

    fn rule_path(
        &mut self,
        text: &str,
        span: Span,
        key: &str,
    ) -> Option<(RulePath, Option<(String, String)>)> {
        if let Some(rest) = text.strip_prefix("args.") {
            return Some((RulePath::Args(rest.split('.').map(str::to_owned).collect()), None));
        }
        let Some(rest) = text.strip_prefix("state.") else {
            self.findings.add(
                Code::BadPath,
                span,
                format!("path must start with \"args.\" or \"state.\", got `{text}`"),
                "write `args.NAME` or `state.TOOL.COUNTER`",
            );
            return None;
        };
        let (scope, counter) = rest.rsplit_once('.').unwrap_or((rest, ""));
        let entry = if scope == "_global" { "*" } else { scope };
        let window = self.states.get(&(entry.to_owned(), counter.to_owned())).copied();
        let Some(window) = window else {
            self.findings.add(
                Code::UnknownState,
                span,
                format!("condition references `{text}` but no matching state block found"),
                format!("own counters are `state.{}.NAME`", own_scope(key)),
            );
            return None;
        };
        let path = RulePath::State {
            entry: pointer("/tools", entry).to_string(),
            counter: counter.to_owned(),
            window,
        };
        Some((path, Some((scope.to_owned(), counter.to_owned()))))
    }
}

/// The scope under which an entry's own counters are addressed.
fn own_scope(key: &str) -> &str {
    if key == "*" { "_global" } else { key }
}

/// The limit that an `lt` or `lte` condition on the rule's own counter sets.
fn own_limit(
    (condition, state): &(RuleCondition, Option<(String, String)>),
    own: Option<(&str, &str)>,
) -> Option<Amount> {
    let (scope, counter) = state.as_ref()?;
    if own != Some((scope.as_str(), counter.as_str())) {
        return None;
    }
    let Operand::Scalar(Scalar::Number(text)) = &condition.operand else { return None };
    let value = Amount::parse(text).unwrap_or(Amount::ZERO);
    match condition.op {
        Op::Lte => Some(value),
        Op::Lt => Some(value.minus(Amount::ONE)),
        _ => None,
    }
}

/// The counter that a rule declares, if it is valid.
fn declared_state(rule: &Node) -> Option<(String, Window)> {
    if let Some((_, window)) = rule.get("rate_limit").and_then(rate_of) {
        return Some((format!("_rate_{window}"), window));
    }
    let state = rule.get("state")?;
    match (state.get("counter")?.value(), state.get("window")?.value()) {
        (Value::Text(counter), Value::Text(window)) => {
            Some((counter.to_owned(), Window::parse(window)?))
        }
        _ => None,
    }
}

fn rate_of(node: &Node) -> Option<(u64, Window)> {
    let Value::Text(text) = node.value() else { return None };
    let (count, window) = text.split_once('/')?;
    let window = match window.trim() {
        word @ ("minute" | "hour" | "day") => Window::parse(word)?,
        _ => return None,
    };
    Some((count.trim().parse().ok().filter(|n| *n > 0)?, window))
}
