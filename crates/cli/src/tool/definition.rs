//! How a tool looks to people, and which one was meant.

use serde_json::Value;
use serde_json::value::RawValue;
use toolgate_control::visible;

/// What a line may take on a usual terminal.
const WIDTH: usize = 100;
/// A name that is longer has its description on the next column anyway.
const NAME: usize = 40;

/// Name and what it does, one line a tool.
pub(super) fn table(tools: &[Value]) -> String {
    let rows: Vec<(String, String)> = tools
        .iter()
        .map(|tool| (visible(super::name(tool)).replace('\n', " "), summary(tool)))
        .collect();
    let widest = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let width = widest.clamp("TOOL".len(), NAME);
    let mut text = format!("{:<width$}  DESCRIPTION\n", "TOOL");
    for (name, what) in rows {
        let room = WIDTH.saturating_sub(name.chars().count().max(width) + 2);
        let line = format!("{name:<width$}  {}", begin(&what, room));
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// The first line of what a tool says of itself.
fn summary(tool: &Value) -> String {
    let said = |field: &str| tool.get(field).and_then(Value::as_str);
    let text = said("description").or_else(|| said("title")).unwrap_or_default();
    visible(text.trim().lines().next().unwrap_or_default())
}

/// Everything that helps to call it.
pub(super) fn story(tool: &Value) -> String {
    let said = |field: &str| tool.get(field).and_then(Value::as_str);
    let title = said("title").map(|title| format!("{}\n", visible(title)));
    let description =
        said("description").map(|description| format!("\n{}\n", visible(description.trim())));
    let notes = tool.get("annotations").and_then(Value::as_object);
    let notes: Vec<String> = notes
        .into_iter()
        .flatten()
        .map(|(note, value)| format!("{}: {}\n", visible(note), visible(&value.to_string())))
        .collect();
    [
        format!("{}\n", visible(super::name(tool))),
        title.unwrap_or_default(),
        description.unwrap_or_default(),
        arguments(tool.get("inputSchema")),
        notes.concat(),
    ]
    .concat()
}

fn arguments(schema: Option<&Value>) -> String {
    let properties = schema.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    let Some(properties) = properties.filter(|properties| !properties.is_empty()) else {
        return "\nTakes no arguments.\n".to_owned();
    };
    let required = schema.and_then(|schema| schema.get("required")).and_then(Value::as_array);
    let is_required =
        |name: &str| required.is_some_and(|all| all.iter().any(|one| one.as_str() == Some(name)));
    let width = properties.keys().map(|name| name.chars().count()).max().unwrap_or(0).min(NAME);
    let mut text = "\nArguments (* required):\n".to_owned();
    for (name, property) in properties {
        let star = if is_required(name) { '*' } else { ' ' };
        let what = property.get("description").and_then(Value::as_str).unwrap_or_default();
        let line =
            format!("{star} {:<width$}  {:<8}  {}", visible(name), kind(property), visible(what));
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text.push('\n');
    text
}

/// The type as JSON Schema names it, or its choices.
fn kind(property: &Value) -> String {
    if let Some(choices) = property.get("enum").and_then(Value::as_array) {
        let choices: Vec<String> = choices.iter().map(Value::to_string).collect();
        return visible(&choices.join("|"));
    }
    match property.get("type") {
        Some(Value::String(one)) => visible(one),
        Some(Value::Array(several)) => {
            let several: Vec<&str> = several.iter().filter_map(Value::as_str).collect();
            visible(&several.join("|"))
        }
        _ => "any".to_owned(),
    }
}

/// The definition on one line: it may have come with lines of its own, which mean nothing in JSON.
pub(super) fn one_line(tool: &RawValue) -> String {
    tool.get().replace(['\n', '\r'], " ")
}

/// The name that was meant: the same behind a server's prefix, or nearly the same.
pub(super) fn nearest<'a>(wanted: &str, names: &'a [String]) -> Option<&'a str> {
    let behind = names.iter().find(|name| {
        name.split_once("__").is_some_and(|(_, tool)| tool.eq_ignore_ascii_case(wanted))
    });
    let alike = || {
        names
            .iter()
            .map(|name| (strsim::jaro_winkler(wanted, name), name))
            .filter(|(score, _)| *score > 0.85)
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, name)| name)
    };
    behind.or_else(alike).map(String::as_str)
}

fn begin(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}
