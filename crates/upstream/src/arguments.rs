//! Checks of arguments against the schema of a server's tool (`validate: true`).
//!
//! The check itself is made above this crate, by the workers that also check arguments of session
//! tools.
//!
//! Invariant: fail closed. Arguments that cannot be checked are not sent.

use std::sync::Arc;

use crate::channel::BoxFuture;

/// Checks arguments.
pub trait ArgumentCheck: Send + Sync {
    /// Checks the arguments of one call, off the threads that serve connections.
    fn check(&self, call: ArgumentsToCheck) -> BoxFuture<'static, Result<(), InvalidArguments>>;
}

/// The arguments of one call.
#[derive(Debug, Clone)]
pub struct ArgumentsToCheck {
    /// The label of the grant that calls.
    pub grant: Arc<str>,
    /// The server.
    pub server: Arc<str>,
    /// The definition of the tool; `None` if it was too long to be kept.
    pub definition: Option<Arc<str>>,
    /// The raw arguments object.
    pub arguments: Arc<str>,
}

/// Why arguments do not match; contains no value of them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidArguments(pub String);
