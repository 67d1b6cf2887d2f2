//! The MCP wire: JSON-RPC envelopes, edits of raw messages, and the framings that carry them.
//!
//! A message is read once into a borrowed envelope whose `params`, `result` and `error` stay the
//! bytes they came as; whoever needs a field looks for it with [`peek()`], and whoever must change
//! one cuts it out with [`Edit`]. There are no typed models of params and results here, because a
//! model drops what it does not know.
//!
//! Invariant: nothing here does I/O, reads a clock or keeps state beyond one stream's decoder.
//! Invariant: a byte that nobody asked to change is never changed.
//! Start at [`parse_agent`].

pub mod code;
pub mod edit;
pub mod envelope;
mod fold;
pub mod limits;
pub mod line;
pub mod method;
pub mod modern;
pub mod outline;
pub mod peek;
pub mod pieces;
pub mod refusal;
pub mod skip;
pub mod sse;
mod strict;
pub mod version;
mod walk;
pub mod write;

pub use edit::{Edit, EditError};
pub use envelope::{
    Incoming, Message, Notification, OwnedRequest, Payload, Request, Response, parse_agent,
    parse_server,
};
pub use fold::{compatible, fold, imitates, is_variant};
pub use limits::{Limits, TooLarge};
pub use line::LineDecoder;
pub use outline::Outline;
pub use peek::{entries, items, members, peek, text};
pub use pieces::Pieces;
pub use refusal::Refusal;
pub use strict::too_deep;
pub use version::Version;
