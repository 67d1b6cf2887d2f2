//! Deliberate faults for the tests: each must be found by the reference interpreter.
//!
//! Outside tests [`on`] is a constant `false` and costs nothing.

/// A way the engine could be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutant {
    AbsentIsFalse,
    AllOfEmptyIsTrue,
    GtIsGte,
    DenyIfErrorIgnored,
    ApproveIfErrorIgnored,
    RequireSkipsClass,
    StarNames,
    ClassNames,
    ShadowNames,
    ShadowDenies,
    LimitOffByOne,
    LimitBeforeDeny,
    HoldBeforeLimit,
    ScopeIgnored,
    RateLimitPerEntry,
    HideByActionForgotten,
    SlidingForgetsEdge,
    LoopIgnoresTarget,
    RepeatIgnoresArguments,
    RulesAbsentPasses,
    GlobalTwice,
    NegativeAmount,
    ApprovalLiftsDeny,
    ConcurrencyIgnored,
}

#[cfg(not(test))]
pub(crate) const fn on(_: Mutant) -> bool {
    false
}

#[cfg(not(test))]
pub(crate) const fn any_on() -> bool {
    false
}

#[cfg(test)]
pub(crate) use active::{ALL, any_on, on, with};

#[cfg(test)]
mod active {
    use std::cell::Cell;

    use super::Mutant;

    pub(crate) const ALL: [Mutant; 24] = [
        Mutant::AbsentIsFalse,
        Mutant::AllOfEmptyIsTrue,
        Mutant::GtIsGte,
        Mutant::DenyIfErrorIgnored,
        Mutant::ApproveIfErrorIgnored,
        Mutant::RequireSkipsClass,
        Mutant::StarNames,
        Mutant::ClassNames,
        Mutant::ShadowNames,
        Mutant::ShadowDenies,
        Mutant::LimitOffByOne,
        Mutant::LimitBeforeDeny,
        Mutant::HoldBeforeLimit,
        Mutant::ScopeIgnored,
        Mutant::RateLimitPerEntry,
        Mutant::HideByActionForgotten,
        Mutant::SlidingForgetsEdge,
        Mutant::LoopIgnoresTarget,
        Mutant::RepeatIgnoresArguments,
        Mutant::RulesAbsentPasses,
        Mutant::GlobalTwice,
        Mutant::NegativeAmount,
        Mutant::ApprovalLiftsDeny,
        Mutant::ConcurrencyIgnored,
    ];

    thread_local!(static ACTIVE: Cell<Option<Mutant>> = const { Cell::new(None) });

    pub(crate) fn on(mutant: Mutant) -> bool {
        ACTIVE.get() == Some(mutant)
    }

    pub(crate) fn any_on() -> bool {
        ACTIVE.get().is_some()
    }

    /// Runs with one fault switched on, in this thread only.
    pub(crate) fn with<T>(mutant: Mutant, run: impl FnOnce() -> T) -> T {
        ACTIVE.set(Some(mutant));
        let result = run();
        ACTIVE.set(None);
        result
    }
}
