//! Errors of the store.

use std::fmt;

use thiserror::Error;
use toolgate_policy::ApprovalState;

/// An error of the store, with a message for the operator.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{kind}: {message}")]
pub struct StoreError {
    /// The kind of error.
    pub kind: StoreErrorKind,
    /// The message of the database.
    pub message: String,
}

/// The kinds of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreErrorKind {
    /// No space left on the disk.
    Full,
    /// The data cannot be written.
    ReadOnly,
    /// The disk reported an I/O error.
    Io,
    /// Syncing to the disk takes too long.
    Lagging,
    /// Too many jobs wait, or another process holds the lock.
    Busy,
    /// The data is damaged.
    Corrupt,
    /// Another version of toolgate wrote the data.
    OtherVersion,
    /// The store was closed.
    Closed,
    /// A bug in toolgate.
    Internal,
}

/// Nothing was recorded, so nothing may be sent.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the audit cannot be written: {0}")]
pub struct NotAudited(pub StoreError);

/// Nothing could be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the store cannot be read: {0}")]
pub struct NotReadable(pub StoreError);

/// Why a change was not made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ChangeError {
    /// The name belongs to another grant or person.
    #[error("the name `{0}` is taken; names stay taken after a revocation, choose another")]
    NameTaken(String),
    /// The object does not exist.
    #[error("`{0}` does not exist")]
    Unknown(String),
    /// The target is already frozen, by the freeze with this id.
    #[error("it is already frozen by the freeze `{0}`")]
    AlreadyFrozen(String),
    /// The approval was answered or has ended.
    #[error("the approval is not pending, it is {0}")]
    NotPending(ApprovalState),
    /// This person has already approved it, and another must.
    #[error("`{0}` has already approved it; another person must approve too")]
    AlreadyAnswered(String),
    /// The change could not be recorded.
    #[error(transparent)]
    NotAudited(#[from] NotAudited),
}

impl StoreError {
    /// An error with a message.
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
            StoreErrorKind::Io => "disk I/O error",
            StoreErrorKind::Lagging => "the disk is too slow",
            StoreErrorKind::Busy => "the store is busy",
            StoreErrorKind::Corrupt => "the data is damaged",
            StoreErrorKind::OtherVersion => "another version of toolgate wrote the data",
            StoreErrorKind::Closed => "the store is closed",
            StoreErrorKind::Internal => "internal error",
        })
    }
}
