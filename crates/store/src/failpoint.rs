//! Failpoints: named steps of a call at which a test can end the process.
//!
//! Invariant: a build without debug assertions contains none of it: [`reach`] is empty and `arm`
//! does not exist. Failpoints decide nothing, never block, and do not read the environment.

use std::fmt;

/// A step of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failpoint {
    /// A group is complete but not committed.
    BeforeCommit,
    /// A group is committed, but no caller has received its result.
    AfterCommit,
    /// A call is admitted but not sent.
    BeforeSend,
    /// A call is answered, but its outcome is not recorded.
    AfterAnswer,
}

impl Failpoint {
    /// All failpoints, in the order of a call.
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

/// Called at every failpoint that is reached.
#[cfg(debug_assertions)]
pub type FailpointHook = dyn Fn(Failpoint) + Send + Sync;

#[cfg(debug_assertions)]
static HOOK: std::sync::OnceLock<Box<FailpointHook>> = std::sync::OnceLock::new();

/// Installs the hook that is called at every failpoint; the first one stays.
#[cfg(debug_assertions)]
pub fn arm(hook: Box<FailpointHook>) {
    // A second hook would be a bug of a test; it is ignored.
    drop(HOOK.set(hook));
}

/// Reports that a call has reached this step.
#[cfg(debug_assertions)]
pub fn reach(point: Failpoint) {
    if let Some(hook) = HOOK.get() {
        hook(point);
    }
}

/// Reports that a call has reached this step.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn reach(_: Failpoint) {}
