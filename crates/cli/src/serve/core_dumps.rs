//! No core dumps: the memory of a gateway holds tokens and the arguments of calls.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// This process leaves none. A child inherits the limit, and may raise it up to what it was.
pub(crate) fn off() {
    let maximum = getrlimit(Resource::Core).maximum;
    if let Err(error) = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum }) {
        tracing::warn!(%error, "the limit of core dumps could not be set");
    }
    // A program that collects dumps is not bound by the limit. Children are not concerned: a
    // program that is started is dumpable again.
    #[cfg(target_os = "linux")]
    if let Err(error) =
        rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
    {
        tracing::warn!(%error, "core dumps could not be switched off");
    }
}
