//! Text, and text with a syntax: globs and dates.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use toolgate_policy::Glob;

use crate::finding::Span;
use crate::problem::code;
use crate::reader::{Read, Reader, is_boolean, is_number};
use crate::syntax::{Kind, Node};

/// Text, not empty. What looks like a number or a boolean must be quoted.
#[derive(Debug, Clone)]
pub(crate) struct Text(pub(crate) String);

impl Read for Text {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        match &node.kind {
            Kind::Scalar(scalar) if scalar.plain && is_typed(&scalar.text) => {
                let hint = format!("quote it: \"{}\"", scalar.text);
                reader.wrong_type(node, "text", Some(hint));
                None
            }
            Kind::Scalar(scalar) if scalar.text.trim().is_empty() => {
                reader.error(code::INVALID_VALUE, node.span, "the text is empty");
                None
            }
            Kind::Scalar(scalar) => Some(Self(scalar.text.clone())),
            _ => {
                reader.wrong_type(node, "text", None);
                None
            }
        }
    }
}

fn is_typed(text: &str) -> bool {
    is_number(text) || is_boolean(text)
}

impl JsonSchema for Text {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Text".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "minLength": 1 })
    }
}

/// Any scalar, as written: `8080`, `true` and `"true"` are all accepted.
#[derive(Debug, Clone)]
pub(crate) struct Scalar(pub(crate) String);

impl Read for Scalar {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        match &node.kind {
            Kind::Scalar(scalar) => Some(Self(scalar.text.clone())),
            Kind::Null => {
                reader.wrong_type(node, "text", Some("write \"\" for an empty text".to_owned()));
                None
            }
            _ => {
                reader.wrong_type(node, "text", None);
                None
            }
        }
    }
}

impl JsonSchema for Scalar {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Scalar".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "number", "boolean"] })
    }
}

/// A glob, as in policies.
#[derive(Debug, Clone)]
pub(crate) struct Pattern(pub(crate) Glob);

impl Pattern {
    pub(crate) fn parse(text: &str, span: Span, reader: &mut Reader<'_>) -> Option<Self> {
        if text.is_empty() {
            let hint = "write a name, or `*` for all";
            reader.error_hint(code::INVALID_VALUE, span, "an empty glob matches nothing", hint);
            return None;
        }
        match Glob::parse(text) {
            Ok(glob) => Some(Self(glob)),
            Err(why) => {
                let message = format!("`{text}` is not a glob");
                reader.error_hint(code::INVALID_VALUE, span, message, why);
                None
            }
        }
    }
}

impl Read for Pattern {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        let Scalar(text) = Scalar::read(node, reader)?;
        Self::parse(&text, node.span, reader)
    }
}

impl JsonSchema for Pattern {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Glob".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "number", "boolean"], "minLength": 1 })
    }
}

/// A date, `2027-01-31`; it means 00:00 UTC of that day.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Date(pub(crate) jiff::Timestamp);

impl Read for Date {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        let Scalar(text) = Scalar::read(node, reader)?;
        let midnight = (text.len() == 10)
            .then(|| text.parse::<jiff::civil::Date>().ok())
            .flatten()
            .and_then(|day| day.to_zoned(jiff::tz::TimeZone::UTC).ok());
        if midnight.is_none() {
            let hint = "write year-month-day: `2027-01-31`";
            reader.error_hint(
                code::INVALID_VALUE,
                node.span,
                format!("`{text}` is not a date"),
                hint,
            );
        }
        Some(Self(midnight?.timestamp()))
    }
}

impl JsonSchema for Date {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Date".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$" })
    }
}
