//! Time and randomness, which are passed in: the gateway reads no clock and creates no random bytes.
//!
//! Invariant: without randomness there is no id, and nothing is opened or sent.

use jiff::Timestamp;

/// The wall clock.
pub trait Clock: Send + Sync + 'static {
    /// The current time.
    fn now(&self) -> Timestamp;
}

/// Creates ids that cannot be guessed.
pub trait Ids: Send + Sync + 'static {
    /// A new agent session id: at least 128 random bits in visible ASCII. `None` without randomness;
    /// then no agent session is opened.
    fn agent_session(&self) -> Option<String>;

    /// Ten random bytes for the id of a call. `None` without randomness; then nothing is sent.
    fn call(&self) -> Option<[u8; 10]>;
}
