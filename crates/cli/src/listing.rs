//! How lists and single results of the admin API are printed.

use serde_json::{Value, json};
use toolgate_control::visible;

use crate::args::{ListOutput, OneOutput};
use crate::print;

/// Prints items; in a table, these members of them under these heads.
pub(crate) fn list(output: ListOutput, items: &[Value], columns: &[(&str, &str)]) {
    print::out(&match output {
        ListOutput::Table => table(items, columns),
        ListOutput::Json => format!("{}\n", json!({"items": items, "next": null})),
        ListOutput::Jsonl => lines(items.iter().map(Value::to_string)),
    });
}

/// Prints one object; for people one member a line.
pub(crate) fn one(output: OneOutput, object: &Value) {
    print::out(&match output {
        OneOutput::Json => format!("{object}\n"),
        OneOutput::Table => {
            let members = object.as_object().into_iter().flatten();
            lines(members.map(|(name, value)| format!("{name:<8} {}", cell(value))))
        }
    });
}

fn table(items: &[Value], columns: &[(&str, &str)]) -> String {
    let head = columns.iter().map(|(head, _)| (*head).to_owned()).collect();
    let line = |item: &Value| -> Vec<String> {
        columns.iter().map(|(_, name)| cell(item.get(name).unwrap_or(&Value::Null))).collect()
    };
    let all: Vec<Vec<String>> = std::iter::once(head).chain(items.iter().map(line)).collect();
    let width = |column: usize| {
        let cells = all.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let text = |line: &Vec<String>| {
        let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    lines(all.iter().map(text))
}

fn lines(lines: impl Iterator<Item = String>) -> String {
    lines.flat_map(|line| [line, "\n".to_owned()]).collect()
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => visible(&text.replace('\n', " ")),
        Value::Array(list) if list.is_empty() => "-".to_owned(),
        Value::Array(list) => list.iter().map(cell).collect::<Vec<_>>().join(","),
        other => visible(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(table(&items, &columns), expected);
    }
}
