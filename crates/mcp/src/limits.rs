//! Bounds on the shape of a message. Its length is bounded where it is read.

/// Bounds on the shape of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How deep objects and arrays of an agent's message may nest; the message itself is one level.
    pub depth: usize,
    /// How many messages a batch may hold.
    pub batch: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { depth: 64, batch: 100 }
    }
}

/// A line or an event exceeds its limit; the stream cannot be used any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a message is longer than {max} bytes")]
pub struct TooLarge {
    /// The limit.
    pub max: usize,
}
