//! The same edits in TOML (Codex).

use toml_edit::{Array, DocumentMut, Item, Table, Value as TomlValue, value as item};

use crate::not_edited::NotEdited;
use crate::value::FileValue;

/// The value of a whole file.
pub(crate) fn value(text: &str) -> Result<FileValue, NotEdited> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let document = parse(text)?;
    Ok(table(document.as_table()))
}

/// Sets `[key.name]`.
pub(crate) fn set(
    text: &str,
    key: &str,
    name: &str,
    entry: &FileValue,
) -> Result<String, NotEdited> {
    let mut document = parse(text)?;
    let servers = document.entry(key).or_insert_with(implicit);
    let Some(servers) = servers.as_table_like_mut() else {
        return Err(NotEdited::NotAnObject(key.to_owned()));
    };
    servers.insert(name, Item::Table(of_entry(entry)));
    Ok(document.to_string().trim_start_matches('\n').to_owned())
}

/// Removes `[key.name]`.
pub(crate) fn remove(text: &str, key: &str, name: &str) -> Result<String, NotEdited> {
    let mut document = parse(text)?;
    let servers = document.get_mut(key).and_then(Item::as_table_like_mut);
    if let Some(servers) = servers {
        servers.remove(name);
    }
    Ok(document.to_string())
}

/// The entry as a text to paste.
pub(crate) fn fragment(key: &str, name: &str, entry: &FileValue) -> String {
    let mut document = DocumentMut::new();
    let mut servers = Table::new();
    servers.set_implicit(true);
    servers.insert(name, Item::Table(of_entry(entry)));
    document.insert(key, Item::Table(servers));
    document.to_string()
}

fn implicit() -> Item {
    let mut table = Table::new();
    table.set_implicit(true);
    Item::Table(table)
}

fn parse(text: &str) -> Result<DocumentMut, NotEdited> {
    text.parse::<DocumentMut>().map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let head = text.get(..at).unwrap_or(text);
        NotEdited::Malformed {
            line: head.matches('\n').count() + 1,
            column: head.rsplit('\n').next().unwrap_or_default().chars().count() + 1,
            expected: format!("valid TOML ({})", error.message()),
        }
    })
}

fn of_entry(entry: &FileValue) -> Table {
    let mut made = Table::new();
    for (key, member) in entry.members().unwrap_or_default() {
        made.insert(key, item(of_value(member)));
    }
    made
}

fn of_value(value: &FileValue) -> TomlValue {
    match value {
        FileValue::Null => TomlValue::from(""),
        FileValue::Bool(value) => TomlValue::from(*value),
        FileValue::Number(written) => match written.parse::<i64>() {
            Ok(number) => TomlValue::from(number),
            Err(_) => TomlValue::from(written.as_str()),
        },
        FileValue::Text(text) => TomlValue::from(text.as_str()),
        FileValue::List(items) => TomlValue::Array(items.iter().map(of_value).collect::<Array>()),
        FileValue::Object(members) => {
            let members = members.iter().map(|(key, value)| (key.as_str(), of_value(value)));
            TomlValue::InlineTable(members.collect())
        }
    }
}

fn table(table: &dyn toml_edit::TableLike) -> FileValue {
    FileValue::Object(table.iter().map(|(key, it)| (key.to_owned(), of_item(it))).collect())
}

fn of_item(it: &Item) -> FileValue {
    match it {
        Item::None => FileValue::Null,
        Item::Value(value) => of_toml(value),
        Item::Table(inner) => table(inner),
        Item::ArrayOfTables(items) => {
            FileValue::List(items.iter().map(|inner| table(inner)).collect())
        }
    }
}

fn of_toml(value: &TomlValue) -> FileValue {
    match value {
        TomlValue::String(text) => FileValue::text(text.value()),
        TomlValue::Integer(number) => FileValue::Number(number.value().to_string()),
        TomlValue::Float(number) => FileValue::Number(number.value().to_string()),
        TomlValue::Boolean(value) => FileValue::Bool(*value.value()),
        TomlValue::Datetime(date) => FileValue::text(date.value().to_string()),
        TomlValue::Array(items) => FileValue::List(items.iter().map(of_toml).collect()),
        TomlValue::InlineTable(inner) => table(inner),
    }
}
