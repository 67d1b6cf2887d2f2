//! Writes a translated `v8project.yaml` as a `toolgate.yaml`.

use crate::syntax::{Entry, Kind, Node, Scalar};

/// A mapping as a YAML document, with a comment line above it.
pub(crate) fn document(remark: &str, root: &Node) -> String {
    let mut text = format!("# {remark}\n");
    block(root, 0, &mut text);
    text
}

/// Mappings as blocks; everything else on the line of its key.
fn block(node: &Node, depth: usize, text: &mut String) {
    let Kind::Map { entries, .. } = &node.kind else { return };
    for Entry { key, value } in entries.iter().filter(|entry| !is_empty(&entry.value)) {
        text.push_str(&"  ".repeat(depth));
        text.push_str(&scalar(&key.text, true));
        text.push(':');
        if matches!(value.kind, Kind::Map { .. }) {
            text.push('\n');
            block(value, depth + 1, text);
        } else {
            text.push(' ');
            text.push_str(&flow(value));
            text.push('\n');
        }
    }
}

fn is_empty(node: &Node) -> bool {
    match &node.kind {
        Kind::Null => true,
        Kind::Map { entries, .. } => entries.iter().all(|entry| is_empty(&entry.value)),
        Kind::Scalar(_) | Kind::List(_) => false,
    }
}

fn flow(node: &Node) -> String {
    match &node.kind {
        Kind::Null => "null".to_owned(),
        Kind::Scalar(Scalar { text, plain }) => scalar(text, *plain),
        Kind::List(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Kind::Map { entries, .. } => {
            let entry = |entry: &Entry| {
                format!("{}: {}", scalar(&entry.key.text, true), flow(&entry.value))
            };
            format!("{{ {} }}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
    }
}

/// Unquoted if it is unambiguous, else quoted.
fn scalar(text: &str, plain: bool) -> String {
    let is_safe = |c: char| c.is_alphanumeric() || "._/:-".contains(c);
    let begins = |c: char| c.is_alphanumeric() || "./".contains(c);
    if plain && text.starts_with(begins) && !text.ends_with(':') && text.chars().all(is_safe) {
        return text.to_owned();
    }
    // A JSON string is a YAML string.
    serde_json::Value::from(text).to_string()
}
