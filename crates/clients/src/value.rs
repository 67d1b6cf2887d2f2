//! A value of a client's file, whatever its format; members keep their order.

use std::fmt;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum FileValue {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as it is written.
    Number(String),
    /// A string.
    Text(String),
    /// A list.
    List(Vec<FileValue>),
    /// An object or table.
    Object(Vec<(String, FileValue)>),
}

impl FileValue {
    /// An object.
    pub fn object<'a>(members: impl IntoIterator<Item = (&'a str, FileValue)>) -> Self {
        Self::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }

    /// A string.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// The member of this name.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => members.iter().find(|(name, _)| name == key).map(|(_, it)| it),
            _ => None,
        }
    }

    /// The members of an object.
    pub fn members(&self) -> Option<&[(String, Self)]> {
        match self {
            Self::Object(members) => Some(members),
            _ => None,
        }
    }

    /// The text of a string.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// As JSON over several lines: `step` is one level of indentation, `before` that of the first
    /// line.
    pub fn pretty(&self, step: &str, before: &str) -> String {
        let inside = format!("{before}{step}");
        match self {
            Self::Object(members) if !members.is_empty() => {
                let lines: Vec<String> = members
                    .iter()
                    .map(|(key, value)| {
                        format!("{inside}{}: {}", quoted(key), value.pretty(step, &inside))
                    })
                    .collect();
                format!("{{\n{}\n{before}}}", lines.join(",\n"))
            }
            other => other.to_string(),
        }
    }
}

/// As JSON on one line.
impl fmt::Display for FileValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Number(written) => f.write_str(written),
            Self::Text(text) => f.write_str(&quoted(text)),
            Self::List(items) => {
                let items: Vec<String> = items.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", items.join(", "))
            }
            Self::Object(members) => {
                let members: Vec<String> = members
                    .iter()
                    .map(|(key, value)| format!("{}: {value}", quoted(key)))
                    .collect();
                write!(f, "{{{}}}", members.join(", "))
            }
        }
    }
}

pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
