//! Finds a member or an item in the text of a document, and removes or inserts it.
//!
//! Invariant: the text outside the edited part stays as it is; comments, order and spelling survive.

use super::NotEdited;
use crate::syntax::{Member, Node, Value};

pub(super) fn replace(source: &str, member: &Member, value: &str) -> Result<String, NotEdited> {
    let (head, tail) = cut(source, member.key.span.end, end_of(source, &member.value, member)?)?;
    Ok(format!("{head}: {value}{tail}"))
}

pub(super) fn remove(
    source: &str,
    map: &Node,
    members: &[Member],
    member: &Member,
) -> Result<String, NotEdited> {
    let end = end_of(source, &member.value, member)?;
    if is_flow(source, map) {
        return remove_from_flow(source, member.key.span.start, end);
    }
    if members.len() == 1 {
        return empty(source, map.span.start, end);
    }
    let (head, _) = cut(source, member.key.span.start, end)?;
    let line = head.rfind('\n').map_or(0, |at| at + 1);
    let rest = source.get(end..).ok_or(NotEdited::Layout)?;
    let next = rest.find('\n').map_or(source.len(), |at| end + at + 1);
    let (head, tail) = cut(source, line, next)?;
    Ok(format!("{head}{tail}"))
}

/// Replaces a mapping in block style by `{}` behind its key. Comments before it stay.
fn empty(source: &str, start: usize, end: usize) -> Result<String, NotEdited> {
    let (head, tail) = cut(source, start, end)?;
    let mut line_at = head.len();
    let key_line = head.split_inclusive('\n').rev().find(|line| {
        line_at -= line.len();
        !line.trim().is_empty() && !line.trim().starts_with('#')
    });
    let key = key_line.and_then(|line| line.split(" #").next()).ok_or(NotEdited::Layout)?;
    let key = key.trim_end();
    let (head, between) = head.split_at_checked(line_at + key.len()).ok_or(NotEdited::Layout)?;
    let kept = if between.contains('#') { between.trim_end_matches(' ') } else { "" };
    Ok(format!("{head} {{}}{kept}{tail}"))
}

pub(super) fn remove_from_flow(
    source: &str,
    start: usize,
    end: usize,
) -> Result<String, NotEdited> {
    let (head, tail) = cut(source, start, end)?;
    if let Some(rest) = tail.trim_start().strip_prefix(',') {
        return Ok(format!("{head}{}", rest.trim_start()));
    }
    let head = head.trim_end();
    let head = head.strip_suffix(',').unwrap_or(head);
    Ok(format!("{head}{tail}"))
}

pub(super) fn insert(
    source: &str,
    map: &Node,
    members: &[Member],
    name: &str,
    value: &str,
) -> Result<String, NotEdited> {
    let is_json = source.trim_start().starts_with('{');
    let key = key(name, is_json);
    if is_flow(source, map) {
        let (head, tail) =
            cut(source, map.span.end.saturating_sub(1), map.span.end.saturating_sub(1))?;
        let head = head.trim_end();
        let comma = if members.is_empty() { "" } else { "," };
        return Ok(format!("{head}{comma} {key}: {value} {tail}"));
    }
    let (Some(first), Some(last)) = (members.first(), members.last()) else {
        return Err(NotEdited::Layout);
    };
    let end = end_of(source, &last.value, last)?;
    let rest = source.get(end..).ok_or(NotEdited::Layout)?;
    let line_end = rest.find('\n').map_or(source.len(), |at| end + at);
    let indent = " ".repeat(first.key.span.column.saturating_sub(1));
    let (head, tail) = cut(source, line_end, line_end)?;
    let head = head.strip_suffix('\r').unwrap_or(head);
    // A new section is written as a block, which people extend.
    let inner = value.strip_prefix("{ ").and_then(|it| it.strip_suffix(" }"));
    let line = match inner.filter(|_| indent.is_empty()) {
        Some(inner) => format!("{key}:\n  {inner}"),
        None => format!("{indent}{key}: {value}"),
    };
    Ok(format!("{head}\n{line}{tail}"))
}

pub(super) fn cut(source: &str, from: usize, to: usize) -> Result<(&str, &str), NotEdited> {
    let (head, tail) = (source.get(..from), source.get(to..));
    head.zip(tail).filter(|_| from <= to).ok_or(NotEdited::Layout)
}

pub(super) fn line_end(source: &str, from: usize) -> usize {
    source.get(from..).and_then(|rest| rest.find('\n')).map_or(source.len(), |at| from + at)
}

/// Where the line of an item in block style begins, and how far its dash is indented.
pub(super) fn dash_of(source: &str, item: &Node) -> Result<(usize, usize), NotEdited> {
    let before = source.get(..item.span.start).ok_or(NotEdited::Layout)?;
    let line = before.rfind('\n').map_or(0, |at| at + 1);
    let text = source.get(line..).ok_or(NotEdited::Layout)?;
    let indent = text.len() - text.trim_start_matches(' ').len();
    let is_own = text.get(indent..).is_some_and(|rest| rest.starts_with("- "));
    if is_own { Ok((line, indent)) } else { Err(NotEdited::Layout) }
}

/// Where an item ends: its last character, without what follows on the line.
pub(super) fn end_of_item(source: &str, node: &Node) -> Result<usize, NotEdited> {
    let end = match node.value() {
        Value::Map(members) if !is_flow(source, node) => {
            let last = members.last().ok_or(NotEdited::Layout)?;
            end_of(source, &last.value, last)?
        }
        Value::List(items) if !is_flow(source, node) => {
            end_of_item(source, items.last().ok_or(NotEdited::Layout)?)?
        }
        _ => node.span.end,
    };
    Ok(source.get(..end).ok_or(NotEdited::Layout)?.trim_end().len())
}

/// Where a value ends: its last character, without what follows on the line.
fn end_of(source: &str, node: &Node, member: &Member) -> Result<usize, NotEdited> {
    let end = match node.value() {
        Value::Null => {
            let rest = source.get(member.key.span.end..).ok_or(NotEdited::Layout)?;
            let colon = rest.find(':').ok_or(NotEdited::Layout)?;
            let written = source.get(node.span.start..node.span.end).unwrap_or_default();
            let is_written = matches!(written.trim(), "null" | "~" | "Null" | "NULL");
            if is_written { node.span.end } else { member.key.span.end + colon + 1 }
        }
        Value::Map(members) if !is_flow(source, node) => {
            let last = members.last().ok_or(NotEdited::Layout)?;
            end_of(source, &last.value, last)?
        }
        Value::List(items) if !is_flow(source, node) => {
            let last = items.last().ok_or(NotEdited::Layout)?;
            end_of(source, last, member)?
        }
        _ => node.span.end,
    };
    let written = source.get(..end).ok_or(NotEdited::Layout)?;
    Ok(written.trim_end().len())
}

pub(super) fn is_flow(source: &str, node: &Node) -> bool {
    source.get(node.span.start..).is_some_and(|text| text.starts_with(['{', '[']))
}

/// A key, quoted where it has to be.
pub(super) fn key(name: &str, is_json: bool) -> String {
    let is_plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c))
        && !matches!(
            name.to_ascii_lowercase().as_str(),
            "null" | "true" | "false" | "yes" | "no" | "on" | "off" | "y" | "n"
        );
    if is_plain && !is_json { name.to_owned() } else { toolgate_json::quote(name) }
}
