//! Edits of a client's file: only the entry of toolgate changes.
//!
//! Start at [`connect`]; `toml.rs` does the same for TOML.

use crate::client::{Format, McpClient};
use crate::jsonc::{self, Kind, Malformed, Member, Node};
use crate::not_edited::NotEdited;
use crate::toml;
use crate::value::{FileValue, quoted};

const MARK: char = '\u{feff}';

/// The text with the entry `name`. Everything else stays as it is.
pub fn connect(
    client: McpClient,
    text: &str,
    name: &str,
    entry: &FileValue,
) -> Result<String, NotEdited> {
    let edited = within(text, |text| match client.format() {
        Format::Toml => toml::set(text, client.key(), name, entry),
        Format::Json => set(text, &[client.key(), name], entry),
    })?;
    match entry_of(client, &edited, name) {
        Ok(Some(found)) if found == *entry => Ok(edited),
        _ => Err(NotEdited::Unsafe),
    }
}

/// The text without the entry `name`; `None` if there is none.
pub fn disconnect(client: McpClient, text: &str, name: &str) -> Result<Option<String>, NotEdited> {
    if entry_of(client, text, name)?.is_none() {
        return Ok(None);
    }
    let edited = within(text, |text| match client.format() {
        Format::Toml => toml::remove(text, client.key(), name),
        Format::Json => remove(text, &[client.key(), name]),
    })?;
    match entry_of(client, &edited, name) {
        Ok(None) => Ok(Some(edited)),
        _ => Err(NotEdited::Unsafe),
    }
}

/// The entry `name` of a file.
pub fn entry_of(client: McpClient, text: &str, name: &str) -> Result<Option<FileValue>, NotEdited> {
    let root = match client.format() {
        Format::Toml => toml::value(text)?,
        Format::Json => json_value(text)?,
    };
    Ok(root.get(client.key()).and_then(|servers| servers.get(name)).cloned())
}

/// The entry as a text to paste.
pub fn fragment(client: McpClient, name: &str, entry: &FileValue) -> String {
    match client.format() {
        Format::Toml => toml::fragment(client.key(), name, entry),
        Format::Json => {
            let servers = FileValue::object([(name, entry.clone())]);
            format!("{}\n", FileValue::object([(client.key(), servers)]).pretty("  ", ""))
        }
    }
}

/// The value of a JSON file; an empty one is an empty object.
pub(crate) fn json_value(text: &str) -> Result<FileValue, NotEdited> {
    let text = text.strip_prefix(MARK).unwrap_or(text);
    if text.trim().is_empty() {
        return Ok(FileValue::Object(Vec::new()));
    }
    jsonc::parse(text).map(|node| node.value()).map_err(|why| malformed(text, why))
}

/// Edits a text with line feeds and without a byte order mark, and restores both.
fn within(
    text: &str,
    edit: impl FnOnce(&str) -> Result<String, NotEdited>,
) -> Result<String, NotEdited> {
    let (mark, body) = match text.strip_prefix(MARK) {
        Some(body) => ("\u{feff}", body),
        None => ("", text),
    };
    let breaks = body.matches('\n').count();
    let returns = body.matches("\r\n").count();
    if returns == 0 {
        return Ok(format!("{mark}{}", edit(body)?));
    }
    if returns != breaks {
        // Mixed line ends cannot be restored after an edit; what is inserted has line feeds.
        return Ok(format!("{mark}{}", edit(body)?));
    }
    let edited = edit(&body.replace("\r\n", "\n"))?;
    Ok(format!("{mark}{}", edited.replace('\n', "\r\n")))
}

/// Sets the value at a path of objects, creating those that are missing.
fn set(text: &str, path: &[&str], value: &FileValue) -> Result<String, NotEdited> {
    let step = indentation(text);
    if text.trim().is_empty() {
        return Ok(format!("{}\n", nested(path, value).pretty(&step, "")));
    }
    let root = jsonc::parse(text).map_err(|why| malformed(text, why))?;
    let (mut node, mut depth) = (&root, 0);
    for (at, key) in path.iter().enumerate() {
        if !matches!(node.kind, Kind::Object(_)) {
            let place = if at == 0 { "the file" } else { path.get(at - 1).unwrap_or(key) };
            return Err(NotEdited::NotAnObject(place.to_string()));
        }
        let Some(member) = node.member(key) else {
            let rest = path.get(at + 1..).unwrap_or_default();
            return Ok(insert(text, node, key, &nested(rest, value), &step, depth));
        };
        node = &member.value;
        depth += 1;
    }
    let before = step.repeat(depth);
    Ok(replaced(text, node.start, node.end, &value.pretty(&step, &before)))
}

fn nested(path: &[&str], value: &FileValue) -> FileValue {
    path.iter().rev().fold(value.clone(), |inner, key| FileValue::object([(*key, inner)]))
}

/// Adds a member at the end of an object.
fn insert(
    text: &str,
    object: &Node,
    key: &str,
    value: &FileValue,
    step: &str,
    depth: usize,
) -> String {
    let Kind::Object(members) = &object.kind else { return text.to_owned() };
    let (outer, inner) = (step.repeat(depth), step.repeat(depth + 1));
    let member = format!("{}: {}", quoted(key), value.pretty(step, &inner));
    let closing = object.end - 1;
    let Some(last) = members.last() else {
        let inside = text.get(object.start + 1..closing).unwrap_or_default();
        let kept = inside.trim_end();
        let new = format!("{kept}\n{inner}{member}\n{outer}");
        return replaced(text, object.start + 1, closing, &new);
    };
    let has_comma = text.get(comma_after(text, last)..).is_some_and(|rest| rest.starts_with(','));
    let is_one_line = !text.get(object.start..object.end).unwrap_or_default().contains('\n');
    let separator = if has_comma { "" } else { "," };
    if is_one_line {
        let at = if has_comma { comma_after(text, last) + 1 } else { last.value.end };
        let short = format!("{}: {value}", quoted(key));
        return replaced(text, at, at, &format!("{separator} {short}"));
    }
    // A comment behind the last member stays on its line.
    let inside = text.get(last.value.end..closing).unwrap_or_default();
    let kept = inside.trim_end();
    let comma = last.value.end;
    let (behind, trailing) = if has_comma { (kept, ",") } else { (kept, "") };
    let new = format!("{separator}{behind}\n{inner}{member}{trailing}\n{outer}");
    replaced(text, comma, closing, &new)
}

/// Where the comma behind a member is, if there is one.
fn comma_after(text: &str, member: &Member) -> usize {
    jsonc::skip_from(text, member.value.end)
}

/// Removes the member at a path.
fn remove(text: &str, path: &[&str]) -> Result<String, NotEdited> {
    let root = jsonc::parse(text).map_err(|why| malformed(text, why))?;
    let mut object = &root;
    let Some((last, parents)) = path.split_last() else { return Ok(text.to_owned()) };
    for key in parents {
        let Some(member) = object.member(key) else { return Ok(text.to_owned()) };
        object = &member.value;
    }
    let Kind::Object(members) = &object.kind else { return Ok(text.to_owned()) };
    let Some(at) = members.iter().position(|member| member.key == *last) else {
        return Ok(text.to_owned());
    };
    let Some(member) = members.get(at) else { return Ok(text.to_owned()) };
    let comma = comma_after(text, member);
    let has_comma = text.get(comma..).is_some_and(|rest| rest.starts_with(','));
    let before = at.checked_sub(1).and_then(|at| members.get(at));
    if has_comma {
        // With its own line, if nothing else is on it.
        let end = comma + 1;
        let (start, end) = whole_line(text, member.start, end);
        return Ok(replaced(text, start, end, ""));
    }
    let start = match before {
        // The comma in front of it goes too; comments between stay.
        Some(before) => {
            let comma = comma_after(text, before);
            let without = replaced(text, comma, comma + 1, "");
            let (start, end) = whole_line(&without, member.start - 1, member.value.end - 1);
            let gap = without.get(comma..start).unwrap_or_default();
            let is_blank = !gap.contains('\n') && gap.trim().is_empty();
            return Ok(replaced(&without, if is_blank { comma } else { start }, end, ""));
        }
        None => member.start,
    };
    let inside = text.get(object.start + 1..start).unwrap_or_default();
    let behind = text.get(member.value.end..object.end - 1).unwrap_or_default();
    if inside.trim().is_empty() && behind.trim().is_empty() {
        return Ok(replaced(text, object.start + 1, object.end - 1, ""));
    }
    let (start, end) = whole_line(text, start, member.value.end);
    Ok(replaced(text, start, end, ""))
}

/// The range, extended to whole lines if only blanks surround it.
fn whole_line(text: &str, start: usize, end: usize) -> (usize, usize) {
    let head = text.get(..start).unwrap_or_default();
    let line = head.rfind('\n').map_or(0, |at| at + 1);
    let blank_before = text.get(line..start).unwrap_or_default().trim().is_empty();
    let tail = text.get(end..).unwrap_or_default();
    let blanks = tail.len() - tail.trim_start_matches([' ', '\t']).len();
    let at_end = tail.get(blanks..).is_some_and(|rest| rest.starts_with('\n'));
    if blank_before && line > 0 && at_end { (line, end + blanks + 1) } else { (start, end) }
}

fn replaced(text: &str, start: usize, end: usize, with: &str) -> String {
    let (head, tail) = (text.get(..start).unwrap_or_default(), text.get(end..).unwrap_or_default());
    format!("{head}{with}{tail}")
}

/// One level of indentation, as the file has it.
fn indentation(text: &str) -> String {
    let indented = text.lines().find(|line| line.starts_with([' ', '\t']) && line.contains('"'));
    let found = indented
        .map(|line| line.chars().take_while(|c| matches!(c, ' ' | '\t')).collect::<String>());
    match found {
        Some(tabs) if tabs.starts_with('\t') => "\t".to_owned(),
        Some(spaces) if spaces.len() <= 8 => spaces,
        _ => "  ".to_owned(),
    }
}

pub(crate) fn malformed(text: &str, why: Malformed) -> NotEdited {
    let head = text.get(..why.at).unwrap_or(text);
    let line = head.matches('\n').count() + 1;
    let column = head.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    NotEdited::Malformed { line, column, expected: why.expected.to_owned() }
}

#[cfg(test)]
mod tests;
