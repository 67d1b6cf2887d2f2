//! Deliberate faults for the tests: each must be found by the simulator.
//!
//! Outside tests [`on`] is a constant `false` and costs nothing.

/// A way the machine could be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// Ids on the wire count per socket and have no random part.
    IdsPerSocket,
    /// A timed-out call frees its slot at once.
    SlotFreedAtTimeout,
    /// What a superseded socket says besides answers is heard.
    OldGenerationHeard,
    /// An answer under an unknown id goes to the oldest running call.
    AnswerByGuess,
    /// The newest waiting call is sent first.
    QueueNotFifo,
    /// A live session may be taken over with another token.
    TakeoverByOtherToken,
    /// A session ends as soon as its socket is lost.
    GraceIgnored,
    /// A call that was cancelled while it waited is sent all the same.
    CancelledStillSent,
    /// A socket may register twice.
    RegisterTwice,
    /// An answer re-binds a socket without a look at its token.
    RebindAnyToken,
    /// An answer re-binds its socket to the first session that lacks one.
    RebindWrongSession,
    /// What ran when the socket was lost is sent again after a reconnect.
    SentAgain,
    /// The socket that was taken over stays open.
    SupersededStaysOpen,
    /// Two calls may be under way where one may.
    OneTooMany,
    /// With several candidates and no selector the first is taken.
    RoutedByGuess,
    /// A disconnected session is no candidate.
    DisconnectedIsGone,
    /// A timed-out call is answered again by its late answer.
    LateAnswerAnswers,
    /// Running calls of a session that is gone are forgotten.
    GoneForgets,
    /// Nobody is told when a list has changed.
    ListsSilent,
    /// A quarantined slot is never freed.
    QuarantineForever,
    /// The deadline starts when the call is sent.
    DeadlineFromSend,
}

#[cfg(not(test))]
pub(crate) const fn on(_: Mutant) -> bool {
    false
}

#[cfg(test)]
pub(crate) use active::{ALL, on, with};

#[cfg(test)]
mod active {
    use std::cell::Cell;

    use super::Mutant;

    pub(crate) const ALL: [Mutant; 21] = [
        Mutant::IdsPerSocket,
        Mutant::SlotFreedAtTimeout,
        Mutant::OldGenerationHeard,
        Mutant::AnswerByGuess,
        Mutant::QueueNotFifo,
        Mutant::TakeoverByOtherToken,
        Mutant::GraceIgnored,
        Mutant::CancelledStillSent,
        Mutant::RegisterTwice,
        Mutant::RebindAnyToken,
        Mutant::RebindWrongSession,
        Mutant::SentAgain,
        Mutant::SupersededStaysOpen,
        Mutant::OneTooMany,
        Mutant::RoutedByGuess,
        Mutant::DisconnectedIsGone,
        Mutant::LateAnswerAnswers,
        Mutant::GoneForgets,
        Mutant::ListsSilent,
        Mutant::QuarantineForever,
        Mutant::DeadlineFromSend,
    ];

    thread_local!(static ACTIVE: Cell<Option<Mutant>> = const { Cell::new(None) });

    pub(crate) fn on(mutant: Mutant) -> bool {
        ACTIVE.get() == Some(mutant)
    }

    /// Runs with one fault switched on, in this thread only.
    pub(crate) fn with<T>(mutant: Mutant, run: impl FnOnce() -> T) -> T {
        ACTIVE.set(Some(mutant));
        let result = run();
        ACTIVE.set(None);
        result
    }
}
