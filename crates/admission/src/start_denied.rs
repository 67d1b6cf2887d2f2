//! The reasons not to start a process of a server for a grant.

/// Why no process may be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartDenied {
    /// The policy of the grant allows no call to this server.
    #[error("it is not started, because the grant may call none of its tools")]
    NothingAllowed,
    /// A person has frozen it; the sentence says what.
    #[error("it is not started: {0}")]
    Frozen(String),
}
