//! A single value in a document, and the text that Intercept compares it by.

use crate::number::Number;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    Null,
    Bool(bool),
    Number(String),
    String(String),
}

/// The text that a value of a rule is compared by.
pub(crate) fn print_scalar(scalar: &Scalar) -> String {
    match scalar {
        Scalar::Null => "<nil>".to_owned(),
        Scalar::Bool(flag) => flag.to_string(),
        Scalar::Number(text) => print_number(text),
        Scalar::String(text) => text.clone(),
    }
}

pub(crate) fn print_number(text: &str) -> String {
    Number::parse(text).and_then(|n| n.integer()).unwrap_or_else(|| text.to_owned())
}
