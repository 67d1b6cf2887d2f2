//! The limit of open files: every agent and every child needs some.

use toolgate_os::limits::raise_open_files;

/// Raises the soft limit to the hard one.
pub(crate) fn raise() {
    match raise_open_files() {
        Ok(Some(raised)) => {
            tracing::debug!(from = raised.from, to = raised.to, "raised the limit of open files");
        }
        Ok(None) => {}
        Err(error) => tracing::warn!(%error, "cannot raise the limit of open files"),
    }
}
