//! Named points on the way of a call, at which a test ends the process.
//!
//! Invariant: a build without debug assertions has nothing of it: [`reach`] is empty there and
//! `arm` does not exist. Nothing here decides, waits or reads the environment.

use std::fmt;

/// A place between the first and the last step of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failpoint {
    /// A group is complete and not committed.
    BeforeCommit,
    /// A group is committed, and nobody has heard of it.
    AfterCommit,
    /// A call is admitted and not sent.
    BeforeSend,
    /// A call is answered, and its outcome is not written.
    AfterAnswer,
}

impl Failpoint {
    /// All of them, in the order of a call.
    pub const ALL: [Failpoint; 4] = [
        Failpoint::BeforeCommit,
        Failpoint::AfterCommit,
        Failpoint::BeforeSend,
        Failpoint::AfterAnswer,
    ];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Failpoint::BeforeCommit => "before-commit",
            Failpoint::AfterCommit => "after-commit",
            Failpoint::BeforeSend => "before-send",
            Failpoint::AfterAnswer => "after-answer",
        }
    }
}

impl fmt::Display for Failpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Is told of every point that is reached.
#[cfg(debug_assertions)]
pub type FailpointHook = dyn Fn(Failpoint) + Send + Sync;

#[cfg(debug_assertions)]
static HOOK: std::sync::OnceLock<Box<FailpointHook>> = std::sync::OnceLock::new();

/// From now on `hook` is told of every point; the first one stays.
#[cfg(debug_assertions)]
pub fn arm(hook: Box<FailpointHook>) {
    // A second one would be a mistake of a test, and changes nothing.
    drop(HOOK.set(hook));
}

/// A call has come this far.
#[cfg(debug_assertions)]
pub fn reach(point: Failpoint) {
    if let Some(hook) = HOOK.get() {
        hook(point);
    }
}

/// A call has come this far.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn reach(_: Failpoint) {}
