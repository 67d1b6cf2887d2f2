//! Why a message goes no further, in words for its sender.

use crate::code;

/// A message that is not let in, ready to be answered with [`crate::write::error`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The JSON-RPC error code: parse error, invalid request or invalid params.
    pub code: i32,
    /// What is wrong, where, and what to do about it.
    pub message: String,
    /// The raw id token of the request, if it could be read. A response's id is never here: an
    /// error under that id would answer another request of the same sender.
    pub id: Option<String>,
}

impl Refusal {
    pub(crate) fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), id: None }
    }

    /// What serde_json says of text that is not JSON; it names line and column itself.
    pub(crate) fn syntax(error: &serde_json::Error) -> Self {
        Self::new(code::PARSE_ERROR, format!("not valid JSON: {error}"))
    }
}

/// Something wrong at a place inside a message.
#[derive(Debug)]
pub(crate) struct Fault<'a> {
    /// The offending part, a slice of the message.
    pub(crate) at: &'a str,
    pub(crate) what: String,
}

impl<'a> Fault<'a> {
    pub(crate) fn duplicate(at: &'a str, key: &str) -> Self {
        Self { at, what: format!("the key `{}` occurs twice; send it once", shown(key)) }
    }

    pub(crate) fn imitation(at: &'a str, key: &str, of: &str) -> Self {
        let what = format!("the key `{}` imitates `{of}`; spell it `{of}`", shown(key));
        Self { at, what }
    }

    pub(crate) fn control(at: &'a str) -> Self {
        Self { at, what: "a key of the protocol has no control characters".to_owned() }
    }

    pub(crate) fn surrogate(at: &'a str) -> Self {
        let what = "a string has half of a surrogate pair; send both halves or neither".to_owned();
        Self { at, what }
    }
}

/// The sender's own text for a message of ours: cut, so that a refusal stays short.
pub(crate) fn shown(text: &str) -> String {
    const CHARS: usize = 64;
    match text.char_indices().nth(CHARS) {
        Some((cut, _)) => format!("{}…", text.get(..cut).unwrap_or_default()),
        None => text.to_owned(),
    }
}
