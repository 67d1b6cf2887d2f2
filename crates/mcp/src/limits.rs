//! What a message may cost; how many bytes it may have belongs to whoever reads them.

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

/// A stream has brought a line or an event longer than was agreed; the stream is of no more use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a message is longer than {max} bytes")]
pub struct TooLarge {
    /// The limit that was passed.
    pub max: usize,
}
