//! The limit of open files: every agent and every child needs some.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit to the hard one.
pub(crate) fn raise() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return;
    }
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => tracing::debug!(
            from = limit.current,
            to = limit.maximum,
            "raised the limit of open files"
        ),
        Err(error) => tracing::warn!(%error, "cannot raise the limit of open files"),
    }
}
