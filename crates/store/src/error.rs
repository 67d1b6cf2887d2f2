//! Why something was not written or could not be read.

use std::fmt;

use thiserror::Error;

/// What is wrong with the data, in words for the operator.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{kind}: {message}")]
pub struct StoreError {
    /// Of which kind.
    pub kind: StoreErrorKind,
    /// What the database says.
    pub message: String,
}

/// The kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreErrorKind {
    /// No space.
    Full,
    /// The data cannot be written.
    ReadOnly,
    /// The disk fails.
    Io,
    /// The disk takes too long to make sure of what was written.
    Lagging,
    /// Too much waits, or another process does not let go.
    Busy,
    /// The data is damaged.
    Corrupt,
    /// The store was closed.
    Closed,
    /// A mistake in toolgate.
    Internal,
}

/// Nothing was written, so nothing may be sent.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the audit cannot be written: {0}")]
pub struct NotAudited(pub StoreError);

/// Nothing could be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the store cannot be read: {0}")]
pub struct NotReadable(pub StoreError);

/// A change that was not made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ChangeError {
    /// Somebody else has that name.
    #[error("the name `{0}` is taken; names stay taken after a revocation, choose another")]
    NameTaken(String),
    /// There is no such thing.
    #[error("there is no `{0}`")]
    Unknown(String),
    /// It could not be written.
    #[error(transparent)]
    NotAudited(#[from] NotAudited),
}

impl StoreError {
    /// A fault with words.
    pub fn new(kind: StoreErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    pub(crate) fn closed() -> Self {
        Self::new(StoreErrorKind::Closed, "toolgate is stopping")
    }
}

impl fmt::Display for StoreErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StoreErrorKind::Full => "the disk is full",
            StoreErrorKind::ReadOnly => "the data is read-only",
            StoreErrorKind::Io => "the disk fails",
            StoreErrorKind::Lagging => "the disk lags",
            StoreErrorKind::Busy => "the store is busy",
            StoreErrorKind::Corrupt => "the data is damaged",
            StoreErrorKind::Closed => "the store is closed",
            StoreErrorKind::Internal => "toolgate made a mistake",
        })
    }
}
