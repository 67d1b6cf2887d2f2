//! Time and randomness, which the gateway is given: it reads no clock and makes no random bytes.
//!
//! Invariant: without randomness no id is made, and then nothing is opened or sent.

use jiff::Timestamp;

/// What time it is, by the wall clock.
pub trait Clock: Send + Sync + 'static {
    /// Now.
    fn now(&self) -> Timestamp;
}

/// Where ids that nobody can guess come from.
pub trait Ids: Send + Sync + 'static {
    /// A new agent session id: at least 128 random bits in visible ASCII. None if there is no
    /// randomness to be had, and then no session is opened.
    fn agent_session(&self) -> Option<String>;

    /// Ten random bytes for the id of a call. None if there is no randomness to be had, and then
    /// nothing is sent.
    fn call(&self) -> Option<[u8; 10]>;
}
