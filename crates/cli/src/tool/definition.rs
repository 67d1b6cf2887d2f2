//! Formats tools for people, and suggests names.

use serde_json::Value;
use serde_json::value::RawValue;
use toolgate_control::visible;
use unicode_width::UnicodeWidthStr as _;

use crate::table::{Column, Cut, render};

/// The widest column of argument names.
const NAME: usize = 40;

/// Name and description, one line per tool.
pub(super) fn table(tools: &[Value], width: Option<usize>) -> String {
    let columns =
        [Column { head: "TOOL", cut: Cut::Never }, Column { head: "DESCRIPTION", cut: Cut::End }];
    let row = |tool: &Value| vec![visible(super::name(tool)).replace('\n', " "), summary(tool)];
    render(&columns, &tools.iter().map(row).collect::<Vec<_>>(), width)
}

/// The first line of the description.
fn summary(tool: &Value) -> String {
    let text_of = |field: &str| tool.get(field).and_then(Value::as_str);
    let text = text_of("description").or_else(|| text_of("title")).unwrap_or_default();
    visible(text.trim().lines().next().unwrap_or_default())
}

/// Description, arguments and annotations.
pub(super) fn details(tool: &Value) -> String {
    let text_of = |field: &str| tool.get(field).and_then(Value::as_str);
    let title = text_of("title").map(|title| format!("{}\n", visible(title)));
    let description =
        text_of("description").map(|description| format!("\n{}\n", visible(description.trim())));
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
    let width = properties.keys().map(|name| visible(name).width()).max().unwrap_or(0).min(NAME);
    let mut text = "\nArguments (* required):\n".to_owned();
    for (name, property) in properties {
        let star = if is_required(name) { '*' } else { ' ' };
        let what = property.get("description").and_then(Value::as_str).unwrap_or_default();
        let name = visible(name);
        let gap = " ".repeat(width.saturating_sub(name.width()));
        let line = format!("{star} {name}{gap}  {:<8}  {}", kind(property), visible(what));
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

/// The definition on one line: its own line breaks are white space in JSON.
pub(super) fn one_line(tool: &RawValue) -> String {
    tool.get().replace(['\n', '\r'], " ")
}
