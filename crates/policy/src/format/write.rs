//! Lays items out.

use super::{
    WIDTH,
    read::{Item, Layout, Value},
};
use crate::syntax::{self, Member, Node};

pub(super) fn yaml(layout: &Layout) -> String {
    let mut out = String::new();
    match &layout.root {
        Value::Map(items, _) | Value::List(items, _) if !items.is_empty() => {
            let keyed = matches!(layout.root, Value::Map(..));
            block(items, keyed, 0, &mut out);
        }
        root => {
            out.push_str(&flow(root).unwrap_or_default());
            out.push('\n');
        }
    }
    for comment in &layout.footer {
        out.push_str(comment);
        out.push('\n');
    }
    out
}

fn block(items: &[Item], keyed: bool, indent: usize, out: &mut String) {
    for (index, item) in items.iter().enumerate() {
        if item.spaced && index > 0 {
            out.push('\n');
        }
        comments(item, indent, out);
        pad(indent, out);
        if keyed {
            out.push_str(&item.key);
            out.push(':');
        } else {
            out.push('-');
        }
        value(item, keyed, indent, out);
    }
}

/// The comments above an item; those of a list element's first key go above its dash.
fn comments(item: &Item, indent: usize, out: &mut String) {
    for comment in &item.above {
        pad(indent, out);
        out.push_str(comment);
        out.push('\n');
    }
    if item.key.is_empty()
        && let Value::Map(members, _) = &item.value
        && let Some(first) = members.first()
    {
        comments(first, indent, out);
    }
}

/// What follows `key:` or `-`, up to the end of the item.
fn value(item: &Item, keyed: bool, indent: usize, out: &mut String) {
    let used = out.len() - out.rfind('\n').map_or(0, |at| at + 1);
    let room = WIDTH.saturating_sub(used + 1);
    let beside = item.beside.as_deref();
    if let Some(text) = flow(&item.value).filter(|t| stays_flow(&item.value, t, room)) {
        if !text.is_empty() {
            out.push(' ');
            out.push_str(&text);
        }
        end(beside, out);
        return;
    }
    match &item.value {
        Value::Text(text) => literal(text, indent, beside, out),
        Value::Scalar(_) => end(beside, out),
        Value::Map(items, _) if !keyed && beside.is_none() => {
            // The first member is on the line of the dash.
            out.push(' ');
            let mut inner = String::new();
            block_of_element(items, indent + 1, &mut inner);
            out.push_str(inner.trim_start());
        }
        Value::Map(items, _) => {
            end(beside, out);
            block(items, true, indent + 1, out);
        }
        Value::List(items, _) => {
            end(beside, out);
            block(items, false, indent + 1, out);
        }
    }
}

/// The members of a list element, whose first comments have been written already.
fn block_of_element(items: &[Item], indent: usize, out: &mut String) {
    let Some((first, rest)) = items.split_first() else { return };
    pad(indent, out);
    out.push_str(&first.key);
    out.push(':');
    value(first, true, indent, out);
    block(rest, true, indent, out);
}

fn stays_flow(value: &Value, text: &str, room: usize) -> bool {
    match value {
        Value::Scalar(_) => true,
        Value::Text(_) => false,
        Value::List(items, flow) | Value::Map(items, flow) => {
            items.is_empty() || (*flow && text.chars().count() <= room)
        }
    }
}

/// On one line, if it can be.
fn flow(value: &Value) -> Option<String> {
    match value {
        Value::Scalar(text) => Some(text.clone()),
        Value::Text(_) => None,
        Value::List(items, _) => {
            let parts: Option<Vec<String>> = items.iter().map(flow_item).collect();
            Some(format!("[{}]", parts?.join(", ")))
        }
        Value::Map(items, _) if items.is_empty() => Some("{}".to_owned()),
        Value::Map(items, _) => {
            let parts: Option<Vec<String>> = items.iter().map(flow_item).collect();
            Some(format!("{{ {} }}", parts?.join(", ")))
        }
    }
}

fn flow_item(item: &Item) -> Option<String> {
    if !item.above.is_empty() || item.beside.is_some() {
        return None;
    }
    let value = flow(&item.value)?;
    Some(match (item.key.as_str(), value.as_str()) {
        ("", _) => value,
        (key, "") => format!("{key}:"),
        (key, _) => format!("{key}: {value}"),
    })
}

fn literal(text: &str, indent: usize, beside: Option<&str>, out: &mut String) {
    let plain = !text.starts_with([' ', '\n', '\t']) && !text.trim_end_matches('\n').is_empty();
    if !plain {
        out.push(' ');
        toolgate_json::push_quoted(text, out);
        end(beside, out);
        return;
    }
    let chomp = match text.len() - text.trim_end_matches('\n').len() {
        0 => "|-",
        1 => "|",
        _ => "|+",
    };
    out.push(' ');
    out.push_str(chomp);
    end(beside, out);
    for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        if !line.is_empty() {
            pad(indent + 1, out);
            out.push_str(line);
        }
        out.push('\n');
    }
}

fn end(beside: Option<&str>, out: &mut String) {
    if let Some(comment) = beside {
        out.push_str("  ");
        out.push_str(comment);
    }
    out.push('\n');
}

fn pad(indent: usize, out: &mut String) {
    out.push_str(&"  ".repeat(indent));
}

/// JSON, two spaces a level, short collections on one line.
pub(super) fn json(root: &Node) -> String {
    let mut out = String::new();
    json_node(root, 0, 0, &mut out);
    out.push('\n');
    out
}

fn json_node(node: &Node, indent: usize, before: usize, out: &mut String) {
    let line = json_line(node);
    let short = indent > 0 && 2 * indent + before + line.chars().count() < WIDTH;
    let (open, close, parts) = match node.value() {
        syntax::Value::List(items) if !short && !items.is_empty() => {
            ('[', ']', items.iter().map(|item| (String::new(), item)).collect::<Vec<_>>())
        }
        syntax::Value::Map(members) if !short && !members.is_empty() => {
            let key = |text: &String| {
                let mut quoted = String::new();
                toolgate_json::push_quoted(text, &mut quoted);
                quoted + ": "
            };
            ('{', '}', members.iter().map(|m| (key(&m.key.text), &m.value)).collect())
        }
        _ => {
            out.push_str(&line);
            return;
        }
    };
    out.push(open);
    let last = parts.len().saturating_sub(1);
    for (index, (key, value)) in parts.into_iter().enumerate() {
        out.push('\n');
        pad(indent + 1, out);
        out.push_str(&key);
        json_node(value, indent + 1, key.chars().count() + 1, out);
        if index < last {
            out.push(',');
        }
    }
    out.push('\n');
    pad(indent, out);
    out.push(close);
}

fn json_line(node: &Node) -> String {
    match node.value() {
        syntax::Value::List(items) => {
            format!("[{}]", items.iter().map(json_line).collect::<Vec<_>>().join(", "))
        }
        syntax::Value::Map([]) => "{}".to_owned(),
        syntax::Value::Map(members) => {
            let member = |Member { key, value }: &Member| {
                let mut out = String::new();
                toolgate_json::push_quoted(&key.text, &mut out);
                format!("{out}: {}", json_line(value))
            };
            format!("{{ {} }}", members.iter().map(member).collect::<Vec<_>>().join(", "))
        }
        _ => node.to_json(),
    }
}
