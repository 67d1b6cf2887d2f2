//! Every rule of a policy as a sentence, in the language of the reader.
//!
//! Invariant: pure; an entry that has a key for which there is no sentence says so.

use serde_json::{Map, Value};

use crate::look::Look as _;
use crate::texts::Language;

/// One sentence, and the rule it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sentence {
    /// A JSON pointer.
    pub(crate) rule: String,
    pub(crate) text: String,
}

/// Keys of an entry that have a sentence.
const KNOWN: [&str; 14] = [
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
    "mode",
    "shadow_until",
];

/// The sentences of a document.
pub(crate) fn sentences(language: Language, document: &Value) -> Vec<Sentence> {
    let say = Say(language);
    let mut all = Vec::new();
    let mut add = |rule: String, text: String| all.push(Sentence { rule, text });
    let default = document.at("default").as_str().unwrap_or("deny");
    add(
        "/default".to_owned(),
        say.text(if default == "allow" { "say-default-allow" } else { "say-default-deny" }),
    );
    if document.at("mode") == "shadow" {
        add("/mode".to_owned(), say.text("say-shadow"));
    }
    let hidden: Vec<String> = document
        .at("hide")
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(quoted)
        .collect();
    if !hidden.is_empty() {
        add("/hide".to_owned(), say.with("say-hidden", &hidden.join(", ")));
    }
    if let Some(entry) = document.at("all_tools").as_object() {
        let subject = say.text("say-all-tools");
        add("/all_tools".to_owned(), say.entry(&subject, entry));
    }
    for (class, entry) in document.at("classes").as_object().into_iter().flatten() {
        let subject = say.with("say-class", &say.text(&format!("class-{class}")));
        add(format!("/classes/{class}"), say.entry(&subject, &object(entry)));
    }
    for (tool, entry) in document.at("tools").as_object().into_iter().flatten() {
        let pointer = tool.replace('~', "~0").replace('/', "~1");
        add(format!("/tools/{pointer}"), say.entry(&quoted(tool), &object(entry)));
    }
    if let Some(repeat) = document.at("loop").as_object() {
        let (max, window) = (plain(repeat.get("max")), say.window(repeat.get("window")));
        add("/loop".to_owned(), say.two("say-loop", &max, &window));
    }
    all
}

/// A predicate in words.
pub(crate) fn predicate_text(language: Language, predicate: &Value) -> String {
    Say(language).predicate(predicate)
}

struct Say(Language);

impl Say {
    fn text(&self, key: &str) -> String {
        self.0.text(key, &[])
    }

    fn with(&self, key: &str, value: &str) -> String {
        self.0.text(key, &[("value", value.to_owned().into())])
    }

    fn two(&self, key: &str, value: &str, window: &str) -> String {
        self.0
            .text(key, &[("value", value.to_owned().into()), ("window", window.to_owned().into())])
    }

    /// The sentence of one entry.
    fn entry(&self, subject: &str, entry: &Map<String, Value>) -> String {
        let mut parts = vec![self.head(subject, entry)];
        parts.extend(self.limits(entry));
        if let Some(approve) = entry.get("approve") {
            parts.push(self.approval(approve));
        }
        for (key, list) in [
            ("say-require", "require"),
            ("say-deny-if", "deny_if"),
            ("say-approve-if", "approve_if"),
        ] {
            for predicate in entry.get(list).and_then(Value::as_array).into_iter().flatten() {
                parts.push(self.with(key, &self.predicate(predicate)));
            }
        }
        if let Some(concurrency) = entry.get("concurrency") {
            parts.push(
                self.with("say-concurrency", &plain(concurrency.get("max").or(Some(concurrency)))),
            );
        }
        if let Some(window) = entry.get("unless_seen_within") {
            parts.push(self.with("say-repeat", &plain(Some(window))));
        }
        if entry.contains_key("yields") || entry.contains_key("ends") {
            parts.push(self.text("say-owned"));
        }
        if entry.get("mode").is_some_and(|mode| mode == "shadow") {
            parts.push(self.text("say-shadow-entry"));
        }
        let others: Vec<&str> =
            entry.keys().map(String::as_str).filter(|key| !KNOWN.contains(key)).collect();
        if !others.is_empty() {
            parts.push(self.with("say-others", &others.join(", ")));
        }
        format!("{}.", parts.join("; "))
    }

    fn head(&self, subject: &str, entry: &Map<String, Value>) -> String {
        let reason = entry.get("reason").and_then(Value::as_str);
        let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
        let key = match entry.get("action").and_then(Value::as_str) {
            Some("deny") => "say-denied",
            Some("hide") => "say-hidden-one",
            Some("require_approval") => "say-held",
            _ => "say-may",
        };
        self.with(key, subject) + &reason
    }

    fn limits(&self, entry: &Map<String, Value>) -> Vec<String> {
        let mut all = Vec::new();
        match entry.get("rate_limit") {
            Some(Value::String(text)) => {
                let (max, window) = text.split_once('/').unwrap_or((text, "minute"));
                all.push(self.limit(max.trim(), &self.named_window(window.trim())));
            }
            Some(Value::Object(limit)) => {
                all.push(self.limit(&plain(limit.get("max")), &self.window(limit.get("window"))));
            }
            _ => {}
        }
        for limit in entry.get("limits").and_then(Value::as_array).into_iter().flatten() {
            let (max, window) = (plain(limit.get("max")), self.window(limit.get("window")));
            all.push(match limit.get("increment_from").and_then(Value::as_str) {
                Some(path) => {
                    let values = [
                        ("value", max.into()),
                        ("window", window.into()),
                        ("path", path.to_owned().into()),
                    ];
                    self.0.text("say-sum", &values)
                }
                None => self.limit(&max, &window),
            });
        }
        all
    }

    fn limit(&self, max: &str, window: &str) -> String {
        let n: f64 = max.parse().unwrap_or_default();
        self.0.text("say-limit", &[("n", n.into()), ("window", window.to_owned().into())])
    }

    fn window(&self, window: Option<&Value>) -> String {
        match window {
            Some(Value::Number(seconds)) => self.with("window-seconds", &seconds.to_string()),
            other => self.named_window(&plain(other)),
        }
    }

    fn named_window(&self, window: &str) -> String {
        match window {
            "minute" | "hour" | "day" => self.text(&format!("window-{window}")),
            other => other.to_owned(),
        }
    }

    fn approval(&self, approve: &Value) -> String {
        let people = approve.at("people").as_u64().unwrap_or(1);
        let groups: Vec<&str> = approve
            .at("approvers")
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let n = f64::from(u32::try_from(people).unwrap_or(u32::MAX));
        let text = self.0.text("say-approve", &[("n", n.into())]);
        if groups.is_empty() { text } else { format!("{text} ({})", groups.join(", ")) }
    }

    fn predicate(&self, predicate: &Value) -> String {
        if let Some(any) = predicate.at("any").as_array() {
            let parts: Vec<String> = any.iter().map(|it| self.predicate(it)).collect();
            return parts.join(&self.text("say-or"));
        }
        if predicate.get("not").is_some() {
            return self.with("say-not", &self.predicate(predicate.at("not")));
        }
        let conditions = predicate.at("conditions").as_array();
        let parts: Vec<String> =
            conditions.into_iter().flatten().map(|it| self.condition(it)).collect();
        if parts.is_empty() { self.text("say-always") } else { parts.join(&self.text("say-and")) }
    }

    fn condition(&self, condition: &Value) -> String {
        let path = condition.at("path").as_str().unwrap_or_default();
        let path = path.strip_prefix("args.").unwrap_or(path);
        let op = condition.at("op").as_str().unwrap_or_default();
        let value = &condition.at("value");
        let word = match (op, value) {
            ("exists", Value::Bool(false)) => return self.with("op-missing", path),
            ("exists", _) => return self.with("op-exists", path),
            ("eq", _) => "=".to_owned(),
            ("neq", _) => "≠".to_owned(),
            ("lt", _) => "<".to_owned(),
            ("lte", _) => "≤".to_owned(),
            ("gt", _) => ">".to_owned(),
            ("gte", _) => "≥".to_owned(),
            (op, _) => self.text(&format!("op-{}", op.replace('_', "-"))),
        };
        format!("{path} {word} {value}")
    }
}

fn object(entry: &Value) -> Map<String, Value> {
    entry.as_object().cloned().unwrap_or_default()
}

fn quoted(tool: &str) -> String {
    format!("“{tool}”")
}

fn plain(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = r#"
version: "1"
default: deny
hide: [delete_account]
classes:
  destructive: { approve: { people: 2, approvers: [ops] } }
tools:
  close: { limits: [{ counter: c, window: minute, max: 30 }] }
  close_1c: { action: deny, reason: only a person closes 1C }
  charge:
    require: [{ conditions: [{ path: args.reason, op: exists, value: true }] }]
    deny_if: [{ conditions: [{ path: args.amount, op: gt, value: 10000 }] }]
    limits: [{ counter: spend, window: day, max: 100000, increment_from: args.amount }]
"#;

    fn said(language: Language) -> Vec<String> {
        let json = toolgate_policy::document_json(DOCUMENT).unwrap();
        let document = serde_json::from_str(&json).unwrap();
        sentences(language, &document).into_iter().map(|it| it.text).collect()
    }

    #[test]
    fn rules_are_sentences_in_english() {
        assert_eq!(
            said(Language::English),
            [
                "Tools that no rule names are denied.",
                "“delete_account” is hidden: agents do not see it.",
                "Tools of the class destructive may be called; every call needs the approval of 2 people (ops).",
                "“charge” may be called; in sum at most 100000 of args.amount a day; only if reason is given; denied if amount > 10000.",
                "“close” may be called; at most 30 times a minute.",
                "“close_1c” is denied (only a person closes 1C).",
            ]
        );
    }

    #[test]
    fn rules_are_sentences_in_russian() {
        assert_eq!(
            said(Language::Russian),
            [
                "Инструменты, которых нет в правилах, запрещены.",
                "Скрыто от агентов: “delete_account”.",
                "Инструменты класса «разрушение»: вызов разрешён; каждый вызов подтверждают 2 человека (ops).",
                "“charge”: вызов разрешён; в сумме не больше 100000 по args.amount в день; только если указано: reason; запрещено, если amount > 10000.",
                "“close”: вызов разрешён; не больше 30 раз в минуту.",
                "“close_1c”: вызов запрещён (only a person closes 1C).",
            ]
        );
    }
}
