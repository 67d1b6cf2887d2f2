//! Why something does not become active.

use toolgate_store::{ChangeError, NotReadable};

use crate::access::LabelTaken;
use crate::policies::PolicyErrors;
use crate::policy_check::Rejected;

/// Why a server cannot be created.
pub type WiringError = Box<dyn std::error::Error + Send + Sync>;

/// Why a file or a change cannot become active.
#[derive(Debug, thiserror::Error)]
pub enum NotActive {
    /// Policies of the file cannot be used.
    #[error(transparent)]
    Policies(#[from] PolicyErrors),
    /// A grant of the file has the label of a stored one.
    #[error(transparent)]
    LabelTaken(#[from] LabelTaken),
    /// A server cannot be created.
    #[error("{0}")]
    Server(WiringError),
    /// The store cannot be read.
    #[error(transparent)]
    NotReadable(#[from] NotReadable),
    /// The edit cannot be recorded in the audit.
    #[error("the change cannot be recorded: {0}")]
    NotRecorded(ChangeError),
    /// The store did not answer in time.
    #[error("the change cannot be recorded: the disk does not answer")]
    TimedOut,
    /// The check of the policies panicked.
    #[error("the policies could not be checked")]
    CheckAborted,
}

/// Why a change of a person was not made, or is not active.
#[derive(Debug, thiserror::Error)]
pub enum NotChanged {
    /// The store rejected it.
    #[error(transparent)]
    Store(#[from] ChangeError),
    /// It is stored, but cannot become active.
    #[error("the change was stored, but is not active: {0}")]
    NotActive(NotActive),
}

/// Why a document was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum NotAccepted {
    /// The document is wrong.
    #[error(transparent)]
    Rejected(#[from] Rejected),
    /// The check panicked, or toolgate is stopping.
    #[error("the document could not be checked; retry")]
    Aborted,
}
