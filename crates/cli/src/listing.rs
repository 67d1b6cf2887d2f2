//! Prints lists and single results of the admin API.

use std::borrow::Cow;

use jiff::Timestamp;
use serde_json::{Value, json};
use toolgate_control::visible;

use crate::args::{ListOutput, OneOutput};
use crate::print;
use crate::table::{Column, Cut, render, terminal_width};

/// Prints items; a table has these columns: heading and member. Ids are never cut.
pub(crate) fn list(output: ListOutput, items: &[Value], columns: &[(&'static str, &str)]) {
    print::out(&match output {
        ListOutput::Table => table(items, columns, terminal_width()),
        ListOutput::Json => format!("{}\n", json!({"items": items, "next": null})),
        ListOutput::Jsonl => lines(items.iter().map(Value::to_string)),
    });
}

/// Prints one object; for people one member per line.
pub(crate) fn one(output: OneOutput, object: &Value) {
    print::out(&match output {
        OneOutput::Json => format!("{object}\n"),
        OneOutput::Table => {
            let members = object.as_object().into_iter().flatten();
            lines(members.map(|(name, value)| format!("{name:<8} {}", cell(value))))
        }
    });
}

fn table(items: &[Value], columns: &[(&'static str, &str)], width: Option<usize>) -> String {
    let line = |item: &Value| -> Vec<String> {
        columns.iter().map(|(_, name)| cell(item.get(name).unwrap_or(&Value::Null))).collect()
    };
    let rows: Vec<Vec<String>> = items.iter().map(line).collect();
    let of_head = |(head, name): &(&'static str, &str)| {
        let cut = if ["id", "session_id"].contains(name) { Cut::Never } else { Cut::End };
        Column { head, cut }
    };
    render(&columns.iter().map(of_head).collect::<Vec<_>>(), &rows, width)
}

fn lines(lines: impl Iterator<Item = String>) -> String {
    lines.flat_map(|line| [line, "\n".to_owned()]).collect()
}

/// A value as the text of a cell.
pub(crate) fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => visible(&to_the_second(text).replace('\n', " ")),
        Value::Array(list) if list.is_empty() => "-".to_owned(),
        Value::Array(list) => list.iter().map(cell).collect::<Vec<_>>().join(","),
        other => visible(&other.to_string()),
    }
}

/// A time without the fraction of its second; any other text as it is.
fn to_the_second(text: &str) -> Cow<'_, str> {
    let is_time = text.ends_with('Z') && text.parse::<Timestamp>().is_ok();
    match text.split_once('.').filter(|_| is_time) {
        Some((seconds, _)) => Cow::Owned(format!("{seconds}Z")),
        None => Cow::Borrowed(text),
    }
}

/// The text member `name` of an object.
pub(crate) fn text<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.get(name).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_no_fraction_and_other_texts_stay() {
        for (text, shown) in [
            ("2026-11-18T18:44:13.812138Z", "2026-11-18T18:44:13Z"),
            ("2026-11-18T18:44:13Z", "2026-11-18T18:44:13Z"),
            ("v1.2 of Z", "v1.2 of Z"),
            ("a.bZ", "a.bZ"),
        ] {
            assert_eq!(cell(&json!(text)), shown);
        }
    }

    #[test]
    fn tables() {
        let items = [
            json!({"label": "laptop", "servers": ["a", "b"], "policy": null, "n": 1}),
            json!({"label": "x\u{1b}[2J", "servers": []}),
        ];
        let columns = [("LABEL", "label"), ("SERVERS", "servers"), ("POLICY", "policy")];
        let expected = "LABEL       SERVERS  POLICY\n\
                        laptop      a,b      -\n\
                        x\\u{1b}[2J  -        -\n";
        assert_eq!(table(&items, &columns, None), expected);
    }
}
