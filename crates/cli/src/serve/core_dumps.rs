//! No core dumps: the memory of a gateway holds tokens and the arguments of calls.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Turns them off for this process. A child inherits the soft limit, and may raise it again.
pub(crate) fn off() {
    let maximum = getrlimit(Resource::Core).maximum;
    if let Err(error) = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum }) {
        tracing::warn!(%error, "cannot set the core dump limit");
    }
    // A core dump handler ignores the limit. Children are not affected: `exec` makes a process
    // dumpable again.
    #[cfg(target_os = "linux")]
    if let Err(error) =
        rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
    {
        tracing::warn!(%error, "cannot turn core dumps off");
    }
}
