//! Why a message is rejected, for its sender.

use crate::code;

/// The rejection of a message, to be answered with [`crate::write::error`].
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

    /// The error of serde_json, which names line and column itself.
    pub(crate) fn syntax(error: &serde_json::Error) -> Self {
        Self::new(code::PARSE_ERROR, format!("not valid JSON: {error}"))
    }
}

impl From<toolgate_json::Error> for Refusal {
    fn from(error: toolgate_json::Error) -> Self {
        let code = match error {
            toolgate_json::Error::Syntax(_) | toolgate_json::Error::Unreadable => code::PARSE_ERROR,
            toolgate_json::Error::Duplicate(_) => code::INVALID_PARAMS,
        };
        Self::new(code, error.to_string())
    }
}
