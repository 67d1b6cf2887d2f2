//! Edits of a document that keep every other byte: comments, order, spelling.
//!
//! Invariant: an edit is parsed again and compared with the original; a text in which anything but
//! the edited member changed is never returned.
//!
//! Start at [`set_member`].

use crate::problem::Findings;
use crate::syntax::{self, Member, Node, Value};

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

/// Where the line of an item in block style begins, and how far its dash is indented.
fn dash_of(source: &str, item: &Node) -> Result<(usize, usize), NotEdited> {
    let before = source.get(..item.span.start).ok_or(NotEdited::Layout)?;
    let line = before.rfind('\n').map_or(0, |at| at + 1);
    let text = source.get(line..).ok_or(NotEdited::Layout)?;
    let indent = text.len() - text.trim_start_matches(' ').len();
    let is_own = text.get(indent..).is_some_and(|rest| rest.starts_with("- "));
    if is_own { Ok((line, indent)) } else { Err(NotEdited::Layout) }
}

fn line_end(source: &str, from: usize) -> usize {
    source.get(from..).and_then(|rest| rest.find('\n')).map_or(source.len(), |at| from + at)
}

/// Where an item ends: its last character, without what follows on the line.
fn end_of_item(source: &str, node: &Node) -> Result<usize, NotEdited> {
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

fn replace(source: &str, member: &Member, value: &str) -> Result<String, NotEdited> {
    let (head, tail) = cut(source, member.key.span.end, end_of(source, &member.value, member)?)?;
    Ok(format!("{head}: {value}{tail}"))
}

fn remove(
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

fn remove_from_flow(source: &str, start: usize, end: usize) -> Result<String, NotEdited> {
    let (head, tail) = cut(source, start, end)?;
    if let Some(rest) = tail.trim_start().strip_prefix(',') {
        return Ok(format!("{head}{}", rest.trim_start()));
    }
    let head = head.trim_end();
    let head = head.strip_suffix(',').unwrap_or(head);
    Ok(format!("{head}{tail}"))
}

fn insert(
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

fn cut(source: &str, from: usize, to: usize) -> Result<(&str, &str), NotEdited> {
    let (head, tail) = (source.get(..from), source.get(to..));
    head.zip(tail).filter(|_| from <= to).ok_or(NotEdited::Layout)
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

fn is_flow(source: &str, node: &Node) -> bool {
    source.get(node.span.start..).is_some_and(|text| text.starts_with(['{', '[']))
}

/// A key, quoted where it has to be.
fn key(name: &str, is_json: bool) -> String {
    let is_plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c))
        && !matches!(
            name.to_ascii_lowercase().as_str(),
            "null" | "true" | "false" | "yes" | "no" | "on" | "off" | "y" | "n"
        );
    if is_plain && !is_json { name.to_owned() } else { toolgate_json::quote(name) }
}

/// Whether `after` differs from `before` in the member at `path` alone, which has this value.
fn is_only_change(before: &Node, after: &Node, path: &[&str], value: Option<&str>) -> bool {
    let Some((name, rest)) = path.split_first() else {
        let wanted = value.and_then(|text| parse(&format!("v: {text}")).ok());
        let wanted = wanted.and_then(|root| root.get("v").map(Node::to_json));
        return wanted == Some(after.to_json());
    };
    if let (Value::List(old), Value::List(new)) = (before.value(), after.value()) {
        let (Some(old_item), Some(new_item)) = (item_at(old, name), item_at(new, name)) else {
            return false;
        };
        let others = |items: &[Node], but: &Node| {
            let others = items.iter().filter(|item| item.span.start != but.span.start);
            others.map(Node::to_json).collect::<Vec<_>>()
        };
        return old.len() == new.len()
            && others(old, old_item) == others(new, new_item)
            && is_only_change(old_item, new_item, rest, value);
    }
    let (Value::Map(old), Value::Map(new)) = (before.value(), after.value()) else { return false };
    let others = |members: &[Member]| {
        let others = members.iter().filter(|member| member.key.text != *name);
        others.map(|it| (it.key.text.clone(), it.value.to_json())).collect::<Vec<_>>()
    };
    if others(old) != others(new) {
        return false;
    }
    let of = |members: &[Member]| {
        members.iter().find(|it| it.key.text == *name).map(|it| it.value.clone())
    };
    match (of(old), of(new), value) {
        (_, None, None) => rest.is_empty() || of(old).is_none(),
        (None, Some(new), Some(_)) => {
            let empty = Node::map(Vec::new(), new.span);
            is_only_change(&empty, &new, rest, value)
        }
        (Some(old), Some(new), _) => {
            let is_empty = matches!(old.value(), Value::Null) && !rest.is_empty();
            let old = if is_empty { Node::map(Vec::new(), new.span) } else { old };
            (rest.is_empty() && value.is_some() && is_only_change(&old, &new, rest, value))
                || (!rest.is_empty() && is_only_change(&old, &new, rest, value))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "\
# who may close what
version: \"1\"
default: deny   # strict
tools:
  # the old one
  close: { rate_limit: 30/minute } # careful
  drop:
    action: deny
    reason: never # really

  # a glob
  \"get_*\": {}
tests: []
";

    #[track_caller]
    fn check(source: &str, path: &[&str], value: Option<&str>, changes: &[(&str, &str)]) {
        let mut expected = source.to_owned();
        for (from, to) in changes {
            assert_eq!(expected.matches(from).count(), 1, "{from}");
            expected = expected.replace(from, to);
        }
        assert_eq!(set_member(source, path, value).unwrap(), expected);
    }

    #[test]
    fn an_item_is_added_or_removed_and_the_rest_stays() {
        let block = "\
tools:
  pay:
    deny_if:
      # the cap
      - conditions: [{ path: args.a, op: gt, value: 1 }] # strict
      - conditions:
          - { path: args.b, op: eq, value: x }
  # next
  close: { deny_if: [{ conditions: [] }] } # flow
";
        let path = ["tools", "pay", "deny_if"];
        let added = add_item(block, &path, "{ conditions: [] }").unwrap();
        let expected = block.replace("value: x }\n", "value: x }\n      - { conditions: [] }\n");
        assert_eq!(added, expected);
        assert_eq!(remove_item(&added, &path, 2).unwrap(), block);
        let without = remove_item(block, &path, 1).unwrap();
        assert!(!without.contains("args.b") && without.contains("# next"), "{without}");
        let without = remove_item(block, &path, 0).unwrap();
        assert!(without.contains("# the cap\n      - conditions:\n          - {"), "{without}");
        let flow = ["tools", "close", "deny_if"];
        let added = add_item(block, &flow, "{ x: 1 }").unwrap();
        assert_eq!(added, block.replace("[] }] }", "[] }, { x: 1 }] }"));
        assert_eq!(remove_item(&added, &flow, 1).unwrap(), block);
        let gone = remove_item(block, &flow, 0).unwrap();
        assert!(gone.contains("close: {") && !gone.contains("deny_if: [{"), "{gone}");
        let made = add_item(block, &["tools", "close", "require"], "{ x: 1 }").unwrap();
        assert!(made.contains("require: [{ x: 1 }] } # flow"), "{made}");
        assert!(remove_item(block, &path, 7).is_err());
    }

    #[test]
    fn a_member_of_an_item_is_replaced() {
        let source = "\
tools:
  pay:
    deny_if:
      # the cap
      - conditions: [{ path: args.a, op: gt, value: 1 }] # strict
      - conditions:
          - { path: args.b, op: eq, value: x }
";
        let path = ["tools", "pay", "deny_if", "0", "conditions", "0", "value"];
        check(source, &path, Some("20"), &[("value: 1 ", "value: 20 ")]);
        let path = ["tools", "pay", "deny_if", "1", "conditions", "0", "op"];
        check(source, &path, Some("neq"), &[("op: eq", "op: neq")]);
        let path = ["tools", "pay", "deny_if", "2", "conditions"];
        assert!(set_member(source, &path, Some("[]")).is_err(), "there is no such item");
        assert!(set_member(source, &["tools", "pay", "deny_if", "0"], None).is_err());
    }

    #[test]
    fn a_member_is_replaced_and_comments_stay() {
        let limit = ("{ rate_limit: 30/minute }", "{ action: deny }");
        check(DOCUMENT, &["tools", "close"], Some("{ action: deny }"), &[limit]);
        let block = (
            "drop:\n    action: deny\n    reason: never # really",
            "drop: { approve: {} } # really",
        );
        check(DOCUMENT, &["tools", "drop"], Some("{ approve: {} }"), &[block]);
        check(
            DOCUMENT,
            &["tools", "drop", "action"],
            Some("hide"),
            &[("action: deny", "action: hide")],
        );
        check(
            DOCUMENT,
            &["default"],
            Some("allow"),
            &[("default: deny   #", "default: allow   #")],
        );
    }

    #[test]
    fn a_member_is_added_where_its_neighbours_are() {
        let add = ("\"get_*\": {}\n", "\"get_*\": {}\n  files/move: { action: deny }\n");
        check(DOCUMENT, &["tools", "files/move"], Some("{ action: deny }"), &[add]);
        let flow = ("{ rate_limit: 30/minute }", "{ rate_limit: 30/minute, approve: {} }");
        check(DOCUMENT, &["tools", "close", "approve"], Some("{}"), &[flow]);
        let end = ("tests: []\n", "tests: []\nclasses:\n  read: { action: allow }\n");
        check(DOCUMENT, &["classes", "read"], Some("{ action: allow }"), &[end]);
        let empty = ("\"get_*\": {}", "\"get_*\": { action: deny }");
        check(DOCUMENT, &["tools", "get_*", "action"], Some("deny"), &[empty]);
    }

    #[test]
    fn a_mapping_that_becomes_empty_keeps_the_comments_in_it() {
        let source = "tools:\n  pay: # ours\n    # the cap\n    deny_if: [] # strict\n  get: {}\n";
        let expected = "tools:\n  pay: {} # ours\n    # the cap\n # strict\n  get: {}\n";
        assert_eq!(set_member(source, &["tools", "pay", "deny_if"], None).unwrap(), expected);
    }

    #[test]
    fn a_member_is_removed() {
        let line = ("    reason: never # really\n", "");
        check(DOCUMENT, &["tools", "drop", "reason"], None, &[line]);
        let flow = ("{ rate_limit: 30/minute }", "{ }");
        check(DOCUMENT, &["tools", "close", "rate_limit"], None, &[flow]);
        check(DOCUMENT, &["tools", "nothing"], None, &[]);
        check(DOCUMENT, &["nothing", "at", "all"], None, &[]);
        let only = "version: \"1\"\ndefault: deny\ntools:\n  close:\n    action: deny\n";
        check(
            only,
            &["tools", "close", "action"],
            None,
            &[("close:\n    action: deny", "close: {}")],
        );
    }

    #[test]
    fn json_stays_json() {
        let source = "{\"version\":\"1\",\"default\":\"deny\",\"tools\":{\"a\":{}}}";
        let edited = set_member(source, &["tools", "b"], Some("{\"action\":\"deny\"}")).unwrap();
        let json: serde_json::Value = serde_json::from_str(&edited).unwrap();
        assert_eq!(json["tools"]["b"]["action"], "deny");
        let removed = set_member(&edited, &["tools", "b"], None).unwrap();
        assert!(serde_json::from_str::<serde_json::Value>(&removed).is_ok(), "{removed}");
    }

    #[test]
    fn a_key_is_quoted_where_it_has_to_be() {
        for name in ["a*", "with space", "yes", "a: b", "#", "кириллица", "1", "a\"b"] {
            let edited = set_member(DOCUMENT, &["tools", name], Some("{}")).unwrap();
            assert!(edited.contains(&toolgate_json::quote(name)), "{edited}");
        }
    }

    #[test]
    fn what_cannot_be_edited_is_refused() {
        assert_eq!(set_member("a: [", &["a"], Some("1")), Err(NotEdited::Invalid));
        assert_eq!(set_member(DOCUMENT, &["default", "x"], Some("1")), Err(NotEdited::NotAMapping));
        let hostile = "{}\ndefault: allow";
        assert!(set_member(DOCUMENT, &["tools", "x"], Some(hostile)).is_err());
    }
}
