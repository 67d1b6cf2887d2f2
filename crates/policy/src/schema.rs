//! The JSON Schema of the language, for editors.
//!
//! It describes form; meaning (regexes, counters, contradictions) is what checking is for.

use serde_json::{Value, json};

use crate::{
    Class,
    model::{Op, Scope},
};

/// JSON Schema (2020-12) of a policy document.
pub fn json_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "toolgate policy",
        "type": "object",
        "additionalProperties": false,
        "required": ["version", "default"],
        "properties": {
            "version": { "const": "1" },
            "description": { "type": "string" },
            "mode": { "enum": ["enforce", "shadow"] },
            "shadow_until": { "type": "string", "pattern": "^\\d{4}-\\d{2}-\\d{2}$" },
            "default": { "enum": ["allow", "deny"] },
            "list": { "enum": ["allowed", "all"] },
            "timezone": { "type": "string" },
            "hide": { "type": "array", "items": text(), "uniqueItems": true },
            "loop": object(&["max", "window"], json!({ "max": count(), "window": window() })),
            "all_tools": { "$ref": "#/$defs/all_tools" },
            "classes": {
                "type": "object",
                "additionalProperties": false,
                "properties": Class::ALL.iter().map(|class| {
                    (class.as_str().to_owned(), json!({ "$ref": "#/$defs/class" }))
                }).collect::<serde_json::Map<_, _>>(),
            },
            "tools": { "type": "object", "additionalProperties": { "$ref": "#/$defs/tool" } },
            "resources": section(&["allow", "hide", "deny"]),
            "prompts": section(&["allow", "hide", "deny"]),
            "methods": section(&["allow", "deny"]),
            "tests": { "type": "array", "items": { "$ref": "#/$defs/test" } },
        },
        "$defs": definitions(),
    })
}

fn definitions() -> Value {
    json!({
        "all_tools": entry(false, false),
        "class": entry(true, false),
        "tool": entry(true, true),
        "predicate": object(&[], predicate()),
        "holding_predicate": object(&[], with(predicate(), asking())),
        "condition": object(&["path", "op", "value"], json!({
            "path": text(),
            "op": { "enum": Op::ALL.map(|(name, _)| name) },
            "value": {},
        })),
        "limit": object(&["counter", "window", "max"], json!({
            "counter": text(),
            "window": window(),
            "max": { "type": "number", "minimum": 0 },
            "scope": scope(),
            "increment": count(),
            "increment_from": { "type": "string", "pattern": "^args\\." },
            "algorithm": { "enum": ["calendar", "sliding"] },
            "on_deny": { "type": "string" },
        })),
        "rule": object(&[], json!({
            "name": text(),
            "action": { "enum": ["evaluate", "deny", "require_approval"] },
            "on_deny": { "type": "string" },
            "conditions": { "type": "array", "items": { "$ref": "#/$defs/condition" } },
            "state": object(&["counter", "window"], json!({
                "counter": text(),
                "window": { "enum": ["minute", "hour", "day"] },
                "increment": { "type": "integer", "minimum": 0 },
                "increment_from": { "type": "string", "pattern": "^args\\." },
            })),
            "rate_limit": { "type": "string" },
            "approval_timeout": window(),
        })),
        "test": test(),
        "call": call(),
        "expect": {
            "anyOf": [
                { "enum": ["allow", "deny", "hide", "hold"] },
                { "type": "object", "minProperties": 1, "maxProperties": 1,
                  "propertyNames": { "enum": ["allow", "deny", "hide", "hold"] } },
            ],
        },
    })
}

/// The keys of a predicate.
fn predicate() -> Value {
    json!({
        "conditions": { "type": "array", "items": { "$ref": "#/$defs/condition" } },
        "any": { "type": "array", "minItems": 1, "items": { "$ref": "#/$defs/predicate" } },
        "not": { "$ref": "#/$defs/predicate" },
        "on_deny": { "type": "string" },
    })
}

/// The keys of `approve`.
fn asking() -> Value {
    json!({
        "wait": { "anyOf": [window(), { "const": 0 }] },
        "expires": window(),
        "approvers": { "type": "array", "items": text() },
        "people": count(),
        "note": { "type": "string" },
    })
}

/// The members of both.
fn with(mut one: Value, other: Value) -> Value {
    if let (Value::Object(members), Value::Object(more)) = (&mut one, other) {
        members.extend(more);
    }
    one
}

fn entry(action: bool, ownership: bool) -> Value {
    let predicates = json!({ "type": "array", "items": { "$ref": "#/$defs/predicate" } });
    let mut properties = json!({
        "require": predicates,
        "deny_if": predicates,
        "approve": object(&[], asking()),
        "approve_if": { "type": "array", "items": { "$ref": "#/$defs/holding_predicate" } },
        "limits": { "type": "array", "items": { "$ref": "#/$defs/limit" } },
        "rate_limit": { "anyOf": [
            { "type": "string", "pattern": "^\\s*[1-9]\\d*\\s*/" },
            object(&["max", "window"], json!({ "max": count(), "window": window() })),
        ] },
        "concurrency": object(&["max"], json!({ "max": count(), "scope": scope() })),
        "unless_seen_within": window(),
        "rules": { "type": "array", "items": { "$ref": "#/$defs/rule" } },
        "mode": { "enum": ["enforce", "shadow"] },
        "shadow_until": { "type": "string" },
    });
    if let (true, Some(map)) = (action, properties.as_object_mut()) {
        map.insert(
            "action".into(),
            json!({ "enum": ["allow", "deny", "hide", "require_approval"] }),
        );
        map.insert("reason".into(), json!({ "type": "string" }));
    }
    if let (true, Some(map)) = (ownership, properties.as_object_mut()) {
        let yields = json!({ "anyOf": [
            { "type": "string", "pattern": "^result\\." },
            object(&["path"], json!({
                "path": { "type": "string", "pattern": "^result\\." },
                "shared": { "type": "boolean" },
                "scope": { "enum": ["grant", "identity"] },
                "for": window(),
            })),
        ] });
        let ends = json!({ "type": "string", "pattern": "^args\\." });
        map.insert("yields".into(), json!({ "type": "object", "additionalProperties": yields }));
        map.insert("ends".into(), json!({ "type": "object", "additionalProperties": ends }));
    }
    object(&[], properties)
}

fn test() -> Value {
    let expect = json!({ "anyOf": [
        { "$ref": "#/$defs/expect" },
        { "type": "array", "minItems": 1, "items": { "$ref": "#/$defs/expect" } },
    ] });
    object(
        &["call", "expect"],
        json!({
            "name": text(),
            "at": { "type": "string" },
            "call": { "$ref": "#/$defs/call" },
            "expect": expect,
            "then": { "type": "array", "items": object(&["expect"], json!({
                "after": window(),
                "call": { "$ref": "#/$defs/call" },
                "expect": expect,
            })) },
        }),
    )
}

fn call() -> Value {
    let string = json!({ "type": "string" });
    object(
        &["tool"],
        json!({
            "tool": text(),
            "server": string,
            "class": { "enum": Class::ALL.map(Class::as_str) },
            "args": { "type": "object" },
            "grant": string,
            "identity": string,
            "groups": { "type": "array", "items": text() },
            "client": string,
            "session": object(&[], json!({ "kind": string, "infobase_name": string, "host_id": string })),
            "target": string,
            "agent_session": string,
            "times": count(),
            "every": window(),
        }),
    )
}

fn section(lists: &[&str]) -> Value {
    let mut properties = json!({ "default": { "enum": ["allow", "deny"] } });
    for list in lists {
        if let Some(map) = properties.as_object_mut() {
            map.insert((*list).to_owned(), json!({ "type": "array", "items": text() }));
        }
    }
    object(&[], properties)
}

#[expect(clippy::needless_pass_by_value, reason = "callers build it in place")]
fn object(required: &[&str], properties: Value) -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": required,
        "properties": properties,
    })
}

fn text() -> Value {
    json!({ "type": "string", "minLength": 1 })
}

fn count() -> Value {
    json!({ "type": "integer", "minimum": 1 })
}

fn scope() -> Value {
    json!({ "enum": Scope::ALL.map(|(name, _)| name) })
}

/// A word, a duration, or a number of seconds.
fn window() -> Value {
    json!({ "anyOf": [
        { "enum": ["minute", "hour", "day"] },
        { "type": "string", "pattern": "^\\d+[smhd]$" },
        { "type": "integer", "minimum": 1 },
    ] })
}
