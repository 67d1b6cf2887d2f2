//! What to write instead of a value of the wrong type: the text itself, not its description.

use toolgate_json::quote;

use crate::syntax::{Node, Value};

/// The hint for a value of the wrong type under `key`; `None` if there is nothing better than the
/// type's name.
pub(super) fn hint(key: &str, node: &Node) -> Option<String> {
    let text = match key {
        "tools" => format!("tools: {{ {}: {{}} }}", names(node, "get_user").join(": {}, ")),
        "classes" => "classes: { destructive: { approve: {} } }".to_owned(),
        "all_tools" => "all_tools: { rate_limit: 600/minute }".to_owned(),
        "hide" => format!("hide: [{}]", names(node, "delete_account").join(", ")),
        "loop" => format!("loop: {{ max: {}, window: minute }}", number(node, "20")),
        "approve" => match node.value() {
            Value::Bool(false) => {
                return Some("remove `approve`: a call is held only with it".into());
            }
            _ => "approve: {}".to_owned(),
        },
        "concurrency" => format!("concurrency: {{ max: {} }}", number(node, "2")),
        "limits" | "a limit" => "limits: [{ counter: calls, window: minute, max: 30 }]".to_owned(),
        "require" | "deny_if" | "approve_if" => {
            format!("{key}: [{{ conditions: [{{ path: args.amount, op: gt, value: 100 }}] }}]")
        }
        "conditions" => "conditions: [{ path: args.amount, op: gt, value: 100 }]".to_owned(),
        "a condition" => "{ path: args.amount, op: gt, value: 100 }".to_owned(),
        "a predicate" => "{ conditions: [{ path: args.amount, op: gt, value: 100 }] }".to_owned(),
        "yields" => "yields: { job: result.session_id }".to_owned(),
        "ends" => "ends: { job: args.session_id }".to_owned(),
        "resources" => "resources: { default: allow }".to_owned(),
        "prompts" => "prompts: { default: allow }".to_owned(),
        "methods" => "methods: { default: deny }".to_owned(),
        _ => entry(key.strip_prefix("/tools/").or(key.strip_prefix("/classes/"))?, node),
    };
    Some(format!("write `{text}`"))
}

/// An entry of `tools` or `classes` that is not a mapping.
fn entry(name: &str, node: &Node) -> String {
    let name = scalar(&name.replace("~1", "/").replace("~0", "~"));
    match node.value() {
        Value::Text(word @ ("deny" | "hide" | "require_approval")) => {
            format!("{name}: {{ action: {word} }}")
        }
        Value::Bool(false) => format!("{name}: {{ action: deny }}"),
        Value::Text(rate) if rate.contains('/') => format!("{name}: {{ rate_limit: {rate} }}"),
        _ => format!("{name}: {{}}"),
    }
}

/// The texts of a list or of a single value, as YAML.
fn names(node: &Node, example: &str) -> Vec<String> {
    let texts: Vec<String> = match node.value() {
        Value::Text(text) => vec![scalar(text)],
        Value::List(items) => items.iter().take(3).filter_map(text_of).collect(),
        _ => Vec::new(),
    };
    if texts.is_empty() { vec![example.to_owned()] } else { texts }
}

fn text_of(node: &Node) -> Option<String> {
    match node.value() {
        Value::Text(text) => Some(scalar(text)),
        _ => None,
    }
}

fn number<'n>(node: &'n Node, example: &'n str) -> &'n str {
    match node.value() {
        Value::Number(text) => text,
        _ => example,
    }
}

/// A text as YAML, quoted if it must be.
fn scalar(text: &str) -> String {
    let plain = text.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_alphanumeric() || "_-./".contains(c));
    let short: String = text.chars().take(60).collect();
    if plain { short } else { quote(&short) }
}
