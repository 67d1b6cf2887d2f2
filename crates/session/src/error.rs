//! Errors of frames, registrations and tools. Clients receive their texts.
//!
//! Invariant: no text contains a value that a client sent.

use thiserror::Error;

/// A longer field is rejected: it would be in every list and row.
pub(crate) const MAX_FIELD: usize = 512;
/// The maximum size of a definition, in bytes: every agent receives it.
pub(crate) const MAX_TOOL: usize = 512 * 1024;

/// Why a frame cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FrameError {
    /// The text is not JSON; the message of the parser.
    #[error("{0}")]
    Json(String),
    /// The text is not a single object.
    #[error("must be one object")]
    NotAnObject,
    /// A key occurs twice.
    #[error("the key `{0}` occurs twice; send it once")]
    DuplicateKey(&'static str),
    /// `jsonrpc` is not "2.0".
    #[error("`jsonrpc` must be \"2.0\"")]
    Version,
    /// `id` has a wrong type.
    #[error("`id` must be a string, an integer or null")]
    Id,
    /// `method` has a wrong type.
    #[error("`method` must be a string")]
    Method,
    /// The frame has a result and an error.
    #[error("has both `result` and `error`; send one of them")]
    ResultAndError,
    /// The frame is neither a request nor a response.
    #[error("has none of `method`, `result` and `error`")]
    Empty,
    /// The frame is both a request and a response.
    #[error("has `method` beside `result` or `error`; send one of them")]
    MethodAndResult,
    /// A response has no id.
    #[error("a response needs the `id` of its request")]
    MissingId,
}

/// Why `session.register` or `session.tools_changed` is rejected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum ParamsError {
    #[error("`params` must be an object")]
    NotAnObject,
    #[error("`{0}` is missing")]
    Missing(&'static str),
    #[error("`{0}` must not be empty")]
    Empty(&'static str),
    #[error("`{0}` is longer than {MAX_FIELD} bytes")]
    TooLong(&'static str),
    #[error("`{0}` has control characters")]
    ControlCharacters(&'static str),
    #[error("`{0}` must be a string")]
    NotAString(&'static str),
    #[error("`{0}` must be a whole number from 0 to {max}", max = u32::MAX)]
    NotANumber(&'static str),
    #[error("`tools` must be an array")]
    ToolsNotAnArray,
    /// The list is not valid JSON; the message of the parser.
    #[error("{0}")]
    Json(String),
    #[error("`tools` has {count} elements; {max} are the limit")]
    TooManyTools { count: usize, max: usize },
    /// The lists of a token exceed their limit; the sizes, for the client.
    #[error("{0}")]
    ListsFull(String),
    #[error("`tools[{index}]{error}")]
    Tool { index: usize, error: ToolError },
}

/// Why a tool is rejected. The text continues the path of the tool, as in `` `tools[3] ``.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum ToolError {
    #[error("` is larger than {limit} KiB", limit = MAX_TOOL / 1024)]
    TooLarge,
    #[error("` must be an object")]
    NotAnObject,
    #[error(".{0}` is missing")]
    Missing(&'static str),
    #[error(".{0}` must be a string")]
    NotAString(&'static str),
    #[error(".{0}` must be a whole number above 0")]
    NotANumber(&'static str),
    #[error(".name` must have 1 to 256 bytes and no control or invisible characters")]
    Name,
    #[error(".name` must not begin or end with white space")]
    NameSpace,
    #[error(".visibility` must be `public` or `internal`")]
    Visibility,
    #[error(".{key}`: {error}")]
    Value { key: &'static str, error: ValueError },
}

/// Why a JSON value inside a tool is rejected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum ValueError {
    #[error("must be an object")]
    NotAnObject,
    /// The message of the parser.
    #[error("{0}")]
    Json(String),
}

impl From<serde_json::Error> for ValueError {
    fn from(error: serde_json::Error) -> Self {
        Self::Json(error.to_string())
    }
}
