//! Why a file is not edited.

/// Why a file is not edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotEdited {
    /// It cannot be parsed.
    #[error("line {line}, column {column}: expected {expected}; correct the file first")]
    Malformed {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What is expected there.
        expected: String,
    },
    /// Something else is where the servers must be.
    #[error("`{0}` is not an object; correct the file first")]
    NotAnObject(String),
    /// The result would not be what was asked for.
    #[error("the file cannot be edited safely; use --print and paste the entry")]
    Unsafe,
}
