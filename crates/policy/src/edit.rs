//! Edits of a document that keep every other byte: comments, order, spelling.
//!
//! Invariant: an edit is parsed again and compared with the original; a text in which anything but
//! the edited member changed is never returned.
//!
//! Start at [`set_member`].

mod difference;
#[cfg(test)]
mod tests;
mod text;

use difference::is_only_change;
use text::{
    cut, dash_of, end_of_item, insert, is_flow, key, line_end, remove, remove_from_flow, replace,
};

use crate::problem::Findings;
use crate::syntax::{self, Node, Value};

/// Why a document was not edited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotEdited {
    /// The document has no tree.
    #[error("the document cannot be parsed; correct it first")]
    Invalid,
    /// A part of the path is not a mapping.
    #[error("this part of the document is not a mapping; edit its text")]
    NotAMapping,
    /// The layout cannot be edited safely.
    #[error("this part of the document cannot be edited safely; edit its text")]
    Layout,
}

/// Sets the member at `path` to a value in flow style (JSON), or removes it. Missing mappings on the
/// path are created; a mapping that becomes empty stays as `{}`. A number on the path is the place of
/// an item of a list that exists.
pub fn set_member(source: &str, path: &[&str], value: Option<&str>) -> Result<String, NotEdited> {
    let root = parse(source)?;
    let edited = apply(source, &root, path, value)?;
    let after = parse(&edited)?;
    if is_only_change(&root, &after, path, value) { Ok(edited) } else { Err(NotEdited::Layout) }
}

/// Adds an item, in flow style (JSON), to the end of the list at `path`. A list that does not exist is
/// created.
pub fn add_item(source: &str, path: &[&str], value: &str) -> Result<String, NotEdited> {
    let root = parse(source)?;
    let Some(list) = node_at(&root, path) else {
        return set_member(source, path, Some(&format!("[{value}]")));
    };
    let Value::List(items) = list.value() else { return Err(NotEdited::NotAMapping) };
    let edited = if is_flow(source, list) {
        let end = list.span.end.saturating_sub(1);
        let (head, tail) = cut(source, end, end)?;
        let comma = if items.is_empty() { "" } else { ", " };
        format!("{}{comma}{value}{tail}", head.trim_end())
    } else {
        let (first, end) = items.first().zip(items.last()).ok_or(NotEdited::Layout)?;
        let indent = " ".repeat(dash_of(source, first)?.1);
        let line_end = line_end(source, end_of_item(source, end)?);
        let (head, tail) = cut(source, line_end, line_end)?;
        let head = head.strip_suffix('\r').unwrap_or(head);
        format!("{head}\n{indent}- {value}{tail}")
    };
    let mut wanted: Vec<String> = items.iter().map(Node::to_json).collect();
    wanted.push(value.to_owned());
    verified(&root, edited, path, &wanted)
}

/// Removes an item of the list at `path`. A list that becomes empty is removed too.
pub fn remove_item(source: &str, path: &[&str], at: usize) -> Result<String, NotEdited> {
    let root = parse(source)?;
    let list = node_at(&root, path).ok_or(NotEdited::NotAMapping)?;
    let Value::List(items) = list.value() else { return Err(NotEdited::NotAMapping) };
    let item = items.get(at).ok_or(NotEdited::NotAMapping)?;
    if items.len() == 1 {
        return set_member(source, path, None);
    }
    let end = end_of_item(source, item)?;
    let edited = if is_flow(source, list) {
        remove_from_flow(source, item.span.start, end)?
    } else {
        let line = dash_of(source, item)?.0;
        let next = (line_end(source, end) + 1).min(source.len());
        let (head, tail) = cut(source, line, next)?;
        format!("{head}{tail}")
    };
    let others = items.iter().enumerate().filter(|(place, _)| *place != at);
    let wanted: Vec<String> = others.map(|(_, item)| item.to_json()).collect();
    verified(&root, edited, path, &wanted)
}

/// The edited text, if only the list at `path` changed, to these items.
fn verified(
    before: &Node,
    edited: String,
    path: &[&str],
    wanted: &[String],
) -> Result<String, NotEdited> {
    let after = parse(&edited)?;
    let list = format!("[{}]", wanted.join(", "));
    let is_meant = is_only_change(before, &after, path, Some(&list));
    if is_meant { Ok(edited) } else { Err(NotEdited::Layout) }
}

fn node_at<'n>(root: &'n Node, path: &[&str]) -> Option<&'n Node> {
    path.iter().try_fold(root, |node, step| match node.value() {
        Value::List(items) => item_at(items, step),
        _ => node.get(step),
    })
}

/// The document as JSON; `None` if it has no tree.
pub fn document_json(source: &str) -> Option<String> {
    parse(source).ok().map(|root| root.to_json())
}

fn parse(source: &str) -> Result<Node, NotEdited> {
    let mut findings = Findings::new(source);
    syntax::parse(source, &mut findings).ok_or(NotEdited::Invalid)
}

fn apply(
    source: &str,
    node: &Node,
    path: &[&str],
    value: Option<&str>,
) -> Result<String, NotEdited> {
    let Some((name, rest)) = path.split_first() else { return Err(NotEdited::NotAMapping) };
    if let Value::List(items) = node.value() {
        let item = item_at(items, name).ok_or(NotEdited::NotAMapping)?;
        return apply(source, item, rest, value);
    }
    let Value::Map(members) = node.value() else { return Err(NotEdited::NotAMapping) };
    let found = members.iter().find(|member| member.key.text == *name);
    match (found, rest, value) {
        (Some(member), [], Some(value)) => replace(source, member, value),
        (Some(member), [], None) => remove(source, node, members, member),
        (Some(member), rest, value) => match (member.value.value(), value) {
            (Value::Null, Some(value)) => replace(source, member, &nested(rest, value)),
            (Value::Null, None) => Ok(source.to_owned()),
            _ => apply(source, &member.value, rest, value),
        },
        (None, rest, Some(value)) => insert(source, node, members, name, &nested(rest, value)),
        (None, _, None) => Ok(source.to_owned()),
    }
}

fn item_at<'n>(items: &'n [Node], place: &str) -> Option<&'n Node> {
    items.get(place.parse::<usize>().ok()?)
}

/// `{"a": {"b": value}}` for the path `a`, `b`.
fn nested(path: &[&str], value: &str) -> String {
    path.iter()
        .rev()
        .fold(value.to_owned(), |inner, name| format!("{{ {}: {inner} }}", key(name, false)))
}
