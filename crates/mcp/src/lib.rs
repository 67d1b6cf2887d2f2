//! The MCP wire: JSON-RPC envelopes, edits of raw messages, and the framings that carry them.
//!
//! A message is parsed once into a borrowed envelope whose `params`, `result` and `error` stay raw
//! text. A field is looked up with [`toolgate_json::peek()`] and changed with
//! [`toolgate_json::Edit`]. There are no typed models of params and results, because a model drops
//! what it does not know.
//!
//! Invariant: no I/O, no clock, no state beyond one stream's decoder.
//! Invariant: bytes change only where a caller requests it.
//! Start at [`parse_agent`].

pub mod code;
pub mod envelope;
pub mod limits;
pub mod line;
pub mod method;

pub mod outline;
pub mod pieces;
pub mod refusal;
pub mod sessionless;
pub mod sse;
pub mod version;
pub mod write;

pub use envelope::{
    Incoming, Message, Notification, OwnedRequest, Payload, Request, Response, parse_agent,
    parse_server,
};
pub use limits::{Limits, TooLarge};
pub use line::LineDecoder;
pub use outline::Outline;
pub use pieces::Pieces;
pub use refusal::Refusal;
pub use version::Version;
