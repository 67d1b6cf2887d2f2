//! Errors of this crate.

/// Why a value could not be looked up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text is not JSON. serde_json reports line and column.
    #[error("not valid JSON: {0}")]
    Syntax(String),
    /// The text is valid to serde_json, but this crate could not step through it.
    #[error("the JSON cannot be read")]
    Unreadable,
    /// A requested key occurs more than once; shortened.
    #[error("the key `{0}` occurs twice; send it once")]
    Duplicate(String),
}

/// The text is not JSON, or is ambiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed JSON")]
pub struct Malformed;

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::Syntax(error.to_string())
    }
}

/// Text of a sender, shortened for an error message.
pub fn shown(text: &str) -> String {
    const CHARS: usize = 64;
    match text.char_indices().nth(CHARS) {
        Some((cut, _)) => format!("{}…", text.get(..cut).unwrap_or_default()),
        None => text.to_owned(),
    }
}
