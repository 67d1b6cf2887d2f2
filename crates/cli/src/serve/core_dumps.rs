//! No core dumps: the memory of a gateway holds tokens and the arguments of calls.

use toolgate_os::limits::{hide_memory, no_core_dumps};

/// Turns them off for this process.
pub(crate) fn off() {
    if let Err(error) = no_core_dumps() {
        tracing::warn!(%error, "cannot set the core dump limit");
    }
    if let Err(error) = hide_memory() {
        tracing::warn!(%error, "cannot turn core dumps off");
    }
}
