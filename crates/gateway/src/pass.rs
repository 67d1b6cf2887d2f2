//! Passes: what a request must show to be sent.
//!
//! Invariant: a request that can do something is sent only with a permit, and only the store makes
//! permits. A [`Harmless`] pass exists only for the methods that cannot.

use toolgate_mcp::method;
use toolgate_store::Permit;

/// What lets a request through.
#[derive(Debug)]
pub(crate) enum Pass {
    /// The store has written it down and counted it.
    Permit(Permit),
    /// It cannot do anything that a policy speaks of.
    Harmless(Harmless),
}

/// The pass of a method that needs no permit.
#[derive(Debug)]
pub(crate) struct Harmless(());

/// What needs a permit: tools, and whatever hands out what a policy may keep back.
const GUARDED: [&str; 5] = [
    method::TOOLS_CALL,
    method::PROMPTS_GET,
    method::RESOURCES_READ,
    method::RESOURCES_SUBSCRIBE,
    method::COMPLETION_COMPLETE,
];

impl Pass {
    /// Whether the request may be written again: it can do nothing, so it can do nothing twice.
    pub(crate) fn may_repeat(&self) -> bool {
        matches!(self, Self::Harmless(_))
    }

    /// It was used: the request has left.
    pub(crate) fn spend(self) {
        match self {
            Self::Permit(permit) => tracing::trace!(call = %permit.call_id(), "sent"),
            Self::Harmless(Harmless(())) => {}
        }
    }
}

impl Harmless {
    /// The pass of `method`; none if it needs a permit.
    pub(crate) fn of(method: &str) -> Option<Self> {
        (!GUARDED.contains(&method)).then_some(Self(()))
    }
}
