//! The rows of the builder: what is decided for each class and each tool.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::Value;

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
    pub(crate) max: String,
    pub(crate) window: String,
    pub(crate) has_entry: bool,
    /// The conditions of its entry.
    pub(crate) conditions: Vec<Condition>,
    pub(crate) number: usize,
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
        (&self.rule, &self.max, &self.window, self.has_entry, &self.conditions).hash(&mut hasher);
        format!("{:x}", hasher.finish())
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
        let (max, window) = written_limit(entry);
        let effect = match entry.at("action").as_str() {
            Some("deny") => "deny",
            Some("hide") => "hide",
            Some("require_approval") => "ask",
            _ if !is_named => "deny",
            _ if entry.get("approve").is_some() => "ask",
            _ if !max.is_empty() => "limit",
            _ => "allow",
        };
        Choice {
            section: "classes",
            key: class.to_owned(),
            name: s.tr(&format!("class-{class}")),
            server: String::new(),
            class: class.to_owned(),
            class_text: s.tr(&format!("class-{class}-what")),
            effect,
            rule: String::new(),
            max,
            window,
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
    let (max, window) = match tool.limits.first().and_then(|limit| limit.split_once('/')) {
        Some((max, window)) => (max.to_owned(), window.to_owned()),
        None => (String::new(), String::new()),
    };
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
        name: foreign(&tool.tool, 160),
        server: foreign(&tool.server, 60),
        class_text: s.tr(&format!("class-{}", tool.class)),
        class: tool.class.clone(),
        effect,
        rule: foreign(&tool.rule, 160),
        max,
        window,
        number,
    }
}

/// `30`, `minute` of an entry.
fn written_limit(entry: &Value) -> (String, String) {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match (&entry.at("rate_limit"), entry.at("limits").get(0)) {
        (Value::String(limit), _) => {
            let (max, window) = limit.split_once('/').unwrap_or((limit, "minute"));
            (max.to_owned(), window.to_owned())
        }
        (Value::Object(limit), _) => (
            limit.get("max").map(text).unwrap_or_default(),
            limit.get("window").map(text).unwrap_or_default(),
        ),
        (_, Some(limit)) => (text(limit.at("max")), text(limit.at("window"))),
        _ => (String::new(), String::new()),
    }
}
