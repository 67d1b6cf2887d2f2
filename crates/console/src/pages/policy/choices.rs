//! The rows of the builder: what is decided for each class and each tool.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::Value;

use super::edit::shown;
use crate::items::ToolDecision;
use crate::look::Look as _;
use crate::sentences::predicate_text;
use crate::shell::Shell;
use crate::shown::foreign;

pub(crate) const CLASSES: [&str; 6] =
    ["read", "write", "execute", "destructive", "financial", "other"];

/// One row of the builder.
pub(crate) struct Choice {
    /// `tools` or `classes`.
    pub(crate) section: &'static str,
    /// The key of its entry.
    pub(crate) key: String,
    /// The name of its group.
    pub(crate) name: String,
    pub(crate) server: String,
    pub(crate) class: String,
    pub(crate) class_text: String,
    /// `allow`, `limit`, `ask`, `deny` or `hide`.
    pub(crate) effect: &'static str,
    pub(crate) rule: String,
    /// Its limits, to edit.
    pub(crate) amounts: Vec<Limit>,
    /// They are in its own entry.
    pub(crate) has_own_limits: bool,
    pub(crate) has_entry: bool,
    /// The conditions of its entry.
    pub(crate) conditions: Vec<Condition>,
    pub(crate) number: usize,
}

/// One limit of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Limit {
    /// Its place in `limits`; empty if it is the `rate_limit`, or is not in the entry.
    pub(crate) at: String,
    /// What its fields are called.
    pub(crate) name: String,
    pub(crate) max: String,
    pub(crate) window: String,
    /// The argument of which it is a sum.
    pub(crate) sum: String,
}

impl Limit {
    /// Whether its window is not among those that can be chosen.
    pub(crate) fn has_own_window(&self) -> bool {
        !matches!(self.window.as_str(), "minute" | "hour" | "day")
    }
}

/// One condition of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Condition {
    /// `deny_if`, `approve_if` or `require`.
    pub(crate) list: &'static str,
    /// Its place in the list: the predicate, and the condition in it. Empty if it is nested, and so
    /// is edited in the document.
    pub(crate) at: String,
    pub(crate) path: String,
    pub(crate) op: String,
    pub(crate) value: String,
    /// In words.
    pub(crate) text: String,
}

pub(crate) const LISTS: [(&str, &str); 3] =
    [("deny_if", "say-deny-if"), ("approve_if", "say-approve-if"), ("require", "say-require")];

/// The conditions of an entry, in the order of the document.
fn conditions(s: &Shell, entry: &Value) -> Vec<Condition> {
    let mut all = Vec::new();
    for (list, say) in LISTS {
        let predicates = entry.at(list).as_array().into_iter().flatten();
        for (place, predicate) in predicates.enumerate() {
            let said = |text: String| foreign(&s.trv(say, text), 400);
            let simple = predicate.at("conditions").as_array();
            let Some(simple) = simple.filter(|it| !it.is_empty()) else {
                let text = said(predicate_text(s.language, predicate));
                let (at, path) = (String::new(), String::new());
                let (op, value) = (String::new(), String::new());
                all.push(Condition { list, at, path, op, value, text });
                continue;
            };
            for (within, condition) in simple.iter().enumerate() {
                let alone = serde_json::json!({ "conditions": [condition] });
                all.push(Condition {
                    list,
                    at: format!("{place}.{within}"),
                    path: condition.at("path").as_str().unwrap_or_default().to_owned(),
                    op: condition.at("op").as_str().unwrap_or_default().to_owned(),
                    value: written(condition.at("value")),
                    text: said(predicate_text(s.language, &alone)),
                });
            }
        }
    }
    all
}

/// A value as a person writes it in a field: text without quotes, unless it would be read as
/// something else.
pub(crate) fn written(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) if serde_json::from_str::<Value>(text).is_err() => text.clone(),
        other => other.to_string(),
    }
}

impl Choice {
    /// What its row shows, in short: equal rows have equal marks.
    pub(crate) fn mark(&self) -> String {
        let mut hasher = DefaultHasher::new();
        (&self.key, &self.name, &self.server, &self.class, self.effect).hash(&mut hasher);
        (&self.rule, &self.amounts, self.has_entry, &self.conditions).hash(&mut hasher);
        format!("{:x}", hasher.finish())
    }

    /// The limits that can be edited here: those of a call that passes, and those of its own entry.
    pub(crate) fn shown_amounts(&self) -> &[Limit] {
        match self.effect {
            "limit" => &self.amounts,
            "ask" if self.has_own_limits => &self.amounts,
            _ => &[],
        }
    }

    /// Whether a condition can be added without opening what is refused now.
    pub(crate) fn takes_conditions(&self) -> bool {
        matches!(self.effect, "allow" | "limit" | "ask")
    }
}

/// The effect that the entry of a class has without the rest of the document.
pub(crate) fn class_choices(s: &Shell, document: &Value) -> Vec<Choice> {
    let of = |(number, class): (usize, &str)| {
        let entry = &document.at("classes").at(class);
        let default = document.at("default").as_str().unwrap_or("deny");
        let is_named = entry.at("action") == "allow" || default == "allow";
        let name = s.tr(&format!("class-{class}"));
        let amounts = limits(entry, &name);
        let effect = match entry.at("action").as_str() {
            Some("deny") => "deny",
            Some("hide") => "hide",
            Some("require_approval") => "ask",
            _ if !is_named => "deny",
            _ if entry.get("approve").is_some() => "ask",
            _ if !amounts.is_empty() => "limit",
            _ => "allow",
        };
        Choice {
            section: "classes",
            key: class.to_owned(),
            name,
            server: String::new(),
            class: class.to_owned(),
            class_text: s.tr(&format!("class-{class}-what")),
            effect,
            rule: String::new(),
            has_own_limits: !amounts.is_empty(),
            amounts,
            has_entry: entry.is_object(),
            conditions: conditions(s, entry),
            number,
        }
    };
    CLASSES.into_iter().enumerate().map(of).collect()
}

/// What is decided for a tool in the end.
pub(crate) fn tool_choice(
    s: &Shell,
    document: &Value,
    tool: &ToolDecision,
    number: usize,
) -> Choice {
    let own = toolgate_catalog::escape_glob(&tool.tool);
    let precise = format!("{}/{own}", tool.server);
    let entries = &document.at("tools");
    let key =
        if entries.get(&precise).is_none() && entries.get(&own).is_some() { own } else { precise };
    let name = foreign(&tool.tool, 160);
    let mut amounts = limits(entries.at(&key), &name);
    let has_own_limits = !amounts.is_empty();
    // A limit of a class or a glob, which an entry of the tool's own would tighten.
    let inherited = tool.limits.first().and_then(|limit| limit.split_once('/'));
    if let (true, Some((max, window))) = (amounts.is_empty(), inherited) {
        let (at, sum) = (String::new(), String::new());
        let (max, window, name) = (max.to_owned(), window.to_owned(), name.clone());
        amounts.push(Limit { at, name, max, window, sum });
    }
    let effect = match (tool.effect.as_str(), tool.limits.is_empty()) {
        ("hold", _) => "ask",
        ("deny", _) => "deny",
        ("hide", _) => "hide",
        (_, false) => "limit",
        (_, true) => "allow",
    };
    Choice {
        section: "tools",
        has_entry: entries.get(&key).is_some(),
        conditions: conditions(s, entries.at(&key)),
        key,
        name,
        server: foreign(&tool.server, 60),
        class_text: s.tr(&format!("class-{}", tool.class)),
        class: tool.class.clone(),
        effect,
        rule: foreign(&tool.rule, 160),
        amounts,
        has_own_limits,
        number,
    }
}

/// The limits of an entry, in the order of the document.
fn limits(entry: &Value, name: &str) -> Vec<Limit> {
    let of = |at: String, name: String, limit: &Value| {
        let (max, window) = match limit {
            Value::String(text) => text.split_once('/').unwrap_or((text, "minute")),
            _ => ("", ""),
        };
        let or = |text: &str, key: &str| {
            if text.is_empty() { shown(limit.at(key)) } else { text.trim().to_owned() }
        };
        let (max, window) = (or(max, "max"), or(window, "window"));
        Limit { at, name, max, window, sum: shown(limit.at("increment_from")) }
    };
    let rate = entry.get("rate_limit").map(|limit| of(String::new(), name.to_owned(), limit));
    let listed = entry.at("limits").as_array().into_iter().flatten().enumerate();
    let listed = listed.map(|(place, limit)| {
        let counter = foreign(&shown(limit.at("counter")), 80);
        of(place.to_string(), format!("{name} {counter}"), limit)
    });
    rate.into_iter().chain(listed).collect()
}
