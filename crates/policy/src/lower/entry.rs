//! Entries of `tools`, `classes` and `all_tools`.

use std::sync::Arc;

use super::{Reader, find, key_span, pointer};
use crate::{
    Code, Window,
    model::{Action, Approve, Concurrency, Entry, Increment, Limit, Repeats, Scope},
    syntax::{Member, Node, Value, type_name},
};

/// The position of an entry; not every key is allowed in each.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place<'k> {
    AllTools,
    Class,
    Tool(&'k str),
}

const KEYS: [&str; 16] = [
    "action",
    "reason",
    "require",
    "deny_if",
    "approve",
    "approve_if",
    "limits",
    "rate_limit",
    "concurrency",
    "unless_seen_within",
    "yields",
    "ends",
    "rules",
    "mode",
    "shadow_until",
    "spend",
];

impl Reader<'_, '_> {
    pub(super) fn entry(&mut self, node: &Node, base: &str, place: Place<'_>) -> Option<Entry> {
        let members = self.members(node, base)?;
        self.entry_keys(members, base, place);
        let approve = self.approve(members, base);
        let mut entry = Entry {
            pointer: base.into(),
            opens: base.into(),
            action_rule: pointer(base, "action"),
            require: self.predicates(members, base, "require"),
            deny_if: self.predicates(members, base, "deny_if"),
            approve,
            approve_if: self.predicates(members, base, "approve_if"),
            limits: self.limits(members, base),
            concurrency: self.concurrency(members, base),
            repeats: self.repeats(members, base),
            shadow: self.shadow(members),
            span: node.span,
            ..Entry::default()
        };
        if place != Place::AllTools {
            self.action(members, &mut entry);
        }
        if let Place::Tool(key) = place {
            entry.yields = self.yields(members);
            entry.ends = self.ends(members);
            entry.rules = self.rules(members, base, key);
        } else {
            entry.rules = self.rules(members, base, base);
        }
        self.duplicate_counters(&entry);
        Some(entry)
    }

    fn entry_keys(&mut self, members: &[Member], base: &str, place: Place<'_>) {
        for Member { key, .. } in members {
            let name = key.text.as_str();
            let misplaced = match place {
                Place::Tool(_) => false,
                Place::Class => matches!(name, "yields" | "ends"),
                Place::AllTools => matches!(name, "yields" | "ends" | "action" | "reason"),
            };
            if name == "spend" {
                self.findings.add(
                    Code::Spend,
                    key.span,
                    "`spend` is not supported: toolgate does not read prices from results",
                    "limit the argument that carries the amount: `limits: [{ counter: spend, window: day, max: 50, increment_from: args.amount }]`",
                );
            } else if misplaced {
                self.findings.add(
                    Code::Misplaced,
                    key.span,
                    format!("`{name}` is not allowed in `{base}`"),
                    "write it under the tool it is about, in `tools`",
                );
            } else if !KEYS.contains(&name) {
                self.unknown_key(key, &format!("`{base}`"), &KEYS);
            }
        }
    }

    fn action(&mut self, members: &[Member], entry: &mut Entry) {
        let words = [
            ("allow", Action::Allow),
            ("deny", Action::Deny),
            ("hide", Action::Hide),
            ("require_approval", Action::RequireApproval),
        ];
        entry.action = find(members, "action").and_then(|node| self.word(node, "action", &words));
        if entry.action.is_some() {
            entry.opens = Arc::clone(&entry.action_rule);
        }
        if let Some(node) = find(members, "reason") {
            entry.reason = self.string(node, "reason").map(str::to_owned);
            if entry.action != Some(Action::Deny) {
                self.findings.add(
                    Code::Contradiction,
                    key_span(members, "reason"),
                    "`reason` without `action: deny`",
                    "add `action: deny`, or use `on_deny` of the rule that denies",
                );
            }
        }
        if entry.action == Some(Action::RequireApproval) && entry.approve.is_none() {
            let rule = Arc::clone(&entry.action_rule);
            entry.approve = Some(Approve { rule, ..default_approve("") });
        }
    }

    fn approve(&mut self, members: &[Member], base: &str) -> Option<Approve> {
        let node = find(members, "approve")?;
        let keys = ["wait", "expires", "approvers", "people", "note"];
        self.fields(node, "`approve`", &keys)?;
        Some(self.approve_of(node, default_approve(base)))
    }

    /// The keys of `approve` in a node, over these defaults.
    pub(super) fn approve_of(&mut self, node: &Node, mut approve: Approve) -> Approve {
        if let Some(expires) = node.get("expires").and_then(|n| self.window(n, "expires")) {
            approve.expires = expires;
            approve.wait = approve.wait.min(Some(expires));
        }
        if let Some(node) = node.get("wait") {
            approve.wait = self.wait(node);
        }
        if approve.wait > Some(approve.expires) {
            self.findings.add(
                Code::Contradiction,
                node.span,
                "the call would wait longer than its approval is valid",
                "make `expires` at least as long as `wait`",
            );
        }
        if let Some(node) = node.get("approvers") {
            approve.approvers = self.strings(node, "approvers");
        }
        if let Some(people) = node.get("people").and_then(|n| self.whole(n, "people", 1)) {
            approve.people = u32::try_from(people).unwrap_or(u32::MAX);
        }
        approve.note = node.get("note").and_then(|n| self.string(n, "note").map(str::to_owned));
        approve
    }

    /// A duration; `None` for zero, and after a report.
    fn wait(&mut self, node: &Node) -> Option<Window> {
        if let Value::Text("0s" | "0m" | "0h" | "0d") | Value::Number("0") = node.value() {
            return None;
        }
        self.window(node, "wait")
    }

    fn concurrency(&mut self, members: &[Member], base: &str) -> Option<Concurrency> {
        let node = find(members, "concurrency")?;
        let fields = self.fields(node, "`concurrency`", &["max", "scope"])?;
        let scope = find(fields, "scope")
            .and_then(|n| self.word(n, "scope", &Scope::ALL))
            .unwrap_or_default();
        let Some(max) = find(fields, "max") else {
            self.missing(node.span, "`concurrency`", "max", "max: 2");
            return None;
        };
        let max = self.whole(max, "max", 1)?;
        Some(Concurrency { rule: pointer(base, "concurrency"), max, scope })
    }

    fn repeats(&mut self, members: &[Member], base: &str) -> Option<Repeats> {
        let window = self.window(find(members, "unless_seen_within")?, "unless_seen_within")?;
        Some(Repeats { rule: pointer(base, "unless_seen_within"), window })
    }

    fn limits(&mut self, members: &[Member], base: &str) -> Vec<Limit> {
        let mut limits = Vec::new();
        if let Some(node) = find(members, "limits") {
            for item in self.list(node, "limits") {
                limits.extend(self.limit(item, base));
            }
        }
        if let Some(node) = find(members, "rate_limit")
            && let Some((max, window)) = self.rate(node)
        {
            limits.push(Limit {
                rule: pointer(base, "rate_limit"),
                counter: "{tool}_rate".to_owned(),
                window,
                max,
                scope: Scope::Grant,
                increment: Increment::Fixed(crate::Amount::ONE),
                sliding: false,
                utc: false,
                on_deny: None,
                span: node.span,
            });
        }
        limits
    }

    /// `"30/minute"` or `{ max: 30, window: minute }`.
    fn rate(&mut self, node: &Node) -> Option<(crate::Amount, Window)> {
        match node.value() {
            Value::Text(text) => {
                let parsed = text.split_once('/').and_then(|(count, window)| {
                    let count = count.trim().parse::<u64>().ok().filter(|n| *n > 0)?;
                    let window = Window::parse(window.trim()).filter(|w| w.is_calendar())?;
                    Some((crate::Amount::whole(count), window))
                });
                if parsed.is_none() {
                    self.findings.add(
                        Code::RateLimit,
                        node.span,
                        format!("`{text}` is not a rate limit"),
                        "write `\"30/minute\"`: a positive whole number, a slash and a window",
                    );
                }
                parsed
            }
            Value::Map(_) => {
                let fields = self.fields(node, "`rate_limit`", &["max", "window"])?;
                let (Some(max), Some(window)) = (find(fields, "max"), find(fields, "window"))
                else {
                    self.missing(
                        node.span,
                        "`rate_limit`",
                        "max` or `window",
                        "{ max: 30, window: minute }",
                    );
                    return None;
                };
                let max = self.whole(max, "max", 1);
                let window = self.calendar_window(window);
                Some((crate::Amount::whole(max?), window?))
            }
            _ => {
                self.findings.add(
                    Code::RateLimit,
                    node.span,
                    format!("`rate_limit` is {}", type_name(node)),
                    "write `\"30/minute\"` or `{ max: 30, window: minute }`",
                );
                None
            }
        }
    }
}

pub(crate) fn default_approve(base: &str) -> Approve {
    Approve {
        rule: pointer(base, "approve"),
        wait: Window::seconds(45),
        expires: Window::seconds(30 * 60).unwrap_or(Window::HOUR),
        approvers: Vec::new(),
        people: 1,
        note: None,
    }
}
